//! What the kernel's recorder says when it is asked: no, or how much it has.

use std::fmt;

/// The kernel's events cannot be recorded; why, and what could be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Counts of events that the kernel recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Those that can be read.
    pub entries: u64,
    /// Those that cannot: overwritten by later ones, or without a place from the beginning.
    pub lost: u64,
}

impl Kept {
    /// Adds what the file `stats` of a CPU says.
    pub(super) fn add(&mut self, stats: &str) {
        for (what, count) in stats.lines().filter_map(|line| line.split_once(": ")) {
            let count = count.trim().parse().unwrap_or(0);
            match what {
                "entries" => self.entries += count,
                "overrun" | "commit overrun" | "dropped events" => self.lost += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: all kinds of losses are counted, over all CPUs. Method: the file as Linux 6.18 writes it,
    /// twice, with numbers put in.
    #[test]
    fn losses_of_every_kind_are_counted() {
        let stats = "entries: 42\noverrun: 5\ncommit overrun: 3\nbytes: 2412\n\
                     oldest event ts: 48443.193763\nnow ts: 48443.267695\n\
                     dropped events: 2\nread events: 7\n";
        let mut kept = Kept::default();
        kept.add(stats);
        kept.add(stats);
        let expected = Kept {
            entries: 84,
            lost: 20,
        };
        assert_eq!(kept, expected);
    }
}
