// The picture of a wait: lanes over a stretch of time, which the reader chooses by keys, wheel, fingers or
// buttons.

const HELP =
  "Drag to move, pinch or turn the wheel with Ctrl to zoom. Keys: ← → move, + − zoom, 0 shows all of it, " +
  ", and . go through what held it up.";

const NOTCHES =
  " A notch above a thread is something that the job system did there between two jobs: point at it.";

function newTimeline(lanes, of) {
  const { happened, total } = lanes;
  const rows = rowsOf(lanes, of);
  const margin = (of.end - of.begin) / 20;
  const whole = { from: Math.max(of.begin - margin, 0), to: Math.min(of.end + margin, total) };
  let view = { ...whole };
  let chosen = null;
  let pointed = null;

  const canvas = element("canvas", { tabindex: 0, role: "img", "aria-label": "threads and CPUs over time", class: "lanes" });
  const said = element("p", { class: "said", "aria-live": "polite" });
  const button = (text, label, act) => {
    const made = element("button", { type: "button", "aria-label": label }, text);
    made.addEventListener("click", act);
    return made;
  };
  const buttons = element(
    "p",
    { class: "buttons" },
    button("+", "zoom in", () => zoom(0.5)),
    button("−", "zoom out", () => zoom(2)),
    button("◀", "earlier", () => move(-0.25)),
    button("▶", "later", () => move(0.25)),
    button("all", "all of it", () => look(whole)),
    button("◂ cause", "the cause before", () => step(-1)),
    button("cause ▸", "the next cause", () => step(1)),
    element("span", { class: "note" }, rows.some((row) => row.between?.texts.length) ? HELP + NOTCHES : HELP),
  );
  const paper = newPaper(canvas, () => drawLanes(paper, picture()));
  paper.isNarrow = () => canvas.getBoundingClientRect().width < LANES.narrow;

  /** What is to be drawn. */
  function picture() {
    const isNarrow = paper.width < LANES.narrow;
    const left = isNarrow ? 0 : LANES.names;
    const x = (time) => left + ((paper.width - left) * (time - view.from)) / (view.to - view.from);
    return { lanes, rows: placed(isNarrow), of, view, x, left, isNarrow, chosen, pointed };
  }

  /** The rows with their places; where it is narrow, names are above them. */
  function placed(isNarrow) {
    let top = 2;
    const found = rows.map((row) => {
      const above = isNarrow && row.name ? 13 : 0;
      const place = { ...row, top: top + above, nameAt: isNarrow ? top + 10 : top + row.high / 2 + 4 };
      top += above + row.high + LANES.gap;
      return place;
    });
    found.height = top;
    return found;
  }

  function look({ from, to }) {
    const wide = Math.min(Math.max(to - from, LANES.least), total);
    const begin = Math.min(Math.max(from, 0), total - wide);
    view = { from: begin, to: begin + wide };
    paper.redraw();
  }

  function zoom(by, at = (view.from + view.to) / 2) {
    look({ from: at - (at - view.from) * by, to: at + (view.to - at) * by });
  }

  function move(part) {
    const by = (view.to - view.from) * part;
    look({ from: view.from + by, to: view.to + by });
  }

  /** To the next segment of the path. */
  function step(by) {
    if (!of.path) return;
    const segments = of.path.segments;
    const next = chosen === null ? (by > 0 ? 0 : segments.length - 1) : chosen + by;
    chosen = Math.min(Math.max(next, 0), segments.length - 1);
    const { begin, end } = segments[chosen];
    if (begin < view.from || end > view.to) {
      const wide = Math.max(view.to - view.from, (end - begin) * 1.2);
      look({ from: (begin + end - wide) / 2, to: (begin + end + wide) / 2 });
    }
    said.textContent = `${chosen + 1} of ${segments.length}: ${segmentText(of, segments[chosen])}`;
    paper.redraw();
  }

  function timeAt(clientX) {
    const box = canvas.getBoundingClientRect();
    const { left } = picture();
    const part = (clientX - box.left - left) / (box.width - left);
    return view.from + part * (view.to - view.from);
  }

  function point(event) {
    const box = canvas.getBoundingClientRect();
    const y = event.clientY - box.top;
    const row = picture().rows.find((row) => y >= row.top - 2 && y < row.top + row.high + 2);
    const time = timeAt(event.clientX);
    pointed = row ? pieceAt(lanes, of, row, time, (view.to - view.from) / paper.width) : null;
    said.textContent = pointed ? pointed.text : "";
    paper.redraw();
  }

  listen(canvas, { point, timeAt, look, zoom, view: () => view, leave });

  function leave() {
    pointed = null;
    paper.redraw();
  }

  const keys = {
    ArrowLeft: () => move(-0.1),
    ArrowRight: () => move(0.1),
    "+": () => zoom(0.7),
    "=": () => zoom(0.7),
    "-": () => zoom(1 / 0.7),
    0: () => look(whole),
    ",": () => step(-1),
    ".": () => step(1),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  const height = () => {
    canvas.style.height = `${placed(paper.isNarrow()).height + LANES.axis}px`;
  };
  new ResizeObserver(height).observe(canvas);
  requestAnimationFrame(height);
  return element("div", { class: "picture" }, canvas, said, buttons);
}

/** Fingers, mouse and wheel. */
function listen(canvas, { point, timeAt, look, zoom, view, leave }) {
  const down = new Map();
  let moved = false;
  canvas.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, event);
    moved = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return point(event);
    const others = [...down.values()].filter((other) => other.pointerId !== event.pointerId);
    if (others.length > 0) {
      const apart = (a, b) => Math.max(Math.abs(a.clientX - b.clientX), 10);
      zoom(apart(before, others[0]) / apart(event, others[0]), timeAt(others[0].clientX));
    } else {
      const by = timeAt(before.clientX) - timeAt(event.clientX);
      look({ from: view().from + by, to: view().to + by });
    }
    moved = moved || Math.abs(event.clientX - before.clientX) > 2;
    down.set(event.pointerId, event);
  });
  const up = (event) => {
    down.delete(event.pointerId);
    if (!moved) point(event);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener(
    "wheel",
    (event) => {
      const isZoom = event.ctrlKey || event.metaKey;
      if (!isZoom && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (isZoom) {
        zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) / 300), timeAt(event.clientX));
      } else {
        const by = timeAt(event.deltaX) - timeAt(0);
        look({ from: view().from + by, to: view().to + by });
      }
    },
    { passive: false },
  );
}

/** A segment of the path in words. */
function segmentText(of, segment) {
  const kind = segment.kind ? `, inversion: ${segment.kind}` : "";
  const after = short(segment.begin - of.begin);
  return `${segment.text}: ${short(segment.end - segment.begin)}, ${after} after its beginning, ${segment.sure}${kind}`;
}
