//! Every error of a platform, in one place: what a program can tell apart, and a sentence for people.
//!
//! A sentence has three parts: what was refused, what the reason is, and what to do about it. Where the
//! system refused, its number is kept for programs that know more about it than is known here.

use std::borrow::Cow;
use std::error::Error;
use std::{fmt, io};

use crate::{SchedParams, Signal};

/// Why something was refused, as far as a program can act on it.
///
/// ```
/// # use paceline_platform::{CpuSet, Machine, RefusalKind, Uniform};
/// let refused = Uniform::new(2).set_mask(1, &CpuSet::parse("0")).unwrap_err();
/// assert_eq!(refused.kind(), RefusalKind::Unsupported);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The process lacks a privilege. With it, or with a higher limit, the same call succeeds.
    Permission,
    /// The system does not have it: another kind of system, too old, or built without it. Asking again is of
    /// no use.
    Unsupported,
    /// The system has it, but not with these values.
    Invalid,
    /// There are too many threads, or there is no memory. The same call may succeed later.
    Exhausted,
    /// No thread has this name: it has ended, or there was none.
    NoThread,
    /// The reason is another one; the text says which.
    Other,
}

impl RefusalKind {
    /// The kind of a system's error number.
    #[cfg(unix)]
    fn of_number(number: i32) -> RefusalKind {
        match number {
            libc::EPERM | libc::EACCES => RefusalKind::Permission,
            // E2BIG: the kernel does not know all fields of a struct.
            libc::ENOSYS | libc::EOPNOTSUPP | libc::E2BIG => RefusalKind::Unsupported,
            libc::EINVAL => RefusalKind::Invalid,
            libc::EAGAIN | libc::ENOMEM => RefusalKind::Exhausted,
            libc::ESRCH => RefusalKind::NoThread,
            _ => RefusalKind::Other,
        }
    }

    /// The kind of a system's error number.
    #[cfg(not(unix))]
    fn of_number(number: i32) -> RefusalKind {
        RefusalKind::of_error(io::Error::from_raw_os_error(number).kind())
    }

    /// The kind of what std says.
    fn of_error(kind: io::ErrorKind) -> RefusalKind {
        match kind {
            io::ErrorKind::PermissionDenied => RefusalKind::Permission,
            io::ErrorKind::Unsupported => RefusalKind::Unsupported,
            io::ErrorKind::InvalidInput => RefusalKind::Invalid,
            io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => RefusalKind::Exhausted,
            _ => RefusalKind::Other,
        }
    }
}

/// What said no.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    /// The system, with this error number.
    Number(i32),
    /// The platform, or the system by way of std, in these words.
    Text(Cow<'static, str>),
}

/// A reason, and what to do about it.
type Advice = (&'static str, &'static str);

/// A thread that is named must live.
const NO_THREAD: Advice = ("there is no such thread", "name one that has not ended");

/// What the errors have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refusal {
    kind: RefusalKind,
    cause: Cause,
}

impl Refusal {
    fn new(kind: RefusalKind, text: impl Into<Cow<'static, str>>) -> Refusal {
        let cause = Cause::Text(text.into());
        Refusal { kind, cause }
    }

    fn from_system(error: &io::Error) -> Refusal {
        match error.raw_os_error() {
            Some(number) => Refusal {
                kind: RefusalKind::of_number(number),
                cause: Cause::Number(number),
            },
            None => Refusal::new(RefusalKind::of_error(error.kind()), format!("{error}")),
        }
    }

    /// The reason and what to do, without what was refused. `advice`: both, for a number of the system's;
    /// `None` where the system's own words say it best.
    fn reason(&self, advice: Option<Advice>) -> String {
        let number = match &self.cause {
            Cause::Text(text) => return text.to_string(),
            Cause::Number(number) => *number,
        };
        match advice {
            Some((reason, remedy)) => format!("{reason} (os error {number}): {remedy}"),
            None => format!("{}", io::Error::from_raw_os_error(number)),
        }
    }
}

/// What each error says about its refusal.
macro_rules! tell_refusal {
    ($($error:ident)*) => {
        $(impl $error {
            /// Why it was refused.
            pub fn kind(&self) -> RefusalKind {
                self.refusal.kind
            }

            /// The system's error number; `None` if the platform refused without asking the system.
            pub fn os_error(&self) -> Option<i32> {
                match self.refusal.cause {
                    Cause::Number(number) => Some(number),
                    Cause::Text(_) => None,
                }
            }
        }

        impl Error for $error {})*
    };
}

tell_refusal! { SpawnError MaskError SchedParamsError SignalError }

/// A thread was refused ([`Platform::spawn`](crate::Platform::spawn)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnError {
    refusal: Refusal,
}

impl SpawnError {
    /// A refusal of a platform's own. `text`: the reason, and what to do about it.
    pub fn new(kind: RefusalKind, text: impl Into<Cow<'static, str>>) -> SpawnError {
        let refusal = Refusal::new(kind, text);
        SpawnError { refusal }
    }

    /// A refusal of the system.
    pub fn from_system(error: &io::Error) -> SpawnError {
        let refusal = Refusal::from_system(error);
        SpawnError { refusal }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.refusal.reason(match self.refusal.kind {
            RefusalKind::Permission => Some((
                "not permitted",
                "what confines the process (seccomp, a container) has to allow threads",
            )),
            RefusalKind::Invalid => Some((
                "the system does not take its settings",
                "ask for another stack size",
            )),
            RefusalKind::Exhausted => Some((
                "no more threads, or no memory for its stack",
                "start fewer, or raise a limit (ulimit -u, ulimit -v, pids.max of the control group)",
            )),
            _ => None,
        });
        write!(f, "cannot start a thread: {reason}")
    }
}

/// A CPU mask was refused ([`Machine::set_mask`](crate::Machine::set_mask)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskError {
    refusal: Refusal,
}

impl MaskError {
    /// A refusal of a platform's own. `text`: the reason, and what to do about it.
    pub fn new(kind: RefusalKind, text: impl Into<Cow<'static, str>>) -> MaskError {
        let refusal = Refusal::new(kind, text);
        MaskError { refusal }
    }

    /// A refusal of the system.
    pub fn from_system(error: &io::Error) -> MaskError {
        let refusal = Refusal::from_system(error);
        MaskError { refusal }
    }
}

impl fmt::Display for MaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.refusal.reason(match self.refusal.kind {
            RefusalKind::Permission => Some((
                "not permitted",
                "the thread is another user's, which needs CAP_SYS_NICE",
            )),
            RefusalKind::Invalid => Some((
                "none of these CPUs may be used",
                "name some that are online and in the cpuset of the process",
            )),
            RefusalKind::NoThread => Some(NO_THREAD),
            _ => None,
        });
        write!(f, "cannot set the CPU mask: {reason}")
    }
}

/// Scheduling parameters were refused
/// ([`Machine::set_sched_params`](crate::Machine::set_sched_params)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedParamsError {
    /// What was asked for.
    asked: SchedParams,
    refusal: Refusal,
}

impl SchedParamsError {
    /// A refusal of a platform's own. `text`: the reason, and what to do about it.
    pub fn new(
        asked: &SchedParams,
        kind: RefusalKind,
        text: impl Into<Cow<'static, str>>,
    ) -> SchedParamsError {
        SchedParamsError {
            asked: asked.clone(),
            refusal: Refusal::new(kind, text),
        }
    }

    /// A refusal of the system.
    pub fn from_system(asked: &SchedParams, error: &io::Error) -> SchedParamsError {
        SchedParamsError {
            asked: asked.clone(),
            refusal: Refusal::from_system(error),
        }
    }

    /// The reason and what to do about it, without what was asked for: for a place where that stands already.
    ///
    /// ```
    /// # use paceline_platform::{RefusalKind, SchedParams, SchedParamsError};
    /// let asked = SchedParams::nice(-5);
    /// let refused = SchedParamsError::new(&asked, RefusalKind::Other, "it is Sunday: ask tomorrow");
    /// assert_eq!(refused.reason(), "it is Sunday: ask tomorrow");
    /// assert_eq!(refused.to_string(), "cannot give a thread nice -5: it is Sunday: ask tomorrow");
    /// ```
    pub fn reason(&self) -> String {
        self.refusal.reason(match self.refusal.kind {
            RefusalKind::Permission => Some((
                "not permitted",
                "it needs CAP_SYS_NICE, or a limit (ulimit -e, -r)",
            )),
            RefusalKind::Unsupported => Some((
                "the kernel does not know it",
                "a newer one may, or one that was built with it",
            )),
            RefusalKind::Invalid => Some((
                "the kernel does not take these values",
                "choose others; an old kernel may take none",
            )),
            RefusalKind::NoThread => Some(NO_THREAD),
            _ => None,
        })
    }
}

impl fmt::Display for SchedParamsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.asked == SchedParams::default() {
            f.write_str("cannot read the scheduling parameters of a thread")?;
        } else {
            write!(f, "cannot give a thread {}", self.asked)?;
        }
        write!(f, ": {}", self.reason())
    }
}

/// A process could not be made to listen to a signal
/// ([`Platform::on_signal`](crate::Platform::on_signal)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalError {
    /// The signal.
    asked: Signal,
    refusal: Refusal,
}

impl SignalError {
    /// A refusal of a platform's own. `text`: the reason, and what to do about it.
    pub fn new(
        asked: Signal,
        kind: RefusalKind,
        text: impl Into<Cow<'static, str>>,
    ) -> SignalError {
        let refusal = Refusal::new(kind, text);
        SignalError { asked, refusal }
    }

    /// A refusal of the system.
    pub fn from_system(asked: Signal, error: &io::Error) -> SignalError {
        let refusal = Refusal::from_system(error);
        SignalError { asked, refusal }
    }
}

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.refusal.reason(match self.refusal.kind {
            RefusalKind::Exhausted => Some((
                "no more threads or open files",
                "raise a limit (ulimit -u, ulimit -n)",
            )),
            _ => None,
        });
        write!(f, "cannot listen to {}: {reason}", self.asked)
    }
}

/// The kernel's events cannot be recorded; why, and what could be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refused {}

/// No shell could be started, so that it is not certain that the command will run.
#[cfg(all(feature = "machine", unix))]
#[derive(Debug)]
pub struct NoGuardian(pub(crate) io::Error);

#[cfg(all(feature = "machine", unix))]
impl fmt::Display for NoGuardian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start sh, which would tidy up: {}", self.0)
    }
}

#[cfg(all(feature = "machine", unix))]
impl Error for NoGuardian {}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn system(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    /// Goal: a program can tell refusals of the system apart, and has the number beside. Method: each number
    /// that the calls are documented to give, of every error.
    #[test]
    #[cfg(unix)]
    fn numbers_have_kinds() {
        let table = [
            (libc::EPERM, RefusalKind::Permission),
            (libc::EACCES, RefusalKind::Permission),
            (libc::ENOSYS, RefusalKind::Unsupported),
            (libc::EOPNOTSUPP, RefusalKind::Unsupported),
            (libc::E2BIG, RefusalKind::Unsupported),
            (libc::EINVAL, RefusalKind::Invalid),
            (libc::EAGAIN, RefusalKind::Exhausted),
            (libc::ENOMEM, RefusalKind::Exhausted),
            (libc::ESRCH, RefusalKind::NoThread),
            (libc::EBUSY, RefusalKind::Other),
            (libc::EFAULT, RefusalKind::Other),
        ];
        for (number, kind) in table {
            let error = system(number);
            let spawn = SpawnError::from_system(&error);
            let mask = MaskError::from_system(&error);
            let params = SchedParamsError::from_system(&SchedParams::nice(1), &error);
            assert_eq!((spawn.kind(), spawn.os_error()), (kind, Some(number)));
            assert_eq!((mask.kind(), mask.os_error()), (kind, Some(number)));
            let told = (params.kind(), params.os_error());
            assert_eq!(told, (kind, Some(number)));
        }
    }

    /// Goal: what std or a platform refuses has a kind, too, and no number. Method: errors of std's that come
    /// from no system call, and one of a platform's own.
    #[test]
    fn what_has_no_number_has_a_kind() {
        let table = [
            (io::ErrorKind::PermissionDenied, RefusalKind::Permission),
            (io::ErrorKind::Unsupported, RefusalKind::Unsupported),
            (io::ErrorKind::InvalidInput, RefusalKind::Invalid),
            (io::ErrorKind::OutOfMemory, RefusalKind::Exhausted),
            (io::ErrorKind::WouldBlock, RefusalKind::Exhausted),
            (io::ErrorKind::NotFound, RefusalKind::Other),
        ];
        for (said, kind) in table {
            let error = SpawnError::from_system(&io::Error::new(said, "so it is"));
            assert_eq!((error.kind(), error.os_error()), (kind, None));
            assert_eq!(error.to_string(), "cannot start a thread: so it is");
        }
        let own = MaskError::new(RefusalKind::NoThread, "thread 0 is none");
        assert_eq!((own.kind(), own.os_error()), (RefusalKind::NoThread, None));
        assert_eq!(own.to_string(), "cannot set the CPU mask: thread 0 is none");
    }

    /// Goal: each sentence says what was refused, why, and what to do, on one line; where nothing better is
    /// known the system's words are given. Method: the sentences.
    #[test]
    #[cfg(unix)]
    fn sentences_say_what_to_do() {
        let nice = |number| SchedParamsError::from_system(&SchedParams::nice(-5), &system(number));
        assert_eq!(
            nice(libc::EPERM).to_string(),
            "cannot give a thread nice -5: not permitted (os error 1): it needs CAP_SYS_NICE, or a limit \
             (ulimit -e, -r)"
        );
        let question = SchedParamsError::from_system(&SchedParams::default(), &system(libc::ESRCH));
        assert_eq!(
            question.to_string(),
            "cannot read the scheduling parameters of a thread: there is no such thread (os error 3): name \
             one that has not ended"
        );
        let mask = MaskError::from_system(&system(libc::EINVAL)).to_string();
        assert!(
            mask.contains("may be used (os error 22): name some that are online"),
            "{mask}"
        );
        let spawn = SpawnError::from_system(&system(libc::EAGAIN)).to_string();
        assert!(spawn.contains("ulimit -u"), "{spawn}");
        let other = SpawnError::from_system(&system(libc::EBUSY)).to_string();
        let words = system(libc::EBUSY).to_string();
        assert_eq!(other, format!("cannot start a thread: {words}"));
        let numbers = 1..140;
        let all = numbers.flat_map(|number| {
            let error = system(number);
            [
                SpawnError::from_system(&error).to_string(),
                MaskError::from_system(&error).to_string(),
                nice(number).to_string(),
            ]
        });
        for sentence in all {
            assert!(
                !sentence.contains('\n') && sentence.contains("os error"),
                "{sentence}"
            );
        }
    }
}
