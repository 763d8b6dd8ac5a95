// The same numbers as a table, for those who do not see the picture or want to copy them.

import { digits, element, shown } from "./elements.js";

const WHOLE = 1600;
const LONGEST = 200;

export function weightsTable(pane) {
  const { tap, example, head } = pane;
  const [queries, keys] = [tap.numQueries(example), tap.numKeys(example)];
  const name = `${tap.address}, ${head === "mean" ? "mean over heads" : `head ${head}`}`;
  if (queries * keys <= WHOLE) {
    const heading = element("tr", {}, element("td"), range(keys).map((key) => element("th", { scope: "col", dir: "auto", textContent: shown(tap.keyLabel(example, key)) })));
    const rows = range(queries).map((query) => {
      const weights = tap.row(example, head, query);
      return element("tr", {}, element("th", { scope: "row", dir: "auto", textContent: shown(tap.queryLabel(example, query)) }), [...weights].map((weight) => element("td", { textContent: weight.toFixed(3) })));
    });
    return element("table", {}, element("caption", { textContent: name }), element("thead", {}, heading), element("tbody", {}, rows));
  }
  const query = pane.selected.query ?? 0;
  const weights = pane.row(query);
  const order = range(keys).sort((one, other) => weights[other] - weights[one]).slice(0, LONGEST);
  const rows = order.map((key) => element("tr", {}, element("th", { scope: "row", dir: "auto", textContent: shown(tap.keyLabel(example, key)) }), element("td", { textContent: key }), element("td", { textContent: digits(weights[key]) })));
  const caption = element("caption", { textContent: `${name}: the largest weights of ${pane.positionName("query", query)}` });
  const heading = element("tr", {}, ["key", "position", "weight"].map((textContent) => element("th", { scope: "col", textContent })));
  return element("table", {}, caption, element("thead", {}, heading), element("tbody", {}, rows));
}

const range = (count) => Array.from({ length: count }, (_, n) => n);
