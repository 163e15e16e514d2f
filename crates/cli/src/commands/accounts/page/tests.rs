//! Pages about explanations that are made by hand.

use event::{Cpu, Event, EventKind, KernelEvent, KernelEventKind, Left, Nanos, Task};
use serde_json::Value;
use trace::explain::{CauseKind, Comparison, Explanation, InversionKind, Selection, explain};
use trace::timeline::{Options, Timeline};
use trace::{Recording, Thread};

use super::super::{Account, AccountJson};
use super::bar::class;
use super::{Chart, compared_page, data, opening};

/// A thread that sleeps for 9 ms until another one has worked, which could not run for 6 of them.
fn account() -> Account {
    const MS: u64 = 1_000_000;
    let kernel = |at: u64, what| KernelEvent {
        time: Nanos(at * MS),
        cpu: Cpu(0),
        what,
    };
    let switch = |at, prev: u32, state, next: u32| {
        let (prev, next) = (Some(Task(prev)), Some(Task(next)));
        kernel(at, KernelEventKind::Switch { prev, state, next })
    };
    let woken = KernelEventKind::Waking {
        task: Task(0),
        target: Cpu(0),
        by: Some(Task(1)),
    };
    let recording = Recording {
        threads: vec![
            Thread::new(Task(0), "<main>", None),
            Thread::new(Task(1), "worker & co", None),
            Thread::new(Task(2), "hog", None),
        ],
        kernel: vec![
            switch(1, 2, Left::Sleeping, 0),
            switch(2, 0, Left::Sleeping, 1),
            switch(3, 1, Left::Runnable, 2),
            switch(9, 2, Left::Runnable, 1),
            kernel(11, woken),
            switch(11, 1, Left::Sleeping, 0),
            switch(15, 0, Left::Sleeping, 2),
        ],
        ..Recording::default()
    };
    let timeline = Timeline::new(recording, &Options::default());
    let selection = Selection {
        threads: Some(vec![Task(0)]),
        ..Selection::default()
    };
    let explanation = explain(&timeline, &selection);
    Account::new(timeline, explanation, Nanos::ZERO)
}

/// The whole page of an account: its markup, and its data as JSON.
fn page(account: &Account) -> (String, Value) {
    let chart = Chart::found(account);
    let markup = maud::html! {
        (opening(&chart, Some(account)))
        (account.page())
        (account.words_page())
    };
    let data = serde_json::to_value(data(&chart, Some(account))).unwrap();
    (markup.into_string(), data)
}

/// Goal: two sentences come first, the tables need no script, and names are text. Method: the sleep above;
/// names with markup in them.
#[test]
fn the_page_begins_with_the_answer() {
    let (page, _) = page(&account());
    let begin = "<p class=\"lead\">1 wait was found; the longest: &lt;main&gt; slept 9.00 ms.</p>\
                 <p class=\"lead\">What took most of that time: hog ran 6.00 ms of it while worker \
                 &amp; co was runnable.</p>";
    assert!(page.starts_with(begin), "{page}");
    for part in [
        "<tr id=\"wait-0\">",
        "preemption: hog ran",
        "Remedy: ",
        "worker &amp; co runnable: hog ran",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<main>") && !page.contains("worker & co"));
    assert!(!page.contains("style="), "the page's policy forbids it");
    assert_eq!(
        page.matches("class=\"hatch").count(),
        0,
        "the pattern is the frame's"
    );
}

/// Goal: the waits and inversions of a page are the objects of `--json`. Method: both of the sleep above,
/// with the threads that they refer to.
#[test]
fn the_data_has_the_objects_of_json() {
    let account = account();
    let (_, data) = page(&account);
    let json = serde_json::to_value(AccountJson::of(&account)).unwrap();
    for key in ["who", "waits", "inversions"] {
        assert_eq!(data[key], json[key], "{key}");
        assert!(!json[key].as_array().unwrap().is_empty(), "{key}");
    }
}

/// What a lane has at a time.
fn at(lane: &Value, ms: u64) -> u64 {
    let mut time = 0;
    let mut found = 0;
    let changes = lane["after"].as_array().unwrap().iter();
    for (after, to) in changes.zip(lane["to"].as_array().unwrap()) {
        time += after.as_u64().unwrap();
        if time <= ms * 1_000_000 {
            found = to.as_u64().unwrap();
        }
    }
    found
}

/// Goal: the picture's data has who was where at each instant. Method: the sleep above; lanes are read back,
/// instant by instant.
#[test]
fn the_data_says_who_ran() {
    let (_, data) = page(&account());
    let happened = &data["happened"];
    // The recording begins at 1 ms; a quarter of the wait is shown before and after it.
    assert_eq!(happened["start_ns"], 1_000_000);
    assert_eq!(happened["covered"][0], serde_json::json!([0, 12_250_000]));
    let name = |thread: u64| {
        let thread = &happened["threads"][thread as usize];
        thread["name"].as_str().unwrap()
    };
    let cpu = &happened["cpus"][0]["runs"];
    let ran = [0, 1, 2, 5, 8, 10].map(|ms| name(at(cpu, ms) - 3));
    assert_eq!(
        ran,
        [
            "<main>",
            "worker & co",
            "hog",
            "hog",
            "worker & co",
            "<main>"
        ]
    );
    let threads = &happened["paths"][0]["threads"];
    let worker = threads[1].as_u64().unwrap();
    assert_eq!(name(worker), "worker & co");
    let states = &happened["threads"][worker as usize]["states"];
    let words = |ms| match at(states, ms) {
        on_cpu if on_cpu >= 9 => format!("CPU {}", on_cpu - 9),
        state => happened["states"][state as usize]
            .as_str()
            .unwrap()
            .to_owned(),
    };
    assert_eq!([1, 3, 9].map(words), ["CPU 0", "preempted", "CPU 0"]);
}

/// Goal: the path of a wait is as long as the wait, and its inversion is marked where it was. Method: the
/// sleep above.
#[test]
fn the_data_has_the_path() {
    let (_, data) = page(&account());
    let happened = &data["happened"];
    let segments = happened["paths"][0]["segments"].as_array().unwrap();
    let lengths = segments.iter().map(|segment| segment[0].as_u64().unwrap());
    assert_eq!(lengths.sum::<u64>(), 9_000_000);
    let word = |at: &Value| {
        let word = &happened["words"][at.as_u64().unwrap() as usize];
        word.as_str().unwrap().to_owned()
    };
    let inverted = segments.iter().filter(|segment| !segment[5].is_null());
    let inverted: Vec<_> = inverted
        .map(|segment| (segment[0].as_u64().unwrap(), word(&segment[5])))
        .collect();
    assert_eq!(inverted, [(6_000_000, "preemption".to_owned())]);
}

/// Goal: every link of a page leads somewhere in it. Method: all addresses, all names.
#[test]
fn links_lead_somewhere() {
    let (page, _) = page(&account());
    let links = page.split("href=\"#").skip(1);
    let links: Vec<&str> = links.filter_map(|rest| rest.split('"').next()).collect();
    assert!(!links.is_empty());
    for link in links {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
    }
}

/// Goal: without waits the page says so, and nothing breaks. Method: an empty recording.
#[test]
fn without_waits_it_says_so() {
    let timeline = Timeline::new(Recording::default(), &Options::default());
    let (page, data) = page(&Account::new(timeline, Explanation::default(), Nanos::ZERO));
    assert!(
        page.contains("No thread waited for another one") && !page.contains("<canvas"),
        "{page}"
    );
    assert!(
        data["chart"]["worst"].is_null() && data["chart"]["bars"].as_array().unwrap().is_empty()
    );
}

/// Goal: the chart has every frame with its deadline, says how many were late, and knows the worst; of very
/// many frames the worst of each moment are left. Method: frames timed from outside, one of them too long; a
/// hundred thousand with a known worst one.
#[test]
fn frames_are_counted() {
    const MS: u64 = 1_000_000;
    let timed = |count: u64, worst: u64| -> Vec<(Nanos, Nanos)> {
        let length = |at| {
            Nanos(if at == worst {
                30 * MS
            } else {
                (5 + at % 7) * MS
            })
        };
        (0..count)
            .map(|at| (Nanos(at * 16 * MS), length(at)))
            .collect()
    };
    let chart = Chart::timed(&timed(20, 7), Some(Nanos(16 * MS)), None);
    assert_eq!((chart.all, chart.late, chart.worst), (20, 1, Some(7)));
    let markup = opening(&chart, None).into_string();
    let sentence = "1 of 20 frames was late; the longest: frame 7 took 30.00 ms and ended 14.00 ms after its \
                    deadline.";
    assert!(markup.contains(sentence), "{markup}");
    let chart = Chart::timed(&timed(20, 99), Some(Nanos(16 * MS)), None);
    let markup = opening(&chart, None).into_string();
    let sentence = "None of 20 frames was late; the longest: frame 6 took 11.00 ms and ended 5.00 ms before \
                    its deadline.";
    assert!(markup.contains(sentence), "{markup}");
    let chart = Chart::timed(&timed(100_000, 77_777), None, None);
    assert_eq!((chart.all, chart.bars.len()), (100_000, 20_000));
    assert_eq!(chart.worst().unwrap().name, "frame 77777");
}

/// Goal: the page's lengths are those of the recording, the first sentence names the frame that the text
/// names, and a frame that is late only because it began late is said to be that. Method: three frames every
/// 10 ms: the second begins 6 ms late and takes 5 ms, the third takes 8 ms.
#[test]
fn frames_that_begin_late_are_told() {
    const MS: u64 = 1_000_000;
    let event = |ms: u64, kind, job, arg| Event {
        time: Nanos(ms * MS),
        job,
        arg,
        slot: 0,
        kind,
    };
    let late = 1 << 32 | 1;
    let recording = Recording {
        threads: vec![Thread::new(Task(0), "main", None)],
        slots: [(0, Task(0))].into(),
        jobs: vec![
            event(1, EventKind::FrameBegin, 0, 11 * MS),
            event(4, EventKind::FrameEnd, 0, 0),
            event(17, EventKind::FrameBegin, 1, 21 * MS),
            event(22, EventKind::FrameEnd, 1, late),
            event(22, EventKind::FrameBegin, 2, 31 * MS),
            event(30, EventKind::FrameEnd, 2, 0),
        ],
        ..Recording::default()
    };
    let timeline = Timeline::new(recording, &Options::default());
    let explanation = explain(&timeline, &Selection::default());
    let account = Account::new(timeline, explanation, Nanos(MS));
    assert_eq!(account.frame_lengths(4), None, "there are three");
    let lengths = account.frame_lengths(3).unwrap();
    let ms = |ms: u64| Nanos(ms * MS);
    let expected = [(ms(0), ms(3)), (ms(16), ms(5)), (ms(21), ms(8))];
    assert_eq!(lengths, expected);
    let chart = Chart::timed(&lengths, Some(ms(10)), Some(&account));
    assert_eq!((chart.late, chart.late_for_begin), (1, 1));
    let told = chart.bars[1].told();
    let after = "took 5.00 ms and ended 1.00 ms after its deadline, as it began 6.00 ms late";
    assert!(told.ends_with(after), "{told}");
    let markup = opening(&chart, Some(&account)).into_string();
    let sentence =
        "1 of 3 frames was late, because of when it began; the longest: frame 2 took 8.00 ms and";
    assert!(markup.contains(sentence), "{markup}");
    let worst = account.sentence(account.worst().unwrap());
    assert!(worst.starts_with("frame 2 of main took 8.00 ms"), "{worst}");
}

/// Goal: what the job system decided about the machine is a table and marks of the chart, and what its
/// threads did between two jobs is in their lanes, in words that name the threads. Method: a frame of two
/// threads, with one event of each sort.
#[test]
fn decisions_are_told() {
    const MS: u64 = 1_000_000;
    let event = |ms: u64, slot, kind, job, arg| Event {
        time: Nanos(ms * MS),
        job,
        arg,
        slot,
        kind,
    };
    let recording = Recording {
        threads: vec![
            Thread::new(Task(0), "main", None),
            Thread::new(Task(1), "worker", None),
        ],
        slots: [(0, Task(0)), (1, Task(1))].into(),
        jobs: vec![
            event(1, 0, EventKind::FrameBegin, 7, 9 * MS),
            event(2, 0, EventKind::Wake, 0, 1),
            event(3, 1, EventKind::Steal, 0, 0),
            event(4, 0, EventKind::Resized, 0, (1 << 32) | 3),
            event(6, 0, EventKind::FrameEnd, 7, 0),
        ],
        ..Recording::default()
    };
    let timeline = Timeline::new(recording, &Options::default());
    let explanation = explain(&timeline, &Selection::default());
    let account = Account::new(timeline, explanation, Nanos(MS));
    let (page, data) = page(&account);
    assert!(
        page.contains("frame 7 took 5.00 ms and ended 3.00 ms before its deadline"),
        "{page}"
    );
    let table = account.decisions_page().into_string();
    let row = "<td class=\"number\">0.003000 s</td><td>main</td><td>workers from now on: 3; \
               fewer CPUs may be used";
    assert!(table.contains(row), "{table}");
    assert_eq!(data["decisions"][0]["start_ns"], 3 * MS);
    let happened = &data["happened"];
    let threads = happened["threads"].as_array().unwrap().iter();
    let between = threads.flat_map(|thread| thread["between"].as_array().unwrap());
    let word = |at: &Value| happened["words"][at.as_u64().unwrap() as usize].clone();
    let between: Vec<_> = between
        .map(|it| (it[0].as_u64().unwrap(), word(&it[1])))
        .collect();
    assert!(
        between.contains(&(MS, "wakes worker".into())),
        "{between:?}"
    );
}

/// Goal: every cause has a colour that the style knows, only the unknown cause has the unknown one's, and
/// every word is explained. Method: all kinds there are.
#[test]
fn every_kind_has_a_colour_and_a_meaning() {
    let style = include_str!("../../../html/style.css");
    for &kind in CauseKind::ALL {
        let class = class(kind);
        assert!(style.contains(&format!("\n.{class} {{ fill:")), "{class}");
        assert_eq!(class == "unknown", kind == CauseKind::Unknown, "{kind:?}");
        assert!(kind.about().ends_with('.'), "{kind:?}: {}", kind.about());
    }
    let mut inversions = InversionKind::ALL.iter();
    assert!(inversions.all(|kind| kind.about().ends_with('.')));
}

/// Goal: the charts of two runs have one scale, so that bars can be compared; each run has its data, its
/// elements and its name. Method: a run against one with a longer wait.
#[test]
fn two_charts_have_one_scale() {
    let (long, mut short) = (account(), account());
    short.explanation.waits[0].end = Nanos(short.explanation.waits[0].begin.0 + 1_000);
    let mut told = None;
    let written = compared_page(
        ["<a>", "b"],
        [&short, &long],
        &Comparison::default(),
        |body, data| {
            told = Some((
                body.clone().into_string(),
                serde_json::to_value(data).unwrap(),
            ));
            Ok(())
        },
    );
    assert!(written.is_ok());
    let (markup, data) = told.unwrap();
    let longest = long.explanation.waits[0].length().0;
    for chart in [&data["chart"], &data["there"]["chart"]] {
        assert_eq!(chart["least_top_ns"], longest);
    }
    assert_eq!(
        (&data["run"], &data["there"]["run"]),
        (&"Here".into(), &"There".into())
    );
    assert!(markup.contains("Here: &lt;a&gt;") && markup.contains("id=\"chart-there\""));
    assert_eq!(markup.matches("id=\"opened\"").count(), 1);
}
