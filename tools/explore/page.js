// SPDX-License-Identifier: Apache-2.0
// Puts the parts together; search, keys, light and dark, print.
'use strict';

// ---- Search: in all lines of all panes; Enter goes to the next.

const search = {words: '', hits: [], at: -1};

function searchFor(words) {
  for (const row of document.querySelectorAll('.row.hit')) row.classList.remove('hit', 'now');
  Object.assign(search, {words, hits: [], at: -1});
  const wanted = words.trim().toLowerCase();
  if (wanted) {
    for (const pane of Object.values(panes))
      for (const row of pane.rows.values())
        if (row.querySelector('code').textContent.toLowerCase().includes(wanted)) search.hits.push({pane, row});
    for (const {row} of search.hits) row.classList.add('hit');
  }
  byId('found').textContent = wanted ? String(search.hits.length) : '';
  if (search.hits.length) nextHit(1);
}

function nextHit(by) {
  const {hits} = search;
  if (!hits.length) return;
  hits[search.at]?.row.classList.remove('now');
  search.at = (search.at + by + hits.length) % hits.length;
  const {pane, row} = hits[search.at];
  row.classList.add('now');
  Pane.active = null;
  pane.scrollTo(Number(row.dataset.line));
  byId('found').textContent = `${search.at + 1} / ${hits.length}`;
  byId('code').scrollIntoView({block: 'nearest'});
}

// ---- Light and dark: the system's, until a choice.

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  tell('redraw');
}

function otherTheme() {
  const now = document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  setTheme(now === 'dark' ? 'light' : 'dark');
}

// ---- Keys.

const keys = [
  ['/', 'search; Enter and Shift+Enter go through what is found'], ['j, k', 'next and previous line of the PTX'],
  ['n, p', 'next and previous finding'], ['1 to 9', 'go to a part of the page'], ['t', 'light or dark'],
  ['Escape', 'let go of what is kept lit'], ['arrow keys', 'in a picture: from element to element, through wavefronts or time'], ['?', 'this list'],
];

function step(by) {
  const line = Math.max(1, Math.min(ptxLines.length, (state.line || 0) + by));
  selectLine(line, {});
}

function stepFinding(by) {
  const lines = [...new Set(model.findings.map((each) => each.line).filter(Boolean))].sort((x, y) => x - y);
  if (!lines.length) return;
  const next = by > 0 ? lines.find((each) => each > state.line) ?? lines[0] : lines.findLast((each) => each < state.line) ?? lines[lines.length - 1];
  byId('code').scrollIntoView({block: 'nearest'});
  selectLine(next, {reveal: true});
}

function goTo(part) {
  const link = byId('nav').children[part];
  if (link) link.click();
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches('input[type=search], select');
  if (event.key === 'Escape') { light(null, {pin: true}); byId('search').blur(); return; }
  if (typing) {
    if (event.target.id === 'search' && event.key === 'Enter') nextHit(event.shiftKey ? -1 : 1);
    return;
  }
  const acts = {'/': () => byId('search').focus(), j: () => step(1), k: () => step(-1), n: () => stepFinding(1), p: () => stepFinding(-1), t: otherTheme, '?': () => byId('keys').showModal()};
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); } else if (/^[1-9]$/.test(event.key)) goTo(Number(event.key) - 1);
}

function addKeys() {
  byId('keys').append(element('h2', {}, 'Keys'), element('dl', {}, ...keys.flatMap(([name, what]) => [element('dt', {}, name), element('dd', {}, what)])),
    element('form', {method: 'dialog'}, element('button', {}, 'Close')));
  byId('help').addEventListener('click', () => byId('keys').showModal());
  byId('theme').addEventListener('click', otherTheme);
  byId('search').addEventListener('input', (event) => searchFor(event.target.value));
  document.addEventListener('keydown', key);
}

addSummary();
addFindings();
addCode();
addMatrices();
addShared();
addTiles();
addTimeline();
addReport();
addKeys();
byId('main').append(element('footer', {}, `Made by ${model.generator}. This page loads nothing.`));
figures.forEach((each) => each.draw());
bankPicture?.draw();
tilePicture?.draw();
let width = window.innerWidth;
window.addEventListener('resize', () => { if (window.innerWidth !== width) { width = window.innerWidth; tell('redraw'); } });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => tell('redraw'));
window.addEventListener('beforeprint', () => setTheme('light'));
const firstFinding = model.findings.find((each) => each.line && each.level === 'error') ?? model.findings.find((each) => each.line);
const firstLine = firstFinding?.line ?? model.matrices.uses.find((use) => figures[use.form].product)?.line
  ?? model.matrices.uses[0]?.line ?? ptxLines.findIndex((_, i) => originOf(i + 1)) + 1;
if (firstLine) selectLine(firstLine);
document.documentElement.dataset.ready = 'true';
