// A picture large over the whole page: fitted into the window, and at its own size after a click.
// Arrow keys step through the pictures beside it; while it is open, no key decides anything.

class Viewer {
  constructor(server) {
    this.server = server;
    this.image = el("img", { alt: "", "data-testid": "large" });
    this.frame = el("div", { class: "sight", onclick: () => this.zoom() }, [this.image]);
    this.caption = el("span", { class: "about" });
    const close = el("button", { class: "plain", text: "Close (Esc)", onclick: () => this.close() });
    this.node = el("dialog", { class: "viewer", "aria-label": "Large picture", "data-testid": "viewer" }, [
      this.frame, el("div", { class: "under" }, [this.caption, close]),
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
    this.draw();
    if (!this.isOpen) this.node.showModal();
  }

  draw() {
    const { sample, text } = this.pictures[this.at];
    const [small, large] = [this.server().image(sample, 640), this.server().image(sample, 2048)];
    this.frame.classList.remove("whole");
    this.caption.textContent = this.pictures.length > 1 ? `${text} · ${this.at + 1} of ${this.pictures.length} (← →)` : text;
    this.image.src = small;
    const loading = new Image();
    loading.addEventListener("load", () => {
      if (this.image.src === new URL(small, document.baseURI).href) this.image.src = large;
    });
    loading.src = large;
  }

  zoom() {
    const isLarger = this.image.naturalWidth > this.frame.clientWidth || this.image.naturalHeight > this.frame.clientHeight;
    if (isLarger) this.frame.classList.toggle("whole");
    else this.close();
  }

  close() {
    if (this.isOpen) this.node.close();
  }

  onKey(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key === "Escape" || event.key.toLowerCase() === "v") this.close();
    else if (event.key in steps) {
      this.at = (this.at + steps[event.key] + this.pictures.length) % this.pictures.length;
      this.draw();
    } else return;
    event.preventDefault();
  }
}

// A button around a picture that shows it large.
const zoomable = (image, title, onclick) => el("button", { class: "zoom", title, "aria-label": title, onclick }, [image]);
