//! Jobs as spans of `tracing`: whatever a program's subscriber does with spans, it does with jobs.
//!
//! Each body is a span "job" with the job's name, its place in the program and the frame's number. Spans and
//! events of the body are inside. The subscriber here counts; a program has one that writes or draws.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline::{Builder, JobMoment, Label};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, EnteredSpan, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

thread_local! {
    /// The spans of the bodies that this thread is in. They nest, because a wait inside of a body may run
    /// another one.
    static OPEN: RefCell<Vec<EnteredSpan>> = const { RefCell::new(Vec::new()) };
}

/// The hook.
fn spans(moment: JobMoment, label: &Label, frame: Option<u64>) {
    match moment {
        JobMoment::Begin => {
            let (file, line) = (label.site.file(), label.site.line());
            let span = tracing::info_span!("job", name = label.name, frame, file, line).entered();
            OPEN.with_borrow_mut(|open| open.push(span));
        }
        // The span ends here, when nothing is borrowed any more.
        JobMoment::End => drop(OPEN.with_borrow_mut(Vec::pop)),
    }
}

/// How often a span was seen, by frame and by name; that of a span inside of a job has the job's before it.
type Counts = Arc<Mutex<BTreeMap<(u64, String), u32>>>;

struct Counting(Counts);

/// The fields of a span that this subscriber looks at. A span inside of a job has them from there.
#[derive(Clone, Default)]
struct Seen {
    name: String,
    frame: u64,
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            value.clone_into(&mut self.name);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "frame" {
            self.frame = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Counting {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("it is new");
        let above = span
            .parent()
            .and_then(|above| above.extensions().get::<Seen>().cloned());
        let mut seen = Seen::default();
        attributes.record(&mut seen);
        if let Some(above) = above {
            seen.name = format!("{}: {}", above.name, span.name());
            seen.frame = above.frame;
        }
        let key = (seen.frame, seen.name.clone());
        *self
            .0
            .lock()
            .expect("counting does not panic")
            .entry(key)
            .or_default() += 1;
        span.extensions_mut().insert(seen);
    }
}

fn main() {
    let counts = Counts::default();
    let subscriber = tracing_subscriber::registry().with(Counting(counts.clone()));
    tracing::subscriber::set_global_default(subscriber).expect("it is the first");

    let js = Builder::new()
        .on_job(spans)
        .build()
        .expect("the settings are the defaults");
    for _ in 0..3 {
        let frame = js.frame("update", Duration::from_millis(16));
        let physics = frame.job("physics").schedule(|_| {
            let _solving = tracing::info_span!("solve").entered();
        });
        let animation = frame.job("animation").schedule(|_| ());
        js.wait(
            frame
                .job("draw")
                .after_all([physics, animation])
                .schedule(|_| ()),
        );
    }

    for ((frame, name), count) in &*counts.lock().expect("counting does not panic") {
        println!("frame {frame}: {count} × {name}");
    }
}
