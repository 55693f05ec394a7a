// SPDX-License-Identifier: Apache-2.0
// Fragments: which lane holds which element in which register. What is under the pointer lights up
// in all pictures and in the text.
'use strict';

const margin = {left: 26, top: 18};

// One operand of one form, on a canvas.
class FragmentPicture {
  constructor(figure, operand) {
    this.figure = figure;
    this.operand = operand;
    this.elements = operand.registers * operand.per_register;
    this.lanes = operand.at.length / this.elements;
    this.columns = operand.cols * (operand.matrices > 1 ? 2 : 1);
    this.rows = operand.rows * Math.ceil(operand.matrices / 2);
    if (operand.matrices === 1) this.rows = operand.rows;
    this.cells = [];  // by place: {lane, element, register, row, col, matrix}
    operand.at.forEach((place, i) => {
      if (this.cells[place]) return;  // a copy of a wmma fragment
      const element = i % this.elements;
      this.cells[place] = {
        lane: Math.floor(i / this.elements), element,
        register: Math.floor(element / operand.per_register),
        matrix: Math.floor(place / (operand.rows * operand.cols)),
        row: Math.floor(place / operand.cols) % operand.rows, col: place % operand.cols,
      };
    });
    this.canvas = element('canvas', {tabindex: '0', role: 'img', 'data-operand': operand.operand});
    this.title = element('figcaption');
    this.root = element('figure', {class: `fragment operand-${operand.operand}`}, this.title,
      element('div', {class: 'scroll'}, this.canvas));
    this.canvas.addEventListener('pointermove', (event) => this.pointed(event));
    this.canvas.addEventListener('pointerleave', () => { if (!state.pinned) light(null); });
    this.canvas.addEventListener('click', (event) => this.clicked(event));
    this.canvas.addEventListener('keydown', (event) => this.moved(event));
  }

  // Registers as the selected instruction names them.
  names() {
    return this.figure.use?.registers[this.operand.operand] ?? [];
  }

  describe() {
    const {operand} = this, names = this.names();
    const shape = `${operand.matrices > 1 ? `${operand.matrices} matrices of ` : ''}${operand.rows} × ${operand.cols} ${operand.type}`;
    const registers = names.length ? names.flatMap((name, i) => [i ? ' ' : '', element('span', {class: 'chip', 'data-register': name,
      onpointerenter: () => light(this.ofRegister(i)), onpointerleave: () => { if (!state.pinned) light(null); }}, `R${i} ${name}`)])
      : [plural(operand.registers, 'register')];
    this.title.replaceChildren(element('b', {}, operand.in_memory ? `memory ${operand.operand === 'd' ? '→ d' : '← a'}` : operand.operand), ` ${shape} `,
      element('span', {class: 'chips'}, ...(names.length > 16 ? [`${names[0]} to ${names[names.length - 1]}`] : registers)));
    this.canvas.setAttribute('aria-label', `${operand.operand}: ${shape}; arrow keys go from element to element`);
  }

  ofRegister(register) {
    const name = this.names()[register];
    return {lane: null, registers: new Set(name ? [name] : []), label: `${name ?? `R${register}`} of ${this.operand.operand}`};
  }

  // The cell's place on the canvas, in cells: matrices lie 2 by 2.
  at(cell) {
    const {rows, cols, matrices} = this.operand;
    if (matrices === 1) return [cell.col, cell.row];
    return [cell.col + cols * (cell.matrix >> 1), cell.row + rows * (cell.matrix & 1)];
  }

  cellAt(x, y) {
    const col = Math.floor((x - margin.left) / this.size), row = Math.floor((y - margin.top) / this.size);
    if (col < 0 || row < 0 || col >= this.columns || row >= this.rows) return null;
    return this.cells.find((cell) => { const [c, r] = this.at(cell); return c === col && r === row; }) ?? null;
  }

  litBy(cell) {
    const name = this.names()[cell.register];
    const {operand} = this;
    return {
      lane: cell.lane, registers: new Set(name ? [name] : []), figure: this.figure, operand: operand.operand,
      row: cell.row, col: cell.col, element: cell.element,
      label: `lane ${cell.lane} · R${cell.register}${name ? ` (${name})` : ''} · V${cell.element} · ${operand.operand}`
        + `${operand.matrices > 1 ? ` matrix ${cell.matrix}` : ''}[${cell.row}, ${cell.col}]`,
    };
  }

  pointed(event) {
    const cell = this.cellAt(event.offsetX, event.offsetY);
    this.cursor = cell;
    light(cell ? this.litBy(cell) : null);
  }

  clicked(event) {
    const cell = this.cellAt(event.offsetX, event.offsetY);
    if (state.pinned && state.lit?.lane === cell?.lane && state.lit?.element === cell?.element) return light(null, {pin: true});
    light(cell ? this.litBy(cell) : null, {pin: true});
  }

  moved(event) {
    const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    const [col, row] = this.cursor ? this.at(this.cursor) : [-step[0], -step[1]];
    const next = this.cells.find((cell) => { const [c, r] = this.at(cell); return c === col + step[0] && r === row + step[1]; });
    if (!next) return;
    this.cursor = next;
    light(this.litBy(next), {pin: true});
  }

  // How much of the light falls on a cell: 3 the same register of the lane, 2 its lane, 1 what it is
  // multiplied with or summed into, 0 nothing.
  level(cell, lit) {
    if (!lit) return 0;
    const name = this.names()[cell.register];
    const named = name && lit.registers.has(name);
    const same = lit.lane === null || lit.lane === undefined || lit.lane % this.lanes === cell.lane;
    if (named && same) return 3;
    if (lit.lane === null || lit.lane === undefined) return 0;
    if (lit.figure === this.figure && lit.operand === this.operand.operand && cell.lane === lit.lane
      && Math.floor(lit.element / this.operand.per_register) === cell.register) return 3;
    if (lit.lane % this.lanes === cell.lane) return 2;
    return this.meets(cell, lit) ? 1 : 0;
  }

  // Whether the product of this instruction combines the two elements.
  meets(cell, lit) {
    if (lit.figure !== this.figure || lit.operand === this.operand.operand || !this.figure.product) return false;
    const of = (operand, place) => operand === 'b' ? {n: place.col, k: place.row}
      : operand === 'a' ? {m: place.row, k: place.col} : {m: place.row, n: place.col};
    const x = of(lit.operand, lit), y = of(this.operand.operand, cell);
    return Object.keys(x).some((index) => index in y) && Object.keys(x).every((index) => !(index in y) || x[index] === y[index]);
  }

  draw(size) {
    this.size = size;
    const width = margin.left + this.columns * size + 1, height = margin.top + this.rows * size + 1;
    const context = sized(this.canvas, width, height);
    this.describe();
    context.font = `10px ${styleOf('--mono')}`;
    context.fillStyle = styleOf('--faint');
    context.textBaseline = 'middle';
    const every = size >= 14 ? 1 : size >= 7 ? 4 : 8;
    context.textAlign = 'center';
    for (let col = 0; col < this.columns; col += every)
      context.fillText(String(col % this.operand.cols), margin.left + (col + 0.5) * size, margin.top / 2);
    context.textAlign = 'right';
    for (let row = 0; row < this.rows; row += every)
      context.fillText(String(row % this.operand.rows), margin.left - 5, margin.top + (row + 0.5) * size);
    const lit = state.lit;
    const counts = [0, 0, 0, 0];
    for (const cell of this.cells) {
      if (!cell) continue;
      const level = this.level(cell, lit);
      ++counts[level];
      this.drawCell(context, cell, level, Boolean(lit));
    }
    this.canvas.dataset.lit = counts[2] + counts[3];
    this.canvas.dataset.strong = counts[3];
    this.canvas.dataset.lanes = this.lanes;
    this.drawRows(context);
  }

  drawCell(context, cell, level, some) {
    const [col, row] = this.at(cell), size = this.size;
    const x = margin.left + col * size, y = margin.top + row * size, gap = size > 8 ? 1 : 0;
    context.globalAlpha = some && level === 0 ? 0.28 : some && level === 1 ? 0.62 : 1;
    context.fillStyle = laneColour(cell.lane);
    context.fillRect(x, y, size - gap, size - gap);
    if (level >= 2) {
      context.globalAlpha = 1;
      const thick = size > 10 ? 2 : 1;
      context.strokeStyle = level === 3 ? styleOf('--lit') : styleOf('--strong');
      context.lineWidth = level === 3 ? thick + 1 : thick;
      context.strokeRect(x + thick / 2, y + thick / 2, size - gap - thick, size - gap - thick);
    }
    if (size >= 22) {
      context.fillStyle = '#14161a';
      context.textAlign = 'center';
      context.font = `${level >= 2 ? 'bold ' : ''}10px ${styleOf('--mono')}`;
      context.fillText(`T${cell.lane}`, x + (size - gap) / 2, y + size * 0.32);
      context.font = `9px ${styleOf('--mono')}`;
      context.globalAlpha *= 0.7;
      context.fillText(`R${cell.register}${this.operand.per_register > 1 ? `.${cell.element % this.operand.per_register}` : ''}`, x + (size - gap) / 2, y + size * 0.7);
    }
    context.globalAlpha = 1;
  }

  // ldmatrix, stmatrix: the lane that gives each row's address, as a bar at the row's left.
  drawRows(context) {
    const {addresses, rows, cols} = this.operand;
    if (!addresses) return;
    addresses.forEach((lane, i) => {
      const [col, row] = this.at({matrix: Math.floor(i / rows), row: i % rows, col: 0});
      const lit = state.lit && state.lit.lane !== null && state.lit.lane % 32 === lane;
      context.fillStyle = lit ? styleOf('--lit') : laneColour(lane);
      context.fillRect(margin.left + col * this.size, margin.top + row * this.size, lit ? 5 : 3, this.size - 1);
    });
    void cols;
  }
}

// All operands of one form: a product has B above D, and A at D's left.
class FragmentFigure {
  constructor(form, index) {
    this.form = form;
    this.uses = model.matrices.uses.filter((use) => use.form === index);
    this.use = this.uses[0];
    const has = form.operands.map((each) => each.operand);
    this.product = ['a', 'b', 'd'].every((each) => has.includes(each));
    const alike = (x, y) => x && y && JSON.stringify(x.at) === JSON.stringify(y.at) && x.type === y.type;
    const d = form.operands.find((each) => each.operand === 'd');
    const held = (each) => this.uses.some((use) => each.operand in use.registers);  // wgmma: a may be in memory
    this.pictures = form.operands.filter((each) => held(each) && !(each.operand === 'c' && alike(each, d)))
      .map((each) => new FragmentPicture(this, each));
    this.chooser = element('select', {'aria-label': 'Instruction', onchange: () => {
      this.use = this.uses[this.chooser.selectedIndex];
      selectLine(this.use.line);
      this.draw();
    }}, ...this.uses.map((use) => element('option', {value: use.line}, `line ${use.line}`)));
    this.board = element('div', {class: this.product ? 'board product' : 'board'},
      this.product ? element('p', {class: 'formula', 'aria-hidden': 'true'}, 'd = a · b + c') : null, ...this.pictures.map((each) => each.root));
    this.root = element('article', {class: 'card form'},
      element('h3', {}, element('code', {}, form.instruction), ' ',
        element('span', {class: 'faint'}, `${plural(this.uses.length, 'time')} in the text, here at `), this.chooser),
      this.board, this.inMemory(), ...form.notes.filter((note) => !/^(a is shown|b is read)/.test(note)).map((note) => element('p', {class: 'hint'}, note)));
  }

  // wgmma reads b, and most often a, through descriptors.
  inMemory() {
    if (!this.form.instruction.startsWith('wgmma')) return null;
    const a = this.pictures.some((each) => each.operand.operand === 'a');
    return element('p', {class: 'hint'}, a ? 'b is in shared memory: the instruction has its descriptor. a is in registers, as drawn.'
      : 'a and b are both in shared memory: the instruction has a descriptor of each, and no lane holds their elements.');
  }

  draw() {
    const width = byId('main').clientWidth - 2 * parseFloat(getComputedStyle(byId('main')).paddingLeft);
    const columns = this.pictures.map((each) => each.columns);
    const side = this.product ? Math.max(...this.pictures.filter((p) => p.operand.operand === 'a').map((p) => p.columns))
      + Math.max(...this.pictures.filter((p) => p.operand.operand !== 'a').map((p) => p.columns)) : Math.max(...columns);
    const room = width - 34 - (this.product ? 2 : 1) * (margin.left + 12);
    const size = Math.max(5, Math.min(25, Math.floor(room / side)));
    for (const each of this.pictures) each.draw(size);
  }
}

let figures = [];

function addMatrices() {
  if (!model.matrices.forms.length) return;
  figures = model.matrices.forms.map((form, i) => new FragmentFigure(form, i));
  addPart('fragments', 'Fragments', 'Which lane (T) holds which element in which register (R). Point at an element, '
    + 'a register or a line: its lane, and the same register, light up in all pictures and in the text; a click keeps them. '
    + 'In a product, the row and column that meet the element stay bright.', element('div', {class: 'forms'},
    ...[...figures].sort((x, y) => y.product - x.product).map((each) => each.root)));
  const draw = () => figures.forEach((each) => each.draw());
  on('lit', draw);
  on('redraw', draw);
  on('line', ({line}) => {
    for (const figure of figures) {
      const use = figure.uses.find((each) => each.line === line);
      if (!use) continue;
      figure.use = use;
      figure.chooser.selectedIndex = figure.uses.indexOf(use);
    }
    draw();
  });
}
