//! Calls that a thread of ours makes when this process gets a signal.
//!
//! A handler may do very little, because it may have interrupted anything: no lock, no allocation. This one
//! sends a byte through a pair of sockets. A thread waits at the other end and makes the calls, where
//! everything is allowed. The thread is started for the first call that is asked for, and then sleeps until
//! the process ends. At most one byte for each signal is on its way at a time, so the write never finds the
//! sockets full: it neither blocks nor fails, and leaves `errno` alone.
//!
//! The process has one handler for a signal. If the program has its own, nothing is changed and the call is
//! refused. The child of a fork has no thread that would make the calls. A signal does there what it does by
//! default, as in a program that never asked for calls.
//!
//! Invariants
//! - A signal's handler is ours as long as there are calls for it, unless the program sets another one later;
//!   that one stays.
//! - No call is made while the table is locked.

use std::io::Read;
use std::mem;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use libc::c_int;

use crate::{OnSignal, RefusalKind, Signal, SignalError};

type Call = Arc<dyn Fn() + Send + Sync>;

/// The calls that are asked for.
static TABLE: Mutex<CallTable> = Mutex::new(CallTable {
    calls: Vec::new(),
    next: 0,
    replaced: Vec::new(),
});

/// Where the handler writes; -1 before there is a thread that reads. Relaxed, here and below: a handler is
/// set after all that it reads, by a system call.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// The process whose thread makes the calls.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// For each signal of [`Signal::ALL`]: its byte is on its way.
static ON_ITS_WAY: [AtomicBool; Signal::ALL.len()] =
    [const { AtomicBool::new(false) }; Signal::ALL.len()];

struct CallTable {
    calls: Vec<Asked>,
    /// The number of the next call that is asked for.
    next: u64,
    /// What the signals did before, for those that have our handler.
    replaced: Vec<(Signal, libc::sigaction)>,
}

struct Asked {
    number: u64,
    signal: Signal,
    call: Call,
}

/// Its drop ends the calls.
struct Registered {
    number: u64,
    signal: Signal,
}

fn number_of(signal: Signal) -> c_int {
    match signal {
        Signal::Quit => libc::SIGQUIT,
        Signal::Usr1 => libc::SIGUSR1,
        Signal::Usr2 => libc::SIGUSR2,
    }
}

extern "C" fn handle(number: c_int) {
    let mut all = Signal::ALL.iter();
    let Some(index) = all.position(|(_, signal)| number_of(*signal) == number) else {
        return;
    };
    // SAFETY: these functions may be called in a handler.
    unsafe {
        if libc::getpid() != PROCESS.load(Ordering::Relaxed) {
            // A fork's child. The signal is held back until this handler returns, and then ends the process.
            libc::signal(number, libc::SIG_DFL);
            libc::raise(number);
        } else if !ON_ITS_WAY[index].swap(true, Ordering::Relaxed) {
            let byte = index as u8;
            libc::write(WAKE.load(Ordering::Relaxed), (&raw const byte).cast(), 1);
        }
    }
}

pub(super) fn on_signal(
    signal: Signal,
    call: Box<dyn Fn() + Send + Sync>,
) -> Result<OnSignal, SignalError> {
    let system = |error: &std::io::Error| SignalError::from_system(signal, error);
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    start_thread(&mut table).map_err(|error| system(&error))?;
    if !table.replaced.iter().any(|(known, _)| *known == signal) {
        let before = set_handler(signal)?;
        table.replaced.push((signal, before));
    }
    let number = table.next;
    table.next += 1;
    table.calls.push(Asked {
        number,
        signal,
        call: call.into(),
    });
    Ok(OnSignal::new(Registered { number, signal }))
}

/// Starts the thread that makes the calls, once in a process.
fn start_thread(table: &mut CallTable) -> std::io::Result<()> {
    // SAFETY: it has no preconditions.
    let process = unsafe { libc::getpid() };
    if PROCESS.load(Ordering::Relaxed) == process {
        return Ok(());
    }
    // In a fork's child: calls for the parent, and bytes on their way to it.
    table.calls.clear();
    for flag in &ON_ITS_WAY {
        flag.store(false, Ordering::Relaxed);
    }
    let (read, write) = UnixStream::pair()?;
    let thread = std::thread::Builder::new().name("paceline signal".into());
    thread.spawn(move || make_calls(read))?;
    // The socket stays open until the process ends: a handler may use it at any time.
    WAKE.store(write.into_raw_fd(), Ordering::Relaxed);
    PROCESS.store(process, Ordering::Relaxed);
    Ok(())
}

fn make_calls(mut read: UnixStream) {
    let mut byte = [0];
    while matches!(read.read(&mut byte), Ok(1)) {
        let index = usize::from(byte[0]);
        // Before the calls are made: a signal that comes during them is for further calls.
        ON_ITS_WAY[index].store(false, Ordering::Relaxed);
        let (_, signal) = Signal::ALL[index];
        let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = table.calls.iter().filter(|asked| asked.signal == signal);
        let calls: Vec<Call> = asked.map(|asked| asked.call.clone()).collect();
        drop(table);
        for call in calls {
            call();
        }
    }
}

fn asked_of_system(signal: Signal) -> Result<libc::sigaction, SignalError> {
    // SAFETY: all bits zero is a value of it.
    let mut now: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: nothing is changed, and the place is writable.
    match unsafe { libc::sigaction(number_of(signal), ptr::null(), &raw mut now) } {
        0 => Ok(now),
        _ => Err(SignalError::from_system(
            signal,
            &std::io::Error::last_os_error(),
        )),
    }
}

fn our_handler() -> libc::sighandler_t {
    let handler: extern "C" fn(c_int) = handle;
    handler as *const () as libc::sighandler_t
}

/// Sets our handler. Returns what the signal did before.
fn set_handler(signal: Signal) -> Result<libc::sigaction, SignalError> {
    let before = asked_of_system(signal)?;
    // A shell lets programs that it starts in the background ignore some signals. What is sent by hand, to a
    // process that was told to listen, counts.
    if ![libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction) {
        return Err(SignalError::new(
            signal,
            RefusalKind::Other,
            "the program handles it itself: use another one",
        ));
    }
    // SAFETY: all bits zero is a value of it: no flags, no signals held back but the one itself.
    let mut wanted: libc::sigaction = unsafe { mem::zeroed() };
    wanted.sa_sigaction = our_handler();
    // Calls that it interrupts are begun again. It runs on the stack for signals, where a thread has one.
    wanted.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler does nothing that is not allowed in one.
    match unsafe { libc::sigaction(number_of(signal), &raw const wanted, ptr::null_mut()) } {
        0 => Ok(before),
        _ => Err(SignalError::from_system(
            signal,
            &std::io::Error::last_os_error(),
        )),
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: it has no preconditions.
        if unsafe { libc::getpid() } != PROCESS.load(Ordering::Relaxed) {
            return; // In a fork's child another thread may have held the lock.
        }
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        table.calls.retain(|asked| asked.number != self.number);
        let mut left = table.calls.iter();
        if left.any(|asked| asked.signal == self.signal) {
            return;
        }
        let place = table
            .replaced
            .iter()
            .position(|(signal, _)| *signal == self.signal);
        let Some(place) = place else { return };
        let (signal, before) = table.replaced.swap_remove(place);
        let is_ours = |now: libc::sigaction| now.sa_sigaction == our_handler();
        if asked_of_system(signal).is_ok_and(is_ours) {
            // SAFETY: it was in force before.
            unsafe { libc::sigaction(number_of(signal), &raw const before, ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Goal: each signal makes the calls that are asked for, and no others; afterwards it does what it did
    /// before; a handler of the program's stays. Method: signals sent to this process, one after the other,
    /// with one call and with two.
    #[test]
    fn signals_make_calls_until_they_are_ended() {
        let raise = || {
            // SAFETY: the signal has a handler.
            unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) };
        };
        let action = || asked_of_system(Signal::Usr2).unwrap().sa_sigaction;
        let before = action();
        let (says, said) = channel();
        let calls = |name: &'static str| {
            let says = says.clone();
            on_signal(Signal::Usr2, Box::new(move || says.send(name).unwrap())).unwrap()
        };
        let first = calls("first");
        for _ in 0..3 {
            raise();
            assert_eq!(said.recv(), Ok("first"));
        }
        let second = calls("second");
        raise();
        assert_eq!([said.recv(), said.recv()], [Ok("first"), Ok("second")]);
        drop(first);
        raise();
        assert_eq!(said.recv(), Ok("second"));
        assert_eq!(action(), our_handler());
        drop(second);
        assert_eq!(action(), before);
        extern "C" fn own(_: c_int) {}
        let own: extern "C" fn(c_int) = own;
        // SAFETY: the handler does nothing.
        unsafe { libc::signal(libc::SIGUSR2, own as *const () as libc::sighandler_t) };
        let refused = on_signal(Signal::Usr2, Box::new(|| ())).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "cannot listen to SIGUSR2: the program handles it itself: use another one"
        );
        // SAFETY: as it was before.
        unsafe { libc::signal(libc::SIGUSR2, before) };
    }
}
