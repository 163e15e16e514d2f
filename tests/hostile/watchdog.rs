//! Ends a process in which nothing goes on any more, and says where it was and what its threads do.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::fault::{Fault, Place, What};
use crate::line::Line;
use crate::standstill::{LONGEST, Limits, Standstill, Verdict};
use crate::threads;

/// How often it looks.
const PERIOD: Duration = Duration::from_millis(250);

/// Steps of all programs of this process.
static PROGRESS: AtomicU64 = AtomicU64::new(0);

/// CPU time, in ns, that one step may take.
static LONGEST_STEP: AtomicU64 = AtomicU64::new(LONGEST.as_nanos() as u64);

/// Where the process is; nothing between slices.
static NOW: Mutex<Option<(Place, String)>> = Mutex::new(None);

/// One more step of a program is done.
pub(crate) fn progress() {
    PROGRESS.fetch_add(1, Ordering::Relaxed);
}

/// From now on a step may take this much CPU time.
pub(crate) fn allow(longest: Duration) {
    LONGEST_STEP.store(longest.as_nanos() as u64, Ordering::Relaxed);
}

/// A slice begins.
pub(crate) fn enter(place: &Place) {
    progress();
    set(Some((place.clone(), String::new())));
}

/// The next action of the slice, for the report.
pub(crate) fn stage(what: &str) {
    progress();
    let mut now = NOW.lock().unwrap_or_else(|poison| poison.into_inner());
    if let Some((_, stage)) = now.as_mut() {
        what.clone_into(stage);
    }
}

/// The slice has ended.
pub(crate) fn leave() {
    set(None);
}

fn set(to: Option<(Place, String)>) {
    *NOW.lock().unwrap_or_else(|poison| poison.into_inner()) = to;
}

/// Starts to watch this process, for as long as it lives.
pub(crate) fn start(patience: Duration) {
    let limits = Limits {
        asleep: Duration::from_secs(5),
        in_vain: Duration::from_secs(15),
        longest: LONGEST,
        patience,
    };
    let watch = thread::Builder::new().name("watchdog".into());
    // Without the thread a hang is ended by the supervisor, which says less about it.
    let _ = watch.spawn(move || watch_forever(limits));
}

fn watch_forever(limits: Limits) {
    let mut standstill = Standstill::new(limits, Instant::now());
    let mut seen = u64::MAX;
    loop {
        thread::sleep(PERIOD);
        let (now, done) = (Instant::now(), PROGRESS.load(Ordering::Relaxed));
        let place = NOW.lock().unwrap_or_else(|poison| poison.into_inner());
        let Some((place, stage)) = place.clone().filter(|_| done == seen) else {
            seen = done;
            standstill.progressed(now);
            continue;
        };
        let threads = threads::others();
        standstill.allow(Duration::from_nanos(LONGEST_STEP.load(Ordering::Relaxed)));
        let verdict = standstill.look(now, threads.as_deref());
        if verdict != Verdict::Undecided {
            let mut fault = fault(&place, &stage, verdict, standstill.lasts(now));
            fault.details = threads::listed(&threads.unwrap_or_default());
            Line::Fault(fault).say();
            std::process::exit(1);
        }
    }
}

fn fault(place: &Place, stage: &str, verdict: Verdict, lasts: Duration) -> Fault {
    let during = match stage {
        "" => String::new(),
        stage => format!(" during {stage}"),
    };
    let seconds = lasts.as_secs();
    let text = format!("no progress for {seconds} s{during}: {verdict}");
    Fault::new(What::Stuck, place, text)
}
