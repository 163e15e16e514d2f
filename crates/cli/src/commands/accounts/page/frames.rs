//! What a page's chart shows: the frames of a run, or the waits of a recording without frames.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use event::{EventKind, Nanos};
use serde::Serialize;
use trace::explain::WaitKind;

use super::super::Account;
use super::super::sentence::is_frame;

/// A chart with more bars has, for each of as many groups, the longest of the group.
const BARS_MAX: usize = 20_000;

/// The bars, in the order in which they began.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Chart {
    /// What a bar is: "frame" or "wait".
    pub(super) of: &'static str,
    /// How many there were, and how many of them were late.
    pub(super) all: usize,
    pub(super) late: usize,
    /// How many of these would have been in time if they had begun at their turns.
    #[serde(skip)]
    pub(super) late_for_begin: usize,
    /// The time from one frame to the next, where that is fixed.
    pub(super) period_ns: Option<u64>,
    /// Whether these are all frames of a run, and not those alone that are explained.
    pub(super) is_whole: bool,
    pub(super) bars: Vec<Bar>,
    /// The length up to which the chart goes at least, so that two charts have one scale.
    pub(super) least_top_ns: u64,
    /// The position of the worst one; none: there are no bars.
    pub(super) worst: Option<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Bar {
    pub(super) name: String,
    /// When it began, as in `waits[]`.
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    /// How long it might have been.
    pub(super) deadline_ns: Option<u64>,
    pub(super) is_late: bool,
    /// By how much it began after its turn, where that is known and more than nothing.
    pub(super) began_late_ns: Option<u64>,
    /// Its position in `waits[]`; none: it is not explained.
    pub(super) wait: Option<usize>,
    /// Its place in the order of the explanation, the worst first; of frames of the job system, which are
    /// there whether they are explained or not, all the same.
    #[serde(skip)]
    rank: usize,
}

/// A frame as the job system recorded it.
struct OwnFrame {
    begin: Nanos,
    /// None: it did not end in the recording.
    end: Option<Nanos>,
    deadline: Option<Nanos>,
    is_late: bool,
}

impl Bar {
    /// How bad it is: as the explanation says, which puts the longest of our frames first.
    fn badness(&self) -> (Reverse<usize>, u64) {
        (Reverse(self.rank), self.duration_ns)
    }

    /// How late it began, if it would have been in time otherwise.
    pub(super) fn late_for_its_begin(&self) -> Option<Nanos> {
        let began_late = self.began_late_ns.filter(|_| self.is_late)?;
        let turn = self.deadline_ns? + began_late;
        (self.duration_ns <= turn).then_some(Nanos(began_late))
    }
}

impl Chart {
    /// All frames of a run: when each began, since the first one, and its length. [`Account::frame_lengths`]
    /// has those of a recording, which are the ones that its explanation tells.
    pub(in crate::commands) fn timed(
        timed: &[(Nanos, Nanos)],
        period: Option<Nanos>,
        account: Option<&Account>,
    ) -> Chart {
        let own = account.map(own_frames).unwrap_or_default();
        let waits = account.map(Account::frame_waits).unwrap_or_default();
        let bar = |(number, &(begin, length)): (usize, &(Nanos, Nanos))| {
            let known = own.get(&(number as u64));
            let deadline = known.map_or(period, |known| known.deadline);
            let began_late = period.zip(deadline);
            let began_late = began_late.and_then(|(period, left)| period.0.checked_sub(left.0));
            Bar {
                name: format!("frame {number}"),
                start_ns: begin.0,
                duration_ns: length.0,
                deadline_ns: deadline.map(|deadline| deadline.0),
                is_late: known.map_or(period.is_some_and(|period| length > period), |it| {
                    it.is_late
                }),
                began_late_ns: began_late.filter(|&late| late > 0),
                wait: known.and_then(|known| waits.get(&known.begin).copied()),
                rank: 0,
            }
        };
        let bars = timed.iter().enumerate().map(bar);
        Chart {
            period_ns: period.map(|period| period.0),
            is_whole: true,
            ..Chart::of("frame", bars.collect())
        }
    }

    /// What a recording has: frames of our job system, else frames that its slices name, else all waits.
    pub(in crate::commands) fn found(account: &Account) -> Chart {
        let own = own_frames(account);
        if !own.is_empty() {
            let waits = account.frame_waits();
            let bars = own
                .iter()
                .map(|(number, frame)| account.bar_of(*number, frame, &waits));
            return Chart {
                is_whole: true,
                ..Chart::of("frame", bars.collect())
            };
        }
        let waits = account.outermost().into_iter();
        let waits: Vec<usize> = waits.collect();
        let frames = waits
            .iter()
            .filter(|&&at| is_frame(&account.explanation.waits[at]));
        let frames: Vec<usize> = frames.copied().collect();
        let (of, shown) = if frames.is_empty() {
            ("wait", waits)
        } else {
            ("frame", frames)
        };
        Chart::of(of, shown.into_iter().map(|at| account.bar(at)).collect())
    }

    fn of(of: &'static str, mut bars: Vec<Bar>) -> Chart {
        // Stable: of those that began together, the worse one first.
        bars.sort_by_key(|bar| bar.start_ns);
        let all = bars.len();
        let late = bars.iter().filter(|bar| bar.is_late).count();
        let late_for_begin = bars.iter().filter_map(Bar::late_for_its_begin).count();
        let group = all.div_ceil(BARS_MAX).max(1);
        let worst_of = |bars: &[Bar]| bars.iter().max_by_key(|bar| bar.badness()).cloned();
        if group > 1 {
            bars = bars.chunks(group).filter_map(worst_of).collect();
        }
        let worst = (0..bars.len()).max_by_key(|&at| (bars[at].badness(), Reverse(at)));
        Chart {
            of,
            all,
            late,
            late_for_begin,
            period_ns: None,
            is_whole: false,
            bars,
            least_top_ns: 0,
            worst,
        }
    }

    /// Gives two charts one scale.
    pub(super) fn align(&mut self, other: &mut Chart) {
        let bars = self.bars.iter().chain(&other.bars);
        let longest = bars.map(|bar| bar.duration_ns).max().unwrap_or(0);
        (self.least_top_ns, other.least_top_ns) = (longest, longest);
    }

    /// The waits of the bars, the worst first.
    pub(super) fn explained(&self) -> impl Iterator<Item = usize> {
        let mut bars: Vec<&Bar> = self.bars.iter().collect();
        bars.sort_by_key(|bar| Reverse(bar.badness()));
        bars.into_iter().filter_map(|bar| bar.wait)
    }

    /// Whether no other one is longer than the worst one.
    pub(super) fn is_worst_longest(&self) -> bool {
        let longest = self.bars.iter().map(|bar| bar.duration_ns).max();
        self.worst().map(|worst| worst.duration_ns) == longest
    }

    /// The worst one.
    pub(super) fn worst(&self) -> Option<&Bar> {
        self.bars.get(self.worst?)
    }
}

impl Account {
    /// When each of the first `count` frames of our job system began, since times are told, and its length;
    /// none if the recording lacks one of them.
    pub(in crate::commands) fn frame_lengths(&self, count: u64) -> Option<Vec<(Nanos, Nanos)>> {
        let own = own_frames(self);
        let length = |number| {
            let frame = own.get(&number)?;
            Some((frame.begin - self.origin, frame.end? - frame.begin))
        };
        (0..count).map(length).collect()
    }

    /// The explained frames of our job system, by their beginnings.
    fn frame_waits(&self) -> BTreeMap<Nanos, usize> {
        let waits = self.explanation.waits.iter().enumerate();
        let frames = waits.filter(|(_, wait)| wait.kind == WaitKind::Frame);
        frames.map(|(at, wait)| (wait.begin, at)).collect()
    }

    fn bar_of(&self, number: u64, frame: &OwnFrame, waits: &BTreeMap<Nanos, usize>) -> Bar {
        let wait = waits.get(&frame.begin).copied();
        let name = wait.map(|at| self.explanation.waits[at].name.clone());
        Bar {
            name: name.unwrap_or_else(|| format!("frame {number}")),
            start_ns: (frame.begin - self.origin).0,
            duration_ns: (frame.end.unwrap_or(frame.begin) - frame.begin).0,
            deadline_ns: frame.deadline.map(|deadline| deadline.0),
            is_late: frame.is_late,
            began_late_ns: None,
            wait,
            rank: 0,
        }
    }

    fn bar(&self, at: usize) -> Bar {
        let wait = &self.explanation.waits[at];
        let late = wait.late.filter(|late| *late > Nanos::ZERO);
        Bar {
            name: format!("{}, {}", self.thread(wait.thread), wait.name),
            start_ns: (wait.begin - self.origin).0,
            duration_ns: wait.length().0,
            deadline_ns: late.map(|late| wait.length().0.saturating_sub(late.0)),
            is_late: wait.late.is_some(),
            began_late_ns: None,
            wait: Some(at),
            rank: at,
        }
    }
}

/// The frames that the job system recorded, by number. Of two with the same number, of two job systems, the
/// later one.
fn own_frames(account: &Account) -> BTreeMap<u64, OwnFrame> {
    let mut frames: BTreeMap<u64, OwnFrame> = BTreeMap::new();
    for event in &account.timeline.recording().jobs {
        match event.kind {
            EventKind::FrameBegin => {
                // A frame without a deadline has the end of time.
                let deadline = Some(event.arg).filter(|&deadline| deadline < u64::MAX / 2);
                let deadline = deadline.map(|deadline| Nanos(deadline) - event.time);
                let frame = OwnFrame {
                    begin: event.time,
                    end: None,
                    deadline,
                    is_late: false,
                };
                frames.insert(event.job, frame);
            }
            EventKind::FrameEnd => {
                if let Some(frame) = frames.get_mut(&event.job) {
                    frame.end = Some(event.time);
                    frame.is_late = event.arg as u32 != 0;
                }
            }
            _ => {}
        }
    }
    frames.retain(|_, frame| frame.end.is_some());
    frames
}
