// Drawing lanes. Pieces too short to be seen are drawn together, in the style that has most of them, and as
// strong as they are many: nothing vanishes, and the time to draw depends on the width of the picture.

function drawLanes(paper, picture) {
  const { context: pen } = paper;
  const { rows, x, left, of } = picture;
  paper.left = left;
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, paper.width - left, rows.height);
  pen.clip();
  for (const row of rows) {
    if (row.kind === "path" || row.kind === "inversion") drawPath(paper, picture, row);
    else if (row.kind === "slices") drawSlices(paper, picture, row);
    else drawSteps(paper, picture, row);
  }
  if (of.path) drawWay(paper, picture);
  for (const row of rows) if (row.kind === "thread") drawBetween(paper, picture, row);
  pen.strokeStyle = paper.colour("soft");
  pen.setLineDash([3, 3]);
  for (const time of [of.begin, of.end]) {
    pen.beginPath();
    pen.moveTo(x(time), 0);
    pen.lineTo(x(time), rows.height);
    pen.stroke();
  }
  pen.setLineDash([]);
  drawPointed(paper, picture);
  pen.restore();
  drawNames(paper, picture);
  drawAxis(paper, picture);
}

function drawNames(paper, { rows, left, isNarrow }) {
  const { context: pen } = paper;
  for (const row of rows) {
    pen.fillStyle = paper.colour(row.kind === "cpu" ? "soft" : "ink");
    paper.text(row.name, 0, row.nameAt, isNarrow ? paper.width : left - 8);
  }
}

function drawAxis(paper, { rows, view, x, left, of }) {
  const { context: pen } = paper;
  pen.fillStyle = paper.colour("soft");
  const most = Math.max(2, (paper.width - left) / 110);
  const [from, to] = [view.from - of.begin, view.to - of.begin];
  const { step, found } = ticks(from, to, most);
  for (const tick of found) {
    const place = x(tick + of.begin);
    const text = tickText(tick, step, Math.max(Math.abs(from), to));
    pen.fillRect(place, rows.height, 1, 5);
    if (place + pen.measureText(text).width < paper.width) pen.fillText(text, place + 3, rows.height + 15);
  }
}

/** A box with a text in it. */
function drawBox(paper, style, from, to, row, text) {
  const { context: pen } = paper;
  const [begin, end] = [Math.max(from, -10), Math.min(to, paper.width + 10)];
  const wide = Math.max(end - begin, 0.75);
  pen.fillStyle = paper.fill(style);
  pen.fillRect(begin, row.top, wide, row.high);
  const inside = Math.max(begin, paper.left);
  const room = end - inside - 8;
  if (!text || !paper.isRoom(text, room)) return;
  const isPlain = ["named", "unknown", "asleep"].includes(style);
  pen.save();
  if (!isPlain) {
    // Behind letters there are no lines.
    const wider = Math.min(pen.measureText(text).width, room) + 6;
    pen.fillStyle = paper.colour("paper");
    pen.globalAlpha = 0.86;
    pen.fillRect(inside + 2, row.top + 2, wider, row.high - 4);
    pen.globalAlpha = 1;
  }
  pen.fillStyle = paper.colour("ink");
  paper.text(text, inside + 5, row.top + row.high / 2 + 4, room);
  pen.restore();
}

function drawPath(paper, { x, chosen }, row) {
  const { context: pen } = paper;
  row.path.segments.forEach((segment, at) => {
    const [from, to] = [x(segment.begin), x(segment.end)];
    if (to < -10 || from > paper.width + 10) return;
    if (row.kind === "inversion") {
      if (segment.kind) drawBox(paper, "inverted", from, to, row, `! ${segment.kind}`);
      return;
    }
    drawBox(paper, segment.style, from, to, row, segment.text);
    if ((segment.kind && to - from > 4) || at === chosen) {
      pen.strokeStyle = paper.colour("ink");
      pen.lineWidth = at === chosen ? 3 : 1.5;
      pen.strokeRect(from + 1, row.top + 1, Math.max(to - from - 2, 1), row.high - 2);
      pen.lineWidth = 1;
    }
  });
}

/** The way of the path through the lanes of its threads. */
function drawWay(paper, { rows, x, of }) {
  const { context: pen } = paper;
  const bottoms = new Map();
  for (const row of rows) if (row.kind === "thread") bottoms.set(row.thread, row.top + row.high);
  pen.strokeStyle = paper.colour("ink");
  pen.lineWidth = 2.5;
  pen.lineJoin = "round";
  pen.beginPath();
  let isDown = false;
  let lastX = -Infinity;
  for (const segment of of.path.segments) {
    const y = bottoms.get(segment.thread);
    const [from, to] = [x(segment.begin), x(segment.end)];
    if (y === undefined) {
      isDown = false;
      continue;
    }
    // Many steps inside of a pixel are one.
    if (isDown && to - lastX < 0.5) continue;
    if (isDown) pen.lineTo(from, y);
    else pen.moveTo(from, y);
    pen.lineTo(to, y);
    isDown = true;
    lastX = to;
  }
  pen.stroke();
  pen.lineWidth = 1;
}

function drawSlices(paper, { x, view }, row) {
  const { context: pen } = paper;
  let filled = -Infinity;
  for (let at = Math.max(lastUntil(row.times, view.from), 0); at < row.slices.length; at++) {
    const { begin, end, name } = row.slices[at];
    if (begin > view.to) break;
    const [from, to] = [x(begin), x(end)];
    if (to < 0 || to < filled + 0.5) continue;
    drawBox(paper, "named", from, to, row, name);
    if (to - from > 3) {
      pen.strokeStyle = paper.colour("grey");
      pen.strokeRect(from + 0.5, row.top + 0.5, to - from - 1, row.high - 1);
    }
    filled = to;
  }
}

/** How a piece of a thread's or a CPU's lane looks: a style, and a text. */
function looks({ lanes, of }, row, to) {
  const { states, nobody, threads } = lanes.happened;
  const cast = of.path ? [...of.path.threads, ...of.path.instead] : of.threads;
  const inks = (thread) => {
    const at = cast.indexOf(thread);
    return at < 0 ? "other" : `t${at}`;
  };
  if (row.kind === "cpu") {
    if (to === 0) return null;
    if (to === 1) return { style: "line", text: nobody[to] };
    if (to < nobody.length) return { style: "unknown", text: nobody[to] };
    const thread = to - nobody.length;
    return { style: inks(thread), text: threads[thread].name };
  }
  if (to === 0 || to === 7) return null;
  if (to >= states.length) return { style: inks(row.thread), text: `on CPU ${to - states.length}` };
  const styles = [null, inks(row.thread), "runnable", "runnable", "nowhere", "line", "line", null, "unknown"];
  return { style: styles[to], text: states[to] };
}

function drawSteps(paper, picture, row) {
  const { context: pen } = paper;
  const { x, view } = picture;
  const { times, to } = row.steps;
  let crowd = null;
  const settle = () => {
    if (crowd) drawCrowd(paper, row, crowd);
    crowd = null;
  };
  for (let at = Math.max(lastUntil(times, view.from), 0); at < times.length && times[at] < view.to; at++) {
    const look = looks(picture, row, to[at]);
    const [from, end] = [x(times[at]), at + 1 < times.length ? x(times[at + 1]) : paper.width];
    if (end - from >= 1.5) {
      settle();
      if (!look) continue;
      if (look.style !== "line") {
        drawBox(paper, look.style, from, end, row, look.text);
      } else {
        pen.fillStyle = paper.colour("grey");
        pen.fillRect(from, row.top + row.high / 2 - 0.75, end - from, 1.5);
      }
      continue;
    }
    const column = Math.floor(from);
    if (!crowd || crowd.column !== column) {
      settle();
      crowd = { column, weights: new Map(), all: 0 };
    }
    crowd.all += end - from;
    if (look) crowd.weights.set(look.style, (crowd.weights.get(look.style) ?? 0) + end - from);
  }
  settle();
  for (const [begin, end] of row.cpu ? row.cpu.offline : []) {
    if (end > view.from && begin < view.to) drawBox(paper, "nowhere", x(begin), x(end), row, "offline");
  }
}

/** A notch in the upper edge for each thing that the job system did between two jobs. */
function drawBetween(paper, { x, view }, row) {
  const { context: pen } = paper;
  const { times } = row.between;
  pen.fillStyle = paper.colour("ink");
  let last = -Infinity;
  for (let at = Math.max(lastUntil(times, view.from), 0); at < times.length && times[at] < view.to; at++) {
    const place = x(times[at]);
    if (place - last < 3) continue;
    last = place;
    pen.beginPath();
    pen.moveTo(place - 3, row.top - 3);
    pen.lineTo(place + 3, row.top - 3);
    pen.lineTo(place, row.top + 3);
    pen.fill();
  }
}

/** What a thread of the job system did within so much time of another, in words. */
function betweenAt({ times, texts }, time, slack) {
  const found = [];
  for (let at = lastUntil(times, time - slack) + 1; at < times.length && times[at] <= time + slack; at++) {
    found.push(texts[at]);
  }
  const more = found.length > 4 ? `; and ${found.length - 4} more` : "";
  return found.length === 0 ? "" : `; it ${found.slice(0, 4).join("; ")}${more}`;
}

/** The pieces of one column of pixels. */
function drawCrowd(paper, row, { column, weights, all }) {
  const { context: pen } = paper;
  let [style, most, busy] = [null, 0, 0];
  for (const [name, weight] of weights) {
    if (name === "line") continue;
    busy += weight;
    if (weight > most) [style, most] = [name, weight];
  }
  if (style === null) {
    if (weights.has("line")) {
      pen.fillStyle = paper.colour("grey");
      pen.fillRect(column, row.top + row.high / 2 - 0.75, 1, 1.5);
    }
    return;
  }
  pen.globalAlpha = Math.max(0.25, Math.min(1, busy / Math.max(all, 1e-9)));
  pen.fillStyle = paper.fill(style);
  pen.fillRect(column, row.top, 1, row.high);
  pen.globalAlpha = 1;
}

/** A frame around what the pointer is on. */
function drawPointed(paper, { pointed, rows, x }) {
  if (!pointed) return;
  const row = rows.find((row) => row.kind === pointed.row.kind && row.top === pointed.row.top);
  if (!row) return;
  const { context: pen } = paper;
  const [from, to] = [Math.max(x(pointed.begin), -5), Math.min(x(pointed.end), paper.width + 5)];
  pen.strokeStyle = paper.colour("ink");
  pen.lineWidth = 2;
  pen.strokeRect(from, row.top, Math.max(to - from, 1.5), row.high);
  pen.lineWidth = 1;
}

/** What a row has at a time, in words. `slack`: as much as a pixel is. */
function pieceAt(lanes, of, row, time, slack) {
  const found = (begin, end, text) => ({ row, begin, end, text });
  if (row.kind === "path" || row.kind === "inversion") {
    const near = row.path.segments.filter((part) => part.begin <= time + slack && part.end >= time - slack);
    const segment = near.sort((a, b) => b.end - b.begin - (a.end - a.begin))[0];
    return segment ? found(segment.begin, segment.end, segmentText(of, segment)) : null;
  }
  if (row.kind === "slices") {
    const near = row.slices.filter((slice) => slice.begin <= time + slack && slice.end >= time - slack);
    const slice = near.sort((a, b) => b.end - b.begin - (a.end - a.begin))[0];
    return slice ? found(slice.begin, slice.end, `${slice.name}: ${short(slice.end - slice.begin)}`) : null;
  }
  for (const [begin, end] of row.cpu ? row.cpu.offline : []) {
    if (begin <= time && time < end) return found(begin, end, `${row.name} offline: ${short(end - begin)}`);
  }
  const { times, to } = row.steps;
  const at = lastUntil(times, time);
  const look = at < 0 ? null : looks({ lanes, of }, row, to[at]);
  if (!look) return { row, begin: time, end: time, text: `${row.name}: not in this page` };
  const end = at + 1 < times.length ? times[at + 1] : times[at];
  const after = short(Math.max(times[at] - of.begin, 0));
  const did = row.between ? betweenAt(row.between, time, 3 * slack) : "";
  return found(times[at], end, `${row.name}: ${look.text}, ${short(end - times[at])}, from ${after} on${did}`);
}
