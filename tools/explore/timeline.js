// SPDX-License-Identifier: Apache-2.0
// The run as a timeline: a lane for each warp and each barrier, from a trace in Chrome's format.
// Time is the emulator's steps.
'use strict';

// The rows of each CTA: {name, kind, slices: [{name, category, begin, end, depth, args}]}; and the
// arrows between them.
function readTrace(trace) {
  const ctas = new Map(), starts = new Map(), open = new Map();
  const cta = (pid) => {
    if (!ctas.has(pid)) ctas.set(pid, {pid, name: `CTA ${pid}`, rows: new Map(), arrows: [], flights: []});
    return ctas.get(pid);
  };
  const rowOf = (event) => {
    const rows = cta(event.pid).rows;
    if (!rows.has(event.tid)) rows.set(event.tid, {tid: event.tid, name: `row ${event.tid}`, kind: 'warp', slices: []});
    return rows.get(event.tid);
  };
  for (const event of trace.traceEvents) {
    if (event.ph === 'M' && event.name === 'process_name') cta(event.pid).name = event.args.name.replace(/ \(.*\)$/, '');
    else if (event.ph === 'M' && event.name === 'thread_name') Object.assign(rowOf(event), event.args);
    else if (event.ph === 'X') rowOf(event).slices.push({name: event.name, category: event.cat ?? '', begin: event.ts, end: event.ts + (event.dur ?? 1), args: event.args ?? {}});
    else if (event.ph === 'i') rowOf(event).slices.push({name: event.name, category: event.cat ?? '', begin: event.ts, end: event.ts + 1, args: event.args ?? {}});
    else if (event.ph === 'b') open.set(`${event.pid}:${event.id}`, event);
    else if (event.ph === 'e') {
      const begin = open.get(`${event.pid}:${event.id}`);
      if (begin) cta(event.pid).flights.push({name: begin.name, tid: begin.tid, begin: begin.ts, end: event.ts, args: begin.args ?? {}});
    } else if (event.ph === 's') starts.set(event.id, event);
    else if (event.ph === 'f' && starts.has(event.id)) {
      const from = starts.get(event.id);
      cta(event.pid).arrows.push({name: event.name, from: {tid: from.tid, at: from.ts}, to: {tid: event.tid, at: event.ts}});
    }
  }
  return [...ctas.values()].map((each) => ({...each, rows: [...each.rows.values()].sort((x, y) => x.tid - y.tid)}));
}

const sliceColours = {copy: '--copy', product: '--product', commit: '--commit', arrive: '--arrive', wait: '--wait', phase: '--phase', completion: '--completion', warp: '--life'};

// Whether an error is about the slice's line.
let faultyLines = null;
function faulty(slice) {
  faultyLines ??= new Set(model.findings.filter((each) => each.level === 'error').flatMap((each) => [each.line, ...each.others]));
  return slice.args.line > 0 && faultyLines.has(slice.args.line);
}

class TimelinePicture {
  constructor(trace) {
    this.ctas = readTrace(trace);
    this.cta = this.ctas[0];
    this.canvas = element('canvas', {class: 'timeline', tabindex: '0', role: 'img', 'aria-label': 'Timeline; + and - zoom, arrow keys move'});
    this.tip = element('p', {class: 'step'});
    this.choose = element('select', {'aria-label': 'CTA', onchange: () => { this.cta = this.ctas[this.choose.selectedIndex]; this.fit(); }}, ...this.ctas.map((each) => element('option', {}, each.name)));
    const button = (text, name, act) => element('button', {type: 'button', 'aria-label': name, onclick: act}, text);
    const legend = Object.entries(sliceColours).filter(([name]) => name !== 'warp')
      .map(([name, colour]) => element('span', {class: 'key'}, element('i', {style: `background:var(${colour})`}), name));
    this.root = element('div', {class: 'card'}, element('div', {class: 'player'}, this.choose, button('−', 'Zoom out', () => this.zoom(1 / 1.6)), button('+', 'Zoom in', () => this.zoom(1.6)), button('all', 'Show all', () => this.fit()), ...legend),
      this.canvas, this.tip);
    this.canvas.addEventListener('pointermove', (event) => this.pointed(event));
    this.canvas.addEventListener('pointerdown', (event) => { this.drag = {x: event.offsetX, from: this.from}; });
    window.addEventListener('pointerup', () => { this.drag = null; });
    this.canvas.addEventListener('click', (event) => { const line = this.sliceAt(event)?.args.line; if (line) selectLine(line); });
    this.canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, this.from + (event.offsetX - this.left) / this.scale);
    }, {passive: false});
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.fit(false);
  }

  key(event) {
    const width = this.to - this.from;
    if (event.key === '+' || event.key === '=') this.zoom(1.6);
    else if (event.key === '-') this.zoom(1 / 1.6);
    else if (event.key === 'ArrowLeft') this.move(-width / 8);
    else if (event.key === 'ArrowRight') this.move(width / 8);
    else return;
    event.preventDefault();
  }

  fit(draw = true) {
    const slices = this.cta.rows.flatMap((row) => row.slices);
    this.first = Math.min(...slices.map((each) => each.begin), Infinity);
    this.last = Math.max(...slices.map((each) => each.end), -Infinity);
    if (!slices.length) [this.first, this.last] = [0, 1];
    // What lasts until the end without ending, as polls of a deadlock do, is not shown to its end.
    const events = slices.filter((each) => each.args.ended !== false && each.category !== 'warp').map((each) => each.end);
    const until = Math.max(...events, this.first + 1) * 1.1;
    [this.from, this.to] = [this.first, slices.some((each) => each.args.ended === false) ? Math.min(this.last, until) : this.last];
    if (draw) this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    const width = Math.max(4, Math.min(this.last - this.first, (this.to - this.from) / factor));
    const part = (at - this.from) / (this.to - this.from);
    this.from = Math.max(this.first, Math.min(this.last - width, at - part * width));
    this.to = this.from + width;
    this.draw();
  }

  move(by) {
    const width = this.to - this.from;
    this.from = Math.max(this.first, Math.min(this.last - width, this.from + by));
    this.to = this.from + width;
    this.draw();
  }

  sliceAt(event) {
    const row = this.cta.rows[Math.floor((event.offsetY - this.top) / this.height)];
    const at = this.from + (event.offsetX - this.left) / this.scale, near = 2 / this.scale;
    if (!row || event.offsetX < this.left) return null;
    const hit = row.slices.filter((each) => at >= each.begin - near && at <= each.end + near);
    return hit.sort((x, y) => (x.end - x.begin) - (y.end - y.begin))[0] ?? null;
  }

  pointed(event) {
    if (this.drag && event.buttons) {
      const width = this.to - this.from;
      this.from = Math.max(this.first, Math.min(this.last - width, this.drag.from - (event.offsetX - this.drag.x) / this.scale));
      this.to = this.from + width;
      return this.draw();
    }
    const slice = this.sliceAt(event);
    if (!slice) { this.tip.textContent = this.hint; return; }
    const {args} = slice, more = [];
    if (args.line) more.push(`line ${args.line}`);
    if (args.source) more.push(args.source);
    if (args.barrier) more.push(`at ${args.barrier}`);
    if (args.count > 1) more.push(`${args.count} instructions`);
    if (args.bytes) more.push(bytes(args.bytes));
    if (args.ended === false) more.push('it did not end');
    if (faulty(slice)) more.push('a finding is about this line');
    this.tip.textContent = `${slice.name}: ${slice.category}, steps ${slice.begin} to ${slice.end}${more.length ? ` · ${more.join(' · ')}` : ''}`;
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth - 26 || 800;
    const narrow = width < 520;
    this.left = narrow ? 74 : 168;
    this.top = 22;
    this.height = this.cta.rows.length > 24 ? 18 : 24;
    this.scale = (width - this.left - 4) / Math.max(1, this.to - this.from);
    const context = sized(this.canvas, width, this.top + this.cta.rows.length * this.height + 4);
    context.font = `11px ${styleOf('--sans')}`;
    context.textBaseline = 'middle';
    this.drawAxis(context, width);
    const places = new Map(this.cta.rows.map((row, i) => [row.tid, this.top + (i + 0.5) * this.height]));
    this.cta.rows.forEach((row, i) => this.drawRow(context, row, this.top + i * this.height, width, narrow));
    this.drawArrows(context, places, width);
    const count = this.cta.rows.reduce((sum, row) => sum + row.slices.length, 0);
    this.hint = `${plural(count, 'event')}, steps ${Math.round(this.from)} to ${Math.round(this.to)} of the emulator: an order, not cycles. Drag to move, ctrl and wheel to zoom; a click selects the line.`;
    this.tip.textContent = this.hint;
    this.canvas.dataset.events = count;
  }

  x(at) { return this.left + (at - this.from) * this.scale; }

  drawAxis(context, width) {
    const rough = (this.to - this.from) / Math.max(2, (width - this.left) / 90);
    const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? power * 10;
    context.fillStyle = styleOf('--faint');
    context.textAlign = 'center';
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      context.fillText(String(at), this.x(at), 10);
      context.fillRect(this.x(at), 18, 0.5, this.cta.rows.length * this.height + 4);
    }
  }

  drawRow(context, row, y, width, narrow) {
    context.fillStyle = row.kind === 'barrier' ? styleOf('--panel-2') : 'transparent';
    context.fillRect(0, y, width, this.height);
    context.save();
    context.beginPath();
    context.rect(this.left, y, width - this.left, this.height);
    context.clip();
    const order = [...row.slices].sort((a, b) => (b.end - b.begin) - (a.end - a.begin));
    for (const slice of order) {
      if (slice.end < this.from || slice.begin > this.to) continue;
      const life = slice.category === 'warp', inset = life ? this.height / 2 - 1 : 3;
      const x = this.x(slice.begin), w = Math.max(1, (slice.end - slice.begin) * this.scale - (life ? 0 : 0.5));
      context.fillStyle = styleOf(sliceColours[slice.category] ?? '--life');
      context.fillRect(x, y + inset, w, this.height - 2 * inset);
      if (slice.args.ended === false && slice.category === 'wait' || faulty(slice)) {
        context.strokeStyle = styleOf('--bad');
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + inset, w - 2, this.height - 2 * inset);
      }
      if (!life && w > 46) {
        context.fillStyle = '#14161a';
        context.textAlign = 'left';
        context.save();
        context.beginPath();
        context.rect(x, y, w - 3, this.height);
        context.clip();
        context.fillText(slice.name, x + 4, y + this.height / 2);
        context.restore();
      }
    }
    context.restore();
    context.fillStyle = styleOf('--ink');
    context.textAlign = 'left';
    context.save();
    context.beginPath();
    context.rect(0, y, this.left - 6, this.height);
    context.clip();
    context.fillText(narrow ? row.name.replace('mbarrier ', '') : row.name, 2, y + this.height / 2);
    context.restore();
    context.fillStyle = styleOf('--line');
    context.fillRect(0, y, width, 0.5);
  }

  drawArrows(context, places, width) {
    context.save();
    context.beginPath();
    context.rect(this.left, 0, width - this.left, 1e5);
    context.clip();
    context.strokeStyle = styleOf('--strong');
    context.lineWidth = 1;
    const shown = this.cta.arrows.filter((each) => each.to.at >= this.from && each.from.at <= this.to);
    context.globalAlpha = shown.length > 150 ? 0.18 : 0.55;
    for (const {from, to} of shown) {
      const [x1, y1, x2, y2] = [this.x(from.at), places.get(from.tid), this.x(to.at), places.get(to.tid)];
      if (y1 === undefined || y2 === undefined) continue;
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + 18, y1, x2 - 18, y2, x2, y2);
      context.stroke();
    }
    context.restore();
  }
}

let timelinePicture = null;

function addTimeline() {
  if (!model.timeline || model.timeline.traceEvents.filter((each) => each.ph === 'X').length < 2) return;
  timelinePicture = new TimelinePicture(model.timeline);
  addPart('timeline', 'Timeline', 'What each warp did and waited for, and what barriers saw, in the order in which the emulator ran it. '
    + 'Curves lead from what released a wait to the wait. Red frames: what a finding is about, and waits that did not end.', timelinePicture.root);
  timelinePicture.draw();
  on('redraw', () => timelinePicture.draw());
}
