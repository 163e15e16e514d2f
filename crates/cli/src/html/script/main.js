// From the page's data to its pictures.

/** The data: gzip in base64, so that nothing in it can be markup. */
async function unpack(text) {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let at = 0; at < packed.length; at++) packed[at] = letters.charCodeAt(at);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

async function start() {
  const data = await unpack(document.getElementById("data").textContent);
  const place = document.getElementById("opened");
  if (place === null) return;
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
  const bars = data.chart.bars;
  const opened = newOpened(place, data);
  const canvas = document.getElementById("chart");
  const chart = newChart(canvas, data.chart, data.decisions, (at) => openBar(at, true));

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
    history.replaceState(null, "", wait === null ? "#" : `#wait-${wait}`);
  }

  const named = (hash) => {
    const number = /^#wait-(\d+)$/.exec(hash);
    return number && Number(number[1]) < data.waits.length ? Number(number[1]) : null;
  };
  for (const link of document.querySelectorAll("table.waits a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      openWait(named(link.hash));
    });
  }
  const asked = named(location.hash);
  if (asked === null) openBar(data.chart.worst, false);
  else openWait(asked);
}

start().then(
  () => { document.documentElement.dataset.drawn = "yes"; },
  (error) => {
    const text = `The pictures of this page could not be drawn: ${error}. Its sentences and tables are whole.`;
    document.querySelector("footer").before(element("p", { class: "note", role: "alert" }, text));
    throw error;
  },
);
