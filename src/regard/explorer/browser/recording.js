// A recording in the browser: attention by address, axes by role. Rows and columns beyond an example's axis (padding)
// are cut off.

import { axisLength, label } from "./axes.js";
import { DamagedRecording, readFile } from "./file.js";
import { restore } from "./relations.js";

export const MEAN = "mean";

export class Recording {
  constructor(bytes, name = "", note = "") {
    const { header, tensors } = readFile(bytes);
    this.name = name;
    this.outputs = header.outputs ?? {};
    this.axes = header.axes;
    this.note = note;
    this.taps = new Map();
    header.taps.forEach((entry, number) => {
      const own = new Map();
      for (const [key, tensor] of tensors) if (key.startsWith(`${number}/`)) own.set(key.slice(`${number}/`.length), tensor);
      if (typeof entry?.address !== "string" || this.taps.has(entry.address)) {
        throw new DamagedRecording("This recording is damaged: an attention has no address of its own.");
      }
      this.taps.set(entry.address, new Tap(entry, restore(entry.form, own, entry.fields), this.axes));
    });
    this.examples = Math.min(...[...this.taps.values()].map((tap) => tap.relation.examples));
    if (!this.examples) throw new DamagedRecording("This recording holds no example.");
  }

  get addresses() {
    return [...this.taps.keys()];
  }

  // What is said about one example.
  record(example) {
    const listed = this.outputs.examples;
    if (Array.isArray(listed)) return listed[example] ?? {};
    const { pictures, predictions, ...rest } = this.outputs;
    return {
      ...(this.examples === 1 ? rest : {}),
      ...(predictions?.[example] ?? {}),
      ...(pictures?.[example] ? { picture: pictures[example] } : {}),
    };
  }

  // The attention shown first: the last but one that reads across two axes, else the last.
  get first() {
    const across = [...this.taps.values()].filter((tap) => tap.queries !== tap.keys);
    return (across.slice(-2)[0] ?? [...this.taps.values()].at(-1)).address;
  }
}

export class Tap {
  constructor({ address, queries, keys }, relation, axes) {
    Object.assign(this, { address, queries, keys, relation, heads: relation.heads });
    const fitting = (role, size) => {
      const given = axes[role];
      if (!given) return null;
      if (!Array.isArray(given) || given.length !== relation.examples || given.some((axis) => !(axisLength(axis) <= size))) {
        throw new DamagedRecording(`This recording is damaged: the axes of “${role}” do not fit ${address}.`);
      }
      return given;
    };
    this.queryAxes = fitting(queries, relation.queries);
    this.keyAxes = fitting(keys, relation.keys);
  }

  queryAxis(example) {
    return this.queryAxes?.[example] ?? null;
  }

  keyAxis(example) {
    return this.keyAxes?.[example] ?? null;
  }

  numQueries(example) {
    return this.queryAxes ? axisLength(this.queryAxes[example]) : this.relation.queries;
  }

  numKeys(example) {
    return this.keyAxes ? axisLength(this.keyAxes[example]) : this.relation.keys;
  }

  queryLabel(example, position) {
    return label(this.queryAxis(example), position);
  }

  keyLabel(example, position) {
    return label(this.keyAxis(example), position);
  }

  // Multiplications that a row costs, for all heads where their mean is asked for.
  cost(head) {
    return this.relation.cost * (head === MEAN ? this.heads : 1);
  }

  row(example, head, query) {
    const keys = this.numKeys(example);
    if (head !== MEAN) return this.relation.row(example, head, query).subarray(0, keys);
    const mean = new Float64Array(keys);
    for (let each = 0; each < this.heads; each++) {
      const row = this.relation.row(example, each, query);
      for (let key = 0; key < keys; key++) mean[key] += row[key];
    }
    return Float32Array.from(mean, (sum) => sum / this.heads);
  }
}
