//! The program's own code for certain moments: closures given to the builder, and the sink of events.

use std::sync::Arc;

use event::{Event, Sink};

use crate::border::{Payload, UserValue};
use crate::error::{Stuck, UnwaitedPanic};
use crate::report::Report;
use crate::store::Label;

/// The beginning or the end of a job's body; see [`Builder::on_job`](crate::Builder::on_job).
///
/// ```
/// use paceline::JobMoment;
/// let builder = paceline::Builder::new();
/// let js = builder.on_job(|moment, label, _| if moment == JobMoment::End { println!("{label}") }).build();
/// # let _ = js;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobMoment {
    /// The body begins on this thread.
    Begin,
    /// The body has ended on this thread, or has panicked.
    End,
}

type Hook<F> = Option<UserValue<Arc<F>>>;

type OnJob = dyn Fn(JobMoment, &Label, Option<u64>) + Send + Sync;

/// The hooks of a job system. Each method calls one of them and returns `None` if the program gave none.
#[derive(Default)]
pub(crate) struct Hooks {
    name: Hook<dyn Fn(usize) -> String + Send + Sync>,
    start: Hook<dyn Fn(usize) + Send + Sync>,
    stop: Hook<dyn Fn(usize) + Send + Sync>,
    unwaited: Hook<dyn Fn(&UnwaitedPanic) + Send + Sync>,
    stuck: Hook<dyn Fn(&Stuck) + Send + Sync>,
    job: Hook<OnJob>,
    report: Hook<dyn Fn(&Report) + Send + Sync>,
    #[cfg(feature = "pools")]
    make_way: Hook<dyn Fn() + Send + Sync>,
}

impl Hooks {
    pub(crate) fn set_name(&mut self, hook: impl Fn(usize) -> String + Send + Sync + 'static) {
        self.name = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_start(&mut self, hook: impl Fn(usize) + Send + Sync + 'static) {
        self.start = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_stop(&mut self, hook: impl Fn(usize) + Send + Sync + 'static) {
        self.stop = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_unwaited(&mut self, hook: impl Fn(&UnwaitedPanic) + Send + Sync + 'static) {
        self.unwaited = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_stuck(&mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) {
        self.stuck = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_report(&mut self, hook: impl Fn(&Report) + Send + Sync + 'static) {
        self.report = Some(UserValue::new(Arc::new(hook)));
    }

    pub(crate) fn set_job(
        &mut self,
        hook: impl Fn(JobMoment, &Label, Option<u64>) + Send + Sync + 'static,
    ) {
        self.job = Some(UserValue::new(Arc::new(hook)));
    }

    /// Whether the program wants to know when bodies begin and end.
    #[inline]
    pub(crate) fn has_job_hook(&self) -> bool {
        self.job.is_some()
    }

    /// Tells the program that a body begins or has ended. `frame`: the number of the last frame that began.
    pub(crate) fn body_moment(
        &self,
        moment: JobMoment,
        label: &Label,
        frame: Option<u64>,
    ) -> Option<Result<(), Payload>> {
        let hook = self.job.as_ref()?;
        Some(hook.call(|hook| hook(moment, label, frame)))
    }

    /// The name for the worker on this thread slot.
    pub(crate) fn thread_name(&self, thread: usize) -> Option<Result<String, Payload>> {
        let hook = self.name.as_ref()?;
        Some(hook.call(|name| name(thread)))
    }

    /// Tells the program that the worker on this thread slot starts.
    pub(crate) fn thread_starts(&self, thread: usize) -> Option<Result<(), Payload>> {
        let hook = self.start.as_ref()?;
        Some(hook.call(|start| start(thread)))
    }

    /// Tells the program that the worker on this thread slot stops.
    pub(crate) fn thread_stops(&self, thread: usize) -> Option<Result<(), Payload>> {
        let hook = self.stop.as_ref()?;
        Some(hook.call(|stop| stop(thread)))
    }

    /// Whether the program wants to know of panics that no wait reports.
    pub(crate) fn has_unwaited_hook(&self) -> bool {
        self.unwaited.is_some()
    }

    /// Reports such a panic.
    pub(crate) fn unwaited_panic(&self, panic: &UnwaitedPanic) -> Option<Result<(), Payload>> {
        let hook = self.unwaited.as_ref()?;
        Some(hook.call(|unwaited| unwaited(panic)))
    }

    /// Whether the program wants to know that ready work has no thread to run it.
    pub(crate) fn has_stuck_hook(&self) -> bool {
        self.stuck.is_some()
    }

    /// Reports that.
    pub(crate) fn stuck(&self, stuck: &Stuck) -> Option<Result<(), Payload>> {
        let hook = self.stuck.as_ref()?;
        Some(hook.call(|hook| hook(stuck)))
    }
}

/// Of pools whose callers sleep.
#[cfg(feature = "pools")]
impl Hooks {
    pub(crate) fn set_make_way(&mut self, hook: impl Fn() + Send + Sync + 'static) {
        self.make_way = Some(UserValue::new(Arc::new(hook)));
    }

    /// Whether threads that spin make way for callers.
    #[inline]
    pub(crate) fn has_make_way_hook(&self) -> bool {
        self.make_way.is_some()
    }

    /// Makes way for them.
    pub(crate) fn make_way(&self) -> Option<Result<(), Payload>> {
        let hook = self.make_way.as_ref()?;
        Some(hook.call(|hook| hook()))
    }
}

/// Without feature `pools` callers take part.
#[cfg(not(feature = "pools"))]
impl Hooks {
    #[inline]
    pub(crate) fn has_make_way_hook(&self) -> bool {
        false
    }

    #[inline]
    pub(crate) fn make_way(&self) -> Option<Result<(), Payload>> {
        None
    }
}

impl Hooks {
    /// Whether the program wants the reports that are made by themselves.
    pub(crate) fn has_report_hook(&self) -> bool {
        self.report.is_some()
    }

    /// Passes one on.
    pub(crate) fn report(&self, report: &Report) -> Option<Result<(), Payload>> {
        let hook = self.report.as_ref()?;
        Some(hook.call(|hook| hook(report)))
    }
}

/// The sink of a recording.
pub(crate) struct UserSink(UserValue<Arc<dyn Sink>>);

impl UserSink {
    pub(crate) fn new(sink: Arc<dyn Sink>) -> UserSink {
        UserSink(UserValue::new(sink))
    }

    /// Whether the sink calls no job system: the program promises that.
    pub(crate) fn is_leaf(&self) -> bool {
        self.0.call(|sink| sink.is_leaf()).unwrap_or(false)
    }

    #[inline]
    pub(crate) fn record(&self, event: &Event) -> Result<(), Payload> {
        self.0.call(|sink| sink.record(event))
    }

    pub(crate) fn slot_taken(&self, thread: u32) -> Result<(), Payload> {
        self.0.call(|sink| sink.slot_taken(thread))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::{Builder, Grain};

    /// Goal: the hook is told each body and each part of a loop with its label and the frame, nested as they
    /// run, also where a body panics. Method: a wait inside of a job, a loop and a panic, on one thread.
    #[test]
    fn bodies_are_told_with_their_labels() {
        let (send, receive) = channel();
        let builder = Builder::small().workers(0);
        let builder = builder.on_job(move |moment, label, frame| {
            let sign = match moment {
                JobMoment::Begin => "+",
                JobMoment::End => "-",
            };
            let _ = send.send(format!("{sign}{} {frame:?}", label.name));
        });
        let js = builder.build().unwrap();
        js.wait(js.job("outer").schedule(|cx| {
            cx.wait(cx.job("inner").schedule(|_| ()));
        }));
        let frame = js.frame("update", Duration::from_secs(1));
        let part = frame
            .job("loop")
            .schedule_for(0..8, Grain::Items(8), |_, _| ());
        js.wait(part);
        let failed = js.try_wait(frame.job("fails").schedule(|_| panic!("as it should")));
        assert!(failed.is_err());
        let told: Vec<String> = receive.try_iter().collect();
        let expected = [
            "+outer None",
            "+inner None",
            "-inner None",
            "-outer None",
            "+loop Some(0)",
            "-loop Some(0)",
            "+fails Some(0)",
            "-fails Some(0)",
        ];
        assert_eq!(told, expected);
    }

    /// Goal: when a wait returns, each body that has begun has had its end told: each thread's part of a
    /// loop, and each poll of a future. Method: loops that several threads share and futures that are woken
    /// twice, on workers; begins and ends are counted after each wait.
    #[test]
    fn a_wait_returns_after_the_ends_were_told() {
        let rounds = if cfg!(miri) { 2 } else { 200 };
        let (send, receive) = channel();
        let builder = Builder::small().workers(2);
        let builder = builder.on_job(move |moment, label, _| {
            let _ = send.send((label.name, moment == JobMoment::Begin));
        });
        let js = builder.build().unwrap();
        let told = |name| {
            let of_name = receive.try_iter().filter(|(of, _)| *of == name);
            let (begins, ends): (Vec<_>, Vec<_>) = of_name.partition(|(_, begins)| *begins);
            assert_eq!(begins.len(), ends.len(), "{name}");
            begins.len()
        };
        for _ in 0..rounds {
            let part = |_, _: &crate::Context<'_>| std::hint::black_box(());
            js.wait(js.job("loop").schedule_for(0..64, Grain::Items(1), part));
            assert!(told("loop") >= 1);
            let (first, one) = js.event_with::<u32>("first");
            let (second, other) = js.event_with::<u32>("second");
            let sum = js.spawn_future("sum", async { one.await + other.await });
            first.complete_with(1);
            second.complete_with(2);
            assert_eq!(sum.wait(), 3);
            assert!((1..=3).contains(&told("sum")));
        }
    }

    /// Goal: a hook that panics changes nothing and is counted. Method: one that always does.
    #[test]
    fn a_hook_that_panics_is_counted() {
        let builder = Builder::small().workers(0);
        let builder = builder.on_job(|_, _, _| std::panic::resume_unwind(Box::new("of the hook")));
        let js = builder.build().unwrap();
        assert_eq!(js.job("answer").run(|_| 42).wait(), 42);
        assert_eq!(js.stats().hook_panics, 2);
    }
}
