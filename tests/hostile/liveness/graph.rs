//! A random graph as data, shown as a line of letters.

use std::fmt;

use event::Random;

/// The kind of a node of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Single,
    /// A job that panics: the jobs after it are cancelled.
    Failing,
    Range(u64),
    Combine,
    Event(Completer),
    /// Schedules this many jobs.
    Makes(u64),
    Scope(u64),
    Join,
    Loop(u64),
    /// Waits in its body for another node.
    Waits {
        target: usize,
        is_short: bool,
    },
    /// Has a result, and its handle is dropped at once.
    Detached,
}

/// The thread or job that completes an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Completer {
    Maker,
    Job,
    Thread,
    /// It is dropped.
    Nothing,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) work: Work,
    /// Nodes before it.
    pub(super) after: Vec<usize>,
    pub(super) is_background: bool,
    /// How long its body spins.
    pub(super) turns: u64,
}

/// The maker's actions before it calls nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Last {
    Nothing,
    Waits(usize),
    WaitsShortly(usize, u64),
    /// Adds an edge from the first node to the last one, if it is in time.
    AddsEdge,
    Polls,
    Flushes,
}

#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) pieces: Vec<Piece>,
    pub(super) last: Last,
    /// Numbers of workers before and after.
    pub(super) resizes: [Option<usize>; 2],
}

impl Graph {
    /// The graph of a seed, with resizes to at most `resizes` workers, 0: none.
    pub(super) fn draw(seed: u64, resizes: u64) -> Graph {
        let mut random = Random::new(seed);
        let mut resize = |one_of: u64| {
            let resized = resizes > 0 && random.below(one_of) == 0;
            resized.then(|| random.within(1, resizes) as usize)
        };
        let resizes = [resize(3), resize(5)];
        let number = random.within(1, 8) as usize;
        let pieces = (0..number).map(|at| Piece::draw(&mut random, at));
        let pieces = pieces.collect();
        let at = random.below(number as u64) as usize;
        let last = match random.below(8) {
            0 | 1 => Last::Waits(at),
            2 | 3 => Last::WaitsShortly(at, random.below(60)),
            4 if number > 1 => Last::AddsEdge,
            5 if random.below(4) == 0 => Last::Polls,
            6 if random.below(4) == 0 => Last::Flushes,
            _ => Last::Nothing,
        };
        Graph {
            pieces,
            last,
            resizes,
        }
    }

    /// Whether some of its bodies are dropped instead of run.
    pub(super) fn has_failures(&self) -> bool {
        let fails =
            |piece: &Piece| matches!(piece.work, Work::Failing | Work::Event(Completer::Nothing));
        self.pieces.iter().any(fails)
    }
}

impl Piece {
    fn draw(random: &mut Random, at: usize) -> Piece {
        let mut after = Vec::new();
        for _ in 0..random.below(3) {
            if at > 0 {
                after.push(random.below(at as u64) as usize);
            }
        }
        let is_background = random.below(8) == 0;
        let turns = random.below(400);
        let work = match random.below(24) {
            0..4 => Work::Single,
            4..8 => Work::Range(random.within(1, 8)),
            8..10 => Work::Combine,
            10..12 => Work::Event(match random.below(7) {
                0 | 1 => Completer::Maker,
                2 | 3 => Completer::Job,
                4 | 5 => Completer::Thread,
                _ => Completer::Nothing,
            }),
            12..14 => Work::Makes(random.within(1, 4)),
            14..16 => Work::Scope(random.within(1, 5)),
            16..18 => Work::Join,
            18 => Work::Loop(random.within(1, 20)),
            19..22 if at > 0 => Work::Waits {
                target: random.below(at as u64) as usize,
                is_short: random.below(2) == 0,
            },
            22 => Work::Detached,
            23 if random.below(3) == 0 => Work::Failing,
            _ => Work::Single,
        };
        Piece {
            work,
            after,
            is_background,
            turns,
        }
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resize =
            |workers: Option<usize>| workers.map_or(String::new(), |n| format!("resize({n}) "));
        f.write_str(&resize(self.resizes[0]))?;
        for (at, piece) in self.pieces.iter().enumerate() {
            write!(f, "{at}:{:?}", piece.work)?;
            if piece.is_background {
                f.write_str(" background")?;
            }
            if !piece.after.is_empty() {
                write!(f, " after {:?}", piece.after)?;
            }
            f.write_str("; ")?;
        }
        write!(f, "{}maker: {:?}", resize(self.resizes[1]), self.last)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: graphs have no cycles, so that all of one can be run; each sort of work is drawn. Method: a
    /// thousand graphs: each node names only nodes before it.
    #[test]
    fn graphs_can_be_run() {
        let mut works = BTreeSet::new();
        for seed in 0..1_000 {
            let graph = Graph::draw(seed, 3);
            for (at, piece) in graph.pieces.iter().enumerate() {
                assert!(piece.after.iter().all(|&before| before < at));
                if let Work::Waits { target, .. } = piece.work {
                    assert!(target < at);
                }
                let name = format!("{:?}", piece.work);
                let name = name.split([' ', '(']).next().map(str::to_owned);
                works.insert(name);
            }
            assert!(!graph.to_string().contains('\n'));
        }
        assert_eq!(works.len(), 11, "{works:?}");
    }
}
