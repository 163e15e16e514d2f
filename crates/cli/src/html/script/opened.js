// What is opened: a frame or a wait in sentences, as a picture, and by its causes. The numbers are those of
// `waits[]` in `--json`.

/** The causes told; more of them are summed up. */
const CAUSES_MAX = 24;

/** The part of the page that shows what is opened. */
function newOpened(place, data) {
  const classes = new Map(data.classes);
  const lanes = data.happened && newLanes(data.happened);

  /** Opens a wait, under the name and with the length of a bar if it has one. */
  function open(at, bar) {
    const wait = at === null ? null : data.waits[at];
    const title = bar ? `${bar.name}: ${short(bar.duration_ns)}` : `${wait.thread}, ${wait.name}: ${short(wait.duration_ns)}`;
    const parts = [element("h3", {}, data.run ? `${data.run}: ${title}` : title)];
    if (wait) {
      parts.push(element("p", {}, data.told[at].sentence));
    } else {
      parts.push(element("p", { class: "note" }, "The time of this one is not explained: others were worse."));
    }
    const picture = lanes && lanes.show(at, bar);
    if (picture) parts.push(picture);
    if (wait) parts.push(causes(wait), ...inversions(at));
    place.replaceChildren(...parts);
    place.dataset.wait = at === null ? "" : at;
    place.dataset.run = data.run ?? "";
  }

  function causes(wait) {
    const body = element("tbody");
    const rest = wait.causes.slice(CAUSES_MAX);
    for (const cause of wait.causes.slice(0, CAUSES_MAX)) {
      const job = cause.job ? ` \`${cause.job}\`` : "";
      const within = cause.within ? ` in ${cause.within}` : "";
      const kind = cause.count ? `${cause.count} small ones` : cause.kind;
      const thread = data.who[cause.who]?.thread ?? (cause.count ? "" : "an unknown thread");
      body.append(
        row(swatch(cause.kind), `${kind}${job}`, thread + within, cause.ns, wait,
          cause.confidence ?? "known"),
      );
    }
    if (rest.length > 0) {
      const sum = rest.reduce((sum, cause) => sum + cause.ns, 0);
      body.append(row("", `${rest.length} more`, "", sum, wait, ""));
    }
    body.append(row("", "sum", "", wait.sum_ns, wait, ""));
    const heads = ["cause", "thread on the path", "time", "of it", "how sure"];
    const cells = heads.map((head, at) => element("th", at === 2 || at === 3 ? { class: "number" } : {}, head));
    const head = element("thead", {}, element("tr", {}, ...cells));
    return element("div", { class: "wide" }, element("table", { class: "causes" }, head, body));
  }

  function row(mark, kind, thread, ns, wait, confidence) {
    const number = { class: "number" };
    return element(
      "tr",
      {},
      element("td", {}, mark, kind),
      element("td", {}, thread),
      element("td", number, short(ns)),
      element("td", number, percent(ns, wait.duration_ns)),
      element("td", {}, confidence),
    );
  }

  function swatch(kind) {
    return element("span", { class: `swatch ${classes.get(kind) ?? "unknown"}` });
  }

  function inversions(at) {
    const told = data.told[at].inversions;
    if (told.length === 0) return [];
    const items = told.map(({ said, remedies }) =>
      element("li", {}, said, element("br"), element("span", { class: "remedy" }, `Remedy: ${remedies}.`)),
    );
    const all = data.inversions.filter((inversion) => inversion.wait === at).length;
    const more = element("p", { class: "note" }, `${all - told.length} more, each shorter.`);
    const list = element("ul", { class: "findings" }, ...items);
    return [element("h4", {}, "Inversions in it"), list, ...(all > told.length ? [more] : [])];
  }

  return { open };
}
