// A picture large over the whole page, fitted into the window, to magnify and shift from there.
// While it is open, no key decides anything.

const MOST_ZOOM = 40;
const STEP_ZOOM = 1.4;
const STEP_PX = 80; // that an arrow key shifts a magnified picture by
const LINE_PX = 16; // of a wheel that counts lines

// Zoom and shift of a picture that fills a frame. 1 is the picture fitted into the frame, x and y are pixels from its
// middle; no edge of a picture that is larger than the frame comes inside it.
class Sight {
  // ``needsCtrl``: the wheel alone is the page's, and a click is somebody else's.
  constructor(frame, image, { needsCtrl = false, onChange = () => {} } = {}) {
    Object.assign(this, { frame, image, needsCtrl, onChange, scale: 1, x: 0, y: 0, pointers: new Map() });
    image.draggable = false;
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("pointerdown", (event) => this.press(event));
    frame.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) frame.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    // A drag is no click.
    frame.addEventListener("click", (event) => this.isDragged && event.stopImmediatePropagation(), true);
    if (!needsCtrl) frame.addEventListener("dblclick", (event) => this.toggle(this.place(event)));
  }

  place(event) {
    const box = this.frame.getBoundingClientRect();
    return [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
  }

  // Pixels of the page for one of the picture when it fits.
  get fit() {
    const { frame, image } = this;
    return Math.min(frame.clientWidth / (image.naturalWidth || 1), frame.clientHeight / (image.naturalHeight || 1));
  }

  reset() {
    Object.assign(this, { scale: 1, x: 0, y: 0 });
    this.apply();
  }

  // What lies below ``at`` stays there.
  zoom(factor, at = [0, 0]) {
    const scale = Math.min(MOST_ZOOM, Math.max(1, this.scale * factor));
    const by = scale / this.scale;
    this.x = at[0] - (at[0] - this.x) * by;
    this.y = at[1] - (at[1] - this.y) * by;
    this.scale = scale;
    this.apply();
  }

  shift(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.apply();
  }

  // Its own size and back; one that is hardly larger or smaller than the frame is magnified.
  toggle(at) {
    if (this.scale > 1) this.reset();
    else this.zoom(1 / this.fit > 1.2 ? 1 / this.fit : 4, at);
  }

  apply() {
    const { frame, image, scale } = this;
    const most = (side, room) => Math.max(0, (side * this.fit * scale - room) / 2);
    const [mostX, mostY] = [most(image.naturalWidth, frame.clientWidth), most(image.naturalHeight, frame.clientHeight)];
    this.x = Math.max(-mostX, Math.min(mostX, this.x));
    this.y = Math.max(-mostY, Math.min(mostY, this.y));
    image.style.transform = scale === 1 ? "" : `translate(${this.x}px, ${this.y}px) scale(${scale})`;
    frame.classList.toggle("zoomed", scale > 1);
    this.onChange(scale);
  }

  wheel(event) {
    if (this.needsCtrl && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const turned = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1);
    this.zoom(Math.exp(-Math.max(-200, Math.min(200, turned)) / 300), this.place(event));
  }

  press(event) {
    if (event.button !== 0) return;
    this.isDragged = false;
    this.pointers.set(event.pointerId, this.place(event));
  }

  // One pointer shifts, two pinch.
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = this.place(event);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (this.pointers.size === 1 && (this.scale === 1 || (!this.isDragged && Math.hypot(dx, dy) < 4))) return;
    if (!this.isDragged) this.frame.setPointerCapture(event.pointerId);
    this.isDragged = true;
    this.pointers.set(event.pointerId, now);
    if (this.pointers.size === 1) return this.shift(dx, dy);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
    const apart = (one) => Math.max(1, Math.hypot(one[0] - other[0], one[1] - other[1]));
    return this.zoom(apart(now) / apart(before), other);
  }
}

// Brightness, contrast and interpolation of a picture: percent, percent, and whether its pixels are squares.
function dress(image, { light = 100, contrast = 100, pixels = false } = {}) {
  image.style.filter = light === 100 && contrast === 100 ? "" : `brightness(${light}%) contrast(${contrast}%)`;
  image.style.imageRendering = pixels ? "pixelated" : "auto";
}

class Viewer {
  // ``look``: what ``dress`` takes, or nothing.
  constructor(server, look = () => undefined) {
    Object.assign(this, { server, look });
    this.image = el("img", { alt: "", "data-testid": "large" });
    this.frame = el("div", { class: "sight", tabindex: "0", role: "group", autofocus: true, "aria-label": "Picture: plus and minus magnify, arrow keys shift, 0 fits" }, [this.image]);
    this.caption = el("span", { class: "about" });
    this.zoomed = el("span", { class: "zoomed-by", role: "status", "data-testid": "zoomed" });
    const button = (text, says, onclick) => el("button", { class: "plain", text, title: says, "aria-label": says, onclick });
    this.sight = new Sight(this.frame, this.image, {
      onChange: (scale) => { this.zoomed.textContent = scale === 1 ? "fits" : `${scale.toFixed(1)} ×`; },
    });
    this.node = el("dialog", { class: "viewer", "aria-label": "Large picture", "data-testid": "viewer" }, [
      this.frame, el("div", { class: "under" }, [this.caption, el("span", { class: "magnify" }, [
        this.zoomed, button("−", "Smaller (-)", () => this.sight.zoom(1 / STEP_ZOOM)), button("+", "Larger (+)", () => this.sight.zoom(STEP_ZOOM)),
        button("Fit", "Fit into the window (0)", () => this.sight.reset()),
        el("button", { class: "plain", text: "Close (Esc)", onclick: () => this.close() }),
      ])]),
    ]);
  }

  get isOpen() {
    return this.node.open;
  }

  // pictures: {sample, text} each.
  show(pictures, at = 0) {
    if (!pictures.length) return;
    this.pictures = pictures;
    this.at = Math.max(0, at);
    if (!this.isOpen) this.node.showModal();
    this.draw();
  }

  draw() {
    const { sample, text } = this.pictures[this.at];
    const [small, large] = [this.server().image(sample, paneSide()), this.server().image(sample, LARGEST)];
    this.caption.textContent = this.pictures.length > 1 ? `${text} · ${this.at + 1} of ${this.pictures.length} (← →)` : text;
    this.sight.reset();
    this.dress();
    this.image.src = small;
    const loading = new Image();
    loading.addEventListener("load", () => {
      if (this.image.src === new URL(small, document.baseURI).href) this.image.src = large;
    });
    loading.src = large;
  }

  dress() {
    dress(this.image, this.look() || {});
  }

  close() {
    if (this.isOpen) this.node.close();
  }

  // Arrow keys shift a magnified picture; one that fits gives way to that beside it.
  onKey(event) {
    const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "Escape" || key === "v") this.close();
    else if (key === "+" || key === "=") this.sight.zoom(STEP_ZOOM);
    else if (key === "-") this.sight.zoom(1 / STEP_ZOOM);
    else if (key === "0" || key === "f") this.sight.reset();
    else if (key in arrows && this.sight.scale > 1) this.sight.shift(...arrows[key].map((one) => one * STEP_PX));
    else if (key in arrows && arrows[key][0]) {
      this.at = (this.at - arrows[key][0] + this.pictures.length) % this.pictures.length;
      this.draw();
    } else return;
    event.preventDefault();
  }
}

// A button around a picture that shows it large.
const zoomable = (image, title, onclick) => el("button", { class: "zoom", title, "aria-label": title, onclick }, [image]);
