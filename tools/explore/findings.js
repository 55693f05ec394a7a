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
    element('span', {class: 'mark'}, '↔'), ` the other side of ${finding.id} at `, lineLink(finding.line));
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

function findingCard(finding) {
  const lines = [finding.line, ...finding.others].filter((line) => line > 0 && line <= ptxLines.length);
  return element('article', {class: `card finding is-${finding.level}`},
    element('h3', {}, element('span', {class: 'mark'}, markOfLevel[finding.level]), ` ${finding.level}`,
      finding.line ? [' at ', lineLink(finding.line)] : null,
      element('span', {class: 'rule', title: finding.meaning}, finding.id)),
    element('p', {}, ...linked(capital(finding.message)), '.'),
    ...lines.flatMap((line) => quoted(line, finding)),
    finding.meaning ? element('p', {class: 'meaning'}, finding.meaning) : null,
    element('p', {class: 'by'}, finding.by === 'check' ? 'the checker says so of the text' : 'the emulator saw it',
      where(finding) ? ` in ${where(finding)}` : ''));
}

function addFindings() {
  const order = ['error', 'warning', 'note'];
  const sorted = [...model.findings].sort((x, y) => order.indexOf(x.level) - order.indexOf(y.level) || x.line - y.line);
  const ran = model.report.run ? 'The text checks, and the emulator found no race, fault or undefined value in the run.'
    : 'The text checks. It was not run: ' + (model.report.not_run || 'the text has errors') + '.';
  addPart('findings', 'Findings', null,
    ...(sorted.length ? sorted.map(findingCard) : [element('p', {class: model.report.run ? 'empty' : 'empty plain'}, `${model.report.run ? '✓ ' : ''}${ran}`)]),
    sorted.length && model.report.not_run ? element('p', {class: 'hint'}, `Not run on the emulator: ${model.report.not_run}.`) : null);
}
