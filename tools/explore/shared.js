// SPDX-License-Identifier: Apache-2.0
// Accesses to shared memory: which lane takes which word of which bank, phase by phase and wavefront
// by wavefront; and the same with another swizzle.
'use strict';

const banks = 32;

// What a swizzle of rows of `span` bytes does to an address: bits 4 and up of the chunk of 16 bytes,
// exclusive or bits 7 and up.
function swizzled(address, span) {
  const bits = Math.log2(span / 16);
  return bits ? address ^ ((address >> 7 & (1 << bits) - 1) << 4) : address;
}

// The words of an access: {lane, word, phase}, and of each phase its wavefronts, each a list of them.
function wavefrontsOf(access, span = 0) {
  const phases = access.phases.map((mask, phase) => {
    const words = new Map();  // word -> lanes: those that share it
    for (let lane = 0; lane < 32; ++lane) {
      if (!(mask >>> lane & 1)) continue;
      const first = access.addresses[lane];
      for (let at = first - first % 4; at < first + access.bytes; at += 4) {
        const word = swizzled(at, span || 16) / 4;
        if (!words.has(word)) words.set(word, []);
        words.get(word).push(lane);
      }
    }
    const taken = Array.from({length: banks}, () => []);
    for (const word of [...words.keys()].sort((x, y) => x - y)) taken[word % banks].push(word);
    const deepest = Math.max(0, ...taken.map((each) => each.length));
    const fronts = Array.from({length: deepest}, (_, i) => taken.flatMap((each) => (i < each.length ? [each[i]] : [])));
    return {phase, words, fronts, minimum: Math.ceil(words.size / banks)};
  });
  return {phases, count: phases.reduce((sum, each) => sum + each.fronts.length, 0)};
}

class BankPicture {
  constructor() {
    this.access = model.accesses.find((each) => each.wavefronts > each.minimum) ?? model.accesses[0];
    this.span = 0;
    this.step = 0;
    this.canvas = element('canvas', {class: 'banks', tabindex: '0', role: 'img', 'aria-label': 'Banks of shared memory'});
    this.caption = element('p', {class: 'step'});
    this.slider = element('input', {type: 'range', min: '0', 'aria-label': 'Wavefront', oninput: () => { this.stop(); this.show(Number(this.slider.value)); }});
    this.play = element('button', {type: 'button', onclick: () => (this.timer ? this.stop() : this.start())}, '▶ play');
    const step = (by, text, name) => element('button', {type: 'button', 'aria-label': name, onclick: () => { this.stop(); this.show(this.step + by); }}, text);
    this.spans = element('div', {class: 'choice-row', role: 'group', 'aria-label': 'Swizzle'});
    this.list = element('div', {class: 'access-list', role: 'listbox', 'aria-label': 'Accesses'}, ...model.accesses.map((each) => this.item(each)));
    this.root = element('div', {class: 'card accesses'}, this.list, element('div', {class: 'access'},
      this.spans, element('div', {class: 'scroll'}, this.canvas),
      element('div', {class: 'player'}, step(-1, '◀', 'Wavefront before'), this.play, step(1, '▶', 'Next wavefront'), this.slider), this.caption));
    this.canvas.addEventListener('pointermove', (event) => this.pointed(event));
    this.canvas.addEventListener('pointerleave', () => { if (!state.pinned) light(null); });
    this.canvas.addEventListener('click', (event) => { const lit = this.litAt(event); light(lit, {pin: true}); });
    this.canvas.addEventListener('keydown', (event) => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (by) { event.preventDefault(); this.stop(); this.show(this.step + by); }
    });
    this.choose(this.access);
  }

  item(access) {
    const conflicts = access.wavefronts - access.minimum;
    const opcode = (ptxLines[access.line - 1] ?? '').trim().split(/\s+/).find((word) => !word.startsWith('@')) ?? '';
    return element('button', {type: 'button', role: 'option', 'data-line': access.line, title: opcode,
      onclick: () => { this.choose(access); selectLine(access.line); }},
      element('span', {class: 'gutter'}, String(access.line)), element('code', {}, opcode.split('.').slice(0, 1) + opcode.replace(/^[^.]*/, '').slice(0, 26)),
      element('span', {class: conflicts ? 'conflict' : 'good'}, conflicts ? `${access.wavefronts}, best ${access.minimum}` : String(access.wavefronts)));
  }

  choose(access) {
    this.access = access;
    this.span = 0;
    this.arrange();
    tilePicture?.meet(access);
    for (const item of this.list.children) item.setAttribute('aria-selected', String(Number(item.dataset.line) === access.line));
  }

  // Sets the swizzle; words that move go from the old place to the new one.
  arrange(span = this.span) {
    const before = this.words ? new Map(this.words.map((each) => [each.key, each])) : new Map();
    this.span = span;
    this.plan = wavefrontsOf(this.access, span);
    this.words = [];
    const rows = new Set();
    for (const phase of this.plan.phases) for (const word of phase.words.keys()) rows.add(Math.floor(word / banks));
    const order = [...rows].sort((x, y) => x - y);
    this.rowsShown = order;
    for (const phase of this.plan.phases)
      phase.fronts.forEach((front, i) => front.forEach((word) => {
        const lanes = phase.words.get(word);
        const back = swizzled(word * 4, span || 16);
        const key = `${phase.phase}:${back}`;
        const at = {x: word % banks, y: order.indexOf(Math.floor(word / banks))};
        const old = before.get(key);
        this.words.push({key, word, lanes, phase: phase.phase, front: i, ...at, fromX: old?.x ?? at.x, fromY: old?.y ?? at.y});
      }));
    this.steps = this.plan.phases.flatMap((phase) => phase.fronts.map((_, front) => ({phase: phase.phase, front, of: phase.fronts.length, minimum: phase.minimum})));
    this.slider.max = String(this.steps.length);
    this.showSpans();
    this.moving = before.size ? performance.now() : 0;
    this.show(0);
  }

  showSpans() {
    const cures = this.access.cures;
    const button = (span, text) => {
      const count = wavefrontsOf(this.access, span).count;
      return element('button', {type: 'button', 'aria-pressed': String(this.span === span), onclick: () => this.arrange(span)},
        `${text}: ${plural(count, 'wavefront')}`, cures.some((cure) => cure.startsWith(`${span}-byte`)) ? element('span', {class: 'good'}, ' cure') : null);
    };
    this.spans.replaceChildren(button(0, 'as it is'), ...[32, 64, 128].map((span) => button(span, `⊕ ${span}-byte swizzle`)),
      ...cures.filter((cure) => !cure.endsWith('swizzle')).map((cure) => element('span', {class: 'good'}, `cure: ${cure}`)));
  }

  show(step) {
    this.step = Math.max(0, Math.min(step, this.steps.length));
    this.slider.value = String(this.step);
    const now = this.steps[this.step - 1];
    const all = `${plural(this.plan.count, 'wavefront')} in ${plural(this.plan.phases.length, 'phase')}`;
    const least = this.access.minimum;
    this.caption.textContent = now
      ? `Phase ${now.phase + 1} of ${this.plan.phases.length}, lanes ${this.lanesOf(now.phase)}: wavefront ${now.front + 1} of ${now.of}${now.of > now.minimum ? ` (${now.minimum} without conflicts)` : ''}`
      : `Line ${this.access.line}, ${this.access.bytes} bytes a lane: ${all}${this.plan.count > least ? `, ${least} without bank conflicts` : ', no bank conflicts'}. Play: each bank delivers one word a wavefront.`;
    this.draw();
  }

  lanesOf(phase) {
    const lanes = [...Array(32).keys()].filter((lane) => this.access.phases[phase] >>> lane & 1);
    return lanes.length ? `${lanes[0]} to ${lanes[lanes.length - 1]}` : 'none';
  }

  start() {
    if (this.step >= this.steps.length) this.show(0);
    this.play.textContent = '⏸ pause';
    this.timer = setInterval(() => (this.step >= this.steps.length ? this.stop() : this.show(this.step + 1)), 700);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = '▶ play';
  }

  wordAt(event) {
    const x = Math.floor((event.offsetX - this.left) / this.size), y = Math.floor((event.offsetY - this.top) / this.size);
    return this.words.find((each) => each.x === x && each.y === y);
  }

  litAt(event) {
    const word = this.wordAt(event);
    if (!word) return null;
    return {lane: word.lanes[0], registers: new Set(), label: `lane ${word.lanes.join(', ')} · bank ${word.word % banks} · byte ${word.word * 4} of shared memory · phase ${word.phase + 1}`};
  }

  pointed(event) { light(this.litAt(event)); }

  draw() {
    const room = this.canvas.parentElement.clientWidth || 600;
    this.left = 46;
    this.top = 34;
    this.size = Math.max(8, Math.min(24, Math.floor((room - this.left - 2) / banks)));
    const context = sized(this.canvas, this.left + banks * this.size + 1, this.top + this.rowsShown.length * this.size + 1);
    const now = this.steps[this.step - 1];
    context.font = `10px ${styleOf('--mono')}`;
    context.textBaseline = 'middle';
    this.drawBanks(context, now);
    const part = this.moving ? Math.min(1, (performance.now() - this.moving) / 450) : 1;
    const eased = part * part * (3 - 2 * part);
    let lit = 0;
    for (const word of this.words) lit += this.drawWord(context, word, now, eased);
    this.canvas.dataset.lit = lit;
    if (part < 1) requestAnimationFrame(() => this.draw());
    else this.moving = 0;
  }

  // Numbers of the banks, and above them how many words each still delivers in this phase.
  drawBanks(context, now) {
    const load = Array(banks).fill(0);
    for (const word of this.words) if (!now || word.phase === now.phase) ++load[word.x];
    const most = now ? now.minimum : 0;
    context.textAlign = 'center';
    for (let bank = 0; bank < banks; ++bank) {
      const x = this.left + (bank + 0.5) * this.size;
      context.fillStyle = styleOf('--faint');
      if (this.size >= 14 || bank % 4 === 0) context.fillText(String(bank), x, this.top - 8);
      if (!now || !load[bank]) continue;
      context.fillStyle = load[bank] > most ? styleOf('--bad') : styleOf('--good');
      const height = Math.min(16, 4 * load[bank]);
      context.fillRect(this.left + bank * this.size + 1, 18 - height, this.size - 2, height);
    }
    context.textAlign = 'right';
    context.fillStyle = styleOf('--faint');
    context.fillText('bank', this.left - 6, this.top - 8);
    this.rowsShown.forEach((row, i) => {
      if (this.size >= 10 || i % 2 === 0) context.fillText(String(row * 128), this.left - 6, this.top + (i + 0.5) * this.size);
      context.fillStyle = styleOf('--line');
      context.fillRect(this.left, this.top + i * this.size, banks * this.size, 0.5);
      context.fillStyle = styleOf('--faint');
    });
  }

  drawWord(context, word, now, part) {
    const size = this.size;
    const x = this.left + (word.fromX + (word.x - word.fromX) * part) * size, y = this.top + (word.fromY + (word.y - word.fromY) * part) * size;
    const active = now && word.phase === now.phase && word.front === now.front;
    const waits = now && word.phase === now.phase && word.front > now.front;
    const lane = state.lit?.lane ?? null;
    const lit = lane !== null && word.lanes.includes(lane % 32);
    context.globalAlpha = lit || active || !now ? (lane !== null && !lit && !now ? 0.3 : 1) : waits ? 0.6 : 0.18;
    context.fillStyle = laneColour(word.lanes[0]);
    context.fillRect(x + 0.5, y + 0.5, size - 1, size - 1);
    if (waits) {
      context.globalAlpha = 1;
      context.strokeStyle = styleOf('--bad');
      context.setLineDash([2, 2]);
      context.strokeRect(x + 1.5, y + 1.5, size - 3, size - 3);
      context.setLineDash([]);
    }
    if (active || lit) {
      context.globalAlpha = 1;
      context.lineWidth = 2;
      context.strokeStyle = lit ? styleOf('--lit') : styleOf('--strong');
      context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      context.lineWidth = 1;
    }
    if (size >= 15) {
      context.fillStyle = '#14161a';
      context.textAlign = 'center';
      context.font = `9px ${styleOf('--mono')}`;
      context.fillText(String(word.lanes[0]), x + size / 2, y + size / 2);
      context.font = `10px ${styleOf('--mono')}`;
    }
    context.globalAlpha = 1;
    return lit ? 1 : 0;
  }
}

let bankPicture = null;

function addShared() {
  if (!model.accesses.length) return;
  bankPicture = new BankPicture();
  addPart('banks', 'Shared memory', 'Shared memory has 32 banks of 4 bytes; each delivers one word a wavefront. '
    + 'A picture is one access of a warp as the emulator saw it, the worst of its line: a box is a word, its colour and number the lane. '
    + '⊕ moves the words as a swizzle would.', bankPicture.root);
  on('lit', () => bankPicture.draw());
  on('redraw', () => bankPicture.draw());
  on('line', ({line}) => {
    const access = model.accesses.find((each) => each.line === line);
    if (access && access !== bankPicture.access) bankPicture.choose(access);
  });
}
