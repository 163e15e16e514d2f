//! Whether the machine was quiet while something was measured.
//!
//! Three things are looked at: how much CPU time other processes used, how much the hypervisor took
//! away, and whether a fixed computation always takes the same time. The last one finds what the
//! first two do not see: a changing frequency, a busy sibling thread of the same core.

use std::fmt;
use std::fs;
use std::time::Instant;

use event::Nanos;
use platform::{Os, Platform};
use serde::Serialize;
use workload::busy::Busy;

use crate::cpu_time::{children_cpu, process_cpu};

/// A tick of `/proc/stat`: a hundredth of a second on every Linux (USER_HZ).
const TICK: Nanos = Nanos::from_millis(10);
/// Counters are read while they are between ticks: this much may be wrong.
const SLACK: Nanos = Nanos(3 * TICK.0);
/// The share of all CPU time that other processes may use on a quiet machine. A shell and a terminal
/// need less, a compiler needs more.
const OTHERS_MAX: f64 = 0.02;
/// The share that the hypervisor may take away.
const STOLEN_MAX: f64 = 0.01;
/// How much longer than the shortest nine of ten spins may take.
const JITTER_MAX: f64 = 0.05;

/// Spins of one look: 4 ms together.
const SPINS: usize = 200;
const SPIN: Nanos = Nanos::from_micros(20);

/// Looks at the machine from its beginning to its end.
pub struct Watch {
    began: Instant,
    counted: Option<Counted>,
    ours: Option<Nanos>,
    busy: Busy,
    spins: Vec<Nanos>,
}

/// The kernel's counts since it started, over all CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    used: Nanos,
    stolen: Nanos,
    cpus: usize,
}

/// Other activity during a measurement; shares of all CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Noise {
    /// The share of other processes; none if the system does not say.
    pub others: Option<f64>,
    /// The share of the hypervisor.
    pub stolen: Option<f64>,
    /// How much longer than the shortest nine of ten equal computations took.
    pub jitter: f64,
}

impl Watch {
    /// Begins to look; `busy` computes during the timed spins.
    pub fn start(busy: Busy) -> Watch {
        let mut watch = Watch {
            began: Instant::now(),
            counted: Counted::now(),
            ours: our_cpu(),
            busy,
            spins: Vec::new(),
        };
        watch.look();
        watch
    }

    /// Times some equal computations. To be called when nothing of ours runs beside.
    pub fn look(&mut self) {
        let spin = |seed| {
            let begin = Os.now();
            self.busy.spin_for(SPIN, seed as u64);
            Os.now() - begin
        };
        self.spins.extend((0..SPINS).map(spin));
    }

    /// The noise found. Processes that were started for the measurement must have ended by now: their use is
    /// not that of others.
    pub fn finish(mut self) -> Noise {
        self.look();
        let elapsed = Nanos::from(self.began.elapsed());
        let ours = self.ours.zip(our_cpu());
        let ours = ours.map(|(before, after)| after - before);
        let counted = self.counted.zip(Counted::now());
        let share = |time: Nanos, cpus: usize| {
            (time - SLACK).0 as f64 / (elapsed.0.max(1) as f64 * cpus.max(1) as f64)
        };
        Noise {
            others: counted
                .zip(ours)
                .map(|((before, after), ours)| share(after.used - before.used - ours, after.cpus)),
            stolen: counted.map(|(before, after)| share(after.stolen - before.stolen, after.cpus)),
            jitter: jitter(&mut self.spins),
        }
    }
}

/// The CPU time of this process and its children.
fn our_cpu() -> Option<Nanos> {
    let (process, children) = process_cpu().zip(children_cpu())?;
    Some(process + children)
}

impl Counted {
    fn now() -> Option<Counted> {
        Counted::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads `cpu  user nice system idle iowait irq softirq steal …`.
    fn parse(text: &str) -> Option<Counted> {
        let all = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = all
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let time = |fields: &[usize]| {
            let ticks: u64 = fields.iter().filter_map(|&field| ticks.get(field)).sum();
            Nanos(ticks.saturating_mul(TICK.0))
        };
        let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        (ticks.len() >= 7).then(|| Counted {
            used: time(&[0, 1, 2, 5, 6]),
            stolen: time(&[7]),
            cpus: text.lines().filter(is_cpu).count(),
        })
    }
}

/// How much longer than the shortest the ninth of ten is.
fn jitter(spins: &mut [Nanos]) -> f64 {
    spins.sort_unstable();
    match (spins.first(), crate::rank(spins, 0.9)) {
        (Some(shortest), Some(long)) if shortest.0 > 0 => long.0 as f64 / shortest.0 as f64 - 1.0,
        _ => 0.0,
    }
}

impl Noise {
    /// Whether numbers taken meanwhile may be judged.
    pub fn is_quiet(&self) -> bool {
        self.is_undisturbed() && self.jitter <= JITTER_MAX
    }

    /// Whether this program had the CPUs to itself. That is enough for numbers that say which thread ran
    /// when, and not how fast it computed.
    pub fn is_undisturbed(&self) -> bool {
        let within = |share: Option<f64>, max| share.is_some_and(|share| share <= max);
        within(self.others, OTHERS_MAX) && within(self.stolen, STOLEN_MAX)
    }

    /// The most of both, kind by kind; not known if it is not known of one.
    pub fn most(&self, other: &Noise) -> Noise {
        let most = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
        Noise {
            others: most(self.others, other.others),
            stolen: most(self.stolen, other.stolen),
            jitter: self.jitter.max(other.jitter),
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |share: Option<f64>| match share {
            Some(share) => format!("{:.1} %", share * 100.0),
            None => "unknown".to_owned(),
        };
        write!(
            f,
            "{} (others used {}, hypervisor took {}, equal spins differed by {:.1} %)",
            if self.is_quiet() {
                "quiet"
            } else {
                "not quiet"
            },
            share(self.others),
            share(self.stolen),
            self.jitter * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the kernel's counters are read by position, idle time is not use, and garbage is not
    /// guessed at. Method: a file of two CPUs, a short one, none.
    #[test]
    fn the_kernels_counters_are_read() {
        let text = "cpu  100 10 40 9000 70 3 7 20 0 0\ncpu0 1 1 1 1 1 1 1 1\ncpu1 1\nintr 5\n";
        let expected = Counted {
            used: Nanos(160 * TICK.0),
            stolen: Nanos(20 * TICK.0),
            cpus: 2,
        };
        assert_eq!(Counted::parse(text), Some(expected));
        assert_eq!(Counted::parse("cpu  1 2\n"), None);
        assert_eq!(Counted::parse(""), None);
    }

    /// Goal: one long spin in ten is jitter, one in a hundred is not. Method: both.
    #[test]
    fn jitter_is_what_one_in_ten_suffers() {
        let spins = |long: usize| {
            let mut spins = vec![Nanos(100); 100];
            spins[..long].fill(Nanos(150));
            jitter(&mut spins)
        };
        assert_eq!(spins(1), 0.0);
        assert!((spins(20) - 0.5).abs() < 1e-9);
        assert_eq!(jitter(&mut []), 0.0);
    }

    /// Goal: each of the three makes a machine loud, and so does not knowing; only uneven speed disturbs the
    /// turns of no thread. Method: one at a time.
    #[test]
    fn a_machine_is_quiet_if_nothing_disturbs() {
        let quiet = Noise {
            others: Some(0.0),
            stolen: Some(0.0),
            jitter: 0.01,
        };
        assert!(quiet.is_quiet());
        for loud in [
            Noise {
                others: Some(0.3),
                ..quiet
            },
            Noise {
                stolen: Some(0.3),
                ..quiet
            },
            Noise {
                jitter: 0.3,
                ..quiet
            },
            Noise {
                others: None,
                ..quiet
            },
        ] {
            assert!(!loud.is_quiet(), "{loud}");
            assert_eq!(loud.is_undisturbed(), loud.jitter > 0.1, "{loud}");
            assert_eq!((loud.most(&quiet), quiet.most(&loud)), (loud, loud));
        }
    }
}
