//! The pages of `--report` in a browser: that they open what is clicked and what keys ask for, say the
//! numbers of `--json`, and that no name in a trace does anything.
//!
//! The browser is Debian's chromium, without a screen. It need not be there: with
//! `PACELINE_TEST_BROWSER=all`, as `cargo xtask test` sets it where it has one, the tests run; else they say
//! that they did not, and pass.

#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod devtools;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use common::fine;
use devtools::Browser;

/// The browser, if it is wanted.
fn browser() -> Option<Browser> {
    if std::env::var_os("PACELINE_TEST_BROWSER").is_none() {
        println!("PACELINE_TEST_BROWSER is not set: no browser was started");
        return None;
    }
    Some(Browser::start())
}

/// A page, and what `--json` says of the same run.
struct Written {
    page: PathBuf,
    json: Value,
    _folder: TempDir,
}

/// Runs a command line that may write a page.
fn written(line: &[&str]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let report = ["--json", "--report", page.to_str().unwrap()];
    let json = fine(&[line, &report].concat());
    Written {
        page,
        json: serde_json::from_str(&json).unwrap(),
        _folder: folder,
    }
}

fn trace(name: &str) -> String {
    format!("testdata/traces/{name}")
}

/// The position in `waits[]` of what is open.
fn open_wait(browser: &mut Browser) -> Option<usize> {
    let wait = browser.text("document.getElementById('opened').dataset.wait");
    wait.parse().ok()
}

/// Clicks the bar at a position of the chart, which has as many bars.
fn click_bar(browser: &mut Browser, at: f64, bars: f64) {
    click_bar_of(browser, "chart", at, bars);
}

/// The same of the chart of this name.
fn click_bar_of(browser: &mut Browser, chart: &str, at: f64, bars: f64) {
    let chart = format!("#{chart}");
    let wide = format!("document.querySelector('{chart}').getBoundingClientRect().width");
    let width = browser.number(&wide);
    // Its margins, as in chart.js.
    let (left, right) = (62.0, 10.0);
    let x = left + (width - left - right) * (at + 0.5) / bars;
    browser.point(&chart, (x, 100.0), true);
}

/// Whether a text such as "8.47 ms" is what a number of nanoseconds looks like, to its last digit.
fn is_told(text: &str, ns: f64) -> bool {
    let (number, unit) = text.split_once(' ').unwrap();
    let scale = match unit {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => panic!("{text}"),
    };
    let decimals = number
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let told: f64 = number.parse().unwrap();
    (told - ns / scale).abs() <= 0.5001 / 10f64.powi(decimals as i32)
}

/// Goal: the worst frame or wait is open at first, and opens by a click and by a key after another one was;
/// the numbers shown of it are those of `--json`; no page says anything in the console. Method: traces with
/// late frames, with waits alone, and with sleeps; a run of frames; a simulated one; real clicks and keys.
#[test]
fn what_is_asked_for_opens() {
    let Some(mut browser) = browser() else { return };
    let traces = [
        "ms-android12-emulator-a.pftrace.gz",
        "local-pathfinder-nopi.ftrace.txt.gz",
        "ms-galaxy-s20.perfetto-trace.gz",
    ];
    let traces = traces.map(trace);
    let mut lines: Vec<Vec<&str>> = traces
        .iter()
        .map(|it| vec!["diagnose", it.as_str()])
        .collect();
    lines.push(vec!["frames", "--frames", "24"]);
    lines.push(vec!["simulate", "job-graph"]);
    for line in &lines {
        let written = written(line);
        let waits = written.json["waits"].as_array().unwrap();
        browser.open(&written.page, 1400, "light");
        let worst = open_wait(&mut browser).unwrap();
        says_its_numbers(&mut browser, &written.json, &waits[worst]);
        // The last bar, then the worst again: by keys, and by clicks.
        browser.key("#chart", "End");
        browser.key("#chart", "Enter");
        let last = open_wait(&mut browser);
        browser.key("#chart", "w");
        assert_eq!(open_wait(&mut browser), Some(worst), "{line:?}");
        let bars = browser.text("document.getElementById('chart').getAttribute('aria-label')");
        // "frame 17 of 24: …"
        let words: Vec<&str> = bars.split([' ', ':']).collect();
        let [at, count]: [f64; 2] = [words[1], words[3]].map(|word| word.parse().unwrap());
        click_bar(&mut browser, count - 1.0, count);
        assert_eq!(open_wait(&mut browser), last, "{line:?}");
        click_bar(&mut browser, at - 1.0, count);
        assert_eq!(open_wait(&mut browser), Some(worst), "{line:?}");
        says_its_numbers(&mut browser, &written.json, &waits[worst]);
        // A wait's name in the table opens it as well.
        let name = "table.waits tbody tr:nth-child(2) a";
        let href = browser.value(&format!("document.querySelector({name:?})?.hash ?? null"));
        if let Some(href) = href.as_str() {
            browser.point(name, (3.0, 3.0), true);
            let opened = open_wait(&mut browser).unwrap();
            assert_eq!(format!("#wait-{opened}"), href);
            says_its_numbers(&mut browser, &written.json, &waits[opened]);
        }
        assert_eq!(browser.complaints(), [] as [Value; 0], "{line:?}");
    }
}

/// The causes shown are those of the wait, in order, and so is their sum.
fn says_its_numbers(browser: &mut Browser, report: &Value, wait: &Value) {
    let rows = "[...document.querySelectorAll('table.causes tbody tr')].map((row) => \
                [...row.cells].map((cell) => cell.textContent))";
    let rows = browser.value(rows);
    let rows = rows.as_array().unwrap();
    let causes = wait["causes"].as_array().unwrap();
    let told = causes.len().min(24);
    for (row, cause) in rows.iter().zip(&causes[..told]) {
        let cell = |at: usize| row[at].as_str().unwrap();
        assert!(
            cell(0).starts_with(cause["kind"].as_str().unwrap()),
            "{row} {cause}"
        );
        let who = cause["who"].as_u64().map(|at| &report["who"][at as usize]);
        let thread = who.map_or("an unknown thread", |who| who["thread"].as_str().unwrap());
        assert!(cell(1).starts_with(thread), "{row} {cause}");
        assert!(
            is_told(cell(2), cause["ns"].as_f64().unwrap()),
            "{row} {cause}"
        );
        assert_eq!(cell(4), cause["confidence"].as_str().unwrap_or("known"));
    }
    let last = rows.last().unwrap();
    assert_eq!(last[0], "sum");
    assert!(
        is_told(last[2].as_str().unwrap(), wait["sum_ns"].as_f64().unwrap()),
        "{last}"
    );
}

/// Goal: the picture of a wait is moved and zoomed by keys, says what the pointer is on, and goes through
/// what held the wait up. Method: the mutex of the Pathfinder, whose path is known; pictures are compared.
#[test]
fn the_picture_follows_keys_and_pointer() {
    let Some(mut browser) = browser() else { return };
    let written = written(&["diagnose", &trace("local-pathfinder-nopi.ftrace.txt.gz")]);
    browser.open(&written.page, 1400, "light");
    let picture = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => \
                   done(document.querySelector('canvas.lanes').toDataURL()), 50)))";
    let said = "document.querySelector('.picture .said').textContent";
    let whole = browser.text(picture);
    for keys in [
        &["+", "0"][..],
        &["ArrowRight", "ArrowLeft", "0"],
        &["-", "0"],
    ] {
        browser.key("canvas.lanes", keys[0]);
        assert_ne!(browser.text(picture), whole, "{keys:?}");
        for key in &keys[1..] {
            browser.key("canvas.lanes", key);
        }
        assert_eq!(browser.text(picture), whole, "{keys:?}");
    }
    let segments: Vec<String> = (0..3)
        .map(|_| {
            browser.key("canvas.lanes", ".");
            browser.text(said)
        })
        .collect();
    assert!(segments[0].starts_with("1 of "), "{segments:?}");
    let inverted = segments
        .iter()
        .find(|said| said.contains("inversion: lock"));
    let inverted = inverted.unwrap_or_else(|| panic!("{segments:?}"));
    assert!(
        inverted.contains("low-holder runnable: mid-comms ran: 8.47 ms"),
        "{inverted}"
    );
    browser.point("canvas.lanes", (500.0, 10.0), false);
    let pointed = browser.text(said);
    assert!(
        pointed.starts_with("low-holder runnable: mid-comms ran"),
        "{pointed}"
    );
    assert_eq!(browser.complaints(), [] as [Value; 0]);
}

/// Goal: a page about two traces has both charts on one scale, opens what is asked for of either, with the
/// numbers that `--json` has of that trace, and says what changed as `--json` of the comparison does; names
/// of either trace do nothing; it fits a phone. Method: the Pathfinder with priority inheritance against the
/// one without, and two traces with hostile names; clicks, keys and the address.
#[test]
fn two_traces_are_compared() {
    let Some(mut browser) = browser() else { return };
    let [here, there] =
        ["pi", "nopi"].map(|which| trace(&format!("local-pathfinder-{which}.ftrace.txt.gz")));
    let alone = [&here, &there].map(|trace| written(&["diagnose", trace]).json);
    let page = written(&["diagnose", &here, "--against", &there]);
    browser.open(&page.page, 1400, "light");
    let run = "document.getElementById('opened').dataset.run";
    for (chart, json, name) in [
        ("chart-there", &alone[1], "There"),
        ("chart", &alone[0], "Here"),
    ] {
        let waits = json["waits"].as_array().unwrap();
        for at in [0, waits.len() - 1] {
            click_bar_of(&mut browser, chart, at as f64, waits.len() as f64);
            assert_eq!(browser.text(run), name);
            let opened = open_wait(&mut browser).unwrap();
            says_its_numbers(&mut browser, json, &waits[opened]);
        }
        browser.key(&format!("#{chart}"), "w");
        assert_eq!(
            (browser.text(run), open_wait(&mut browser)),
            (name.to_owned(), Some(0))
        );
    }
    // The address leads back to a wait of either.
    let address = |browser: &mut Browser| browser.text("location.hash");
    assert_eq!(address(&mut browser), "#wait-0");
    browser.key("#chart-there", "End");
    browser.key("#chart-there", "Enter");
    assert!(address(&mut browser).starts_with("#there-"));
    // What changed: the verdicts and the changes, line by line.
    let rows = "[...document.querySelectorAll('table.changes tbody tr')].map((row) => \
                [...row.cells].map((cell) => cell.textContent))";
    let rows = browser.value(rows);
    let rows = rows.as_array().unwrap();
    let groups = page.json["groups"].as_array().unwrap();
    let changes = groups.iter().flat_map(|group| {
        let changes = group["changes"].as_array().unwrap().iter().enumerate();
        changes.filter(|(at, change)| *at == 0 || change["verdict"] != "same")
    });
    let changes: Vec<&Value> = changes.map(|(_, change)| change).collect();
    assert_eq!(rows.len(), changes.len());
    for (row, change) in rows.iter().zip(changes) {
        assert_eq!(row[6], change["verdict"], "{row}");
        for (cell, number) in [(1, &change["mean_ns"][0]), (2, &change["mean_ns"][1])] {
            let text = row[cell].as_str().unwrap();
            assert!(is_told(text, number.as_f64().unwrap()), "{row} {change}");
        }
    }
    let pictures = browser.number("document.querySelectorAll('svg.interval').length");
    assert_eq!(pictures, rows.len() as f64);
    let keep = std::env::var_os("PACELINE_SCREENSHOTS").map(PathBuf::from);
    for (width, scheme) in [(390, "light"), (390, "dark"), (1400, "light")] {
        browser.open(&page.page, width, scheme);
        let wide = browser.number("document.documentElement.scrollWidth");
        assert!(wide <= f64::from(width), "{wide} of {width}");
        for canvas in ["#chart", "#chart-there", "canvas.lanes"] {
            assert!(colours(&mut browser, canvas) > 20.0, "{canvas}, {width}");
        }
        if let Some(keep) = &keep {
            browser.screenshot(&keep.join(format!("against-{width}-{scheme}.png")));
        }
    }
    hostile_on_both_sides(&mut browser);
    assert_eq!(browser.complaints(), [] as [Value; 0]);
}

fn hostile_on_both_sides(browser: &mut Browser) {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "</script><script>owned=1</script> frame 1",
        "<img src=x onerror=owned=1> frame 2",
    ];
    let paths = ["<b onclick=owned=1>.json", "<svg onload=owned=1>.json"];
    let paths = paths.map(|name| {
        let path = folder.path().join(name);
        fs::write(&path, hostile(&names.repeat(8)).to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let page = written(&["diagnose", &paths[0], "--against", &paths[1]]);
    browser.open(&page.page, 1400, "light");
    for chart in ["#chart", "#chart-there"] {
        for (key, name) in [("Home", names[0]), ("End", names[1])] {
            browser.key(chart, key);
            browser.key(chart, "Enter");
            let shown = browser.text("document.getElementById('opened').textContent");
            assert!(shown.contains(name), "{name}: {shown}");
        }
    }
    assert_eq!(browser.value("typeof owned"), json!("undefined"));
    let elements = "document.querySelectorAll('body img, body b, svg[onload]').length";
    assert_eq!(browser.value(elements), json!(0));
}

/// Goal: pages are drawn in every light and width, and nothing sticks out of a phone. Method: all four;
/// canvases have many colours, and the page is as wide as the screen. With `PACELINE_SCREENSHOTS` as a
/// folder, what they look like is kept there.
#[test]
fn pages_fit_phones_and_desktops() {
    let Some(mut browser) = browser() else { return };
    let keep = std::env::var_os("PACELINE_SCREENSHOTS").map(PathBuf::from);
    for name in [
        "local-pathfinder-nopi.ftrace.txt.gz",
        "ms-android12-emulator-a.pftrace.gz",
    ] {
        let written = written(&["diagnose", &trace(name)]);
        for (width, scheme) in [
            (390, "light"),
            (390, "dark"),
            (1400, "light"),
            (1400, "dark"),
        ] {
            browser.open(&written.page, width, scheme);
            let wide = browser.number("document.documentElement.scrollWidth");
            assert!(wide <= f64::from(width), "{name}: {wide} of {width}");
            for canvas in ["#chart", "canvas.lanes"] {
                let colours = colours(&mut browser, canvas);
                assert!(
                    colours > 20.0,
                    "{name}, {canvas}, {width}, {scheme}: {colours} colours"
                );
            }
            if let Some(keep) = &keep {
                let stem = name.split('.').next().unwrap();
                browser.screenshot(&keep.join(format!("{stem}-{width}-{scheme}.png")));
            }
        }
    }
    assert_eq!(browser.complaints(), [] as [Value; 0]);
}

/// How many colours a canvas has.
fn colours(browser: &mut Browser, canvas: &str) -> f64 {
    browser.number(&format!(
        "(() => {{ const canvas = document.querySelector({canvas:?}); \
         const pen = canvas.getContext('2d'); \
         const {{ data }} = pen.getImageData(0, 0, canvas.width, canvas.height); \
         return new Set(new Uint32Array(data.buffer)).size; }})()"
    ))
}

/// Goal: no name in a trace becomes an element, code or a request, wherever it is shown. Method: a trace of
/// Chrome's whose threads and slices are named like markup, ends of elements, addresses and odd line ends, in
/// a file with such a name; all of it opened; names are there as text.
#[test]
fn hostile_names_do_nothing() {
    let Some(mut browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "</script><script>owned=1</script> frame 1",
        "<img src=x onerror=owned=1> frame 2",
        "\"'><svg onload=owned=1> frame 3",
        "javascript:owned=1 \u{2028}\u{2029}<!-- frame 4",
        "&lt;b&gt; <iframe src=data:text/html,x> frame 5",
    ];
    let path = folder.path().join("<b onclick=owned=1>.json");
    fs::write(&path, hostile(&names).to_string()).unwrap();
    let written = written(&["diagnose", path.to_str().unwrap()]);
    browser.open(&written.page, 1400, "light");
    let bars = names.len();
    for (at, name) in names.iter().enumerate() {
        click_bar(&mut browser, at as f64, bars as f64);
        browser.point("canvas.lanes", (600.0, 10.0), false);
        browser.key("canvas.lanes", ".");
        let shown = browser.text("document.getElementById('opened').textContent");
        assert!(shown.contains(name), "{name}: {shown}");
    }
    let table = browser.text("document.querySelector('table.waits').textContent");
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
    for (expression, expected) in [
        ("typeof owned", json!("undefined")),
        ("document.querySelectorAll('script').length", json!(2)),
        (
            "document.querySelectorAll('body img, body iframe, body b, svg[onload]').length",
            json!(0),
        ),
        (
            "[...document.querySelectorAll('*')].some((element) => element.onclick || element.onerror)",
            json!(false),
        ),
        ("performance.getEntriesByType('resource').length", json!(0)),
    ] {
        assert_eq!(browser.value(expression), expected, "{expression}");
    }
    assert_eq!(browser.complaints(), [] as [Value; 0]);
}

/// A trace of Chrome's: a slice of each name, on a thread of that name.
fn hostile(names: &[&str]) -> Value {
    let events = names.iter().enumerate().flat_map(|(at, name)| {
        let (tid, ts) = (at + 1, 1_000 + at * 10_000);
        let thread =
            json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}});
        let dur = 1_000 + at * 100;
        [
            thread,
            json!({"ph": "X", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur}),
        ]
    });
    json!({"traceEvents": events.collect::<Vec<_>>()})
}
