// All frames beside each other, in the order of time: one bar each, as high as it was long.

const CHART = { left: 62, right: 10, above: 18, below: 34, gap: 1 };

/** By how much a bar is late, where that is known. */
function over(bar) {
  const over = bar.deadline_ns === null ? 0 : bar.duration_ns - bar.deadline_ns;
  return over > 0 ? ` by ${short(over)}` : "";
}

/** How late a bar began, where that made it late. */
function begun(bar) {
  const late = bar.is_late && bar.began_late_ns;
  return late && bar.duration_ns <= bar.deadline_ns + late ? ` as it began ${short(late)} late` : "";
}

/** The decisions between the beginning of each bar and that of the next. */
function byBar(bars, decisions) {
  const found = new Map();
  const begins = bars.map((bar) => bar.start_ns);
  for (const { start_ns, text } of bars.length > 0 ? decisions : []) {
    const at = Math.max(lastUntil(begins, start_ns), 0);
    found.set(at, [...(found.get(at) ?? []), text]);
  }
  return found;
}

/** The chart of a run. `find(name)` finds its elements, and `open(at)` is called with the position of a bar that is to
  * be opened. */
function newChart(find, chart, decisions, open) {
  const canvas = find("chart");
  const bars = chart.bars;
  const said = find("chart-said");
  const longest = bars.reduce((most, bar) => Math.max(most, bar.duration_ns), Math.max(chart.least_top_ns, 1));
  // A deadline that is far above everything would make everything flat.
  const deadlines = bars.map((bar) => bar.deadline_ns ?? 0).filter((ns) => ns <= 3 * longest);
  const top = deadlines.reduce((most, ns) => Math.max(most, ns), longest) * 1.05;
  const decided = byBar(bars, decisions);
  let chosen = chart.worst;
  const paper = newPaper(canvas, draw);

  function draw() {
    const { context: pen, width, height } = paper;
    const room = width - CHART.left - CHART.right;
    const ground = height - CHART.below;
    const x = (at) => CHART.left + (room * at) / bars.length;
    const y = (ns) => ground - ((ground - CHART.above) * Math.min(ns, top)) / top;
    scale(pen, y, ground, width);
    const wide = room / bars.length;
    if (wide >= 2) {
      bars.forEach((bar, at) => drawBar(bar, x(at), wide - Math.min(CHART.gap, wide / 4), y, ground));
    } else {
      // Of the bars of each column of pixels, the worst.
      for (let column = 0; column < room; column += 2) {
        const some = bars.slice(...ends(column, room));
        const worst = some.reduce((a, b) => (b.duration_ns > a.duration_ns ? b : a), some[0]);
        if (worst) {
          const isLate = some.some((bar) => bar.is_late);
          drawBar({ ...worst, is_late: isLate }, CHART.left + column, 2, y, ground);
        }
      }
    }
    if (chart.period_ns && chart.period_ns <= top) level(pen, y(chart.period_ns), width);
    for (const at of decided.keys()) decision(pen, x(at) + wide / 2, ground);
    if (chosen !== null) mark(pen, x(chosen), Math.max(wide, 2), y(bars[chosen].duration_ns), ground);
    axis(pen, x, ground, room);
  }

  function ends(column, room) {
    const from = Math.floor((column / room) * bars.length);
    return [from, Math.max(from + 1, Math.floor(((column + 2) / room) * bars.length))];
  }

  function scale(pen, y, ground, width) {
    pen.strokeStyle = paper.colour("rule");
    pen.fillStyle = paper.colour("soft");
    pen.textAlign = "right";
    pen.lineWidth = 1;
    const { step, found } = ticks(0, top, Math.min(5, (ground - CHART.above) / 24));
    for (const tick of found) {
      const line = Math.round(y(tick)) + 0.5;
      pen.beginPath();
      pen.moveTo(CHART.left, line);
      pen.lineTo(width, line);
      pen.stroke();
      pen.fillText(tickText(tick, step, top), CHART.left - 6, line + 4);
    }
    pen.textAlign = "left";
  }

  function drawBar(bar, x, wide, y, ground) {
    const { context: pen } = paper;
    pen.fillStyle = paper.fill(bar.is_late ? "late" : "t0");
    const height = Math.max(1, ground - y(bar.duration_ns));
    pen.fillRect(x, ground - height, wide, height);
    // Late ones have a mark below, so that no colour is needed.
    if (bar.is_late) {
      pen.fillStyle = paper.colour("ink");
      pen.fillRect(x, ground + 2, wide, 3);
    }
    if (bar.deadline_ns && bar.deadline_ns <= top && !chart.period_ns && wide >= 2) {
      pen.fillStyle = paper.colour("ink");
      pen.fillRect(x - 0.5, y(bar.deadline_ns) - 1, wide + 1, 2);
    }
  }

  function level(pen, y, width) {
    pen.strokeStyle = pen.fillStyle = paper.colour("ink");
    pen.setLineDash([6, 4]);
    pen.beginPath();
    pen.moveTo(CHART.left, y);
    pen.lineTo(width, y);
    pen.stroke();
    pen.setLineDash([]);
    const text = `deadline: ${short(chart.period_ns)} from one frame to the next`;
    const long = pen.measureText(text).width;
    const above = y - 20 < 0 ? y + 3 : y - 19;
    pen.fillStyle = paper.colour("paper");
    pen.fillRect(width - long - 14, above, long + 10, 16);
    pen.fillStyle = paper.colour("ink");
    pen.fillText(text, width - long - 9, above + 12);
  }

  /** A frame around the chosen bar, and an arrow above it. */
  function mark(pen, x, wide, y, ground) {
    pen.strokeStyle = pen.fillStyle = paper.colour("ink");
    pen.lineWidth = 2;
    pen.strokeRect(x - 1, y - 1, wide + 1, ground - y + 1);
    pen.lineWidth = 1;
    const middle = x + wide / 2;
    pen.beginPath();
    pen.moveTo(middle, y - 3);
    pen.lineTo(middle - 5, y - 11);
    pen.lineTo(middle + 5, y - 11);
    pen.fill();
  }

  /** A diamond below the bar in which the job system decided something. */
  function decision(pen, middle, ground) {
    pen.fillStyle = paper.colour("ink");
    pen.beginPath();
    pen.moveTo(middle, ground + 5);
    pen.lineTo(middle + 4, ground + 9);
    pen.lineTo(middle, ground + 13);
    pen.lineTo(middle - 4, ground + 9);
    pen.fill();
  }

  function axis(pen, x, ground, room) {
    pen.fillStyle = paper.colour("soft");
    const most = Math.max(1, Math.floor(room / 110));
    const each = Math.max(1, Math.ceil(bars.length / most));
    for (let at = 0; at < bars.length; at += each) {
      const place = x(at);
      const text = clock(bars[at].start_ns);
      if (place + pen.measureText(text).width < CHART.left + room) {
        pen.fillRect(place, ground + 6, 1, 5);
        pen.fillText(text, place, ground + 22);
      }
    }
  }

  /** What was decided until the next bar. */
  function then(at) {
    const texts = decided.get(at) ?? [];
    return texts.length === 0 ? "" : `; decided then: ${texts.slice(0, 3).join("; ")}`;
  }

  function say(at) {
    const bar = bars[at];
    const late = bar.is_late ? `, late${over(bar)}${begun(bar)}` : "";
    const text = `${bar.name}: ${short(bar.duration_ns)}${late}, at ${clock(bar.start_ns)}${then(at)}`;
    said.textContent = text;
    canvas.setAttribute("aria-label", `${chart.of} ${at + 1} of ${bars.length}: ${text}`);
  }

  function choose(at) {
    chosen = Math.min(Math.max(at, 0), bars.length - 1);
    say(chosen);
    paper.redraw();
  }

  function openAt(at) {
    choose(at);
    open(chosen);
  }

  /** The bar at a place; of several in a column, the longest. */
  function barAt(event) {
    const box = canvas.getBoundingClientRect();
    const room = box.width - CHART.left - CHART.right;
    const inside = Math.min(Math.max(event.clientX - box.left - CHART.left, 0), room - 1);
    const wide = room / bars.length;
    if (wide >= 2) return Math.min(Math.floor(inside / wide), bars.length - 1);
    const [from, to] = ends(Math.floor(inside / 2) * 2, room);
    let best = from;
    for (let at = from; at < to; at++) if (bars[at].duration_ns > bars[best].duration_ns) best = at;
    return best;
  }

  const keys = {
    ArrowLeft: () => choose((chosen ?? 1) - 1),
    ArrowRight: () => choose((chosen ?? -1) + 1),
    PageUp: () => choose((chosen ?? 0) - 10),
    PageDown: () => choose((chosen ?? 0) + 10),
    Home: () => choose(0),
    End: () => choose(bars.length - 1),
    Enter: () => openAt(chosen ?? 0),
    " ": () => openAt(chosen ?? 0),
    w: () => openAt(chart.worst),
  };
  canvas.addEventListener("click", (event) => openAt(barAt(event)));
  canvas.addEventListener("pointermove", (event) => say(barAt(event)));
  canvas.addEventListener("pointerleave", () => chosen !== null && say(chosen));
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  find("chart-before").addEventListener("click", () => openAt((chosen ?? 1) - 1));
  find("chart-next").addEventListener("click", () => openAt((chosen ?? -1) + 1));
  find("chart-worst").addEventListener("click", () => openAt(chart.worst));
  say(chosen);
  return {
    /** Marks the bar of a wait, if there is one. */
    chooseWait(wait) {
      const at = bars.findIndex((bar) => bar.wait === wait);
      chosen = at < 0 ? null : at;
      if (chosen !== null) say(chosen);
      paper.redraw();
    },
  };
}
