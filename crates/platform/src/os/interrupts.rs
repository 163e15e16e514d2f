//! Ctrl-C, while somebody else is to decide about it.

/// As long as this lives, SIGINT (Ctrl-C in a terminal) does nothing to this process. Programs that are
/// started meanwhile would ignore it, too; those that run already do not.
#[derive(Debug)]
pub struct IgnoreInterrupts {
    before: libc::sighandler_t,
}

impl IgnoreInterrupts {
    /// From now on.
    #[expect(
        clippy::new_without_default,
        reason = "it does something to the process"
    )]
    pub fn new() -> IgnoreInterrupts {
        // SAFETY: to ignore a signal runs nothing.
        let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        IgnoreInterrupts { before }
    }
}

impl Drop for IgnoreInterrupts {
    fn drop(&mut self) {
        if self.before != libc::SIG_ERR {
            // SAFETY: it was in force before.
            unsafe { libc::signal(libc::SIGINT, self.before) };
        }
    }
}
