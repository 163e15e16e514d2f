// From the page's data to its pictures.

/** The data: gzip in base64, so that nothing in it can be markup. */
async function unpack(text) {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let at = 0; at < packed.length; at++) packed[at] = letters.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** The pictures of one run. `side`: what the names of its elements end in. Both runs of a page open what is asked for in
  * one place; the first one has its worst there until something is. */
function startRun(data, side) {
  const find = (name) => document.getElementById(name + side);
  const place = document.getElementById("opened");
  if (find("chart") === null) return;
  const bars = data.chart.bars;
  const opened = newOpened(place, data);
  const chart = newChart(find, data.chart, data.decisions, (at) => openBar(at, true));
  const address = side === "" ? "wait" : "there";

  function openBar(at, asked) {
    opened.open(bars[at].wait, bars[at]);
    if (asked) remember(bars[at].wait);
  }

  function openWait(at) {
    chart.chooseWait(at);
    opened.open(at, bars.find((bar) => bar.wait === at));
    remember(at);
    place.scrollIntoView();
  }

  /** The address leads back to it. */
  function remember(wait) {
    history.replaceState(null, "", wait === null ? "#" : `#${address}-${wait}`);
  }

  const named = (hash) => {
    const [, of, number] = /^#([a-z]+)-(\d+)$/.exec(hash) ?? [];
    return of === address && Number(number) < data.waits.length ? Number(number) : null;
  };
  for (const link of side === "" ? document.querySelectorAll("table.waits a") : []) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      openWait(named(link.hash));
    });
  }
  const asked = named(location.hash);
  if (asked !== null) openWait(asked);
  else if (side === "") openBar(data.chart.worst, false);
}

async function start() {
  const data = await unpack(document.getElementById("data").textContent);
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
  startRun(data, "");
  if (data.there) startRun(data.there, "-there");
}

start().then(
  () => { document.documentElement.dataset.drawn = "yes"; },
  (error) => {
    const text = `The pictures of this page could not be drawn: ${error}. Its sentences and tables are whole.`;
    document.querySelector("footer").before(element("p", { class: "note", role: "alert" }, text));
    throw error;
  },
);
