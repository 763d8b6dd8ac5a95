// Rows of one head's map, computed when they come into sight, at full size or the largest weight of each block of cells.

import { inSlices } from "./slices.js";

const KEPT_WEIGHTS = 8 << 20;
const STEPS = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1];

// A round number not below the largest weight: what gets the last colour.
export function ceiling(largest) {
  return largest > 0 ? STEPS.find((step) => largest <= step + 1e-6) ?? largest : 1;
}

export class Rows {
  constructor(tap, example, head, pool = 1) {
    Object.assign(this, { tap, example, head, pool, largest: 0, work: null, kept: new Map() });
    this.queries = tap.numQueries(example);
    this.keys = tap.numKeys(example);
    this.rows = Math.ceil(this.queries / pool);
    this.columns = Math.ceil(this.keys / pool);
  }

  get ceiling() {
    return ceiling(this.largest);
  }

  get complete() {
    return this.kept.size === this.rows;
  }

  get(row) {
    return this.kept.get(row) ?? null;
  }

  // Sees to rows `start` to `stop`; `onProgress` is called whenever there are new ones.
  want(start, stop, onProgress = () => {}) {
    this.work?.stop();
    this.work = null;
    const missing = [];
    for (let row = Math.max(0, start); row < Math.min(stop, this.rows); row++) if (!this.kept.has(row)) missing.push(row);
    if (!missing.length) return Promise.resolve(true);
    this.work = inSlices(this.compute(missing, start, stop), onProgress);
    return this.work.done;
  }

  * compute(missing, start, stop) {
    for (const row of missing) {
      const pooled = new Float32Array(this.columns);
      const last = Math.min((row + 1) * this.pool, this.queries);
      for (let query = row * this.pool; query < last; query++) {
        const weights = this.tap.row(this.example, this.head, query);
        for (let key = 0; key < this.keys; key++) {
          const place = this.pool === 1 ? key : Math.floor(key / this.pool);
          if (weights[key] > pooled[place]) pooled[place] = weights[key];
        }
        if (query + 1 < last) yield;
      }
      for (const weight of pooled) if (weight > this.largest) this.largest = weight;
      this.kept.set(row, pooled);
      this.forget(start, stop);
      yield;
    }
  }

  // What is out of sight goes when there is too much, the oldest first.
  forget(start, stop) {
    if (this.kept.size * this.columns <= KEPT_WEIGHTS) return;
    for (const row of this.kept.keys()) {
      if (row < start || row >= stop) {
        this.kept.delete(row);
        return;
      }
    }
  }
}

// A few rows of a head spread evenly, for a thumbnail: at most `side` rows of at most `side` blocks.
export function thumbnail(tap, example, head, side) {
  const queries = tap.numQueries(example);
  const keys = tap.numKeys(example);
  const rows = Math.min(queries, side);
  const columns = Math.min(keys, side);
  const cells = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    const weights = tap.row(example, head, Math.floor(((row + 0.5) * queries) / rows));
    for (let key = 0; key < keys; key++) {
      const place = row * columns + Math.floor((key * columns) / keys);
      if (weights[key] > cells[place]) cells[place] = weights[key];
    }
  }
  return { rows, columns, cells };
}
