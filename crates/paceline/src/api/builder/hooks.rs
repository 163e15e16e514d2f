//! Settings for what the job system tells the program: the sink of events, and the hooks.

use std::sync::Arc;

use event::Sink;
use platform::Platform;

use super::Builder;
use crate::error::{Stuck, UnwaitedPanic};
use crate::hooks::JobMoment;
use crate::store::Label;

impl<P: Platform> Builder<P> {
    /// The sink that events go to, such as [`Rings`](crate::Rings). It is called on the thread where the
    /// event happens. Without this call events can go to a trace only, with `JobSystem::start_trace` or
    /// `PACELINE_TRACE`.
    ///
    /// ```
    /// use paceline::{Builder, Rings};
    /// let (rings, mut reader) = Rings::new(1024);
    /// let js = Builder::new().sink(rings).build().unwrap();
    /// js.wait(js.schedule(|_| ()));
    /// let mut events = 0;
    /// reader.drain(|_| events += 1);
    /// assert!(events > 0);
    /// ```
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Whether events go to the [`sink`](Builder::sink) from the beginning on; `true` by default. With
    /// `false` recording begins with [`JobSystem::set_recording`](crate::JobSystem::set_recording).
    ///
    /// ```
    /// let js = paceline::Builder::new().recording(false).build().unwrap();
    /// assert!(!js.is_recording());
    /// ```
    pub fn recording(mut self, on: bool) -> Self {
        self.recording = on;
        self
    }

    /// The names of worker threads: `name` is called with a worker's thread slot when its thread is started.
    /// Linux shows the first 15 bytes.
    ///
    /// ```
    /// let names = |slot| format!("physics-{slot}");
    /// let js = paceline::Builder::new().thread_name(names).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn thread_name(mut self, name: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        self.hooks.set_name(name);
        self
    }

    /// A hook that each worker thread calls before its first job, with its thread slot.
    ///
    /// ```
    /// let js = paceline::Builder::new()
    ///     .on_thread_start(|slot| println!("worker {slot} starts"))
    ///     .on_thread_stop(|slot| println!("worker {slot} stops"))
    ///     .build()
    ///     .unwrap();
    /// # let _ = js;
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.hooks.set_start(hook);
        self
    }

    /// A hook that each worker thread calls after its last job, with its thread slot.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// let (send, receive) = channel();
    /// let builder = paceline::Builder::new().workers(1);
    /// let js = builder.on_thread_stop(move |slot| send.send(slot).unwrap()).build().unwrap();
    /// drop(js);
    /// assert_eq!(receive.iter().count(), 1, "the only worker has stopped");
    /// ```
    pub fn on_thread_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.hooks.set_stop(hook);
        self
    }

    /// A hook for the beginning and the end of each body, of each thread's part of a loop, and of each poll
    /// of a future, on the thread that runs it: for profilers that show a program while it runs. It gets the
    /// job's label and the number of the last frame that began, if there was one.
    ///
    /// Both moments of a body are on the same thread; bodies nest where a wait inside of one runs another.
    /// The end of a body is told before a wait for its job returns. A call takes some nanoseconds besides
    /// what the hook does, and a lock the first time that a thread runs a label. Jobs that the hook schedules
    /// are told to it, too. A panic of the hook is counted
    /// ([`Stats::hook_panics`](crate::Stats::hook_panics)) and has no other consequence.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// use paceline::JobMoment;
    /// let (send, receive) = channel();
    /// let js = paceline::Builder::new()
    ///     .on_job(move |moment, label, frame| send.send((moment, label.name, frame)).unwrap())
    ///     .build()
    ///     .unwrap();
    /// js.wait(js.job("load").schedule(|_| ()));
    /// drop(js);
    /// let told: Vec<_> = receive.iter().collect();
    /// assert_eq!(told, [(JobMoment::Begin, "load", None), (JobMoment::End, "load", None)]);
    /// ```
    pub fn on_job(
        mut self,
        hook: impl Fn(JobMoment, &Label, Option<u64>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.set_job(hook);
        self
    }

    /// A hook for panics of jobs that nothing else reports: there is no wait, future, handle or scope for the
    /// job, nor for the first job at the end of a chain that was cancelled because of it.
    ///
    /// It is called at most once a panic, when the job is over, on the thread that found out. A wait that
    /// begins later gets the panic all the same. A panic of a hook is counted
    /// ([`Stats::hook_panics`](crate::Stats::hook_panics)) and has no other consequence.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// let (send, receive) = channel();
    /// let js = paceline::Builder::new()
    ///     .on_unwaited_panic(move |panic| send.send(panic.message.clone()).unwrap())
    ///     .build()
    ///     .unwrap();
    /// js.schedule(|_| panic!("no save game"));
    /// js.flush();
    /// assert_eq!(&*receive.recv().unwrap(), "no save game");
    /// ```
    pub fn on_unwaited_panic(
        mut self,
        hook: impl Fn(&UnwaitedPanic) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.set_unwaited(hook);
        self
    }

    /// A hook for ready work that no thread may run: every worker waits inside a job, and a further
    /// [spare](Builder::max_spares) cannot be started.
    ///
    /// That may be a deadlock. It ends by itself if the awaited jobs do not depend on that work. The hook is
    /// called on a thread that is about to wait, once until spares can be started again. Without a hook a
    /// line is printed to the standard error output.
    ///
    /// Jobs that wait for each other's results are better scheduled with
    /// [`after`](crate::NewJob::after), which holds no thread.
    ///
    /// ```
    /// let js = paceline::Builder::new()
    ///     .on_stuck(|stuck| eprintln!("{} workers wait: {}", stuck.waiting, stuck.why))
    ///     .build()
    ///     .unwrap();
    /// # let _ = js;
    /// ```
    pub fn on_stuck(mut self, hook: impl Fn(&Stuck) + Send + Sync + 'static) -> Self {
        self.hooks.set_stuck(hook);
        self
    }
}
