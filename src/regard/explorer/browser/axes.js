// What the positions of a map are, as regard.core.axes says it: labels, places in a picture, distances.

const UNITS = {
  text: "tokens", grid: "pixels", volume: "voxels", frames: "seconds", series: "observations", boxes: "boxes", slots: "slots",
};

export const unit = (axis) => UNITS[axis?.kind] ?? "positions";

export function axisLength(axis) {
  switch (axis.kind) {
    case "text": return axis.tokens.length;
    case "grid": return (axis.extras ?? []).length + axis.rows * axis.columns;
    case "volume": return axis.depth * axis.rows * axis.columns;
    case "frames": return axis.count;
    case "series": return axis.dates.length;
    case "boxes": return axis.names.length;
    case "slots": return axis.contents.length;
    default: return NaN;
  }
}

export function label(axis, position) {
  switch (axis?.kind) {
    case "text": return axis.tokens[position];
    case "grid": {
      const extras = axis.extras ?? [];
      if (position < extras.length) return extras[position];
      const place = position - extras.length;
      return `${Math.floor(place / axis.columns)},${place % axis.columns}`;
    }
    case "volume": {
      const within = position % (axis.rows * axis.columns);
      const slice = Math.floor(position / (axis.rows * axis.columns));
      return `${slice},${Math.floor(within / axis.columns)},${within % axis.columns}`;
    }
    case "frames": return `${(position * axis.seconds).toFixed(2)} s`;
    case "series": return axis.dates[position];
    case "boxes": return axis.names[position];
    case "slots": return axis.contents[position];
    default: return String(position);
  }
}

// How a position is spoken of.
export function name(axis, position) {
  if (axis?.kind === "grid" && position >= (axis.extras ?? []).length) {
    const [row, column] = label(axis, position).split(",");
    return `the patch in row ${Number(row) + 1}, column ${Number(column) + 1}`;
  }
  return axis ? `“\u2068${label(axis, position)}\u2069”` : `position ${position}`;
}

// Left, top, right, bottom in pixels; null where a position is no place in a picture.
export function box(axis, position) {
  if (axis?.kind === "boxes") return axis.corners?.[position] ?? null;
  if (axis?.kind !== "grid") return null;
  const place = position - (axis.extras ?? []).length;
  if (place < 0) return null;
  const height = axis.image_height / axis.rows;
  const width = axis.image_width / axis.columns;
  const row = Math.floor(place / axis.columns);
  const column = place % axis.columns;
  return [column * width, row * height, (column + 1) * width, (row + 1) * height];
}

// Where a position lies in the unit of its axis; null where it lies nowhere (a class token).
function coordinates(axis, position) {
  const corners = box(axis, position);
  if (corners) return [(corners[0] + corners[2]) / 2, (corners[1] + corners[3]) / 2];
  switch (axis.kind) {
    case "text":
    case "series": return [position];
    case "frames": return [position * axis.seconds];
    case "volume": return label(axis, position).split(",").map(Number);
    default: return null;
  }
}

const SPACES = { text: "line", series: "line", grid: "picture", boxes: "picture", volume: "volume", frames: "time" };

// Whether distances between the positions of two axes mean anything; places in two texts are not on one line.
export function comparable(one, other, sameRole) {
  const space = SPACES[one?.kind];
  if (!space || space !== SPACES[other?.kind]) return false;
  if (space === "line") return sameRole;
  return space !== "volume" || JSON.stringify(one) === JSON.stringify(other);
}

// Places of all positions of an axis.
export function places(axis) {
  return Array.from({ length: axisLength(axis) }, (_, position) => coordinates(axis, position));
}
