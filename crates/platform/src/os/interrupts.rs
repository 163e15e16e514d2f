//! Signals that would end this process, while a child is to decide about that.

use std::mem;
use std::process::{Child, ExitStatus};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_int, c_void, sigaction, siginfo_t};

/// The process that signals are passed on to; 0: there is none.
///
/// Relaxed, here and below: a handler runs on a thread that has set what it reads, or any time later.
static HEIR: AtomicI32 = AtomicI32::new(0);
/// Whether SIGTERM came before there was a process to pass it on to.
static CAME: AtomicBool = AtomicBool::new(false);

extern "C" fn pass_on(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a handler that was set with SA_SIGINFO one that is valid.
    let code = unsafe { (*info).si_code };
    // What processes send has a code of at most 0 on Linux, where commands are recorded.
    let is_terminal = signal != libc::SIGTERM && code > 0;
    match HEIR.load(Ordering::Relaxed) {
        // The terminal sends it to all that run in it: the child has got it.
        _ if is_terminal => {}
        0 if signal == libc::SIGTERM => CAME.store(true, Ordering::Relaxed),
        0 => {}
        // SAFETY: kill may be called in a handler. It fails, and sets errno, only if there is no such
        // process.
        heir => _ = unsafe { libc::kill(heir, signal) },
    }
}

/// What a signal did before, until it does that again.
struct Handled {
    signal: c_int,
    before: sigaction,
}

impl Handled {
    /// The signal is passed on from now on. None if it does nothing to this process: so it shall be.
    fn new(signal: c_int) -> Option<Handled> {
        let mut before = mem::MaybeUninit::<sigaction>::zeroed();
        // SAFETY: it is asked what is in force, and told where to put that.
        if unsafe { libc::sigaction(signal, ptr::null(), before.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: all bits zero is one, and the call has filled it in.
        let before = unsafe { before.assume_init() };
        if before.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        // SAFETY: no field of it may not be zero: no flags, an empty set of signals.
        let mut wanted: sigaction = unsafe { mem::zeroed() };
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = pass_on;
        wanted.sa_sigaction = handler as libc::sighandler_t;
        // Calls that it interrupts are begun again.
        wanted.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler does nothing that is not allowed in one.
        let set = unsafe { libc::sigaction(signal, &raw const wanted, ptr::null_mut()) };
        (set == 0).then_some(Handled { signal, before })
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        // SAFETY: it was in force before.
        unsafe { libc::sigaction(self.signal, &raw const self.before, ptr::null_mut()) };
    }
}

/// As long as this lives, SIGTERM (what `kill`, `timeout` and service managers send) does not end this
/// process: a child gets it, if there is one. From when that is waited for neither does SIGHUP, and until
/// it has ended SIGINT: the child gets them, unless they come from the terminal, which sends them to all.
/// What does nothing to this process already goes on doing nothing. Programs that are started meanwhile are
/// ended by all of these as ever.
///
/// There must be one at a time in a process.
#[must_use = "signals are passed on as long as it lives"]
pub struct PassSignals {
    _term: Option<Handled>,
    hangup: Option<Handled>,
}

impl PassSignals {
    /// From now on.
    #[expect(
        clippy::new_without_default,
        reason = "it does something to the process"
    )]
    pub fn new() -> PassSignals {
        HEIR.store(0, Ordering::Relaxed);
        CAME.store(false, Ordering::Relaxed);
        PassSignals {
            _term: Handled::new(libc::SIGTERM),
            hangup: None,
        }
    }

    /// Waits for a child, which gets these signals until it has ended, and SIGTERM if that came before.
    ///
    /// # Errors
    /// Those of [`Child::wait`].
    pub fn wait(&mut self, child: &mut Child) -> std::io::Result<ExitStatus> {
        // Only now, when the child runs: what is ignored here is ignored there, too, and what is handled is
        // not.
        self.hangup = Handled::new(libc::SIGHUP);
        let _interrupt = Handled::new(libc::SIGINT);
        HEIR.store(i32::try_from(child.id()).unwrap_or(0), Ordering::Relaxed);
        if CAME.swap(false, Ordering::Relaxed) {
            // SAFETY: it sends a signal to this thread, whose handler is the one above.
            unsafe { libc::raise(libc::SIGTERM) };
        }
        let status = child.wait();
        // Its number is free by now, but numbers are given out in turn: no other process has it yet.
        HEIR.store(0, Ordering::Relaxed);
        status
    }
}
