//! What threads of the program do that wait.

use platform::Platform;

use super::Builder;

impl<P: Platform> Builder<P> {
    /// Says that threads of the program which hand over work sleep until it is done, by means of their own
    /// (a channel, a latch), and run no jobs. In the waits of this crate they do run jobs, so that is what a
    /// job system expects otherwise: with workers for all CPUs but one, each thread has a CPU.
    ///
    /// Here there are workers for all CPUs, and a caller needs one of these as soon as it wakes up. Workers
    /// without work spin as if there were no callers, and call `make_way` between two looks, about twice in
    /// a microsecond: it offers the CPU to other threads. The job system has no such call of its own, since
    /// what it does depends on the kernel. `make_way` must not wait for jobs: other threads leave new work to
    /// the thread that calls it. A panic of it is counted ([`Stats::hook_panics`](crate::Stats::hook_panics))
    /// and has no other consequence.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    /// let builder = paceline::Builder::new().workers(2);
    /// let js = builder.callers_sleep(std::thread::yield_now).build().unwrap();
    /// let (send, receive) = channel();
    /// js.schedule(move |_| send.send(42).unwrap());
    /// assert_eq!(receive.recv(), Ok(42));
    /// ```
    pub fn callers_sleep(mut self, make_way: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.set_make_way(make_way);
        self
    }
}
