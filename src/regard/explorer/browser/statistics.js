// Numbers about each head: mean over its queries of entropy, largest weight and distance.

import { comparable, places, unit } from "./axes.js";

const AFFORDABLE = 3e9;
const FEWEST_QUERIES = 24;

export const MEASURES = {
  entropy: { title: "Entropy", unit: "nats", says: "how spread the attention of a query is; 0 for one key only" },
  largest: { title: "Largest weight", unit: "", says: "how much goes to the key that gets most" },
  distance: { title: "Distance", unit: "", says: "how far away it looks, on average, in the axis's own unit" },
};

export function rowStatistics(weights, query, queryPlaces, keyPlaces) {
  let entropy = 0;
  let largest = 0;
  let distance = 0;
  let placed = 0;
  const from = queryPlaces?.[query];
  for (let key = 0; key < weights.length; key++) {
    const weight = weights[key];
    if (weight <= 0) continue;
    entropy -= weight * Math.log(weight);
    if (weight > largest) largest = weight;
    const to = from && keyPlaces[key];
    if (to) {
      let square = 0;
      for (let axis = 0; axis < to.length; axis++) square += (to[axis] - from[axis]) ** 2;
      distance += weight * Math.sqrt(square);
      placed += weight;
    }
  }
  return { entropy, largest, distance: placed > 0 ? distance / placed : null };
}

// All heads of all taps of one example; with many long maps only some queries, evenly spread, are looked at.
export class Statistics {
  constructor(recording, example) {
    Object.assign(this, { recording, example, heads: new Map(), sampled: false });
    let whole = 0;
    for (const tap of recording.taps.values()) whole += tap.relation.cost * tap.numQueries(example) * tap.heads;
    this.share = Math.min(1, AFFORDABLE / whole);
  }

  get(address, head) {
    return this.heads.get(`${address}/${head}`) ?? null;
  }

  unit(measure, tap) {
    return measure === "distance" ? unit(tap.queryAxis(this.example)) : MEASURES[measure].unit;
  }

  * compute() {
    for (const tap of this.recording.taps.values()) {
      const queries = tap.numQueries(this.example);
      const count = Math.min(queries, Math.max(FEWEST_QUERIES, Math.floor(queries * this.share)));
      if (count < queries) this.sampled = true;
      const [queryAxis, keyAxis] = [tap.queryAxis(this.example), tap.keyAxis(this.example)];
      const measurable = comparable(queryAxis, keyAxis, tap.queries === tap.keys);
      const [from, to] = measurable ? [places(queryAxis), places(keyAxis)] : [null, null];
      for (let head = 0; head < tap.heads; head++) {
        const sums = { entropy: 0, largest: 0, distance: 0 };
        let placed = 0;
        for (let n = 0; n < count; n++) {
          const query = Math.floor(((n + 0.5) * queries) / count);
          const found = rowStatistics(tap.row(this.example, head, query), query, from, to);
          sums.entropy += found.entropy;
          sums.largest += found.largest;
          if (found.distance !== null) {
            sums.distance += found.distance;
            placed++;
          }
          yield;
        }
        this.heads.set(`${tap.address}/${head}`, {
          entropy: count ? sums.entropy / count : null,
          largest: count ? sums.largest / count : null,
          distance: placed ? sums.distance / placed : null,
        });
      }
    }
  }
}
