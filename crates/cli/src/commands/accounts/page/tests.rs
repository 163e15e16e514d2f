//! Pages about explanations that are made by hand.

use event::{Cpu, KernelEvent, KernelEventKind, Left, Nanos, Task};
use trace::explain::{
    Cause, CauseKind, Confidence, Explanation, InversionKind, Selection, explain,
};
use trace::timeline::{Options, Timeline};
use trace::{Recording, Thread};

use super::super::Account;
use super::super::sentence::merged;
use super::bar::class;

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

/// Goal: the page has what the terminal has, and a picture with a lane for each thread that matters, the
/// waiter, the one it waited for and the CPU, in which the one that ran instead has a colour. Method: the
/// sleep above; names with markup in them.
#[test]
fn the_page_shows_who_ran() {
    let account = account();
    let worst = account.worst().unwrap();
    assert_eq!(
        (worst.begin, worst.length()),
        (Nanos(2_000_000), Nanos(9_000_000))
    );
    let page = account.page().into_string();
    let sentence = maud::html! { (account.sentence(worst)) }.into_string();
    assert!(page.contains(&sentence), "{page}");
    for part in [
        "worker &amp; co preempted: 6.00 ms",
        "&lt;main&gt; asleep: 9.00 ms",
        "CPU 0: hog, 6.00 ms",
        "<text class=\"name\" x=\"0\"",
        "meanwhile hog ran",
        "preempted",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<main>") && !page.contains("worker & co"));
    // The waiter, the one on the path, the CPU, and the causes.
    assert_eq!(page.matches("class=\"name\"").count(), 4, "{page}");
    assert_eq!(
        page.matches("class=\"hatch").count(),
        0,
        "the pattern is the frame's"
    );
}

/// Goal: the table of causes names the threads that ran instead and sums up rows that differ in jobs alone,
/// and its sum is the wait's length. Method: the sleep above; causes by hand, of two threads and three jobs.
#[test]
fn causes_are_summed_up() {
    let account = account();
    let page = account.page().into_string();
    let sum = account.worst().unwrap().sum().to_string();
    assert!(
        page.contains(&format!(
            "<td>sum</td><td></td><td class=\"number\">{sum}</td>"
        )),
        "{page}"
    );
    let cause = |thread, job, ns| Cause {
        kind: CauseKind::QueuedBehind,
        thread: Some(Task(thread)),
        job: Some(job),
        ns: Nanos(ns),
        by: Vec::new(),
        beside_idle: Nanos::ZERO,
        exit: None,
        function: None,
        confidence: Confidence::Known,
    };
    let causes = [cause(1, 10, 7), cause(2, 11, 6), cause(2, 12, 5)];
    let rows = merged(&causes, |cause| cause.kind).into_iter();
    let rows: Vec<_> = rows
        .map(|row| (row.thread, row.job, row.ns.0, row.count))
        .collect();
    let (first, second) = (Some(Task(2)), Some(Task(1)));
    assert_eq!(rows, [(first, None, 11, 2), (second, Some(10), 7, 1)]);
}

/// Goal: every link of a page leads somewhere in it. Method: all addresses, all names.
#[test]
fn links_lead_somewhere() {
    let account = account();
    let page = account.page().into_string();
    let links = page.split("href=\"#").skip(1);
    let links: Vec<&str> = links.filter_map(|rest| rest.split('"').next()).collect();
    assert!(!links.is_empty());
    for link in links
        .into_iter()
        .chain(account.links().values().map(String::as_str))
    {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
    }
}

/// Goal: without waits the page says so, and nothing breaks. Method: an empty recording.
#[test]
fn without_waits_it_says_so() {
    let timeline = Timeline::new(Recording::default(), &Options::default());
    let account = Account::new(timeline, Explanation::default(), Nanos::ZERO);
    let page = account.page().into_string();
    assert!(
        page.contains("No thread waited for another one") && !page.contains("<svg"),
        "{page}"
    );
    assert!(account.links().is_empty());
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
