// SPDX-License-Identifier: Apache-2.0
// What all parts of the page share: the model, elements, what is selected, what is lit.
'use strict';

const model = JSON.parse(document.getElementById('model').textContent);

const byId = (id) => document.getElementById(id);

// element('p', {class: 'note', onclick: f}, 'text', child)
function element(tag, attributes = {}, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) out.addEventListener(name.slice(2), value);
    else if (name === 'style') out.style.cssText = value;
    else out.setAttribute(name, value === true ? '' : value);
  }
  out.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return out;
}

const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
const number = (value) => Number(value).toLocaleString('en-US');

// 1536 -> "1.5 KB"
function bytes(value) {
  if (value < 1024) return `${value} B`;
  const [size, unit] = value < 1 << 20 ? [value / 1024, 'KB'] : [value / (1 << 20), 'MB'];
  return `${Number(size.toFixed(1))} ${unit}`;
}

// 4.2e9 -> "4.2 G"
function scaled(value) {
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  return String(value);
}

// ---- Parts: each has a heading, a place in the navigation, and an anchor.

function addPart(id, title, hint, ...content) {
  const part = element('section', {id, class: 'part', tabindex: '-1'},
    element('h2', {}, title), hint ? element('p', {class: 'hint'}, hint) : null, ...content);
  byId('main').append(part);
  byId('nav').append(element('a', {href: `#${id}`}, title));
  return part;
}

// ---- Events: what is selected (a line), and what is lit (a lane, registers).

const listeners = {};
const on = (what, listener) => (listeners[what] ??= []).push(listener);
const tell = (what, value) => (listeners[what] ?? []).forEach((listener) => listener(value));

// The lines that belong to a line: {ptx: [numbers], source: [file, line] or null}.
const ptxLines = model.ptx.text.replace(/\n$/, '').split('\n');
const originOf = (line) => model.ptx.at[line - 1] || null;
const keyOf = (origin) => origin ? `${origin[0]}:${origin[1]}` : '';

const ptxOfSource = new Map();
ptxLines.forEach((_, i) => {
  const key = keyOf(originOf(i + 1));
  if (!key) return;
  if (!ptxOfSource.has(key)) ptxOfSource.set(key, []);
  ptxOfSource.get(key).push(i + 1);
});

// A colour for each C++ line that made PTX, neighbours far apart.
const hues = new Map([...ptxOfSource.keys()].map((key, i) => [key, Math.round(i * 137.508) % 360]));

const state = {
  line: 0,        // the selected line of the PTX
  lit: null,      // {lane, registers: Set, label}
  pinned: false,  // a click keeps what is lit
};

function selectLine(line, options = {}) {
  state.line = line;
  tell('line', {line, origin: originOf(line), ...options});
}

// Lights a lane, and registers by their names; null: nothing.
function light(lit, {pin = false} = {}) {
  if (state.pinned && !pin) return;
  state.pinned = pin && lit !== null;
  state.lit = lit;
  const readout = byId('readout');
  readout.textContent = lit ? lit.label : '';
  readout.classList.toggle('shown', Boolean(lit));
  tell('lit', lit);
}

// A link to a line of the PTX.
function lineLink(line, text = `line ${line}`) {
  return element('a', {
    class: 'to-line', href: `#ptx-${line}`,
    onclick: (event) => {
      event.preventDefault();
      byId('code').scrollIntoView({block: 'nearest'});
      selectLine(line, {reveal: true});
    },
  }, text);
}

// Text in which "line 25" of the PTX is a link.
function linked(text) {
  return text.split(/(\blines? \d+)/).map((piece) => {
    const found = /^lines? (\d+)$/.exec(piece);
    const line = found ? Number(found[1]) : 0;
    return line > 0 && line <= ptxLines.length ? lineLink(line, piece) : piece;
  });
}

const laneColour = (lane) => {
  const [red, green, blue] = model.matrices.palette[lane % 32];
  return `rgb(${red} ${green} ${blue})`;
};

// The value of a variable of the style sheet, for canvases.
const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas of that size in CSS pixels, sharp on every screen; returns its drawing context.
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  return context;
}
