// SPDX-License-Identifier: Apache-2.0
// Matrices in shared memory by their rows and columns: where an access meets them, which lane holds
// what of them, and in which banks they are.
'use strict';

// The place of an element in its matrix, in bytes.
function placeIn(tile, row, col) {
  const [count, base, shift] = tile.swizzle;
  const plain = tile.rows[row] + tile.cols[col];
  return (plain ^ ((plain >> (base + shift) & (1 << count) - 1) << base)) * tile.size;
}

// By byte of the matrix: [row, column].
function elementsOf(tile) {
  if (!tile.elements) {
    tile.elements = new Map();
    tile.rows.forEach((_, row) => tile.cols.forEach((_, col) => tile.elements.set(placeIn(tile, row, col), [row, col])));
    tile.bytes = tile.stages > 1 ? tile.apart : Math.max(...tile.elements.keys()) + tile.size;
  }
  return tile.elements;
}

// Which element has a byte of shared memory: {tile, stage, row, col}, or null.
function elementAt(address) {
  for (const tile of model.tiles) {
    elementsOf(tile);
    const rest = address - tile.first, stage = Math.floor(rest / tile.bytes);
    if (rest < 0 || stage >= tile.stages) continue;
    const within = rest - stage * tile.bytes;
    const found = tile.elements.get(within - within % tile.size);
    if (found) return {tile, stage, row: found[0], col: found[1]};
  }
  return null;
}

class TilePicture {
  constructor() {
    this.tile = model.tiles[0];
    this.stage = 0;
    this.canvas = element('canvas', {class: 'tile-matrix', tabindex: '0', role: 'img'});
    this.title = element('span', {class: 'faint'});
    this.chooser = element('select', {'aria-label': 'Matrix', onchange: () => this.show(model.tiles[this.chooser.selectedIndex], 0)},
      ...model.tiles.map((each) => element('option', {}, each.name)));
    this.stages = element('select', {'aria-label': 'Stage', onchange: () => this.show(this.tile, this.stages.selectedIndex)});
    this.caption = element('p', {class: 'step'});
    this.root = element('div', {class: 'card'}, element('div', {class: 'choice-row'}, this.chooser, this.stages, this.title),
      element('div', {class: 'scroll tall'}, this.canvas), this.caption);
    this.canvas.addEventListener('pointermove', (event) => light(this.litAt(event)));
    this.canvas.addEventListener('pointerleave', () => { if (!state.pinned) light(null); });
    this.canvas.addEventListener('click', (event) => light(this.litAt(event), {pin: true}));
    this.canvas.addEventListener('keydown', (event) => this.moved(event));
  }

  show(tile, stage) {
    this.tile = tile;
    this.stage = stage;
    this.chooser.selectedIndex = model.tiles.indexOf(tile);
    if (this.stages.length !== tile.stages) this.stages.replaceChildren(...Array.from({length: tile.stages}, (_, i) => element('option', {}, `stage ${i}`)));
    this.stages.hidden = tile.stages === 1;
    this.stages.selectedIndex = stage;
    this.gather();
    this.draw();
  }

  // The access that the picture of banks shows; its matrix comes forward, if it is known.
  meet(access) {
    this.access = access;
    const first = access.addresses.find((each) => each !== null);
    const at = first === undefined ? null : elementAt(first);
    this.show(at?.tile ?? this.tile, at?.stage ?? this.stage);
    const rows = [...this.met.keys()].map((each) => Math.floor(each / this.tile.cols.length));
    if (rows.length) this.canvas.parentElement.scrollTop = this.top + (Math.min(...rows) - 2) * this.size;
  }

  // The picture of ldmatrix or stmatrix that the access is: it says which lane holds what.
  memoryPicture() {
    const use = model.matrices.uses.find((each) => each.line === this.access?.line);
    const figure = use && figures[use.form];
    if (!figure || figure.use !== use) return null;
    return figure.pictures.find((each) => each.operand.in_memory && each.operand.addresses) ?? null;
  }

  // By row and column: the lane that accesses the element, and its cell of ldmatrix's picture.
  gather() {
    this.met = new Map();
    if (!this.access) return;
    const put = (address, entry) => {
      const at = elementAt(address);
      if (at && at.tile === this.tile && at.stage === this.stage) this.met.set(at.row * this.tile.cols.length + at.col, {...entry, address});
    };
    const {addresses, bytes: size} = this.access, picture = this.memoryPicture();
    this.drawnFor = picture?.figure.use;
    if (picture) {
      const {rows, cols, addresses: lanes} = picture.operand, width = 16 / cols;
      for (const cell of picture.cells) {
        const first = cell && addresses[lanes[cell.matrix * rows + cell.row]];
        if (first !== null && first !== undefined)
          for (let at = 0; at < width; at += this.tile.size) put(first + cell.col * width + at, {lane: cell.lane, cell, picture});
      }
      return;
    }
    addresses.forEach((first, lane) => {
      if (first !== null) for (let at = 0; at < size; at += this.tile.size) put(first + at, {lane});
    });
  }

  bankOf(row, col) { return Math.floor((this.tile.first + this.stage * this.tile.bytes + placeIn(this.tile, row, col)) / 4) % banks; }

  litBy(row, col) {
    const {tile, stage} = this, byte = tile.first + stage * tile.bytes + placeIn(tile, row, col);
    const where = `${tile.name}${tile.stages > 1 ? ` stage ${stage}` : ''}[${row}, ${col}] · byte ${byte} of shared memory · bank ${this.bankOf(row, col)}`;
    const met = this.met.get(row * tile.cols.length + col);
    this.cursor = [row, col];
    if (!met) return {lane: null, registers: new Set(), label: where, place: [row, col]};
    const lit = met.cell ? met.picture.litBy(met.cell) : {lane: met.lane, registers: new Set(), label: `lane ${met.lane}`};
    return {...lit, label: `${where} · ${lit.label}`, place: [row, col]};
  }

  litAt(event) {
    const col = Math.floor((event.offsetX - this.left) / this.size), row = Math.floor((event.offsetY - this.top) / this.size);
    return row >= 0 && col >= 0 && row < this.tile.rows.length && col < this.tile.cols.length ? this.litBy(row, col) : null;
  }

  moved(event) {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, col] = this.cursor ? [this.cursor[0] + step[0], this.cursor[1] + step[1]] : [0, 0];
    if (row < 0 || col < 0 || row >= this.tile.rows.length || col >= this.tile.cols.length) return;
    light(this.litBy(row, col), {pin: true});
  }

  // 3 the register of the lane, 2 the lane, 0 nothing: as in pictures of fragments.
  level(met) {
    if (!state.lit || !met) return 0;
    if (met.cell) return met.picture.level(met.cell, state.lit);
    return state.lit.lane !== null && state.lit.lane % 32 === met.lane ? 2 : 0;
  }

  draw() {
    const {tile} = this, width = tile.cols.length, height = tile.rows.length;
    if (this.memoryPicture()?.figure.use !== this.drawnFor) this.gather();
    const room = (this.canvas.parentElement.clientWidth || 600) - 20;
    this.left = 34;
    this.top = 18;
    this.size = Math.max(3, Math.min(16, Math.max(7, Math.floor(440 / height)), Math.floor((room - this.left) / width)));
    const context = sized(this.canvas, this.left + width * this.size + 1, this.top + height * this.size + 1);
    this.drawHeadings(context);
    const counts = [0, 0, 0, 0], dim = state.lit && state.lit.lane !== null && this.met.size;
    for (let row = 0; row < height; ++row)
      for (let col = 0; col < width; ++col) {
        const met = this.met.get(row * width + col), level = this.level(met);
        ++counts[level];
        const here = state.lit?.place?.[0] === row && state.lit.place[1] === col;
        this.drawElement(context, row, col, met, level, here, dim);
      }
    const all = `${number(this.met.size)} of ${number(width * height)} elements`;
    this.canvas.dataset.lit = counts[2] + counts[3];
    this.canvas.dataset.met = this.met.size;
    this.title.textContent = `${height} × ${width} ${tile.type}, ${tile.layout}`;
    this.canvas.setAttribute('aria-label', `${tile.name}: ${height} × ${width} ${tile.type}; arrow keys go from element to element`);
    this.caption.textContent = !this.met.size ? 'Grey: the bank. Equal greys of a column are in the same bank.'
      : `Line ${this.access.line} meets ${all}, in the colour of the lane that ${this.drawnFor ? 'holds them in its registers' : 'accesses them'}. Grey: the bank.`;
  }

  drawHeadings(context) {
    const {tile, size} = this, every = size >= 14 ? 2 : size >= 6 ? 8 : 16;
    context.font = `10px ${styleOf('--mono')}`;
    context.fillStyle = styleOf('--faint');
    context.textBaseline = 'middle';
    context.textAlign = 'center';
    for (let col = 0; col < tile.cols.length; col += every) context.fillText(String(col), this.left + (col + 0.5) * size, this.top / 2);
    context.textAlign = 'right';
    for (let row = 0; row < tile.rows.length; row += every) context.fillText(String(row), this.left - 5, this.top + (row + 0.5) * size);
  }

  drawElement(context, row, col, met, level, here, dim) {
    const {size} = this, x = this.left + col * size, y = this.top + row * size, gap = size > 5 ? 1 : 0;
    context.globalAlpha = met ? (dim && level < 2 ? 0.25 : 1) : 0.12 + 0.5 * this.bankOf(row, col) / banks;
    context.fillStyle = met ? laneColour(met.lane) : styleOf('--faint');
    context.fillRect(x, y, size - gap, size - gap);
    context.globalAlpha = 1;
    if (level < 2 && !here) return;
    context.lineWidth = level === 3 || here ? 2 : 1;
    context.strokeStyle = level === 3 || here ? styleOf('--lit') : styleOf('--strong');
    context.strokeRect(x + 0.5, y + 0.5, size - gap - 1, size - gap - 1);
  }
}

let tilePicture = null;

function addTiles() {
  if (!model.tiles.length) return;
  tilePicture = new TilePicture();
  addPart('tiles', 'Matrices', 'Matrices in shared memory by row and column, as their layouts place them. '
    + 'The chosen access of shared memory is drawn into its matrix; point at an element, and the lane that holds it lights up everywhere.', tilePicture.root);
  if (bankPicture) tilePicture.meet(bankPicture.access);
  else tilePicture.show(model.tiles[0], 0);
  for (const what of ['lit', 'redraw', 'line']) on(what, () => tilePicture.draw());
}
