// Draws the recordings of this page: words with lines, heads at a glance, the matrix, and a table.
// A weight is stored in thousandths, heads by rows (queries) by columns (keys). Text only ever enters as textContent.

const SVG = "http://www.w3.org/2000/svg";
const MEAN = -1;
const dark = matchMedia("(prefers-color-scheme: dark)");
const { palettes, sentences } = JSON.parse(document.getElementById("recordings").textContent);

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made && !key.includes("-")) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// 256 colours from the evenly spaced stops of a palette, [red, green, blue] each.
function ramp({ weights: stops }) {
  const parts = stops.map((stop) => [1, 3, 5].map((start) => parseInt(stop.slice(start, start + 2), 16)));
  return Array.from({ length: 256 }, (_, n) => {
    const place = (n / 255) * (stops.length - 1);
    const first = Math.min(Math.floor(place), stops.length - 2);
    return parts[first].map((from, part) => Math.round(from + (parts[first + 1][part] - from) * (place - first)));
  });
}

const ramps = { light: ramp(palettes.light), dark: ramp(palettes.dark) };
const index = (fraction) => Math.round(Math.min(Math.max(fraction, 0), 1) * 255);
const colour = (fraction) => ramps[dark.matches ? "dark" : "light"][index(fraction)];
const css = (rgb) => `rgb(${rgb.join(" ")})`;
const inkOn = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#10151c" : "#ffffff");
const digits = (weight) => weight.toFixed(weight < 0.0995 ? 3 : 2);
// A token keeps its own reading direction inside a sentence.
const isolated = (text) => `\u2068${text}\u2069`;
const quoted = (text) => `“${isolated(text)}”`;

// A round weight not below the largest of these thousandths.
function roundUp(thousandths) {
  const largest = thousandths.reduce((one, other) => Math.max(one, other), 0) / 1000;
  return [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1].find((step) => largest <= step) ?? largest;
}

// One map of one sentence: weights by head, and their mean over heads.
class Weights {
  constructor({ shape: [heads, rows, columns], weights }) {
    Object.assign(this, { heads, rows, columns, all: weights });
    this.mean = new Float32Array(rows * columns);
    weights.forEach((weight, n) => {
      this.mean[n % (rows * columns)] += weight / heads;
    });
    this.ceilings = { heads: roundUp(weights), mean: roundUp(this.mean) };
  }

  // The weight of the last colour: all heads share one, so that they can be compared; their mean is paler than they are.
  ceiling(head) {
    return head === MEAN ? this.ceilings.mean : this.ceilings.heads;
  }

  // 0 is the background and 1 the last colour.
  shade(head, row, column) {
    return this.at(head, row, column) / this.ceiling(head);
  }

  at(head, row, column) {
    const place = row * this.columns + column;
    return (head === MEAN ? this.mean[place] : this.all[head * this.rows * this.columns + place]) / 1000;
  }

  paint(canvas, head) {
    canvas.width = Math.max(1, this.columns);
    canvas.height = Math.max(1, this.rows);
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    // One write a pixel: canvases are little-endian RGBA wherever browsers run.
    const pixels = new Uint32Array(image.data.buffer);
    const packed = Uint32Array.from({ length: 256 }, (_, n) => {
      const [red, green, blue] = colour(n / 255);
      return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    });
    for (let row = 0; row < this.rows; row++) {
      for (let column = 0; column < this.columns; column++) {
        pixels[row * this.columns + column] = packed[index(this.shade(head, row, column))];
      }
    }
    context.putImageData(image, 0, 0);
  }
}

class Look {
  constructor(host, sentence) {
    Object.assign(this, { host, sentence, number: host.dataset.sentence, head: MEAN, row: null, column: null });
    this.pinned = false;
    this.layer = element("select");
    sentence.maps.forEach((map, n) => this.layer.append(new Option(map.address, n, false, n === sentence.first)));
    this.heads = element("div", { className: "heads", role: "group", "aria-label": "Head" });
    this.words = element("div", { className: "words" });
    this.matrix = element("div", { className: "matrix" });
    this.ceiling = element("span");
    this.status = element("p", { className: "status", "aria-live": "polite" });
    this.status.id = `status-${this.number}`;
    this.table = element("details", {}, element("summary", { textContent: "The weights as a table" }));
    this.tooltip = element("div", { className: "tooltip", hidden: true });
    host.append(
      element("div", { className: "controls" }, element("label", {}, "Layer", this.layer), this.heads),
      this.words,
      this.status,
      this.matrix,
      element("div", { className: "legend" }, "attention weight 0", element("span", { className: "bar" }), this.ceiling),
      this.table,
      this.tooltip,
    );
    this.layer.addEventListener("change", () => this.choose());
    this.matrix.addEventListener("scroll", () => this.markCells());
    this.table.addEventListener("toggle", () => this.fillTable());
    dark.addEventListener("change", () => this.repaint());
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(host);
    this.choose();
  }

  get map() {
    return this.sentence.maps[this.layer.value];
  }

  // A label as drawn and the token as it is.
  query(row) {
    return this.sentence.axes[this.map.queries][row];
  }

  key(column) {
    return this.sentence.axes[this.map.keys][column];
  }

  choose() {
    this.weights = new Weights(this.map);
    if (this.head >= this.weights.heads || this.weights.heads === 1) this.head = this.weights.heads === 1 ? 0 : MEAN;
    Object.assign(this, { row: null, column: null, pinned: false });
    this.buildHeads();
    this.buildWords();
    this.buildMatrix();
    this.repaint();
  }

  // After another layer or other colours: everything.
  repaint() {
    for (const button of this.heads.children) this.weights.paint(button.firstChild, Number(button.value));
    this.show();
  }

  // After another head: what shows only one.
  show() {
    const { weights, head } = this;
    for (const button of this.heads.children) button.setAttribute("aria-pressed", Number(button.value) === head);
    weights.paint(this.canvas, head);
    this.ceiling.textContent = String(Number(weights.ceiling(head).toFixed(3)));
    this.fillTable();
    this.update();
  }

  buildHeads() {
    const { heads, rows, columns } = this.weights;
    const side = 44 / Math.max(1, rows, columns);
    const buttons = (heads === 1 ? [0] : [MEAN, ...Array(heads).keys()]).map((head) => {
      const canvas = element("canvas", { "aria-hidden": "true" });
      canvas.style.cssText = `width:${Math.max(4, columns * side)}px;height:${Math.max(4, rows * side)}px`;
      const name = head === MEAN ? "mean" : `head ${head}`;
      const button = element("button", { type: "button", value: head, title: name }, canvas, name);
      button.addEventListener("click", () => {
        this.head = head;
        this.show();
      });
      return button;
    });
    this.heads.replaceChildren(...buttons);
    this.heads.hidden = heads === 1;
  }

  // Two rows of words: the keys above, the queries that look at them below, lines between them.
  buildWords() {
    const { rows, columns } = this.weights;
    const row = (name, count, label, choose) => {
      const list = element("div", { className: `row ${name}`, role: "group", "aria-label": `${this.map[name]} words` });
      for (let n = 0; n < count; n++) {
        const [drawn, token] = label(n);
        const word = element("button", { type: "button", textContent: drawn, title: token, dir: "auto" });
        word.tabIndex = n ? -1 : 0;
        word.addEventListener("pointerenter", () => this.pinned || choose(n));
        word.addEventListener("focus", () => word.matches(":focus-visible") && choose(n));
        word.addEventListener("click", () => this.pin(() => choose(n)));
        list.append(word);
      }
      list.addEventListener("pointerleave", () => this.pinned || this.release());
      list.addEventListener("keydown", (event) => this.walk(event, list));
      return list;
    };
    this.keyWords = row("keys", columns, (n) => this.key(n), (n) => this.select(null, n));
    this.queryWords = row("queries", rows, (n) => this.query(n), (n) => this.select(n, null));
    this.lines = shape("svg", { "aria-hidden": "true" });
    const caption = `${this.map.queries} (below) looks at ${this.map.keys} (above)`;
    this.words.replaceChildren(
      element("div", { className: "roles", textContent: caption }),
      this.keyWords,
      this.queryWords,
      this.lines,
    );
  }

  // Arrow keys among the words of a row; only one of them is a stop of the Tab key.
  walk(event, list) {
    const words = [...list.children];
    const now = words.indexOf(document.activeElement);
    const steps = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: words.length - 1 };
    if (event.key === "Escape") this.release();
    if (now < 0 || !(event.key in steps)) return;
    event.preventDefault();
    const next = words[Math.min(Math.max(steps[event.key], 0), words.length - 1)];
    words[now].tabIndex = -1;
    next.tabIndex = 0;
    this.pinned = false;
    next.focus();
  }

  buildMatrix() {
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.marks = shape("g");
    this.board = element("div", {
      className: "board",
      tabIndex: 0,
      role: "application",
      "aria-label": `Attention matrix, ${this.weights.rows} by ${this.weights.columns}: arrow keys move between cells`,
      "aria-describedby": this.status.id,
    });
    this.matrix.replaceChildren(this.board);
    this.board.addEventListener("pointermove", (event) => this.pinned || this.point(event));
    this.board.addEventListener("pointerleave", () => this.pinned || this.release());
    this.board.addEventListener("click", (event) => this.pin(() => this.point(event)));
    this.board.addEventListener("keydown", (event) => this.move(event));
    this.layOut();
  }

  // Sizes in pixels: cells as large as the width allows, words at the left and, slanted or upright, above.
  layOut() {
    const { rows, columns } = this.weights;
    const ruler = document.createElement("canvas").getContext("2d");
    const family = getComputedStyle(document.body).fontFamily;
    const widest = (label, count, size) => {
      ruler.font = `${size}px ${family}`;
      return Math.max(12, ...Array.from({ length: count }, (_, n) => ruler.measureText(label(n)[0]).width));
    };
    const available = this.matrix.clientWidth - 8;
    const left = Math.ceil(widest((n) => this.query(n), rows, 14)) + 10;
    const cell = Math.floor(Math.min(38, Math.max(12, (available - left - 40) / Math.max(1, columns))));
    const size = Math.min(14, cell - 1);
    const slanted = cell >= 24;
    const length = widest((n) => this.key(n), columns, size);
    const top = Math.ceil(slanted ? (length + size) * Math.SQRT1_2 : length) + 10;
    const width = left + columns * cell + (slanted ? Math.ceil(length * Math.SQRT1_2) : 4);
    const height = top + rows * cell + 4;
    Object.assign(this, { cell, left, top });
    this.board.style.cssText = `width:${width}px;height:${height}px`;
    this.canvas.style.cssText = `left:${left}px;top:${top}px;width:${columns * cell}px;height:${rows * cell}px`;
    this.canvas.hidden = !rows || !columns;

    const svg = shape("svg", { width, height, "aria-hidden": "true" });
    const across = Array.from({ length: rows + 1 }, (_, n) => `M${left} ${top + n * cell}h${columns * cell}`);
    const down = Array.from({ length: columns + 1 }, (_, n) => `M${left + n * cell} ${top}v${rows * cell}`);
    svg.append(shape("path", { class: "grid", d: [...across, ...down].join("") }));
    for (const [column, row] of this.map.links) {
      const corner = { x: left + column * cell + 2, y: top + row * cell + 2 };
      svg.append(shape("rect", { class: "link", ...corner, width: cell - 4, height: cell - 4 }));
    }
    this.rowLabels = Array.from({ length: rows }, (_, n) => {
      const place = { x: left - 6, y: top + (n + 0.5) * cell + size * 0.35, "text-anchor": "end" };
      return shape("text", { ...place, "font-size": size }, this.query(n)[0]);
    });
    this.columnLabels = Array.from({ length: columns }, (_, n) => {
      const x = left + (n + 0.5) * cell + (slanted ? 0 : size * 0.35);
      const turn = `translate(${x} ${top - 6}) rotate(${slanted ? -45 : -90})`;
      return shape("text", { transform: turn, "font-size": size }, this.key(n)[0]);
    });
    svg.append(...this.rowLabels, ...this.columnLabels, this.marks);
    this.board.replaceChildren(this.canvas, svg);
    this.laidOutFor = this.matrix.clientWidth;
  }

  resize() {
    if (this.matrix.clientWidth !== this.laidOutFor) this.layOut();
    this.update();
  }

  point(event) {
    const box = this.board.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.top) / this.cell);
    const inside = (value, count) => (value >= 0 && value < count ? value : null);
    this.select(inside(row, this.weights.rows), inside(column, this.weights.columns));
  }

  move(event) {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (event.key === "Escape") this.release();
    if (!(event.key in steps) || !this.weights.rows || !this.weights.columns) return;
    event.preventDefault();
    const [down, right] = this.row === null || this.column === null ? [0, 0] : steps[event.key];
    const next = (value, step, count) => Math.min(Math.max((value ?? 0) + step, 0), count - 1);
    this.pinned = true;
    this.select(next(this.row, down, this.weights.rows), next(this.column, right, this.weights.columns));
  }

  // A click keeps what is shown until the next click.
  pin(choose) {
    this.pinned = !this.pinned;
    choose();
  }

  select(row, column) {
    if (row === this.row && column === this.column) return;
    Object.assign(this, { row, column });
    this.update();
  }

  release() {
    this.pinned = false;
    this.select(null, null);
  }

  update() {
    this.markWords();
    this.drawLines();
    this.markCells();
    this.status.textContent = this.sentenceFor();
  }

  // A chosen word colours the words on the other side by its weights.
  markWords() {
    const { row, column, weights, head } = this;
    const mark = (words, chosen, shadeOf) => {
      [...words.children].forEach((word, n) => {
        const rgb = shadeOf ? colour(shadeOf(n)) : null;
        word.classList.toggle("active", n === chosen);
        word.style.background = rgb ? css(rgb) : "";
        word.style.color = rgb ? inkOn(rgb) : "";
      });
    };
    mark(this.keyWords, column, row === null ? null : (n) => weights.shade(head, row, n));
    mark(this.queryWords, row, row === null && column !== null ? (n) => weights.shade(head, n, column) : null);
  }

  drawLines() {
    const { weights, head } = this;
    const box = this.words.getBoundingClientRect();
    const foot = (word, edge) => {
      const place = word.getBoundingClientRect();
      return [place.left + place.width / 2 - box.left, place[edge] - box.top];
    };
    const upper = [...this.keyWords.children].map((word) => foot(word, "bottom"));
    const lower = [...this.queryWords.children].map((word) => foot(word, "top"));
    const chosen = this.row !== null || this.column !== null;
    const lines = [];
    for (let row = 0; row < weights.rows; row++) {
      if (this.row !== null && row !== this.row) continue;
      for (let column = 0; column < weights.columns; column++) {
        if (this.row === null && this.column !== null && column !== this.column) continue;
        const part = weights.shade(head, row, column);
        if (part < (chosen ? 0.02 : 0.15)) continue;
        const [[x, y], [u, v]] = [upper[column], lower[row]];
        const d = `M${x} ${y}C${x} ${(y + v) / 2} ${u} ${(y + v) / 2} ${u} ${v}`;
        lines.push(shape("path", { d, "stroke-width": 0.5 + 3.5 * part, "stroke-opacity": 0.15 + 0.8 * part }));
      }
    }
    this.lines.replaceChildren(...lines);
  }

  markCells() {
    const { row, column, cell, left, top, weights } = this;
    const marks = [];
    const box = (name, x, y, width, height) => marks.push(shape("rect", { class: name, x, y, width, height }));
    if (row !== null) box("band", left, top + row * cell, weights.columns * cell, cell);
    if (column !== null) box("band", left + column * cell, top, cell, weights.rows * cell);
    if (row !== null && column !== null) box("cell", left + column * cell, top + row * cell, cell, cell);
    this.marks.replaceChildren(...marks);
    this.rowLabels.forEach((label, n) => label.classList.toggle("active", n === row));
    this.columnLabels.forEach((label, n) => label.classList.toggle("active", n === column));
    this.tooltip.hidden = row === null || column === null;
    if (this.tooltip.hidden) return;
    const weight = digits(weights.at(this.head, row, column));
    this.tooltip.textContent = `${isolated(this.query(row)[0])} → ${isolated(this.key(column)[0])}: ${weight}`;
    const [host, board] = [this.host.getBoundingClientRect(), this.board.getBoundingClientRect()];
    const x = board.left - host.left + left + (column + 1) * cell + 8;
    const y = board.top - host.top + top + (row + 1) * cell + 6;
    this.tooltip.style.left = `${Math.max(0, Math.min(x, host.width - this.tooltip.offsetWidth))}px`;
    this.tooltip.style.top = `${y}px`;
  }

  // What is selected, in words: for eyes and for screen readers.
  sentenceFor() {
    const { row, column, weights, head } = this;
    const strongest = (count, label, weightOf) =>
      Array.from({ length: count }, (_, n) => [weightOf(n), label(n)[1]])
        .sort((one, other) => other[0] - one[0])
        .slice(0, 3)
        .map(([weight, token]) => `${quoted(token)} ${digits(weight)}`)
        .join(", ");
    const query = row === null ? "" : quoted(this.query(row)[1]);
    const key = column === null ? "" : quoted(this.key(column)[1]);
    if (query && key) return `${query} looks at ${key} with weight ${digits(weights.at(head, row, column))}.`;
    if (query) return `${query} looks at ${strongest(weights.columns, (n) => this.key(n), (n) => weights.at(head, row, n))}.`;
    if (key) return `${key} is looked at by ${strongest(weights.rows, (n) => this.query(n), (n) => weights.at(head, n, column))}.`;
    return weights.rows && weights.columns ? "" : "There are no words on one side, so there is nothing to look at.";
  }

  fillTable() {
    this.table.querySelector(".numbers")?.remove();
    if (!this.table.open) return;
    const { weights: { rows, columns }, head } = this;
    const heading = element("tr", {}, element("td"));
    for (let n = 0; n < columns; n++) heading.append(element("th", { scope: "col", dir: "auto", textContent: this.key(n)[1] }));
    const body = element("tbody");
    for (let row = 0; row < rows; row++) {
      const line = element("tr", {}, element("th", { scope: "row", dir: "auto", textContent: this.query(row)[1] }));
      for (let n = 0; n < columns; n++) line.append(element("td", { textContent: this.weights.at(head, row, n).toFixed(3) }));
      body.append(line);
    }
    const name = head === MEAN ? "mean over heads" : `head ${head}`;
    const caption = element("caption", { textContent: `${this.map.address}, ${name}` });
    const table = element("table", {}, caption, element("thead", {}, heading), body);
    this.table.append(element("div", { className: "numbers", tabIndex: 0, role: "region", "aria-label": "Weights" }, table));
  }
}

for (const host of document.querySelectorAll(".look")) new Look(host, sentences[host.dataset.sentence]);
