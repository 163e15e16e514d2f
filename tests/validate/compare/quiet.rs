//! Times are measured while the machine is quiet.
//!
//! A measurement is made in pieces of some seconds, and each piece is watched. A piece during which the
//! machine was not quiet is thrown away, whatever it says, and made again, as long as there is patience: so
//! that a neighbour's second does not cost a minute of the measurements beside it. When patience has ended,
//! every piece is taken, and nothing of that experiment is judged.
//!
//! The meaning of quiet depends on the experiment: where turns of threads are looked at, no other program may
//! have the CPUs; where computing is timed, the CPUs must compute evenly, too.
//!
//! Invariant: whether a piece is thrown away depends on what others did meanwhile, never on its result.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use measure::{Noise, Watch};
use workload::busy::Busy;

/// How long an experiment waits for quiet, and measures again what was disturbed, all in all.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the machine is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(500);

/// Watches what is measured.
pub(crate) struct Quiet {
    busy: Busy,
    /// Whether anything is thrown away, or waited for.
    strict: bool,
    /// Whether even speed is asked for.
    even: Cell<bool>,
    patience: Cell<Duration>,
    found: RefCell<Found>,
}

/// The noise since the last request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Found {
    /// The most of each kind of noise among the pieces that count; none if none was watched.
    pub(crate) noise: Option<Noise>,
    /// How many pieces were thrown away.
    pub(crate) thrown_away: u32,
}

impl Quiet {
    /// A watch that times `busy`; without `strict` it throws nothing away, and only tells.
    pub(crate) fn new(busy: Busy, strict: bool) -> Quiet {
        Quiet {
            busy,
            strict,
            even: Cell::new(true),
            patience: Cell::new(PATIENCE),
            found: RefCell::default(),
        }
    }

    /// Makes a piece of a measurement: some seconds of it.
    ///
    /// # Errors
    /// The piece's error.
    pub(crate) fn piece<T>(
        &self,
        mut piece: impl FnMut() -> Result<T, String>,
    ) -> Result<T, String> {
        loop {
            let begin = Instant::now();
            let watch = Watch::start(self.busy);
            let result = piece()?;
            let noise = watch.finish();
            let again = self.strict && !self.is_met(&noise) && !self.patience.get().is_zero();
            if !again {
                self.found.borrow_mut().count(noise);
                return Ok(result);
            }
            self.found.borrow_mut().thrown_away += 1;
            self.spend(begin.elapsed());
            // The piece that is taken then sees the machine as it is when patience ends.
            let _ = self.wait();
        }
    }

    /// Waits for a quiet machine.
    ///
    /// # Errors
    /// The noise of the machine, if patience has ended.
    pub(crate) fn wait(&self) -> Result<(), String> {
        if !self.strict {
            return Ok(());
        }
        loop {
            let begin = Instant::now();
            let watch = Watch::start(self.busy);
            std::thread::sleep(LOOK);
            let noise = watch.finish();
            if self.is_met(&noise) {
                return Ok(());
            }
            if self.patience.get() == PATIENCE {
                let most = PATIENCE.as_secs();
                eprintln!("waiting for quiet, {most} s at most: the machine is {noise}");
            }
            self.spend(begin.elapsed());
            if self.patience.get().is_zero() {
                return Err(format!("the machine is {noise}"));
            }
        }
    }

    /// Begins an experiment. `even`: whether CPUs must compute evenly.
    pub(crate) fn begin(&self, even: bool) {
        self.even.set(even);
        self.patience.set(PATIENCE);
        self.found.take();
    }

    /// Whether it is as quiet as the experiment asks for.
    pub(crate) fn is_met(&self, noise: &Noise) -> bool {
        if self.even.get() {
            noise.is_quiet()
        } else {
            noise.is_undisturbed()
        }
    }

    /// The noise since this was called last.
    pub(crate) fn take(&self) -> Found {
        self.found.take()
    }

    fn spend(&self, time: Duration) {
        self.patience.set(self.patience.get().saturating_sub(time));
    }
}

impl Found {
    fn count(&mut self, noise: Noise) {
        self.noise = Some(match self.noise {
            None => noise,
            Some(before) => before.most(&noise),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(stolen: f64, jitter: f64) -> Noise {
        Noise {
            others: Some(0.0),
            stolen: Some(stolen),
            jitter,
        }
    }

    /// Goal: an experiment is as noisy as its noisiest piece, in each kind, and asking begins anew. Method:
    /// two pieces with different kinds of noise.
    #[test]
    fn the_noisiest_piece_counts() {
        let quiet = Quiet::new(Busy::NONE, true);
        for (stolen, jitter) in [(0.3, 0.01), (0.0, 0.2)] {
            quiet.found.borrow_mut().count(noise(stolen, jitter));
        }
        assert_eq!(quiet.take().noise, Some(noise(0.3, 0.2)));
        assert_eq!(quiet.take(), Found::default());
    }

    /// Goal: uneven speed matters where computing is timed, and nowhere else. Method: both kinds.
    #[test]
    fn uneven_speed_matters_where_computing_is_timed() {
        let quiet = Quiet::new(Busy::NONE, true);
        for even in [true, false] {
            quiet.begin(even);
            assert_eq!(quiet.is_met(&noise(0.0, 0.2)), !even);
            assert!(!quiet.is_met(&noise(0.3, 0.0)));
        }
    }

    /// Goal: a piece that fails says why, without being made again; where nothing is strict, a piece is made
    /// once, however loud the machine is. Method: count.
    #[test]
    fn pieces_are_made_once_where_nothing_is_strict() {
        let quiet = Quiet::new(Busy::NONE, false);
        let made = Cell::new(0);
        let piece = quiet.piece(|| {
            made.set(made.get() + 1);
            Ok(made.get())
        });
        assert_eq!((piece, made.get()), (Ok(1), 1));
        assert!(quiet.take().noise.is_some());
        let failed: Result<(), String> = quiet.piece(|| Err("refused".into()));
        assert_eq!(failed, Err("refused".into()));
        assert_eq!(quiet.take().noise, None);
    }
}
