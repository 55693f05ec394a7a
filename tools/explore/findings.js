// SPDX-License-Identifier: Apache-2.0
// What the checker and the emulator found: a list with the lines that it is about, and notes at
// those lines.
'use strict';

const markOfLevel = {error: '✖', warning: '▲', note: 'ℹ'};

function where(finding) {
  const out = [];
  if (finding.block) out.push(`block (${finding.block.join(', ')})`);
  if (finding.thread !== undefined) out.push(`thread ${finding.thread}`);
  return out.join(', ');
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function findingNote(finding) {
  return element('div', {class: `note finding is-${finding.level}`},
    element('span', {class: 'mark'}, markOfLevel[finding.level]), ' ', ...linked(finding.message),
    element('span', {class: 'rule'}, finding.id));
}

function otherNote(finding, line) {
  return element('div', {class: `note finding other is-${finding.level}`},
    element('span', {class: 'mark'}, '↔'), ` the other access of the ${finding.id} at `, lineLink(finding.line));
}

// A line of the PTX, quoted, with its C++ line.
function quoted(line, finding) {
  const code = element('code');
  const text = ptxLines[line - 1] ?? '';
  const indent = text.length - text.trimStart().length;
  code.innerHTML = ptxMarkup(text.trim());
  const origin = originOf(line), source = origin ? model.sources[origin[0]] : null;
  const rows = [element('div', {class: 'quote'}, lineLink(line, `${line}`), code,
    source ? element('span', {class: 'origin'}, `${source.name}:${origin[1]}`) : null)];
  if (line === finding.line && finding.column > indent && finding.width)
    rows.push(element('div', {class: 'caret'}, ' '.repeat(finding.column - 1 - indent) + '^' + '~'.repeat(Math.max(0, finding.width - 1))));
  if (source && source.text !== null) {
    const cpp = element('code');
    cpp.innerHTML = cppMarkup((source.text.split('\n')[origin[1] - 1] ?? '').trim());
    rows.push(element('div', {class: 'quote source'}, element('span', {class: 'origin'}, 'C++'), cpp));
  }
  return rows;
}

// Which elements of a buffer are not as expected, in rows of so many; and where results are stored.
function differences(finding) {
  const {elements, differing} = finding;
  const canvas = element('canvas', {class: 'differences', role: 'img', 'aria-label': 'Elements that differ'});
  const widths = [4, 8, 16, 32, 64, 128, 256].filter((each) => each <= elements && elements / each <= 512);
  if (!widths.length) return null;
  const tip = element('p', {class: 'step'});
  const chooser = element('select', {'aria-label': 'Columns', onchange: () => draw()}, ...widths.map((each) => element('option', {value: each}, `${each} columns`)));
  chooser.value = String(widths.find((each) => elements / each <= each * 2) ?? widths[widths.length - 1]);
  const size = () => Math.max(3, Math.min(12, Math.floor(Math.min(640, innerWidth - 70) / Number(chooser.value))));
  const wrong = new Set(differing.flatMap(([first, last]) => Array.from({length: last - first + 1}, (_, i) => first + i)));
  const draw = () => {
    const width = Number(chooser.value), box = size();
    const context = sized(canvas, width * box + 1, Math.ceil(elements / width) * box + 1);
    for (let i = 0; i < elements; ++i) {
      context.fillStyle = styleOf(wrong.has(i) ? '--bad' : '--line');
      context.fillRect((i % width) * box, Math.floor(i / width) * box, box - 1, box - 1);
    }
  };
  canvas.addEventListener('pointermove', (event) => {
    const width = Number(chooser.value), col = Math.floor(event.offsetX / size()), row = Math.floor(event.offsetY / size());
    const at = row * width + col;
    tip.textContent = col < width && at < elements ? `index ${at} (row ${row}, column ${col}): ${wrong.has(at) ? 'differs' : 'as expected'}` : '';
  });
  on('redraw', draw);
  draw();
  const stores = (model.report.run?.instructions ?? []).filter((each) => each.global && /^(st|red|atom)\b/.test(each.opcode));
  return element('div', {}, element('div', {class: 'player'}, chooser, element('span', {class: 'key'}, element('i', {style: 'background:var(--bad)'}), 'differs'), element('span', {class: 'key'}, element('i', {style: 'background:var(--line)'}), 'as expected')),
    element('div', {class: 'scroll tall'}, canvas), tip,
    stores.length ? element('p', {class: 'meaning'}, 'Global memory is written at ', ...stores.flatMap((each, i) => [i ? ', ' : '', lineLink(each.line)]), model.findings.every((each) => each.differing) ? '. No race, fault or undefined value explains it: look at addresses, layouts, operands and constants.' : '.') : null);
}

// The first elements that differ, with what they should be.
function values(finding) {
  if (!finding.values?.length) return null;
  const cells = (tag, texts) => element('tr', {}, ...texts.map((each) => element(tag, {}, String(each))));
  return element('table', {class: 'numbers values'}, element('thead', {}, cells('th', ['index', 'expected', 'found'])),
    element('tbody', {}, ...finding.values.map((each) => cells('td', [each.index, each.expected, each.found]))));
}

// Findings of one rule at the same lines, of the C++ where that is known, have one cause: the first
// stands for them.
function grouped(findings) {
  const groups = new Map();
  for (const each of findings) {
    const lines = [each.line, ...each.others].filter((line) => line > 0).map((line) => keyOf(originOf(line)) || String(line)).sort();
    const key = lines.length ? `${each.id}:${lines.join()}` : `${each.id}:${each.message}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()];
}

function moreOfTheSame(rest) {
  if (!rest.length) return null;
  return element('details', {class: 'same'}, element('summary', {}, `${rest.length} more ${rest.length === 1 ? 'finding' : 'findings'} of the same lines: likely one cause`),
    ...rest.map((each) => element('p', {}, ...linked(capital(each.message)), where(each) ? `, in ${where(each)}` : '', '.')));
}

// Of a race: what could have ordered its accesses, and how often all of them ran. A wait that ran
// less often than the access behind it was skipped.
const orders = /^(cp\.async\.(bulk\.)?wait|bar\.|bar$|barrier\.|mbarrier\.(try|test)_wait|wgmma\.wait|fence\.proxy)/;

function whatOrders(finding) {
  const ran = model.report.run?.instructions;
  if (!ran || !/race/.test(finding.id)) return null;
  const item = (each) => [lineLink(each.line), ` ${each.opcode.split('.shared')[0]}, ${number(each.executions)} ×`];
  const listed = (some) => some.flatMap((each, i) => [i ? '; ' : '', ...item(each)]);
  const waits = ran.filter((each) => orders.test(each.opcode)), shown = waits.slice(0, 12);
  const accesses = ran.filter((each) => each.line === finding.line || finding.others.includes(each.line));
  return element('p', {class: 'meaning orders'}, 'Executions by warps: ', ...listed(accesses), '. ',
    ...(waits.length ? ['Waits and barriers: ', ...listed(shown), waits.length > shown.length ? `; ${waits.length - shown.length} more.` : '.']
      : ['No instruction of this kernel waits, and none is a barrier.']));
}

function findingCard([finding, ...rest]) {
  const lines = [finding.line, ...finding.others].filter((line) => line > 0 && line <= ptxLines.length);
  return element('article', {class: `card finding is-${finding.level}`},
    element('h3', {}, element('span', {class: 'mark'}, markOfLevel[finding.level]), ` ${finding.level}`,
      finding.line ? [' at ', lineLink(finding.line)] : null,
      element('span', {class: 'rule', title: finding.meaning}, finding.id)),
    element('p', {}, ...linked(capital(finding.message)), '.'),
    ...lines.flatMap((line) => quoted(line, finding)),
    values(finding), finding.differing ? differences(finding) : null,
    finding.meaning ? element('p', {class: 'meaning'}, finding.meaning) : null, whatOrders(finding),
    element('p', {class: 'by'}, finding.by === 'check' ? 'the checker says so of the text' : 'the emulator saw it',
      where(finding) ? ` in ${where(finding)}` : ''), moreOfTheSame(rest));
}

function addFindings() {
  const order = ['error', 'warning', 'note'];
  const sorted = [...model.findings].sort((x, y) => order.indexOf(x.level) - order.indexOf(y.level) || x.line - y.line);
  const ran = model.report.run ? 'The text checks, and the emulator found no race, fault or undefined value in the run.'
    : 'The text checks. It was not run: ' + (model.report.not_run || 'the text has errors') + '.';
  addPart('findings', 'Findings', null,
    ...(sorted.length ? grouped(sorted).map(findingCard) : [element('p', {class: model.report.run ? 'empty' : 'empty plain'}, `${model.report.run ? '✓ ' : ''}${ran}`)]),
    sorted.length && model.report.not_run ? element('p', {class: 'hint'}, `Not run on the emulator: ${model.report.not_run}.`) : null);
}
