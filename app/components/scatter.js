// Given numbers against suggested ones, with the line on which both are the same. Suspects stand out, what was answered
// here has its new place at once, and the sample in view is ringed. A click on a dot asks for its sample.

const [SIDE_PX, LEFT_PX, LOW_PX, ROOM_PX, TICKS] = [320, 40, 40, 12, 4];

function svg(tag, attributes, children = []) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Some round numbers between two: of 1, 2 and 5 times a power of ten the step that gives about ``TICKS``.
function ticksOf(low, high) {
  const raw = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) ticks.push(Number(at.toPrecision(10)));
  return ticks;
}

// What a dot is, which is its colour.
const dotKind = ([sample, , , isSuspect], answers) => (answers.has(sample) ? "checked" : isSuspect ? "suspect" : "other");

// ``chart``: name, points [sample, given, suggested, whether a suspect]; ``answers``: sample -> the number it has now, null
// where it has none.
function scatter({ name, points }, answers, current, onPick) {
  const all = points.flatMap(([, given, suggested]) => [given, suggested]);
  const [least, most] = [all.reduce((one, other) => Math.min(one, other)), all.reduce((one, other) => Math.max(one, other))];
  const margin = (most - least || 1) * 0.04;
  const [low, high] = [least - margin, most + margin];
  const share = (value) => (Math.min(high, Math.max(low, value)) - low) / (high - low);
  const x = (value) => LEFT_PX + share(value) * (SIDE_PX - LEFT_PX - ROOM_PX);
  const y = (value) => SIDE_PX - LOW_PX - share(value) * (SIDE_PX - LOW_PX - ROOM_PX);
  const text = (said, more) => svg("text", more, [said]);
  const axes = ticksOf(low, high).flatMap((at) => [
    svg("line", { class: "rule", x1: x(at), x2: x(at), y1: y(low), y2: y(high) }),
    svg("line", { class: "rule", y1: y(at), y2: y(at), x1: x(low), x2: x(high) }),
    text(at.toLocaleString("en"), { x: x(at), y: y(low) + 15, "text-anchor": "middle" }),
    text(at.toLocaleString("en"), { x: LEFT_PX - 6, y: y(at) + 4, "text-anchor": "end" }),
  ]);
  const dotOf = (point) => {
    const [sample, given, suggested] = point;
    const now = answers.get(sample) ?? given;
    const kind = dotKind(point, answers);
    const dot = svg("circle", { class: kind, cx: x(suggested), cy: y(now), r: kind === "other" ? 3 : 5, "data-dot": sample }, [
      svg("title", {}, [`Sample ${sample}: ${now} given, ${suggested} suggested`]),
    ]);
    dot.addEventListener("click", () => onPick(sample));
    return dot;
  };
  // What was changed has come from its given number.
  const moved = points.filter(([sample, given]) => (answers.get(sample) ?? given) !== given).map(([sample, given, suggested]) =>
    svg("line", { class: "moved", x1: x(suggested), x2: x(suggested), y1: y(given), y2: y(answers.get(sample)) }));
  const rank = (point) => ["other", "checked", "suspect"].indexOf(dotKind(point, answers));
  const dots = [...points].sort((one, other) => rank(one) - rank(other)).map(dotOf);
  const inView = points.find(([sample]) => sample === current);
  const ring = inView ? [svg("circle", { class: "ring", cx: x(inView[2]), cy: y(answers.get(current) ?? inView[1]), r: 10, "data-ring": current })] : [];
  return svg("svg", { class: "scatter", viewBox: `0 0 ${SIDE_PX} ${SIDE_PX}`, role: "img", "aria-label": `${name}: given against suggested` }, [
    ...axes, svg("line", { class: "same", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }),
    text("suggested", { x: x(high), y: SIDE_PX - 6, "text-anchor": "end" }),
    text("given", { x: 12, y: y(high), "text-anchor": "end", transform: `rotate(-90 12 ${y(high)})` }),
    ...moved, ...dots, ...ring,
  ]);
}
