// What happened when: a lane for the path, for each thread and for each CPU, to be moved about in.

const LANES = { names: 132, axis: 24, gap: 4, narrow: 620, least: 200, cpus: 16, depths: 4 };

/** The lanes of a page: `show(wait, bar)` makes the picture of one wait. */
function newLanes(happened) {
  const total = happened.covered.reduce((most, [, end]) => Math.max(most, end), 0);
  const steps = new Map();

  /** The changes of a lane with their times, summed up when they are first needed. */
  function stepsOf(changes) {
    if (!steps.has(changes)) {
      let time = 0;
      const times = Float64Array.from(changes.after, (after) => (time += after));
      steps.set(changes, { times, to: changes.to });
    }
    return steps.get(changes);
  }

  /** A thread's slices as they lie inside of each other. */
  function slicesOf(thread) {
    if (!steps.has(thread.slices)) {
      let begin = 0;
      const ends = [];
      const found = thread.slices.map(([after, length, word]) => {
        begin += after;
        while (ends.length > 0 && ends[ends.length - 1] <= begin) ends.pop();
        ends.push(begin + length);
        return { begin, end: begin + length, depth: ends.length - 1, name: happened.words[word] };
      });
      steps.set(thread.slices, found);
    }
    return steps.get(thread.slices);
  }

  /** What a thread of the job system did between two jobs, with the times. */
  function betweenOf(thread) {
    if (!steps.has(thread.between)) {
      let time = 0;
      const times = Float64Array.from(thread.between, ([after]) => (time += after));
      const texts = thread.between.map(([, word]) => happened.words[word]);
      steps.set(thread.between, { times, texts });
    }
    return steps.get(thread.between);
  }

  /** The path of a wait with the times of its segments. */
  function pathOf(wait) {
    const path = wait === null ? null : happened.paths[wait];
    if (!path) return null;
    let begin = path.begin;
    const segments = path.segments.map(([length, style, label, thread, sure, inversion]) => {
      const [from, to] = [begin, (begin += length)];
      const [styleName, text] = [happened.words[style], happened.words[label]];
      const kind = inversion === null ? null : happened.words[inversion];
      return { begin: from, end: to, style: styleName, text, thread, sure: happened.words[sure], kind };
    });
    return { begin: path.begin, end: begin, threads: path.threads, instead: path.instead, segments };
  }

  let last = null;

  function show(wait, bar) {
    const path = pathOf(wait);
    const begin = path ? path.begin : bar && bar.start_ns - happened.start_ns;
    const end = path ? path.end : bar && begin + bar.duration_ns;
    const isThere = happened.covered.some(([from, to]) => from <= end && to >= begin);
    if (begin === null || begin === undefined || !isThere || (!path && !last)) {
      const why = "There was no room in this page for what happened then: ask for it alone, with --slice or --thread.";
      return element("p", { class: "note" }, why);
    }
    const threads = path ? path.threads : last.threads;
    last = path ?? last;
    return newTimeline({ happened, total, stepsOf, slicesOf, betweenOf }, { path, begin, end, threads });
  }

  return { show };
}

/** The position of the last number that is not above, in a list in order; -1: all are. */
function lastUntil(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The rows of a wait's picture, from above to below. */
function rowsOf({ happened, stepsOf, slicesOf, betweenOf }, { path, begin, end, threads }) {
  const rows = [];
  if (path) {
    rows.push({ kind: "path", name: "what held it up", high: 22, path });
    if (path.segments.some((segment) => segment.kind)) {
      rows.push({ kind: "inversion", name: "inversion", high: 16, path });
    }
  }
  for (const at of threads) {
    const thread = happened.threads[at];
    const [steps, between] = [stepsOf(thread.states), betweenOf(thread)];
    rows.push({ kind: "thread", name: thread.name, high: 20, steps, between, thread: at });
    const slices = slicesOf(thread);
    const inside = slices.filter((slice) => slice.begin < end && slice.end > begin);
    const deepest = inside.reduce((most, slice) => Math.max(most, slice.depth), -1);
    for (let depth = 0; depth <= Math.min(deepest, LANES.depths - 1); depth++) {
      const some = slices.filter((slice) => slice.depth === depth);
      rows.push({ kind: "slices", name: "", high: 16, slices: some, times: some.map((slice) => slice.begin) });
    }
  }
  const cpus = happened.cpus.filter((cpu) => cpu.runs.to.some((to) => to > 0));
  for (const cpu of chosenCpus(cpus, begin, end, threads, { happened, stepsOf })) {
    rows.push({ kind: "cpu", name: `CPU ${cpu.cpu}`, high: 20, steps: stepsOf(cpu.runs), cpu });
  }
  return rows;
}

/** All CPUs, or as many as there is room for: those first that the threads ran on. */
function chosenCpus(cpus, begin, end, threads, { happened, stepsOf }) {
  if (cpus.length <= LANES.cpus) return cpus;
  const base = happened.nobody.length;
  const isUsed = ({ runs }) => {
    const { times, to } = stepsOf(runs);
    for (let at = Math.max(lastUntil(times, begin), 0); at < times.length && times[at] < end; at++) {
      if (threads.includes(to[at] - base)) return true;
    }
    return false;
  };
  const used = cpus.filter(isUsed);
  const rest = cpus.filter((cpu) => !used.includes(cpu));
  return [...used, ...rest].slice(0, LANES.cpus).sort((a, b) => a.cpu - b.cpu);
}
