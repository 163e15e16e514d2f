//! Workers on threads that the program makes.

use platform::{HostedThread, Os, SpawnError};

use super::Builder;

impl Builder<Os> {
    /// Has `host` make the workers' threads, in place of the system. It is given each thread as a value, and
    /// sees to it that some thread calls [`HostedThread::run`], now or later. A worker begins to work then,
    /// and `run` returns when the worker leaves. Until then it counts as one that is busy.
    ///
    /// For programs that have threads of their own class, or that set up each of their threads in a way that
    /// [`on_thread_start`](Builder::on_thread_start) cannot.
    ///
    /// ```
    /// let builder = paceline::Builder::new().workers(2).host_workers(|thread| {
    ///     std::thread::spawn(move || {
    ///         println!("{} begins", thread.name());
    ///         thread.run();
    ///     });
    ///     Ok(())
    /// });
    /// let js = builder.build().unwrap();
    /// assert_eq!(js.join(|_| 1, |_| 2), (1, 2));
    /// ```
    pub fn host_workers(
        mut self,
        host: impl Fn(HostedThread) -> Result<(), SpawnError> + Send + Sync + 'static,
    ) -> Self {
        self.spawner = Some(Box::new(move |spec, body| {
            Os.spawn_hosted(spec, body, &host)
        }));
        self
    }
}
