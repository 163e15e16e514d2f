// Canvases: as large as their boxes, sharp on every screen, in the colours of the page.

/** How styles are told apart without colour: lines across them. */
const LINES = { runnable: "/", burnt: "x", slow: "\\", lock: "|", behind: "-", late: "/" };

/** A text of which fewer letters are left says nothing. */
const LETTERS_LEAST = 7;

/** What a canvas is drawn with. `draw(paper)` is called when its size or the page's colours change. */
function newPaper(canvas, draw) {
  const context = canvas.getContext("2d");
  const paper = { canvas, context, width: 0, height: 0, patterns: new Map(), redraw };
  let waiting = false;

  /** The colour that the style sheet names so. */
  paper.colour = (name) => paper.style.getPropertyValue(`--${name}`).trim() || "#888";

  /** A style to fill with: its colour, with lines where it has some. */
  paper.fill = (name) => {
    if (!paper.patterns.has(name)) paper.patterns.set(name, pattern(paper, name));
    return paper.patterns.get(name);
  };

  /** Whether a text fits, or enough of it to be understood. */
  paper.isRoom = (text, room) => {
    const wide = context.measureText(text).width;
    return wide <= room || (text.length * room) / wide >= LETTERS_LEAST;
  };

  /** Text in so many pixels, cut if need be; nothing if there is no room. */
  paper.text = (text, x, y, room) => {
    if (!paper.isRoom(text, room)) return;
    const wide = context.measureText(text).width;
    const letters = Math.floor((text.length * room) / wide) - 1;
    context.fillText(wide <= room ? text : `${text.slice(0, letters)}…`, x, y);
  };

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const box = canvas.getBoundingClientRect();
      const scale = window.devicePixelRatio || 1;
      paper.width = box.width;
      paper.height = box.height;
      const size = [Math.round(box.width * scale), Math.round(box.height * scale)];
      if (canvas.width !== size[0]) canvas.width = size[0];
      if (canvas.height !== size[1]) canvas.height = size[1];
      if (paper.scale !== scale) paper.patterns.clear();
      paper.scale = scale;
      paper.style = getComputedStyle(document.documentElement);
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, box.width, box.height);
      context.font = "11px system-ui, sans-serif";
      draw(paper);
    });
  }

  new ResizeObserver(redraw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    paper.patterns.clear();
    redraw();
  });
  return paper;
}

/** A colour with the lines of its style, or the colour alone. */
function pattern(paper, name) {
  const lines = LINES[name];
  if (!lines) return paper.colour(name);
  const size = 6 * paper.scale;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.fillStyle = paper.colour(name);
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = paper.colour(`${name}-lines`);
  pen.lineWidth = 1.6 * paper.scale;
  pen.beginPath();
  const line = (...ends) => {
    // Again one tile aside, so that corners meet.
    for (const aside of [-size, 0, size]) {
      pen.moveTo(ends[0] * size + aside, ends[1] * size);
      pen.lineTo(ends[2] * size + aside, ends[3] * size);
    }
  };
  if (lines === "/" || lines === "x") line(0, 1, 1, 0);
  if (lines === "\\" || lines === "x") line(0, 0, 1, 1);
  if (lines === "|") line(0.5, 0, 0.5, 1);
  if (lines === "-") line(-1, 0.5, 2, 0.5);
  pen.stroke();
  const pattern = paper.context.createPattern(tile, "repeat");
  // The context is scaled, the tile is not.
  pattern.setTransform(new DOMMatrix().scale(1 / paper.scale));
  return pattern;
}

/** An element with these attributes and children; text stays text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
