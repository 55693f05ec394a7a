// SPDX-License-Identifier: Apache-2.0
// C++, PTX and machine code side by side. Lines that belong together have one colour, are selected
// together and scroll together.
'use strict';

const escapes = {'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'};
const escapeText = (text) => text.replace(/[&<>"]/g, (c) => escapes[c]);

const ptxTokens = /(\/\/.*$|\/\*.*?\*\/)|("(?:[^"\\]|\\.)*")|(%[\w$]+)|(^\s*[\w$]+:)|((?:^|\s)\.[a-z_]\w*)|(\b0[xfd][0-9a-fA-F]+\b|\b\d+\b)|(^\s*(?:@!?%[\w$]+\s+)?)([a-z][\w.:]*)/g;

function ptxMarkup(line) {
  return line.replace(ptxTokens, (all, comment, string, register, label, directive, literal, guard, opcode) => {
    if (comment) return `<i class="comment">${escapeText(comment)}</i>`;
    if (string) return `<i class="string">${escapeText(string)}</i>`;
    if (register) return `<i class="register" data-register="${register}">${register}</i>`;
    if (label) return `<i class="label">${label}</i>`;
    if (directive) return `<i class="directive">${directive}</i>`;
    if (literal) return `<i class="literal">${literal}</i>`;
    if (opcode) return `${guardMarkup(guard)}<i class="opcode">${opcode}</i>`;
    return escapeText(all);
  });
}

function guardMarkup(guard) {
  return guard.replace(/%[\w$]+/, (register) => `<i class="register" data-register="${register}">${register}</i>`);
}

const cppWords = 'alignas auto bool break case catch char class const constexpr continue default do double else enum explicit extern false float for if inline int long namespace noexcept nullptr operator private public requires return short signed sizeof static static_assert struct switch template this throw true try typedef typename union unsigned using virtual void volatile while __global__ __device__ __shared__ def import from in'.split(' ');
const cppTokens = /(\/\/.*$|\/\*.*?\*\/|^\s*#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\b\d[\w.']*)|([A-Za-z_]\w*)|([&<>"])/g;

function cppMarkup(line) {
  return line.replace(cppTokens, (all, comment, string, literal, word) => {
    if (comment) return `<i class="comment">${escapeText(comment)}</i>`;
    if (string) return `<i class="string">${escapeText(string)}</i>`;
    if (literal) return `<i class="literal">${literal}</i>`;
    if (word) return cppWords.includes(word) ? `<i class="keyword">${word}</i>` : word;
    return escapeText(all);
  });
}

const machineMarkup = (line) => escapeText(line)
  .replace(/^(\/\*[0-9a-f]+\*\/) ((?:@!?\w+ )?)([A-Z][\w.]*)/, '<i class="comment">$1</i> $2<i class="opcode">$3</i>')
  .replace(/\b(U?R\d+|U?P\d+)\b/g, '<i class="register">$1</i>');

// A pane: a list of lines with their colour, and what is written under some of them.
class Pane {
  constructor(name, title) {
    this.name = name;
    this.rows = new Map();  // number of the line -> its row
    this.body = element('div', {class: 'lines', tabindex: '0', role: 'list', 'aria-label': title});
    this.tabs = element('div', {class: 'pane-title'}, title);
    this.root = element('div', {class: `pane ${name}`}, this.tabs, this.body);
    for (const what of ['pointerenter', 'touchstart', 'wheel', 'focusin'])
      this.body.addEventListener(what, () => { Pane.active = this; }, {passive: true});
    this.body.addEventListener('scroll', () => { if (Pane.active === this) this.scrolled(); });
  }

  fill(texts, markup, keys, prefix) {
    this.rows.clear();
    this.body.replaceChildren();
    this.keys = keys;
    texts.forEach((text, i) => {
      const line = i + 1, key = keys[i];
      const code = element('code');
      code.innerHTML = markup(text) || ' ';
      const row = element('div', {class: key ? 'row tinted' : 'row', id: `${prefix}-${line}`, role: 'listitem', 'data-line': line},
        element('span', {class: 'gutter'}, String(line)), code);
      if (key) row.style.setProperty('--hue', hues.get(key));
      this.rows.set(line, row);
      this.body.append(row);
    });
  }

  // Puts `note` under a line.
  note(line, note) {
    let last = this.rows.get(line);
    if (!last) return;
    while (last.nextElementSibling && last.nextElementSibling.classList.contains('note')) last = last.nextElementSibling;
    last.after(note);
  }

  mark(lines) {
    for (const row of this.body.querySelectorAll('.row.selected')) row.classList.remove('selected');
    for (const line of lines) this.rows.get(line)?.classList.add('selected');
  }

  top(line) {
    return this.rows.get(line).offsetTop;  // the pane positions its rows
  }

  // Scrolls so that a line is `offset` pixels below the pane's top.
  scrollTo(line, offset = this.body.clientHeight / 3) {
    if (this.rows.has(line)) this.body.scrollTop = Math.max(0, this.top(line) - offset);
  }

  // The line a third below the top.
  lineInView() {
    const at = this.body.scrollTop + this.body.clientHeight / 3;
    let found = 1;
    for (const line of this.rows.keys()) {
      if (this.top(line) > at) break;
      found = line;
    }
    return found;
  }

  scrolled() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => follow(this));
  }
}

const panes = {};

// The nearest line at or after `line` whose key is not empty; else the last before it.
function nearestWithKey(keys, line) {
  for (let i = line - 1; i < keys.length; ++i) if (keys[i]) return i + 1;
  for (let i = line - 2; i >= 0; --i) if (keys[i]) return i + 1;
  return 0;
}

// Of the lines with that key the one nearest to what is in view.
function lineWithKey(pane, key) {
  const now = pane.lineInView();
  let best = 0;
  pane.keys.forEach((each, i) => {
    if (each === key && (!best || Math.abs(i + 1 - now) < Math.abs(best - now))) best = i + 1;
  });
  return best;
}

// The other panes show what belongs to the line in view of this one.
function follow(pane) {
  const line = nearestWithKey(pane.keys, pane.lineInView());
  if (!line) return;
  const key = pane.keys[line - 1], offset = pane.top(line) - pane.body.scrollTop;
  for (const other of Object.values(panes)) {
    if (other === pane) continue;
    if (other === panes.cpp) showSource(Number(key.split(':')[0]));
    const match = lineWithKey(other, key);
    if (match) other.scrollTo(match, offset);
  }
}

let shownSource = -1;

function showSource(index) {
  if (!panes.cpp || index === shownSource || !model.sources[index]) return;
  shownSource = index;
  const source = model.sources[index];
  for (const tab of panes.cpp.tabs.querySelectorAll('[role=tab]'))
    tab.setAttribute('aria-selected', String(Number(tab.dataset.source) === index));
  const lines = source.text === null
    ? [`// ${source.path}`, '// This file was not found where the page was made.']
    : source.text.replace(/\n$/, '').split('\n');
  panes.cpp.fill(lines, cppMarkup, lines.map((_, i) => ptxOfSource.has(`${index}:${i + 1}`) ? `${index}:${i + 1}` : ''), 'cpp');
  for (const choice of model.choices)
    if (choice.file === index) panes.cpp.note(choice.line, choiceNote(choice));
  for (const finding of model.findings) {
    const origin = originOf(finding.line);
    if (origin && origin[0] === index) panes.cpp.note(origin[1], findingNote(finding));
  }
}

function choiceNote(choice) {
  const more = choice.reason || choice.refused.length;
  const head = [element('b', {}, choice.what), ' ', element('span', {class: 'taken'}, choice.taken)];
  if (!more) return element('div', {class: 'note choice'}, ...head);
  return element('details', {class: 'note choice'}, element('summary', {}, ...head),
    choice.reason ? element('p', {}, `because ${choice.reason}`) : null,
    ...choice.refused.map((each) => element('p', {class: 'refused'}, `not ${each}`)));
}

function sourceTabs(pane) {
  pane.tabs.replaceChildren(...model.sources.map((source, i) => element('button', {
    type: 'button', role: 'tab', 'data-source': i, title: source.path, 'aria-selected': 'false',
    onclick: () => showSource(i),
  }, source.name)));
  pane.tabs.setAttribute('role', 'tablist');
}

// What a line did in the run, at the end of its row.
function addCounts(pane) {
  const run = model.report.run;
  if (!run) return;
  const most = Math.max(1, ...run.instructions.map((each) => each.cost));
  for (const each of run.instructions) {
    const row = pane.rows.get(each.line);
    if (!row || row.querySelector('.count')) continue;
    const conflicts = each.shared ? each.shared.conflicts : 0;
    const text = [`${number(each.executions)}×`];
    const title = [`executed ${plural(each.executions, 'time')} by warps`];
    if (each.shared) title.push(`${plural(each.shared.wavefronts, 'wavefront')}, ${number(conflicts)} of them bank conflicts`);
    if (each.global) title.push(`${plural(each.global.sectors, 'sector')}, ${number(each.global.minimum_sectors)} at least`);
    if (each.waits) title.push(`${plural(each.waits, 'wait')} found the phase incomplete`);
    row.append(element('span', {class: 'count', title: title.join('; '), style: `--part:${(each.cost / most).toFixed(3)}`},
      conflicts ? element('span', {class: 'conflict', title: `${number(conflicts)} bank conflicts`}, `⚠ ${Number((each.shared.wavefronts / each.shared.requests).toFixed(1))}`) : null, ...text));
  }
}

function registerUnderPointer(event) {
  const name = event.target.dataset?.register;
  if (name) light({lane: null, registers: new Set([name]), label: name});
  else if (state.lit && state.lit.lane === null) light(null);
}

function addCode() {
  const view = element('div', {class: 'panes'});
  if (model.sources.length) {
    panes.cpp = new Pane('cpp', 'C++');
    sourceTabs(panes.cpp);
    view.append(panes.cpp.root);
  }
  panes.ptx = new Pane('ptx', model.ptx.name.split('/').pop());
  panes.ptx.fill(ptxLines, ptxMarkup, ptxLines.map((_, i) => keyOf(originOf(i + 1))), 'ptx');
  view.append(panes.ptx.root);
  if (model.machine.lines.length) {
    panes.machine = new Pane('machine', 'machine code');
    panes.machine.fill(model.machine.lines, machineMarkup, model.machine.at.map((origin) => keyOf(origin || null)), 'sass');
    view.append(panes.machine.root);
  }
  view.style.setProperty('--panes', Object.keys(panes).length);
  const hint = (view.childElementCount > 1 ? 'Lines of one colour belong together: click one, or scroll, and the others follow. ' : '')
    + 'The number at a line’s end says how often warps executed it; the bar is its share of the cost.';
  addPart('code', 'Code', hint, view,
    model.machine.missing ? element('p', {class: 'hint'}, `No machine code: ${model.machine.missing}.`) : null);
  if (panes.cpp) showSource(Number([...ptxOfSource.keys()][0]?.split(':')[0] ?? 0));
  for (const finding of model.findings)
    if (finding.line) panes.ptx.note(finding.line, findingNote(finding));
  for (const finding of model.findings)
    for (const other of finding.others) panes.ptx.note(other, otherNote(finding, other));
  addCounts(panes.ptx);
  panes.ptx.body.addEventListener('pointerover', registerUnderPointer);
  view.addEventListener('click', (event) => clicked(event, view));
  on('line', shown);
  on('lit', (lit) => {
    const names = lit ? [...lit.registers] : [];
    byId('lit-registers').textContent = names.map((name) => `[data-register="${name}"]`).join(',')
      + (names.length ? '{background:var(--lit);color:var(--on-lit);border-radius:3px}' : '');
  });
  document.head.append(element('style', {id: 'lit-registers'}));
}

function clicked(event) {
  const row = event.target.closest('.row');
  if (!row || event.target.closest('a')) return;
  const pane = Object.values(panes).find((each) => each.root.contains(row));
  Pane.active = pane;
  const line = Number(row.dataset.line), key = pane.keys[line - 1];
  if (pane === panes.ptx) return selectLine(line, {from: pane});
  if (!key) return;
  const first = ptxOfSource.get(key)?.[0];
  if (first) selectLine(first, {from: pane});
}

// Shows what was selected in all panes.
function shown({line, origin, from, reveal}) {
  const key = keyOf(origin);
  if (origin) showSource(origin[0]);
  for (const pane of Object.values(panes)) {
    pane.mark(pane === panes.ptx && !key ? [line]
      : pane.keys.flatMap((each, i) => (key && each === key ? [i + 1] : [])));
    if (pane === from) continue;
    const target = pane === panes.ptx ? line : lineWithKey(pane, key);
    if (target) pane.scrollTo(target);
  }
  for (const row of panes.ptx.body.querySelectorAll('.row.here')) row.classList.remove('here');
  panes.ptx.rows.get(line)?.classList.add('here');
  if (reveal) { Pane.active = panes.ptx; panes.ptx.body.focus({preventScroll: true}); }
}
