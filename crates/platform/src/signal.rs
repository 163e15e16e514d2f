//! Signals that a process can be sent by hand, to ask it something.

use std::fmt;
use std::str::FromStr;

/// A signal that programs seldom use for themselves, and that a person can send to a process.
///
/// ```
/// use paceline_platform::Signal;
///
/// assert_eq!("quit".parse(), Ok(Signal::Quit));
/// assert_eq!("SIGUSR1".parse(), Ok(Signal::Usr1));
/// assert_eq!(Signal::Quit.to_string(), "SIGQUIT");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// SIGQUIT: `kill -QUIT`, or Ctrl-\ in a terminal. By default it ends the process.
    Quit,
    /// SIGUSR1: `kill -USR1`.
    Usr1,
    /// SIGUSR2: `kill -USR2`.
    Usr2,
}

impl Signal {
    /// All of them, each with its name in settings.
    ///
    /// ```
    /// use paceline_platform::Signal;
    ///
    /// assert!(Signal::ALL.contains(&("quit", Signal::Quit)));
    /// ```
    pub const ALL: [(&'static str, Signal); 3] = [
        ("quit", Signal::Quit),
        ("usr1", Signal::Usr1),
        ("usr2", Signal::Usr2),
    ];
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Signal::Quit => "SIGQUIT",
            Signal::Usr1 => "SIGUSR1",
            Signal::Usr2 => "SIGUSR2",
        })
    }
}

/// A text that is no [`Signal`].
///
/// ```
/// use paceline_platform::Signal;
///
/// let error = "kill".parse::<Signal>().unwrap_err();
/// assert_eq!(error.to_string(), "there is no such signal here: use quit, usr1 or usr2");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoSignal(());

impl fmt::Display for NoSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no such signal here: use quit, usr1 or usr2")
    }
}

impl std::error::Error for NoSignal {}

impl FromStr for Signal {
    type Err = NoSignal;

    /// Reads a name with or without `SIG`, in any case.
    fn from_str(text: &str) -> Result<Signal, NoSignal> {
        let word = text.trim().to_ascii_lowercase();
        let name = word.strip_prefix("sig").unwrap_or(&word);
        let mut all = Signal::ALL.into_iter();
        let found = all.find(|(known, _)| *known == name);
        found.map(|(_, signal)| signal).ok_or(NoSignal(()))
    }
}

/// Calls go on being made when a signal comes, until this is dropped; from
/// [`Platform::on_signal`](crate::Platform::on_signal). A call that has begun is not waited for.
#[must_use = "no call is made once this is dropped"]
pub struct OnSignal(Box<dyn Send + Sync>);

impl OnSignal {
    /// `ends`: its drop ends the calls.
    pub fn new(ends: impl Send + Sync + 'static) -> OnSignal {
        OnSignal(Box::new(ends))
    }
}

impl fmt::Debug for OnSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OnSignal(ends) = self;
        write!(f, "OnSignal({} bytes)", size_of_val(&**ends))
    }
}
