// The forms in which attention is kept, as rows of weights: `row(example, head, query)` is computed when it is asked for.
// The same sums as regard.core.relations, in doubles.

import { DamagedRecording } from "./file.js";

const FORMS = {};
const CACHED_BYTES = 128 * 2 ** 20;

export function restore(form, tensors, fields) {
  if (!(form in FORMS)) {
    throw new DamagedRecording(`This recording keeps attention in the form “${form}”, which this explorer does not know.`);
  }
  return new FORMS[form](tensors, fields ?? {});
}

function needed(tensors, name, dimensions) {
  const found = tensors.get(name);
  if (!found || found.shape.length !== dimensions) {
    throw new DamagedRecording(`This recording is damaged: the tensor “${name}” is missing or has another number of axes.`);
  }
  return found;
}

function together(condition) {
  if (!condition) throw new DamagedRecording("This recording is damaged: tensors of one attention do not fit together.");
}

// Decoded keys of some heads, the oldest forgotten first.
class Cache {
  constructor() {
    this.entries = new Map();
    this.bytes = 0;
  }

  get(key, make) {
    let value = this.entries.get(key);
    if (value) this.entries.delete(key);
    else {
      value = make();
      this.bytes += value.byteLength;
    }
    this.entries.set(key, value);
    for (const [oldest, held] of this.entries) {
      if (this.bytes <= CACHED_BYTES || oldest === key) break;
      this.entries.delete(oldest);
      this.bytes -= held.byteLength;
    }
    return value;
  }
}

const cache = new Cache();
let relations = 0;

// softmax(scale * queries keys^T + bias) over the keys that are allowed; a row without any is zero.
class DotRelation {
  constructor(tensors, fields) {
    this.id = relations++;
    this.queriesOf = needed(tensors, "queries", 4);
    this.keysOf = needed(tensors, "keys", 4);
    const [examples, heads, queries, width] = this.queriesOf.shape;
    const [sameExamples, groups, keys, sameWidth] = this.keysOf.shape;
    together(examples === sameExamples && width === sameWidth && groups > 0 && heads % groups === 0);
    together(typeof fields.scale === "number");
    Object.assign(this, { examples, heads, queries, keys, width, groups, scale: fields.scale });
    this.causal = fields.causal === true;
    this.window = fields.window ?? null;
    this.allowKeys = tensors.get("allow_keys") ?? null;
    this.pairs = broadcast(tensors.get("allow_pairs"), [examples, heads, queries, keys]);
    this.bias = broadcast(tensors.get("bias"), [examples, heads, queries, keys]);
    this.offsets = tensors.get("bias_offsets") ?? null;
    if (this.allowKeys) together([1, examples].includes(this.allowKeys.shape[0]) && this.allowKeys.shape[1] === keys);
    if (this.offsets) together(this.offsets.shape[0] === heads && this.offsets.shape[1] === queries + keys - 1);
  }

  get cost() {
    return this.width * this.keys;
  }

  row(example, head, query) {
    const { keys, width, scale } = this;
    const group = Math.floor((head * this.groups) / this.heads);
    const from = ((example * this.heads + head) * this.queries + query) * width;
    const asked = this.queriesOf.values(from, from + width);
    const start = (example * this.groups + group) * keys * width;
    const all = cache.get(`${this.id}/${example}/${group}`, () => this.keysOf.values(start, start + keys * width));
    const added = this.bias && this.bias(example, head, query);
    const shift = this.offsets && this.offsets.values(
      head * (this.queries + keys - 1) + this.queries - 1 - query,
      head * (this.queries + keys - 1) + this.queries - 1 - query + keys,
    );
    const allowed = this.allowed(example, head, query);
    const scores = new Float64Array(keys);
    let largest = -Infinity;
    for (let key = 0, place = 0; key < keys; key++) {
      if (allowed && !allowed[key]) {
        place += width;
        continue;
      }
      let sum = 0;
      for (let n = 0; n < width; n++) sum += asked[n] * all[place++];
      sum *= scale;
      if (added) sum += added[key];
      if (shift) sum += shift[key];
      scores[key] = sum;
      if (sum > largest) largest = sum;
    }
    let total = 0;
    for (let key = 0; key < keys; key++) {
      scores[key] = allowed && !allowed[key] ? 0 : Math.exp(scores[key] - largest);
      total += scores[key];
    }
    const weights = new Float32Array(keys);
    if (total > 0) for (let key = 0; key < keys; key++) weights[key] = scores[key] / total;
    return weights;
  }

  // Which keys a query may see; null for all. Queries and keys are aligned at their ends.
  allowed(example, head, query) {
    const { keys, causal, window } = this;
    if (!this.allowKeys && !this.pairs && !causal && window === null) return null;
    const allowed = new Uint8Array(keys).fill(1);
    const position = query + keys - this.queries;
    if (causal) allowed.fill(0, Math.max(0, position + 1));
    if (window !== null) {
      allowed.fill(0, 0, Math.max(0, position - window));
      allowed.fill(0, Math.max(0, position + window + 1));
    }
    if (this.allowKeys) {
      const from = this.allowKeys.shape[0] > 1 ? example * keys : 0;
      restrict(allowed, this.allowKeys.values(from, from + keys));
    }
    if (this.pairs) restrict(allowed, this.pairs(example, head, query));
    return allowed;
  }
}
FORMS.dot = DotRelation;

function restrict(allowed, other) {
  for (let key = 0; key < allowed.length; key++) if (!other[key]) allowed[key] = 0;
}

// A tensor of 2 to 4 axes, of which any may have size 1, as rows of keys: (queries, keys), (examples, queries, keys) or
// (examples, heads, queries, keys).
function broadcast(tensor, whole) {
  if (!tensor) return null;
  const given = [...tensor.shape];
  if (given.length === 3) given.splice(1, 0, 1);
  if (given.length === 2) given.unshift(1, 1);
  together(given.length === 4 && given.every((size, axis) => size === 1 || size === whole[axis]));
  return (...place) => {
    let row = 0;
    for (let axis = 0; axis < 3; axis++) row = row * given[axis] + (given[axis] > 1 ? place[axis] : 0);
    const values = tensor.values(row * given[3], (row + 1) * given[3]);
    return given[3] === whole[3] ? values : new Float32Array(whole[3]).fill(values[0]);
  };
}

// Weights as they were computed.
class DenseRelation {
  constructor(tensors) {
    this.tensor = needed(tensors, "weights", 4);
    [this.examples, this.heads, this.queries, this.keys] = this.tensor.shape;
  }

  get cost() {
    return this.keys;
  }

  row(example, head, query) {
    const start = ((example * this.heads + head) * this.queries + query) * this.keys;
    return Float32Array.from(this.tensor.values(start, start + this.keys));
  }
}
FORMS.dense = DenseRelation;

// A few keys for each query; a key of -1 is an unused place.
class SparseRelation {
  constructor(tensors, fields) {
    this.indices = needed(tensors, "indices", 4);
    this.kept = needed(tensors, "values", 4);
    together(String(this.indices.shape) === String(this.kept.shape) && Number.isInteger(fields.keys));
    [this.examples, this.heads, this.queries, this.places] = this.indices.shape;
    this.keys = fields.keys;
  }

  get cost() {
    return this.keys;
  }

  row(example, head, query) {
    const start = ((example * this.heads + head) * this.queries + query) * this.places;
    const indices = this.indices.values(start, start + this.places);
    const values = this.kept.values(start, start + this.places);
    const weights = new Float32Array(this.keys);
    for (let place = 0; place < this.places; place++) {
      together(indices[place] < this.keys);
      if (indices[place] >= 0) weights[indices[place]] += values[place];
    }
    return weights;
  }
}
FORMS.sparse = SparseRelation;

// A relation inside groups of places, such as the windows of a picture; a place of -1 is none.
class GroupedRelation {
  constructor(tensors, fields) {
    const inside = new Map();
    for (const [name, tensor] of tensors) if (name.startsWith("inner.")) inside.set(name.slice(6), tensor);
    this.inner = restore(fields.inner?.form, inside, fields.inner?.fields);
    const queryPlaces = needed(tensors, "query_places", 2);
    this.keyPlaces = needed(tensors, "key_places", 2);
    [this.groups, this.groupQueries] = queryPlaces.shape;
    this.groupKeys = this.keyPlaces.shape[1];
    together(this.groups > 0 && this.inner.examples % this.groups === 0 && this.keyPlaces.shape[0] === this.groups);
    together(this.inner.queries === this.groupQueries && this.inner.keys === this.groupKeys);
    together(Number.isInteger(fields.queries) && Number.isInteger(fields.keys));
    Object.assign(this, { heads: this.inner.heads, queries: fields.queries, keys: fields.keys });
    this.examples = this.inner.examples / this.groups;
    this.found = new Float64Array(this.queries).fill(-1);
    queryPlaces.values().forEach((place, n) => {
      together(place < this.queries);
      if (place >= 0) this.found[place] = n;
    });
  }

  get cost() {
    return this.inner.cost + this.keys;
  }

  row(example, head, query) {
    const weights = new Float32Array(this.keys);
    const found = this.found[query];
    if (found < 0) return weights;
    const group = Math.floor(found / this.groupQueries);
    const row = this.inner.row(example * this.groups + group, head, found % this.groupQueries);
    const places = this.keyPlaces.values(group * this.groupKeys, (group + 1) * this.groupKeys);
    for (let key = 0; key < this.groupKeys; key++) {
      together(places[key] < this.keys);
      if (places[key] >= 0) weights[places[key]] += row[key];
    }
    return weights;
  }
}
FORMS.grouped = GroupedRelation;
