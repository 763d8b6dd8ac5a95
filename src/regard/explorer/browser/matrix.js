// The map of one head: queries downwards, keys across. Only what is in sight is computed and drawn, so that its size
// does not matter; when cells are smaller than a pixel, each pixel shows the largest weight below it.

import { paint } from "./colours.js";
import { clamp, element, shown, shortened } from "./elements.js";
import { Rows } from "./rows.js";

const LARGEST_CELL = 40;
const LABELLED = 11;
const WRITTEN = 34;
const MARGIN = 10;

export class MatrixView {
  constructor(pane) {
    this.pane = pane;
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.space = element("div", { className: "space" }, this.canvas);
    this.scroller = element("div", {
      className: "matrix", tabIndex: 0, role: "application", "aria-roledescription": "attention map",
      "aria-describedby": pane.readoutId,
    }, this.space);
    this.element = element("div", { className: "view" }, this.scroller);
    this.small = element("canvas");
    this.scroller.addEventListener("scroll", () => {
      this.pane.change({ top: Math.round(this.scroller.scrollTop), left: Math.round(this.scroller.scrollLeft) });
      this.draw();
    });
    this.scroller.addEventListener("pointermove", (event) => this.point(event));
    this.scroller.addEventListener("pointerleave", () => this.pane.hover({ query: null, key: null }));
    this.scroller.addEventListener("click", (event) => this.pane.pin(this.cellAt(event) ?? { query: null, key: null }));
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => this.layout()).observe(this.scroller);
  }

  // Another map, other colours, another size.
  update() {
    const { tap, example, head } = this.pane;
    const queries = tap.numQueries(example);
    const keys = tap.numKeys(example);
    this.scroller.setAttribute("aria-label", `${tap.address}, ${queries} queries by ${keys} keys`);
    this.key = `${this.pane.identity}/${tap.address}/${example}/${head}`;
    this.layout();
  }

  layout() {
    const { pane } = this;
    if (!pane.tap || !this.scroller.clientWidth) return;
    const { tap, example } = pane;
    const [queries, keys] = [Math.max(1, tap.numQueries(example)), Math.max(1, tap.numKeys(example))];
    const context = this.canvas.getContext("2d");
    context.font = `13px ${pane.colours.font}`;
    const widest = (count, text) => {
      let most = 0;
      for (let n = 0; n < Math.min(count, 400); n++) most = Math.max(most, context.measureText(text(n)).width);
      return Math.min(most, 150) + MARGIN;
    };
    const room = { width: this.scroller.clientWidth, height: Math.max(this.scroller.clientHeight, 120) };
    const rows = widest(queries, (n) => this.rowLabel(n));
    const columns = widest(keys, (n) => this.columnLabel(n));
    const fit = Math.min((room.width - rows - 14) / keys, (room.height - columns - 14) / queries);
    this.fitting = clamp(fit, 1 / 256, LARGEST_CELL);
    const least = Math.min(LABELLED + 1, (room.width - 60) / Math.min(keys, 60));
    // Labels that can be read, where a little scrolling buys them.
    if (this.fitting < LABELLED && this.fitting > LABELLED / 2.2) this.fitting = Math.max(this.fitting, least);
    this.cell = clamp(pane.zoom ? this.fitting * pane.zoom : this.fitting, 1 / 256, 64);
    this.pool = this.cell >= 1 ? 1 : Math.ceil(1 / this.cell);
    this.labelled = this.cell >= LABELLED;
    this.left = this.labelled ? rows : 26;
    this.top = this.labelled ? columns : 26;
    this.space.style.width = `${Math.ceil(this.left + keys * this.cell + 2)}px`;
    this.space.style.height = `${Math.ceil(this.top + queries * this.cell + 2)}px`;
    this.rows = pane.rows(this.key, this.pool, () => new Rows(tap, example, pane.head, this.pool));
    if (pane.restored) [this.scroller.scrollTop, this.scroller.scrollLeft] = [pane.top, pane.left];
    this.draw();
  }

  rowLabel(query) {
    return shortened(shown(this.pane.tap.queryLabel(this.pane.example, query)), 22);
  }

  columnLabel(key) {
    return shortened(shown(this.pane.tap.keyLabel(this.pane.example, key)), 22);
  }

  // The blocks of cells in sight.
  sight() {
    const { clientWidth: width, clientHeight: height, scrollTop, scrollLeft } = this.scroller;
    const side = this.cell * this.pool;
    const first = Math.max(0, Math.floor(scrollTop / side));
    const firstColumn = Math.max(0, Math.floor(scrollLeft / side));
    return {
      side, first, firstColumn,
      last: Math.min(this.rows.rows, Math.ceil((scrollTop + height - this.top) / side)),
      lastColumn: Math.min(this.rows.columns, Math.ceil((scrollLeft + width - this.left) / side)),
    };
  }

  draw() {
    if (!this.rows) return;
    const { first, last } = this.sight();
    this.rows.want(first, last, () => this.drawSoon()).catch((error) => this.pane.fail(error));
    this.drawSoon();
  }

  drawSoon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      if (this.element.isConnected) this.drawNow();
    });
  }

  drawNow() {
    const { scroller, canvas, rows, pane, cell } = this;
    const { clientWidth: width, clientHeight: height, scrollTop, scrollLeft } = scroller;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const { side, first, last, firstColumn, lastColumn } = this.sight();
    if (last <= first || lastColumn <= firstColumn) return;
    const [x, y] = [this.left + firstColumn * side - scrollLeft, this.top + first * side - scrollTop];
    const [right, bottom] = [
      Math.min(this.left + pane.tap.numKeys(pane.example) * cell - scrollLeft, width),
      Math.min(this.top + pane.tap.numQueries(pane.example) * cell - scrollTop, height),
    ];
    const root = pane.squareRoot(rows.keys);
    pane.showScale(rows.ceiling, root);
    paint(
      this.small, last - first, lastColumn - firstColumn,
      (row) => rows.get(first + row)?.subarray(firstColumn, lastColumn), pane.colours, rows.ceiling, root,
    );
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, right - this.left, bottom - this.top);
    context.clip();
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small, x, y, (lastColumn - firstColumn) * side, (last - first) * side);
    this.grid(context, x, y, right, bottom);
    if (cell >= WRITTEN) this.write(context);
    context.restore();
    context.strokeStyle = pane.colours.line;
    context.strokeRect(this.left - 0.5, this.top - 0.5, right - this.left + 1, bottom - this.top + 1);
    this.labels(context, right, bottom);
    this.mark(context, right, bottom);
  }

  grid(context, x, y, right, bottom) {
    if (this.cell < 9) return;
    context.strokeStyle = this.pane.colours.line;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = x; at <= right; at += this.cell) {
      context.moveTo(Math.round(at) - 0.5, y);
      context.lineTo(Math.round(at) - 0.5, bottom);
    }
    for (let at = y; at <= bottom; at += this.cell) {
      context.moveTo(x, Math.round(at) - 0.5);
      context.lineTo(right, Math.round(at) - 0.5);
    }
    context.stroke();
  }

  // The numbers inside the cells, where there is room for them.
  write(context) {
    const { first, last, firstColumn, lastColumn } = this.sight();
    const { pane, rows, cell } = this;
    context.font = `${clamp(cell * 0.3, 10, 14)}px ${pane.colours.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const root = pane.squareRoot(rows.keys);
    for (let row = first; row < last; row++) {
      const weights = rows.get(row);
      for (let column = firstColumn; weights && column < lastColumn; column++) {
        if (weights[column] < 0.005) continue;
        const fraction = weights[column] / rows.ceiling;
        context.fillStyle = pane.colours.inkOn(root ? Math.sqrt(fraction) : fraction);
        const [x, y] = this.corner(row, column);
        context.fillText(weights[column].toFixed(2), x + cell / 2, y + cell / 2);
      }
    }
  }

  corner(query, key) {
    return [this.left + key * this.cell - this.scroller.scrollLeft, this.top + query * this.cell - this.scroller.scrollTop];
  }

  labels(context, right, bottom) {
    const { pane, cell } = this;
    const { query, key } = pane.selected;
    context.font = `13px ${pane.colours.font}`;
    context.textBaseline = "middle";
    const { side, first, last, firstColumn, lastColumn } = this.sight();
    if (!this.labelled) {
      context.fillStyle = pane.colours.muted;
      context.textAlign = "left";
      context.fillText(`${pane.tap.keys} →`, this.left, this.top / 2);
      context.save();
      context.translate(this.left / 2, this.top);
      context.rotate(Math.PI / 2);
      context.fillText(`${pane.tap.queries} →`, 0, 0);
      context.restore();
      return;
    }
    for (let row = first; row < last; row++) {
      const y = this.top + row * side - this.scroller.scrollTop + cell / 2;
      if (y < this.top || y > bottom) continue;
      context.fillStyle = row === query ? pane.colours.outline : pane.colours.ink;
      context.textAlign = "right";
      context.direction = "ltr";
      context.fillText(this.fitted(context, this.rowLabel(row), this.left - MARGIN), this.left - 6, y);
    }
    for (let column = firstColumn; column < lastColumn; column++) {
      const x = this.left + column * side - this.scroller.scrollLeft + cell / 2;
      if (x < this.left || x > right) continue;
      context.save();
      context.translate(x, this.top - 6);
      context.rotate(-Math.PI / 2);
      context.fillStyle = column === key ? pane.colours.outline : pane.colours.ink;
      context.textAlign = "left";
      context.direction = "ltr";
      context.fillText(this.fitted(context, this.columnLabel(column), this.top - MARGIN), 0, 0);
      context.restore();
    }
  }

  fitted(context, text, width) {
    let fitting = text;
    for (let length = [...text].length; length > 1 && context.measureText(fitting).width > width; length--) {
      fitting = shortened(text, length - 1);
    }
    return fitting;
  }

  // The row, the column and the cell that are looked at.
  mark(context, right, bottom) {
    const { query, key } = this.pane.selected;
    const { cell, left, top } = this;
    context.strokeStyle = this.pane.colours.outline;
    const [x, y] = this.corner(query ?? 0, key ?? 0);
    const thick = Math.max(cell, 3);
    context.lineWidth = 1.5;
    context.save();
    context.beginPath();
    context.rect(left - 2, top - 2, right - left + 4, bottom - top + 4);
    context.clip();
    if (query !== null) context.strokeRect(left - 1, y - 0.5, right - left + 2, thick);
    if (key !== null) context.strokeRect(x - 0.5, top - 1, thick, bottom - top + 2);
    context.lineWidth = 2.5;
    if (query !== null && key !== null) context.strokeRect(x - 0.5, y - 0.5, thick, thick);
    context.restore();
  }

  cellAt(event) {
    const frame = this.scroller.getBoundingClientRect();
    const x = event.clientX - frame.left - this.left;
    const y = event.clientY - frame.top - this.top;
    if (x < 0 || y < 0) return null;
    const key = Math.floor((x + this.scroller.scrollLeft) / this.cell);
    const query = Math.floor((y + this.scroller.scrollTop) / this.cell);
    const { tap, example } = this.pane;
    return key < tap.numKeys(example) && query < tap.numQueries(example) ? { query, key } : null;
  }

  point(event) {
    this.pane.hover(this.cellAt(event) ?? { query: null, key: null });
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event);
  }

  // Closer or farther; what is under the pointer (or in the middle) stays where it is.
  zoom(factor, event = null) {
    const { scroller } = this;
    const frame = scroller.getBoundingClientRect();
    const x = event ? event.clientX - frame.left : scroller.clientWidth / 2;
    const y = event ? event.clientY - frame.top : scroller.clientHeight / 2;
    const column = (x - this.left + scroller.scrollLeft) / this.cell;
    const row = (y - this.top + scroller.scrollTop) / this.cell;
    const zoom = factor === null ? null : clamp((this.pane.zoom ?? 1) * factor, 1, 64 / this.fitting);
    this.pane.change({ zoom: zoom === 1 ? null : zoom });
    this.layout();
    scroller.scrollLeft = column * this.cell - x + this.left;
    scroller.scrollTop = row * this.cell - y + this.top;
  }

  // Another position is looked at; a key that moved it brings it into sight.
  select(followed) {
    const { query, key } = this.pane.selected;
    if (followed) {
      const { scroller } = this;
      const [x, y] = this.corner(query ?? 0, key ?? 0);
      if (query !== null && y < this.top) scroller.scrollTop += y - this.top;
      if (query !== null && y + this.cell > scroller.clientHeight) scroller.scrollTop += y + this.cell - scroller.clientHeight;
      if (key !== null && x < this.left) scroller.scrollLeft += x - this.left;
      if (key !== null && x + this.cell > scroller.clientWidth) scroller.scrollLeft += x + this.cell - scroller.clientWidth;
    }
    this.drawSoon();
  }

  describe(drawing) {
    const { pane, rows, cell } = this;
    const { first, last, firstColumn, lastColumn } = this.sight();
    const side = cell * this.pool;
    const root = pane.squareRoot(rows.keys);
    const drawn = { rows: last - first, columns: lastColumn - firstColumn };
    if (drawn.rows * drawn.columns <= 3600) {
      for (let row = first; row < last; row++) {
        for (let column = firstColumn; column < lastColumn; column++) {
          const fraction = (rows.get(row)?.[column] ?? 0) / rows.ceiling;
          drawing.rect(this.left + (column - firstColumn) * side, this.top + (row - first) * side, side, side, {
            fill: pane.colours.at(root ? Math.sqrt(fraction) : fraction), stroke: cell >= 9 ? pane.colours.line : "none",
          });
        }
      }
    } else {
      const style = "image-rendering:pixelated";
      drawing.image(this.left, this.top, drawn.columns * side, drawn.rows * side, this.small.toDataURL(), { style });
    }
    for (let row = first; this.labelled && row < last; row++) {
      drawing.text(this.left - 6, this.top + (row - first) * side + cell / 2 + 4, this.rowLabel(row), { "text-anchor": "end" });
    }
    for (let column = firstColumn; this.labelled && column < lastColumn; column++) {
      drawing.text(this.left + (column - firstColumn) * side + cell / 2 + 4, this.top - 6, this.columnLabel(column), { turn: -90 });
    }
    const { query, key } = pane.selected;
    if (query !== null && key !== null) {
      drawing.rect(this.left + (key - firstColumn) * cell, this.top + (query - first) * cell, Math.max(cell, 3), Math.max(cell, 3), {
        fill: "none", stroke: pane.colours.outline, "stroke-width": 2.5,
      });
    }
  }

  // What the view says when nothing is pointed at.
  get hint() {
    return "Point at a cell to read its weight; click to keep it.";
  }
}
