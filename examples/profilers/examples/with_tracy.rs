//! Jobs as zones of Tracy, live while the program runs.
//!
//! Tracy's client is C++: build with `--features tracy`. Without that feature its functions do nothing and
//! need no C++ compiler; the program and its output are the same.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use paceline::{Builder, JobMoment, Label};
use tracy_client::{Client, Span};

thread_local! {
    /// The zones of the bodies that this thread is in.
    static OPEN: RefCell<Vec<Span>> = const { RefCell::new(Vec::new()) };
}

static ZONES: AtomicU64 = AtomicU64::new(0);

/// The hook.
fn zones(moment: JobMoment, label: &Label, frame: Option<u64>) {
    match moment {
        JobMoment::Begin => {
            let Some(client) = Client::running() else {
                return;
            };
            let (file, line) = (label.site.file(), label.site.line());
            let zone = client.span_alloc(Some(label.name), "job", file, line, 0);
            if let Some(frame) = frame {
                zone.emit_value(frame);
            }
            OPEN.with_borrow_mut(|open| open.push(zone));
            ZONES.fetch_add(1, Ordering::Relaxed);
        }
        JobMoment::End => drop(OPEN.with_borrow_mut(Vec::pop)),
    }
}

fn main() {
    let client = Client::start();
    let js = Builder::new()
        .on_job(zones)
        .build()
        .expect("the settings are the defaults");
    for _ in 0..3 {
        let frame = js.frame("update", Duration::from_millis(16));
        let physics = frame.job("physics").schedule(|_| {
            let _solving = tracy_client::span!("solve");
        });
        let animation = frame.job("animation").schedule(|_| ());
        js.wait(
            frame
                .job("draw")
                .after_all([physics, animation])
                .schedule(|_| ()),
        );
        client.frame_mark();
    }
    println!("the client runs: {}", Client::is_running());
    println!("{} zones of jobs", ZONES.load(Ordering::Relaxed));
}
