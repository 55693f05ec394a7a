// SPDX-License-Identifier: Apache-2.0
// Numbers: at the top the few that decide, below all of them, beside limits.
'use strict';

function meter(value, limit, text) {
  const part = limit ? value / limit : 0;
  return element('span', {class: part > 1 ? 'meter over' : 'meter', style: `--part:${Math.min(1, part)}`, title: text});
}

const totals = () => {
  const out = {wavefronts: 0, conflicts: 0, sharedBytes: 0, sectors: 0, minimum: 0, globalBytes: 0, copied: 0, waits: 0};
  for (const each of model.report.run?.instructions ?? []) {
    out.wavefronts += each.shared?.wavefronts ?? 0;
    out.conflicts += each.shared?.conflicts ?? 0;
    out.sharedBytes += each.shared?.bytes ?? 0;
    out.sectors += each.global?.sectors ?? 0;
    out.minimum += each.global?.minimum_sectors ?? 0;
    out.globalBytes += each.global?.bytes ?? 0;
    out.copied += each.copied_bytes ?? 0;
    out.waits += each.waits ?? 0;
  }
  return out;
};

const dim = (of) => of.filter((each, i) => i === 0 || of.slice(i).some((n) => n > 1)).join(' × ');

// Of static memory, and of dynamic memory as far as somebody says how much that is.
function sharedBytes() {
  const fixed = model.report.shared.reduce((sum, each) => sum + (each.bytes ?? 0), 0);
  return fixed + (model.report.dynamic_shared ?? 0);
}

const sharedIsKnown = () => model.report.dynamic_shared !== null || model.report.shared.every((each) => each.bytes !== null);

const resourcesOf = () => model.machine.resources.find((each) => each.kernel === model.report.launch?.kernel) ?? model.machine.resources[0];

function tile(value, name, detail, level = '', extra = null) {
  return element('div', {class: `tile ${level}`}, element('b', {}, value), element('span', {}, name), extra, detail ? element('small', {}, detail) : null);
}

function addSummary() {
  const {report} = model, sum = totals(), limits = report.limits, out = [];
  const errors = model.findings.filter((each) => each.level === 'error').length;
  const warnings = model.findings.filter((each) => each.level === 'warning').length;
  out.push(tile(errors ? String(errors) : warnings ? String(warnings) : '✓', errors ? `error${errors === 1 ? '' : 's'}` : warnings ? `warning${warnings === 1 ? '' : 's'}` : 'no findings',
    report.run ? 'checker and emulator' : 'checker; not run', errors ? 'bad' : warnings ? 'middling' : 'good'));
  if (report.run && report.run.multiply_adds) out.push(tile(scaled(2 * report.run.multiply_adds), 'FLOPs', 'of matrix instructions, one launch'));
  if (report.run && sum.wavefronts) out.push(tile(sum.conflicts ? number(sum.conflicts) : '0', 'bank conflicts', `of ${plural(sum.wavefronts, 'wavefront')}`, sum.conflicts ? 'middling' : 'good'));
  if (report.run && sum.sectors) out.push(tile(`${Math.round(100 * sum.minimum / sum.sectors)} %`, 'sectors at least, of those accessed', `${number(sum.minimum)} of ${number(sum.sectors)} sectors of 32 bytes`, sum.minimum < sum.sectors ? 'middling' : 'good'));
  const shared = sharedBytes();
  if (sharedIsKnown() || shared) out.push(tile(bytes(shared), sharedIsKnown() ? 'shared memory' : 'static shared memory', limits ? `of ${bytes(limits.shared_of_block)} per block` : null, '', limits ? meter(shared, limits.shared_of_block) : null));
  const resources = resourcesOf();
  if (resources) out.push(tile(String(resources.registers), 'registers', resources.spill_stores ? `per thread; spills ${bytes(resources.spill_stores)}` : 'of 255 per thread', resources.spill_stores ? 'bad' : '', meter(resources.registers, 255)));
  byId('main').append(element('div', {class: 'tiles', id: 'summary'}, ...out));
  const launch = report.launch;
  byId('subtitle').textContent = [`${report.target ?? 'no target'}, PTX ${report.version}`,
    launch ? `grid ${dim(launch.grid)}` : null, launch ? `block ${dim(launch.block)}` : null,
    launch?.cluster ? `cluster ${dim(launch.cluster)}` : null].filter(Boolean).join(' · ');
}

function row(name, value, limit = null, what = null) {
  return element('tr', {}, element('th', {scope: 'row'}, name), element('td', {}, value),
    element('td', {}, limit ?? ''), element('td', {}, what ?? ''));
}

// Blocks on a multiprocessor, as threads, shared memory and registers allow.
function occupancy() {
  const {limits, launch} = model.report, resources = resourcesOf();
  if (!limits || !launch) return null;
  const threads = launch.block.reduce((x, y) => x * y), warps = Math.ceil(threads / 32), shared = sharedBytes();
  const by = {blocks: limits.blocks_of_multiprocessor, warps: Math.floor(limits.warps_of_multiprocessor / warps)};
  if (shared) by['shared memory'] = Math.floor((limits.shared_of_block + 1024) / (shared + 1024));
  if (resources) by.registers = Math.floor(limits.registers_of_multiprocessor / (Math.ceil(resources.registers / 8) * 8 * warps * 32));
  const least = Math.min(...Object.values(by));
  return {blocks: least, by: Object.keys(by).find((name) => by[name] === least), warps: least * warps, complete: Boolean(resources)};
}

function numbersTable() {
  const {report} = model, {limits, run, launch} = report, sum = totals(), rows = [];
  if (launch) {
    const threads = launch.block.reduce((x, y) => x * y);
    rows.push(row('threads per block', number(threads), limits ? number(limits.threads_of_block) : null, limits ? meter(threads, limits.threads_of_block) : null));
  }
  for (const each of report.shared) {
    rows.push(row(element('span', {}, 'shared memory: ', element('code', {}, each.name), ', ', lineLink(each.line)), each.bytes !== null ? bytes(each.bytes) : report.dynamic_shared === null ? 'dynamic: the launch says how much' : `${bytes(report.dynamic_shared)} (dynamic)`,
      limits ? bytes(limits.shared_of_block) : null, limits ? meter(each.bytes ?? report.dynamic_shared ?? 0, limits.shared_of_block) : null));
    each.parts.forEach((part, i) => {
      const end = each.parts[i + 1]?.first ?? report.dynamic_shared;
      rows.push(row(element('span', {}, 'of it ', element('code', {}, part.name), `, from byte ${number(part.first)} on`), end ? bytes(end - part.first) : 'the rest'));
    });
  }
  for (const each of model.machine.resources)
    rows.push(row(`registers per thread${model.machine.resources.length > 1 ? ` of ${each.kernel}` : ''}`, `${each.registers}${each.spill_stores ? `, ${bytes(each.spill_stores)} spilled` : ''}`, '255', meter(each.registers, 255)));
  const fit = occupancy();
  if (fit) rows.push(row('blocks per multiprocessor', `${fit.blocks} (${plural(fit.warps, 'warp')})${fit.complete ? '' : ', registers not counted'}`, `${limits.warps_of_multiprocessor} warps`, `limited by ${fit.by}`));
  if (run) {
    rows.push(row('warp instructions', number(run.warp_instructions)));
    rows.push(row('active lanes per warp instruction', run.warp_instructions ? (run.lane_instructions / run.warp_instructions).toFixed(1) : '0', '32', meter(run.lane_instructions, 32 * run.warp_instructions)));
    if (run.multiply_adds) rows.push(row('FLOPs of matrix instructions', number(2 * run.multiply_adds)));
    if (sum.wavefronts) rows.push(row('wavefronts of shared memory', number(sum.wavefronts), `${number(sum.wavefronts - sum.conflicts)} without conflicts`, sum.conflicts ? `${number(sum.conflicts)} bank conflicts` : 'no bank conflicts'));
    if (sum.sectors) rows.push(row('sectors of global memory', number(sum.sectors), `${number(sum.minimum)} at least`, `lanes access ${bytes(sum.globalBytes)}`));
    if (sum.copied) rows.push(row('bulk copies', bytes(sum.copied)));
    if (sum.waits) rows.push(row('waits that found a phase incomplete', number(sum.waits)));
    if (sum.globalBytes + sum.copied && run.multiply_adds) rows.push(row('FLOPs per byte of global memory', (2 * run.multiply_adds / (sum.globalBytes + sum.copied)).toFixed(1)));
  }
  return element('div', {class: 'scroll'}, element('table', {class: 'numbers'}, element('thead', {}, element('tr', {}, ...['', 'value', 'limit', ''].map((each) => element('th', {scope: 'col'}, each)))), element('tbody', {}, ...rows)));
}

function costliest() {
  const run = model.report.run;
  if (!run || !run.instructions.length) return null;
  const sorted = [...run.instructions].sort((x, y) => y.cost - x.cost).slice(0, 12), most = sorted[0].cost;
  return element('div', {}, element('h3', {}, 'Costliest lines'), element('p', {class: 'hint'}, 'Issue slots and extra wavefronts: a rule of thumb, not time.'),
    element('div', {class: 'bars'}, ...sorted.map((each) => element('div', {class: 'bar'}, lineLink(each.line, String(each.line)), element('code', {}, each.opcode), meter(each.cost, most), element('span', {class: 'value'}, number(each.cost))))));
}

function mix() {
  const run = model.report.run;
  if (!run || !run.instructions.length) return null;
  const counts = new Map();
  for (const each of run.instructions) {
    const name = each.opcode.split('.')[0];
    counts.set(name, (counts.get(name) ?? 0) + each.executions);
  }
  const sorted = [...counts].sort((x, y) => y[1] - x[1]).slice(0, 12);
  return element('div', {}, element('h3', {}, 'Instructions that warps executed'), element('p', {class: 'hint'}, 'By the first word of the opcode.'),
    element('div', {class: 'bars'}, ...sorted.map(([name, count]) => element('div', {class: 'bar'}, element('code', {}, name), meter(count, sorted[0][1]), element('span', {class: 'value'}, `${(100 * count / run.warp_instructions).toFixed(1)} %`)))));
}

function addReport() {
  const run = model.report.run;
  const trust = run?.trust.level && run.trust.level !== 'recorded' ? `The results depend on arithmetic that is only ${run.trust.level}: ${run.trust.source}.` : null;
  const limits = model.report.limits;
  addPart('numbers', 'Numbers', run ? `One launch on the emulator: counts, not times.${limits ? ` Limits are those of ${limits.arch}.` : ''}` : `Not run: ${model.report.not_run || 'the text has errors'}.`,
    element('div', {class: 'card'}, numbersTable()), run ? element('div', {class: 'card columns'}, costliest(), mix()) : null,
    trust ? element('p', {class: 'hint'}, trust) : null,
    model.machine.resources.length ? null : element('p', {class: 'hint'}, `Registers are not known: ${model.machine.missing}.`));
}
