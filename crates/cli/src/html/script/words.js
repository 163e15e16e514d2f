// Numbers as people read them: the same digits as the rest of the page has.

/** A number with so many decimals; of two equally near ones the even one, as the command writes them. */
function fixed(number, digits) {
  const scaled = number * 10 ** digits;
  const low = Math.floor(scaled);
  const isHalf = scaled - low === 0.5 && Number.isInteger(number * 8);
  return isHalf ? ((low + (low % 2)) / 10 ** digits).toFixed(digits) : number.toFixed(digits);
}

/** A length of time: "10.59 ms". */
function short(ns) {
  if (ns < 1e3) return `${ns} ns`;
  const [unit, name] = ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const number = ns / unit;
  return `${fixed(number, number >= 100 ? 1 : 2)} ${name}`;
}

/** A part of a whole: "40 %". */
function percent(part, whole) {
  return whole === 0 ? "–" : `${fixed((part * 100) / whole, 0)} %`;
}

/** A time since the beginning, to the microsecond, as in the tables. */
function clock(ns) {
  const micros = Math.floor(ns / 1e3);
  return `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, "0")} s`;
}

/** Round numbers from `from` to `to`, in at most `most` steps of 1, 2 or 5 times a power of ten. */
function ticks(from, to, most) {
  const least = Math.max((to - from) / Math.max(most, 1), 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
  const found = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) found.push(tick);
  return { step, found };
}

/** The text of a tick: in the unit of the largest, with as many decimals as the steps need. */
function tickText(ns, step, largest) {
  const [digits, name] =
    largest < 1e3 ? [0, "ns"] : largest < 1e6 ? [3, "µs"] : largest < 1e9 ? [6, "ms"] : [9, "s"];
  const decimals = Math.max(0, digits - Math.floor(Math.log10(step) + 1e-9));
  return `${(ns / 10 ** digits).toFixed(decimals)} ${name}`;
}
