// The evidence card of one sample. Everything on it is text or an image of ours; nothing is parsed as HTML.

const THUMB_PX = 96;
const MOST_CHOICES = 5; // a line or two, so that examples keep their size
const MOST_COPIES = 60; // as many as the server names (results.MOST_DUPLICATES)

class Card {
  constructor(bench, item) {
    this.bench = bench;
    this.item = item;
    this.picture = el("img", {
      class: "picture", decoding: "sync", src: bench.server.image(item.sample, paneSide()), alt: `Sample ${item.sample}`, "data-testid": "picture",
    });
    // A small one that came ahead stands there until the large one is whole.
    if (bench.ahead.has(item.sample)) this.picture.style.background = `url("${bench.server.image(item.sample, THUMB_PX)}") center / contain no-repeat`;
    this.picture.addEventListener("load", () => { this.picture.style.background = ""; });
    this.pictures = [{ sample: item.sample, text: bench.caption(item.sample, item.given) }];
    this.path = el("div", { class: "path", text: `Sample ${item.sample}` });
    this.standing = el("div", { class: "standing", "data-testid": "standing" });
    this.choices = el("div", { class: "choices" });
    this.right = el("div", { class: "evidence" });
    this.note = el("input", {
      class: "note", type: "text", maxlength: "300", placeholder: "Note, kept with your verdict", "aria-label": "Note",
    });
    this.note.addEventListener("keydown", (event) => ["Enter", "Escape"].includes(event.key) && this.note.blur());
    const verdict = bench.verdictText(item);
    this.standing.setAttribute("data-decision", item.decision || "");
    this.standing.textContent = verdict ? `Decided: ${verdict}` : "";
    this.node = el("div", { class: "card", "data-testid": "card", "data-sample": item.sample }, [
      el("div", { class: "left" }, [
        el("div", { class: "pane" }, [zoomable(this.picture, "Enlarge the picture (V); Ctrl and the wheel magnify it here", () => bench.enlarge()), el("kbd", { text: bench.keymap.shown("large") })]),
        el("div", { class: "about" }, [this.path, this.tools()]), this.standing, this.note,
      ]),
      el("div", { class: "right" }, [this.labels(), this.choices, this.right]),
    ]);
    this.look();
    new Sight(this.picture.parentElement, this.picture, { needsCtrl: true });
    bench.shownClasses = [];
  }

  tools() {
    const copy = (text, says) => () => navigator.clipboard.writeText(text()).then(() => this.bench.tell(says));
    const link = () => {
      const url = new URL(location.href);
      url.searchParams.set("suspects_search", `#${this.item.sample}`);
      return url.href;
    };
    const button = (text, onclick, key = "") => el("button", { class: "plain small", onclick }, [text, ...(key ? [el("kbd", { text: this.bench.keymap.shown(key) })] : [])]);
    return el("span", { class: "tools" }, [
      button("Copy path", copy(() => this.filepath || "", "The path is copied.")),
      this.bench.data.links ? button("Copy link", copy(link, "A link to this sample is copied.")) : null,
      button("Lens", () => this.bench.compare(), "lens"),
      this.bench.data.links ? button("Others like this", () => this.bench.showAlike(), "alike") : null,
      button("Adjust", () => this.toggleLook()),
    ].filter(Boolean));
  }

  look() {
    dress(this.picture, this.bench.look || {});
  }

  toggleLook() {
    if (this.sliders) {
      this.sliders.remove();
      this.sliders = null;
      return;
    }
    const slider = (name, text) => {
      const input = el("input", { type: "range", min: "40", max: "260", value: String((this.bench.look || {})[name] ?? 100), "aria-label": text });
      input.addEventListener("input", () => this.bench.setLook({ ...this.bench.look, [name]: Number(input.value) }));
      return el("label", {}, [el("span", { text }), input]);
    };
    const reset = el("button", { class: "plain small", text: "As it is", onclick: () => { this.bench.setLook(null); this.toggleLook(); } });
    const smooth = el("button", { class: "plain small", text: `Smooth / pixels ${this.bench.keymap.shown("smooth")}`, onclick: () => this.bench.toggleSmooth() });
    this.sliders = el("div", { class: "sliders" }, [slider("light", "Brightness"), slider("contrast", "Contrast"), smooth, reset]);
    this.note.before(this.sliders);
  }

  labels() {
    const { bench, item } = this;
    const side = (kind, key, label, odds) =>
      el("div", { class: `side ${kind}` }, [
        el("span", { class: "kind", text: kind === "given" ? "Given label" : "Suggested label" }),
        el("b", { text: bench.className(label), title: bench.className(label) }),
        el("span", { class: "odds", "data-testid": `odds-${kind}`, text: odds, title: odds }),
      ]);
    return el("div", { class: "sides" }, [
      side("given", "Q", item.given, item.odds),
      side("suggested", "W", item.suggested, ""),
    ]);
  }

  fill(story) {
    const { bench } = this;
    bench.shownClasses = story.classes;
    this.filepath = story.filepath;
    this.path.textContent = `Sample ${story.sample} · ${story.filepath}`;
    this.path.title = story.filepath;
    this.offer(story.classes, story.engines);
    const same = story.duplicates;
    this.opinions(story);
    const votes = this.votes(story.engines, this.item.suggested);
    Object.assign(this.node.querySelector(".side.suggested .odds"), { textContent: votes, title: votes });
    const sections = [
      this.answers(story), this.exemplars(story), this.engines(story),
      this.strip("Most similar pictures", story.neighbours, "neighbours", `Nearest in ${story.neighboursIn}`),
      same.length ? this.strip(`The same picture${same.length < MOST_COPIES ? "" : ` (the first ${same.length})`}`, same, "duplicates") : null,
    ];
    this.right.replaceChildren(...sections.filter(Boolean));
  }

  // The likeliest classes; the others unfold and stay so for the samples that follow.
  offer(classes, engines) {
    const { bench } = this;
    // As everywhere, the given label comes first, then the suggested one.
    const place = (label) => ["given", "suggested", ""].indexOf(this.tone(label));
    const ordered = [...classes].sort((a, b) => place(a) - place(b));
    const shown = bench.choicesOpen ? ordered : ordered.slice(0, MOST_CHOICES);
    const chip = (label) => {
      const [name, digit] = [bench.className(label), bench.keymap.digit(bench.data.classNames, label)];
      return el("button", { class: `choice ${this.tone(label)}`, onclick: () => bench.label(label), title: `${name}: ${this.votes(engines, label)}` }, [
        digit ? el("kbd", { text: digit }) : null, el("span", { class: "name", text: name }),
      ]);
    };
    const others = el("button", {
      class: "choice others", text: bench.choicesOpen ? "fewer" : `${classes.length - MOST_CHOICES} more`, "aria-expanded": String(Boolean(bench.choicesOpen)),
      onclick: () => {
        bench.choicesOpen = !bench.choicesOpen;
        this.offer(classes, engines);
        this.choices.lastChild.focus();
      },
    });
    this.choices.replaceChildren(...shown.map(chip), ...(classes.length > MOST_CHOICES ? [others] : []));
  }

  // How many engines name a class: ``7 of 7 engines say so``.
  votes(engines, label) {
    const number = engines.filter(({ predicted }) => predicted === label).length;
    if (engines.length === 1) return number ? "the engine says so" : "the engine does not name it";
    return number ? `${number} of ${engines.length} engines say so` : "no engine names it";
  }

  // What all engines name, the most frequent first: ``5 “shoes”, 2 “hat”``; nothing where all name what is suggested.
  named(engines) {
    const counts = new Map();
    for (const { predicted } of engines) counts.set(predicted, 1 + (counts.get(predicted) || 0));
    if (counts.size === 1 && counts.has(this.item.suggested)) return "";
    return `: ${[...counts].sort((a, b) => b[1] - a[1]).map(([label, number]) => `${number} “${this.bench.className(label)}”`).join(", ")}`;
  }

  tone(label) {
    return label === this.item.given ? "given" : label === this.item.suggested ? "suggested" : "";
  }

  // Who said what, where more than one person looked.
  opinions(story) {
    if (story.opinions.length < 2) return;
    const { bench } = this;
    const said = story.opinions.map((one) => `${one.reviewer}: ${bench.verdictText({ ...one, reviewer: bench.data.reviewer })}`);
    this.standing.textContent = said.join(" · ");
    this.standing.setAttribute("data-opinions", said.length);
  }

  // What each annotator said, where several did.
  answers(story) {
    if (!story.answers.length) return null;
    const said = ({ annotator, label }) => el("li", { class: this.tone(label), text: `${annotator}: ${this.bench.className(label)}` });
    return el("section", { "data-testid": "answers" }, [el("h4", { text: "Who said what" }), el("ul", { class: "answers" }, story.answers.map(said))]);
  }

  thumbs(samples) {
    return samples.map((sample) => {
      const image = el("img", {
        src: this.bench.server.image(sample.sample, THUMB_PX), alt: `Sample ${sample.sample}`, title: sample.filepath || "", loading: "lazy",
      });
      const label = this.bench.className(sample.label); // as people changed it
      const place = this.pictures.push({ sample: sample.sample, text: this.bench.caption(sample.sample, sample.given) }) - 1;
      return el("figure", {}, [zoomable(image, `Sample ${sample.sample}, large`, () => this.bench.enlarge(place)), el("figcaption", { class: this.tone(sample.label), text: label, title: label })]);
    });
  }

  exemplars(story) {
    const column = (kind, label, samples) =>
      el("div", { class: `exemplars ${kind}` }, [
        el("h4", { text: `Most trusted “${this.bench.className(label)}”` }),
        el("div", { class: "thumbs" }, this.thumbs(samples)),
      ]);
    return el("section", { class: "both", "data-testid": "exemplars" }, [
      column("given", this.item.given, story.exemplars.given),
      column("suggested", this.item.suggested, story.exemplars.suggested),
    ]);
  }

  strip(title, samples, testid, says = "") {
    return el("section", { class: "strip", "data-testid": testid }, [
      el("h4", { text: title, title: says }), el("div", { class: "thumbs" }, this.thumbs(samples)),
    ]);
  }

  engines(story) {
    const rows = story.engines.map((engine) =>
      el("div", { class: "engine" }, [
        el("div", { class: "who" }, [
          el("b", { text: engine.title }),
          el("span", { class: this.tone(engine.predicted), text: `says ${this.bench.className(engine.predicted)}` }),
        ]),
        el("div", { class: "how" }, [this.curve(engine.history), ...this.besides(engine)]),
      ]),
    );
    const { suggested, given } = this.item;
    const isUnseen = given >= 0 && suggested >= 0 && suggested !== given && !story.engines.some(({ predicted }) => predicted === suggested);
    const [from, to] = [given, suggested].map((label) => `“${this.bench.className(label)}”`);
    const why = isUnseen ? `. None alone names ${to}, but ${from} and ${to} are often given for each other` : "";
    const says = story.engines.length === 1 ? `What ${story.engines[0].title} says` : "What each engine says";
    this.folded = el("details", { class: "engines", "data-testid": "engines", open: Boolean(this.bench.enginesOpen) }, [
      el("summary", {}, [
        el("span", { text: `${says}${this.named(story.engines)}${why}` }),
        el("kbd", { text: this.bench.keymap.shown("engines") }),
      ]),
      ...rows,
    ]);
    this.folded.addEventListener("toggle", () => { this.bench.enginesOpen = this.folded.open; });
    return this.folded;
  }

  toggleEngines() {
    if (this.folded) this.folded.open = !this.folded.open;
  }

  // What its sentence says beside its class.
  besides({ sentence }) {
    const said = sentence.split("; ").slice(1).join("; ");
    return said ? [el("p", { text: said[0].toUpperCase() + said.slice(1) })] : [];
  }

  curve(history) {
    if (!history || history.values.filter((value) => value !== null).length < 2) return el("span", { class: "curve" });
    const values = history.values;
    const known = values.filter((value) => value !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const span = high - low || 1;
    const points = values
      .map((value, i) => (value === null ? null : [2 + (96 * i) / (values.length - 1), 26 - (24 * (value - low)) / span]))
      .filter(Boolean);
    const namespace = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(namespace, "svg");
    svg.setAttribute("viewBox", "0 0 100 28");
    svg.setAttribute("preserveAspectRatio", "none");
    const line = document.createElementNS(namespace, "polyline");
    line.setAttribute("points", points.map((point) => point.join(",")).join(" "));
    svg.append(line);
    const last = known[known.length - 1];
    const caption = `${history.title}: ${last.toFixed(2)} after ${values.length} epochs`;
    const title = `${caption} (from ${low.toFixed(2)} to ${high.toFixed(2)})`;
    return el("span", { class: "curve", title, role: "img", "aria-label": title }, [svg, el("small", { text: history.title })]);
  }
}
