//! A worker that blocks on something that the job system knows nothing of lends its core to a spare.

use platform::Platform;

use super::context::Context;

impl<P: Platform> Context<'_, P> {
    /// Calls `f`. Meanwhile this thread, if it is a worker, counts as blocked, and its place among those that
    /// run background jobs is free.
    pub(crate) fn lend_core<R>(&self, f: impl FnOnce() -> R) -> R {
        /// Takes the core back, also during an unwind.
        struct Lending<'c, 'a, P: Platform>(&'c Context<'a, P>);
        impl<P: Platform> Drop for Lending<'_, '_, P> {
            fn drop(&mut self) {
                self.0.shared.end_lending(self.0);
            }
        }
        if self.own(|own| own.is_lent) {
            return f();
        }
        // Halves of joins that only this thread could run.
        self.promote_all();
        self.graph().flush_finished();
        self.wake_for_all();
        self.rest_without_place(|| {
            self.shared.begin_lending(self);
            let _lent = Lending(self);
            f()
        })
    }
}
