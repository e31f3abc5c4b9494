// Points of a map: unpacked from the server's bytes, and put as pixels on a canvas.

// No orange and no blue: those mean the given and the suggested label.
const PALETTE = ["#009E73", "#CC79A7", "#8C6BB1", "#B0A000", "#C0392B", "#2BB5B0", "#6E8F2F", "#B0468F", "#5F6B73", "#B9B0A2"];
const TRUST = ["#5c2d91", "#7d4a8c", "#94667f", "#9c8c6e", "#a89a3e", "#b5b000"];
const FAINT = "#9aa3ad";
const MOST_NAMED = 60;
const CELL_PX = 8; // of the grid that says where dots lie

function unpack(buffer) {
  const view = new DataView(buffer);
  const count = view.getUint32(0, true);
  let at = 20;
  const take = (Kind) => {
    const column = new Kind(buffer.slice(at, at + count * Kind.BYTES_PER_ELEMENT));
    at += count * Kind.BYTES_PER_ELEMENT;
    return column;
  };
  const columns = {
    count, total: view.getUint32(4, true),
    corner: [view.getFloat32(8, true), view.getFloat32(12, true)], side: view.getFloat32(16, true),
    sample: take(Uint32Array), x: take(Uint16Array), y: take(Uint16Array), given: take(Uint16Array), suggested: take(Uint16Array),
    trust: take(Uint8Array), issue: take(Uint8Array), decision: take(Uint8Array),
  };
  // The decisions' names follow their column, which holds places in that list.
  return { ...columns, decisionNames: JSON.parse(new TextDecoder().decode(buffer.slice(at))) };
}

// Where the places of an axis (0 to 65535) are drawn: between the place itself and its rank among all points, so that
// empty parts leave their room to crowded ones. The order stays, so what is circled is what was meant.
const SPREAD = 0.6;

function spreadOf(values) {
  const bins = new Float64Array(257);
  for (const value of values) bins[(value >> 8) + 1] += 1;
  for (let bin = 1; bin <= 256; bin += 1) bins[bin] += bins[bin - 1];
  const places = new Float64Array(65536);
  for (let value = 0; value < 65536; value += 1) {
    const [bin, part] = [value >> 8, (value & 255) / 256];
    const rank = (bins[bin] + part * (bins[bin + 1] - bins[bin])) / Math.max(1, values.length);
    places[value] = (1 - SPREAD) * value + SPREAD * 65535 * rank;
  }
  return places;
}

const CELLS = 24; // a side of the map, of which a name's place is one or several
const [LEAST_NAMED, LEAST_SHARE, FAR_CELLS] = [3, 0.2, 5]; // points of a class at a place that bears its name, their share of the class, and cells between two such places
const PLACES = 2; // that bear the name of one class

// Where each class lies thickest, [x, y, class, points there], those of most points first. ``at(i)``: a point's place, 0 to 65535.
function placesOf(count, at, labelOf) {
  const members = new Map();
  for (let i = 0; i < count; i += 1) {
    const label = labelOf(i);
    if (label === 65535) continue;
    if (!members.has(label)) members.set(label, []);
    members.get(label).push(i);
  }
  const named = [...members.entries()].sort((one, other) => other[1].length - one[1].length).slice(0, MOST_NAMED);
  const cell = (value) => Math.max(0, Math.min(CELLS - 1, Math.floor((value / 65536) * CELLS)));
  return named.flatMap(([label, points]) => {
    const cells = Array.from({ length: CELLS * CELLS }, () => [0, 0, 0]); // points, sum of x, sum of y
    for (const i of points) {
      const [x, y] = at(i);
      const found = cells[cell(y) * CELLS + cell(x)];
      found[0] += 1;
      found[1] += x;
      found[2] += y;
    }
    const around = (column, row) => {
      const sum = [0, 0, 0];
      for (let r = Math.max(0, row - 1); r <= Math.min(CELLS - 1, row + 1); r += 1) {
        for (let c = Math.max(0, column - 1); c <= Math.min(CELLS - 1, column + 1); c += 1) {
          for (let k = 0; k < 3; k += 1) sum[k] += cells[r * CELLS + c][k];
        }
      }
      return sum;
    };
    const all = cells.map((_, i) => ({ column: i % CELLS, row: Math.floor(i / CELLS) })).map((one) => ({ ...one, sum: around(one.column, one.row) }));
    all.sort((one, other) => other.sum[0] - one.sum[0]);
    const found = [];
    for (const one of all) {
      if (found.length === PLACES || one.sum[0] < Math.max(LEAST_NAMED, LEAST_SHARE * points.length)) break;
      if (found.every(({ column, row }) => Math.max(Math.abs(column - one.column), Math.abs(row - one.row)) > FAR_CELLS)) found.push(one);
    }
    return found.map(({ sum: [number, x, y] }) => [x / number, y / number, label, number]);
  }).sort((one, other) => other[3] - one[3]);
}

function spread(places, value) {
  const at = Math.floor(value);
  if (at < 0) return value;
  if (at >= 65535) return places[65535] + value - 65535;
  return places[at] + (value - at) * (places[at + 1] - places[at]);
}

function gather(places, drawn) {
  if (drawn < 0) return drawn;
  if (drawn >= places[65535]) return 65535 + drawn - places[65535];
  let [low, high] = [0, 65535];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle] <= drawn) low = middle;
    else high = middle;
  }
  return low + (drawn - places[low]) / (places[high] - places[low]);
}

// The points of a part of the map in place of those that an overview has there.
function merged(overview, part, [left, low, right, high]) {
  const kept = [];
  for (let i = 0; i < overview.count; i += 1) {
    const inside = overview.x[i] >= left && overview.x[i] <= right && overview.y[i] >= low && overview.y[i] <= high;
    if (!inside) kept.push(i);
  }
  const decisionNames = [...new Set([...overview.decisionNames, ...part.decisionNames])];
  const codes = Uint8Array.from({ length: 256 }, (_, code) => (code < part.decisionNames.length ? decisionNames.indexOf(part.decisionNames[code]) : 255));
  const found = { ...overview, count: kept.length + part.count, decisionNames };
  for (const name of ["sample", "x", "y", "given", "suggested", "trust", "issue", "decision"]) {
    const column = new overview[name].constructor(found.count);
    kept.forEach((i, at) => { column[at] = overview[name][i]; });
    column.set(name === "decision" ? part[name].map((code) => codes[code]) : part[name], kept.length);
    found[name] = column;
  }
  return found;
}

// "#rrggbb" as one pixel of image data (a little-endian machine's, which all browsers run on).
function pixelOf(colour, opacity) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return ((Math.round(opacity * 255) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// A round dot; the smallest are squares, which cannot be told apart.
function fillDot(pixels, width, height, left, top, size, tone) {
  const [right, bottom] = [Math.min(width, left + size), Math.min(height, top + size)];
  const first = Math.max(0, left);
  const half = (size - 1) / 2;
  const reach = size < 4 ? Infinity : (half + 0.3) ** 2;
  for (let row = Math.max(0, top); row < bottom; row += 1) {
    const high = (row - top - half) ** 2;
    for (let column = first; column < right; column += 1) {
      if (high + (column - left - half) ** 2 <= reach) pixels[row * width + column] = tone;
    }
  }
}

// How many dots lie where on the canvas: counted in cells, so that a place for a name is found in no time.
class Crowd {
  constructor(width, height) {
    [this.columns, this.rows] = [Math.ceil(width / CELL_PX) + 1, Math.ceil(height / CELL_PX) + 1];
    this.dots = new Uint32Array(this.columns * this.rows);
  }

  add(px, py, weight = 1) {
    const [column, row] = [Math.floor(px / CELL_PX), Math.floor(py / CELL_PX)];
    if (column >= 0 && row >= 0 && column < this.columns && row < this.rows) this.dots[row * this.columns + column] += weight;
  }

  within(left, top, right, bottom) {
    let found = 0;
    for (let row = Math.max(0, Math.floor(top / CELL_PX)); row <= Math.min(this.rows - 1, Math.floor(bottom / CELL_PX)); row += 1) {
      for (let column = Math.max(0, Math.floor(left / CELL_PX)); column <= Math.min(this.columns - 1, Math.floor(right / CELL_PX)); column += 1) found += this.dots[row * this.columns + column];
    }
    return found;
  }
}

// A thin ring as pixels, all in the canvas's own; what lies inside it stays in view.
function ringStamp(radius, ratio, tone) {
  const half = Math.ceil(radius + 3 * ratio);
  const context = el("canvas", { width: 2 * half, height: 2 * half }).getContext("2d");
  context.translate(half, half);
  context.arc(0, 0, radius, 0, 2 * Math.PI);
  context.lineWidth = Math.min(1.5, radius / ratio / 3) * ratio;
  context.strokeStyle = tone;
  context.stroke();
  return { half, pixels: new Uint32Array(context.getImageData(0, 0, 2 * half, 2 * half).data.buffer) };
}

function copyStamp(pixels, width, height, px, py, stamp) {
  const side = 2 * stamp.half;
  const [left, top] = [Math.round(px) - stamp.half, Math.round(py) - stamp.half];
  const [first, last] = [Math.max(0, -left), Math.min(side, width - left)];
  for (let row = Math.max(0, -top); row < Math.min(side, height - top); row += 1) {
    for (let column = first; column < last; column += 1) {
      const tone = stamp.pixels[row * side + column];
      if (tone) pixels[(top + row) * width + left + column] = tone;
    }
  }
}
