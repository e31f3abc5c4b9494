// The embedding as points on a canvas: hover, wheel to zoom, drag to pan, lasso or box to select.
// What leaves this component is the selected region in the map's own coordinates; the server turns it into
// sample ids, so that a selection can never point at the wrong row.

const MARGIN = 18; // pixels around the whole map
const REACH = 9; // of the pointer, in pixels
const MOST_SHAPES = 4000;
// What the numbers in the legend count.
const LEGEND = { given: "labels today:", suggested: "suggested labels:", trust: "trust:", review: "checked:", reviewer: "checked by:", split: "split:" };
const RING_WEIGHT = 3; // dots that a suspect counts for besides itself, where a name would cover it
const MOST_STRETCH = 3; // of one axis against the other, so that the points fill the canvas

class EmbeddingMap {
  constructor(root) {
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the embedding", "data-testid": "map" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.legend = el("div", { class: "legend", "data-testid": "legend" });
    this.status = el("span", { class: "status", role: "status", "data-testid": "map-status" });
    this.tools = el("div", { class: "tools", role: "toolbar", "aria-label": "Map tools" });
    this.box = el("div", { class: "bench map" }, [
      el("div", { class: "head" }, [this.tools, this.status]),
      el("div", { class: "plot" }, [this.canvas, this.tip]), this.legend,
    ]);
    root.append(this.box);
    this.tool = "lasso";
    this.hidden = new Set();
    this.spread = [spreadOf([]), spreadOf([])];
    this.view = { scale: 1, x: 0, y: 0, stretch: [1, 1] };
    this.selected = new Set();
    this.listen();
    document.addEventListener("auditor-seen", ({ detail }) => {
      this.selected = new Set(detail.selected);
      if (this.overview && detail.items.filter((item) => this.isNew(item)).length) this.colourAgain();
      else this.paint();
    });
    new ResizeObserver(() => this.paint()).observe(this.canvas);
  }

  update(data) {
    const tag = ["reviewer", "split"].includes(data.colour) ? data.colour : "review";
    this.tag = tag;
    const source = `${data.audit}/${data.engine}/${data.version}/${tag}`;
    if (this.data && data.colour !== this.data.colour) this.hidden.clear();
    this.data = data;
    if (this.server) this.server.connection = data.connection;
    else this.server = new Server(data.connection);
    if (source !== this.source) this.load(source);
    else this.colourAgain();
    this.drawTools();
  }

  async load(source) {
    this.source = source;
    this.overview = null;
    this.asked = null;
    clearTimeout(this.waiting);
    this.box.setAttribute("data-state", "loading");
    this.box.removeAttribute("data-detail");
    this.status.textContent = "Loading the points …";
    try {
      const points = unpack(await this.server.bytes(`map/${this.data.audit}/${encodeURIComponent(this.data.engine)}?tag=${this.tag}&v=${Date.now()}`));
      if (source !== this.source) return;
      this.points = this.overview = points;
      this.spread = [spreadOf(points.x), spreadOf(points.y)];
      this.asked = null;
      this.index();
      this.polygon = this.data.region ? this.data.region.map((point) => this.toMap(point)) : null;
      this.colourAgain();
      this.home();
      this.box.setAttribute("data-state", "ready");
    } catch (error) {
      this.status.textContent = error.message;
      this.source = null;
    }
  }

  // Of a large set there is an overview, as dense as the whole, and after a zoom or a move more points of what is
  // in view, once the view stands still: a first visit stays below a megabyte.
  later() {
    clearTimeout(this.waiting);
    if (!this.overview || this.overview.count === this.overview.total) return;
    this.waiting = setTimeout(() => this.refine(), 300);
  }

  async refine() {
    const { width, height } = this.frame();
    const [left, low] = this.fromPixel([0, height]).map((one) => Math.max(0, Math.floor(one)));
    const [right, high] = this.fromPixel([width, 0]).map((one) => Math.min(65535, Math.ceil(one)));
    const part = [...this.toStored([left, low]), ...this.toStored([right, high])].join(",");
    if (!width || left >= right || low >= high || part === this.asked) return;
    this.asked = part;
    this.box.setAttribute("data-detail", "loading");
    try {
      const path = `map/${this.data.audit}/${encodeURIComponent(this.data.engine)}`;
      const points = unpack(await this.server.bytes(`${path}?box=${part}&tag=${this.tag}&v=${Date.now()}`));
      if (part !== this.asked) return;
      this.points = merged(this.overview, points, [left, low, right, high]);
      this.tip.hidden = true;
      this.tipped = -1;
      this.index();
      this.colourAgain();
      this.box.setAttribute("data-detail", "ready");
    } catch {
      // The overview is still there, and the next move asks again.
      this.box.removeAttribute("data-detail");
      if (part === this.asked) this.asked = null;
    }
  }

  // Buckets of a 128 x 128 grid: the nearest point is found without looking at all of them.
  index() {
    const { count, x, y } = this.points;
    const starts = new Uint32Array(128 * 128 + 1);
    const bucket = new Uint16Array(count);
    for (let i = 0; i < count; i += 1) {
      bucket[i] = (y[i] >> 9) * 128 + (x[i] >> 9);
      starts[bucket[i] + 1] += 1;
    }
    for (let i = 0; i < 128 * 128; i += 1) starts[i + 1] += starts[i];
    const fill = starts.slice();
    const members = new Uint32Array(count);
    for (let i = 0; i < count; i += 1) members[fill[bucket[i]]++] = i;
    this.buckets = { starts, members };
  }

  // Takes over what the bench beside the map says of a sample; whether that was not known here.
  isNew({ sample, decision, label, suggested, given, reviewer }) {
    const said = decision in this.data.decisions ? { review: decision, reviewer }[this.tag] : undefined;
    const now = decision === "relabel" ? (label ?? suggested) : given;
    const known = [...new Set([this.overview, this.points])].map((points) => {
      const i = points.sample.indexOf(sample);
      if (i < 0) return true;
      if (said && !points.decisionNames.includes(said)) points.decisionNames.push(said);
      const code = said ? points.decisionNames.indexOf(said) : this.tag === "split" ? points.decision[i] : 255;
      const isKnown = points.decision[i] === code && points.given[i] === (now < 0 ? 65535 : now);
      [points.decision[i], points.given[i]] = [code, now < 0 ? 65535 : now];
      return isKnown;
    });
    return known.includes(false);
  }

  groupOf(i) {
    const { given, suggested, trust, decision } = this.points;
    if (this.data.colour === "given") return given[i];
    if (this.data.colour === "suggested") return suggested[i];
    if (this.data.colour === "trust") return trust[i] === 255 ? 65535 : Math.min(5, Math.floor((trust[i] / 255) * 6));
    return decision[i] === 255 ? 65535 : decision[i];
  }

  colourOf(group) {
    if (group === 65535) return FAINT;
    if (this.data.colour === "trust") return TRUST[group];
    if (this.data.colour === this.tag) return this.tagged(group).colour;
    return PALETTE[group % PALETTE.length];
  }

  // What a point's tag says: the decision, who made it, or the split.
  tagged(code) {
    const name = this.points.decisionNames[code];
    if (this.tag === "review") return this.data.decisions[name];
    return { words: name, colour: PALETTE[code % PALETTE.length] };
  }

  nameOf(group) {
    if (this.data.colour === "trust") return group === 65535 ? "none" : `${(group / 6).toFixed(2)} – ${((group + 1) / 6).toFixed(2)}`;
    if (this.data.colour === this.tag) return group === 65535 ? (this.tag === "split" ? "no split" : "nobody yet") : this.tagged(group).words;
    return group === 65535 ? "unlabeled" : this.data.classNames[group];
  }

  colourAgain() {
    if (!this.points) return;
    const groups = new Map();
    for (let i = 0; i < this.points.count; i += 1) {
      const group = this.groupOf(i);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(i);
    }
    // The pale groups are painted first, so that they never cover the others.
    this.groups = [...groups.entries()].sort((a, b) => (b[0] === 65535) - (a[0] === 65535) || a[0] - b[0]);
    const { x, y, given, suggested, count } = this.points;
    const of = this.data.colour === "suggested" ? suggested : given;
    this.places = placesOf(count, (i) => [this.spread[0][x[i]], this.spread[1][y[i]]], (i) => of[i]);
    this.drawLegend();
    this.measure();
    this.paint();
  }

  drawLegend() {
    const rows = this.groups.slice(0, MOST_NAMED).map(([group, members]) => {
      const row = el("button", { class: "entry", title: `${this.nameOf(group)}: ${members.length.toLocaleString("en")}`, "aria-pressed": String(!this.hidden.has(group)) }, [
        el("i", { style: `background:${this.colourOf(group)}` }), el("span", { text: this.nameOf(group) }),
        el("small", { text: members.length.toLocaleString("en") }),
      ]);
      row.addEventListener("click", () => {
        if (this.hidden.has(group)) this.hidden.delete(group);
        else this.hidden.add(group);
        row.setAttribute("aria-pressed", String(!this.hidden.has(group)));
        this.paint();
      });
      return row;
    });
    const mark = el("div", { class: "entry mark" }, [el("i", {}), el("span", { text: "suspect" })]);
    const head = el("div", { class: "entry head-of", text: LEGEND[this.data.colour] });
    this.legend.replaceChildren(mark, head, ...rows);
  }

  drawTools() {
    // No letters: they are the keys of the pictures beside the map.
    const tool = (name, text) =>
      el("button", { class: `plain ${this.tool === name ? "chosen" : ""}`, "aria-pressed": String(this.tool === name), onclick: () => this.choose(name), text });
    this.tools.replaceChildren(
      tool("lasso", "Lasso"), tool("box", "Box"), tool("pan", "Pan"),
      el("button", { class: "plain", onclick: () => this.home(), text: "Whole map" }),
      el("button", { class: "plain", title: "Select all that is in view", onclick: () => this.selectView(), text: "In view" }),
      el("button", { class: "plain", title: "Esc", onclick: () => this.clear(), text: "Clear" }),
    );
  }

  choose(name) {
    this.tool = name;
    this.canvas.style.cursor = name === "pan" ? "grab" : "crosshair";
    this.drawTools();
  }

  // The cloud fills the canvas, whatever their shapes: its axes have no unit, so each is stretched for itself.
  home() {
    clearTimeout(this.waiting);
    if (this.overview && this.points !== this.overview) {
      Object.assign(this, { points: this.overview, asked: null });
      this.index();
      this.colourAgain();
    }
    this.view = { scale: 1, x: 0, y: 0, stretch: [1, 1] };
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (this.points && this.points.count && width) {
      const { x, y, count } = this.points;
      let [left, right, low, high] = [65535, 0, 65535, 0];
      for (let i = 0; i < count; i += 1) {
        if (x[i] < left) left = x[i];
        if (x[i] > right) right = x[i];
        if (y[i] < low) low = y[i];
        if (y[i] > high) high = y[i];
      }
      [left, right] = [left, right].map((one) => spread(this.spread[0], one));
      [low, high] = [low, high].map((one) => spread(this.spread[1], one));
      const base = Math.max(1, Math.min(width, height) - 2 * MARGIN) / 65535; // the outermost points are whole, with their rings
      const fit = [width / Math.max(1, right - left), height / Math.max(1, high - low)].map((one) => (0.94 * one) / base);
      const scale = Math.min(80, ...fit);
      const stretch = fit.map((one) => Math.min(MOST_STRETCH, one / scale));
      this.view = { scale, x: (left + right) / 2 - 32768, y: (low + high) / 2 - 32768, stretch };
    }
    this.paint();
  }

  // Selects what is in view: with the arrows and + −, a region without a pointer.
  selectView() {
    if (!this.points) return;
    const { width, height } = this.frame();
    this.drawing = [[2, 2], [width - 2, 2], [width - 2, height - 2], [2, height - 2]].map((one) => this.fromPixel(one));
    this.finish();
  }

  clear() {
    this.polygon = null;
    this.measure();
    this.paint();
    this.component.setTriggerValue("region", []);
  }

  // -- coordinates: the map's own, 0 to 65535 as stored, and pixels of the canvas ------------------------------

  toStored([x, y]) {
    const { corner, side } = this.points;
    return [corner[0] + (x / 65535) * side, corner[1] + (y / 65535) * side];
  }

  toMap([x, y]) {
    const { corner, side } = this.points;
    return [((x - corner[0]) / side) * 65535, ((y - corner[1]) / side) * 65535];
  }

  frame() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const base = Math.max(1, Math.min(width, height) - 2 * MARGIN) / 65535; // the outermost points are whole, with their rings
    const [k, kTall] = this.view.stretch.map((one) => base * this.view.scale * one);
    return { k, kTall, left: width / 2 - (32768 + this.view.x) * k, top: height / 2 - (32768 - this.view.y) * kTall, width, height };
  }

  toPixel([x, y]) {
    const { k, kTall, left, top } = this.frame();
    const [wide, tall] = this.spread;
    return [left + spread(wide, x) * k, top + (65535 - spread(tall, y)) * kTall];
  }

  fromPixel(place) {
    const [x, y] = this.drawnAt(place);
    return [gather(this.spread[0], x), gather(this.spread[1], y)];
  }

  // A pixel on the axes as they are drawn.
  drawnAt([px, py]) {
    const { k, kTall, left, top } = this.frame();
    return [(px - left) / k, 65535 - (py - top) / kTall];
  }

  // -- painting ------------------------------------------------------------------------------------------------

  paint() {
    if (this.painting) return;
    this.painting = requestAnimationFrame(() => {
      this.painting = null;
      this.paintNow();
    });
  }

  paintNow() {
    const { canvas } = this;
    if (!this.points || !canvas.clientWidth) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    const frame = this.frame(); // once: to ask the page for the canvas's size at every point costs most of the time
    const { k, kTall, left, top } = frame;
    const { x, y, issue, sample, count } = this.points;
    const [wide, tall] = this.spread;
    const dot = Math.max(1.6, Math.min(12, (count > 30000 ? 2 : count > 4000 ? 3 : count > 1000 ? 4.5 : count > 500 ? 7 : 9) * Math.sqrt(this.view.scale)));
    const size = Math.max(1, Math.round(dot * ratio));
    // Dots are written as pixels: a hundred thousand of them take milliseconds, and half a second as shapes.
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const [rings, marked, shapes] = [[], [], count <= MOST_SHAPES ? new Map() : null];
    const crowd = new Crowd(frame.width, frame.height);
    const around = dot / 2 + 2; // of a dot, its ring
    for (const [group, members] of this.groups) {
      if (this.hidden.has(group)) continue;
      const tone = pixelOf(this.colourOf(group), group === 65535 ? 0.35 : 0.75);
      shapes?.set(group, []);
      for (const i of members) {
        const px = left + wide[x[i]] * k;
        const py = top + (65535 - tall[y[i]]) * kTall;
        if (px < -9 || py < -9 || px > frame.width + 9 || py > frame.height + 9) continue;
        crowd.add(px, py);
        if (issue[i] && !this.isChecked(i)) {
          rings.push([px, py]);
          crowd.add(px, py, RING_WEIGHT);
        }
        if (this.selected.has(sample[i])) marked.push([px, py]);
        if (shapes) shapes.get(group).push([px, py]);
        else fillDot(pixels, width, height, Math.round(px * ratio - size / 2), Math.round(py * ratio - size / 2), size, tone);
      }
    }
    this.paintRings(pixels, width, height, rings, around, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.putImageData(image, 0, 0);
    if (shapes) this.paintShapes(context, shapes, dot / 2);
    this.paintMarked(context, marked, around + 3);
    this.paintNames(context, frame, crowd, around);
    this.paintPolygon(context);
  }

  // Few dots have a smooth edge, below the rings.
  paintShapes(context, shapes, radius) {
    context.globalCompositeOperation = "destination-over";
    for (const [group, dots] of shapes) {
      context.globalAlpha = group === 65535 ? 0.35 : 0.75;
      context.fillStyle = this.colourOf(group);
      for (const [px, py] of dots) {
        context.beginPath();
        context.arc(px, py, radius, 0, 2 * Math.PI);
        context.fill();
      }
    }
    Object.assign(context, { globalAlpha: 1, globalCompositeOperation: "source-over" });
  }

  // The classes' names near where they lie thickest, each where it covers fewest dots and no other name, underlined
  // in its colour; one without such a place is left out.
  paintNames(context, { k, kTall, left, top, width, height }, crowd, reach) {
    const style = getComputedStyle(this.box);
    const line = parseFloat(style.fontSize) || 14;
    context.font = `600 ${line}px ${style.fontFamily}`; // of the page's scale
    Object.assign(context, {
      textAlign: "center", textBaseline: "middle", lineJoin: "round", lineWidth: 4,
      strokeStyle: style.getPropertyValue("--st-background-color") || "#fff", fillStyle: style.getPropertyValue("--st-text-color") || "#000",
    });
    const taken = [];
    this.named = [];
    const isOfClasses = ["given", "suggested"].includes(this.data.colour);
    for (const [x, y, label] of this.places) {
      if (isOfClasses && this.hidden.has(label)) continue;
      const name = this.data.classNames[label];
      if (!name) continue;
      const half = context.measureText(name).width / 2 + 4;
      const [place, middle] = [left + x * k, top + (65535 - y) * kTall];
      if (place < 0 || place > width || middle < 0 || middle > height) continue;
      const isFree = ([px, py]) => taken.every(([otherX, otherY, otherHalf]) => Math.abs(px - otherX) >= half + otherHalf || Math.abs(py - otherY) >= line + 8);
      const around = [-4, -3, -2, -1, 0, 1, 2, 3, 4].flatMap((up) => [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2].map((aside) => [
        Math.max(half, Math.min(width - half, place + aside * (half + line))), // whole, also at the edge
        Math.max(line, Math.min(height - line, middle + up * line)),
      ]));
      const cost = ([px, py]) => crowd.within(px - half - reach, py - line / 2 - reach, px + half + reach, py + line / 2 + 3 + reach) + Math.hypot(px - place, py - middle) / (4 * line);
      const [best] = around.filter(isFree).map((one) => [cost(one), one]).sort(([one], [other]) => one - other);
      if (!best) continue;
      const [px, py] = best[1];
      taken.push([px, py, half]);
      this.named.push(name);
      context.strokeText(name, px, py);
      context.fillText(name, px, py);
      if (isOfClasses) {
        const text = context.fillStyle;
        context.fillStyle = this.colourOf(label);
        context.fillRect(px - half + 4, py + line / 2, 2 * half - 8, 3);
        context.fillStyle = text;
      }
    }
    this.canvas.setAttribute("aria-label", `Map of the embedding: ${[...new Set(this.named)].join(", ")}`);
  }

  // A person decided on it: no suspect any more.
  isChecked(i) {
    return this.tag !== "split" && this.points.decision[i] !== 255;
  }

  // What is selected in the grid beside the map.
  paintMarked(context, marked, radius) {
    context.strokeStyle = getComputedStyle(this.box).getPropertyValue("--st-text-color") || "#000";
    context.lineWidth = 2;
    for (const [px, py] of marked) {
      context.beginPath();
      context.arc(px, py, radius, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  // A ring is drawn once and then copied, for the same reason; in the colour of text, which is no class's.
  paintRings(pixels, width, height, rings, radius, ratio) {
    const text = getComputedStyle(this.box).getPropertyValue("--st-text-color") || "#000";
    const stamp = ringStamp(radius * ratio, ratio, text);
    for (const [px, py] of rings) copyStamp(pixels, width, height, px * ratio, py * ratio, stamp);
  }

  paintPolygon(context) {
    const outline = this.drawing || this.polygon;
    if (!outline || outline.length < 2) return;
    context.beginPath();
    outline.forEach((point, i) => context[i ? "lineTo" : "moveTo"](...this.toPixel(point)));
    context.closePath();
    context.fillStyle = getComputedStyle(this.box).getPropertyValue("--st-primary-color") || "#4a5768";
    context.strokeStyle = context.fillStyle;
    context.globalAlpha = 0.14;
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.stroke();
  }

  // How many points lie inside; the server counts again and is what everything else relies on.
  measure() {
    if (!this.points) return;
    const [drawn, all] = [this.points.count, this.points.total].map((number) => number.toLocaleString("en"));
    const total = drawn === all ? `${all} samples` : `${drawn} of ${all} samples are shown`;
    if (!this.polygon) {
      this.status.textContent = `${total}. Circle a region to see its pictures.`;
      return;
    }
    const path = new Path2D();
    this.polygon.forEach((point, i) => path[i ? "lineTo" : "moveTo"](point[0], point[1]));
    path.closePath();
    const context = this.canvas.getContext("2d");
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    let inside = 0;
    for (let i = 0; i < this.points.count; i += 1) inside += context.isPointInPath(path, this.points.x[i], this.points.y[i], "evenodd");
    context.restore();
    this.status.textContent = drawn === all ? `${inside.toLocaleString("en")} of ${total} selected` : `${inside.toLocaleString("en")} of ${drawn} shown samples are inside; all of them are beside the map`;
  }

  // -- pointer and keys ----------------------------------------------------------------------------------------

  listen() {
    const { canvas } = this;
    const at = (event) => {
      const place = canvas.getBoundingClientRect();
      return [event.clientX - place.left, event.clientY - place.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.points) return;
      canvas.setPointerCapture(event.pointerId);
      const [px, py] = at(event);
      this.tip.hidden = true;
      if (this.tool === "pan" || event.button === 1 || event.shiftKey) this.panning = [px, py, this.view.x, this.view.y];
      else this.drawing = [this.fromPixel([px, py])];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.points) return;
      const place = at(event);
      if (this.panning) this.pan(place);
      else if (this.drawing) this.extend(this.fromPixel(place));
      else this.hover(place);
    });
    canvas.addEventListener("pointerup", () => this.finish());
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("dblclick", () => this.home());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(at(event), Math.exp(-event.deltaY * 0.0016));
    }, { passive: false });
  }

  pan([px, py]) {
    const [fromX, fromY, x, y] = this.panning;
    const { k, kTall } = this.frame();
    this.view.x = x - (px - fromX) / k;
    this.view.y = y + (py - fromY) / kTall;
    this.paint();
    this.later();
  }

  zoom(place, factor) {
    if (!this.points) return;
    const before = this.drawnAt(place);
    this.view.scale = Math.max(0.5, Math.min(80, this.view.scale * factor));
    const after = this.drawnAt(place);
    this.view.x += before[0] - after[0];
    this.view.y += before[1] - after[1];
    this.paint();
    this.later();
  }

  extend(point) {
    if (this.tool === "box") {
      const [x0, y0] = this.drawing[0];
      this.drawing = [[x0, y0], [point[0], y0], point, [x0, point[1]]];
    } else {
      const last = this.toPixel(this.drawing[this.drawing.length - 1]);
      const next = this.toPixel(point);
      if (Math.hypot(last[0] - next[0], last[1] - next[1]) < 4) return;
      this.drawing.push(point);
    }
    this.paint();
  }

  finish() {
    this.panning = null;
    const drawn = this.drawing;
    this.drawing = null;
    if (!drawn || drawn.length < 3) {
      this.paint();
      return;
    }
    this.polygon = drawn;
    this.measure();
    this.paint();
    this.component.setTriggerValue("region", drawn.map((point) => this.toStored(point)));
    this.leadToImages();
  }

  // On a narrow page the images of a region appear below the map: scroll until both can be seen.
  async leadToImages() {
    if (window.innerWidth > 640) return;
    for (let tries = 0; tries < 60; tries += 1) {
      const images = document.querySelector(".st-key-map_region");
      if (images) {
        const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
        images.scrollIntoView({ behavior: isCalm ? "instant" : "smooth", block: "start" });
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  hover(place) {
    const [px, py] = place;
    const [left, low] = this.fromPixel([px - REACH, py + REACH]);
    const [right, high] = this.fromPixel([px + REACH, py - REACH]);
    const frame = this.frame();
    const [wide, tall] = this.spread;
    const { starts, members } = this.buckets;
    let best = -1;
    let nearest = REACH * REACH;
    const bucket = (value) => Math.max(0, Math.min(127, value >> 9));
    for (let row = bucket(low); row <= bucket(high); row += 1) {
      for (let column = bucket(left); column <= bucket(right); column += 1) {
        const cell = row * 128 + column;
        for (let at = starts[cell]; at < starts[cell + 1]; at += 1) {
          const i = members[at];
          const x = frame.left + wide[this.points.x[i]] * frame.k;
          const y = frame.top + (65535 - tall[this.points.y[i]]) * frame.kTall;
          const distance = (x - px) ** 2 + (y - py) ** 2;
          if (distance < nearest && !this.hidden.has(this.groupOf(i))) [best, nearest] = [i, distance];
        }
      }
    }
    this.showTip(best, place);
  }

  showTip(i, [px, py]) {
    if (i < 0) {
      this.tip.hidden = true;
      this.tipped = -1;
      return;
    }
    if (this.tipped !== i) {
      this.tipped = i;
      document.dispatchEvent(new CustomEvent("auditor-pointed", { detail: this.points.sample[i] }));
      const sample = this.points.sample[i];
      const { given, suggested, trust, decision, issue } = this.points;
      const name = (label) => (label === 65535 ? "none" : this.data.classNames[label]);
      const image = el("img", { src: this.server.image(sample, 84), alt: "" });
      this.tip.replaceChildren(image, el("div", {}, [
        el("b", { text: `Sample ${sample}` }), el("div", { text: `${this.isChecked(i) ? "now" : "given"} ${name(given[i])}` }),
        el("div", { text: `suggested ${name(suggested[i])}` }),
        el("div", { text: trust[i] === 255 ? "no trust score" : `trust ${(trust[i] / 254).toFixed(2)}${issue[i] && !this.isChecked(i) ? " · suspect" : ""}` }),
        decision[i] === 255 ? null : el("div", { text: this.tagged(decision[i]).words }),
      ]));
    }
    this.tip.hidden = false;
    const right = px > this.canvas.clientWidth - 250;
    this.tip.style.left = right ? "" : `${px + 14}px`;
    this.tip.style.right = right ? `${this.canvas.clientWidth - px + 14}px` : "";
    this.tip.style.top = `${Math.min(py + 10, this.canvas.clientHeight - 120)}px`;
  }

  onKey(event) {
    // The bench below the map has keys of its own; the map's work while the map has the focus or nothing is selected.
    const own = event.composedPath().includes(this.canvas);
    if (!own && this.data.region) return;
    const key = event.key.toLowerCase();
    const step = 6000 / this.view.scale;
    const moves = { arrowleft: [-step, 0], arrowright: [step, 0], arrowup: [0, step], arrowdown: [0, -step] };
    if (key === "escape") this.clear();
    else if (key === "+" || key === "-") this.zoom([this.canvas.clientWidth / 2, this.canvas.clientHeight / 2], key === "+" ? 1.4 : 0.7);
    else if (own && key in moves) {
      this.view.x += moves[key][0];
      this.view.y += moves[key][1];
      this.paint();
    } else return;
    event.preventDefault();
  }
}

export default mount(EmbeddingMap);
