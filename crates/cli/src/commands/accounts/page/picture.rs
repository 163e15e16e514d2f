//! A wait as a picture: what held it up, what its threads did, and which threads had the CPUs they could have
//! had.

use std::collections::BTreeSet;

use event::{Cpu, Nanos, Task};
use trace::explain::{Segment, Wait, Who};
use trace::timeline::{Since, State, Stay};

use super::super::{Account, short};
use super::bar::class;
use super::cast::Cast;
use crate::html::lanes::{Ink, Lane, LanePiece, LaneRow, Lanes};

/// The stretch shown before and after a wait: a part of its length.
const MARGIN: u64 = 20;
const CPUS_MAX: usize = 16;

impl Account {
    /// The picture of a wait.
    pub(super) fn picture(&self, wait: &Wait) -> Lanes {
        let cast = Cast::of(wait);
        let window = self.window(wait);
        let mut rows = vec![
            LaneRow::Title("what held it up".to_owned()),
            LaneRow::Lane(self.path_lane(wait)),
            LaneRow::Title("threads".to_owned()),
        ];
        for &task in &cast.path {
            rows.push(LaneRow::Lane(self.thread_lane(task, &cast, window)));
            rows.extend(self.named_lane(task, window).map(LaneRow::Lane));
        }
        let (cpus, more) = self.cpus_of(wait, &cast, window);
        if !cpus.is_empty() {
            rows.push(LaneRow::Title(match more {
                0 => "CPUs they could use".to_owned(),
                more => format!("CPUs they could use, and {more} more"),
            }));
        }
        rows.extend(
            cpus.into_iter()
                .map(|cpu| LaneRow::Lane(self.cpu_lane(cpu, &cast, window))),
        );
        Lanes {
            window,
            marked: (wait.begin, wait.end),
            rows,
            about: format!("what happened during: {}", self.title(wait)),
        }
    }

    /// A little more than the wait, as far as the recording goes.
    fn window(&self, wait: &Wait) -> (Nanos, Nanos) {
        let margin = wait.length().0 / MARGIN;
        let (first, last) = self.timeline.span();
        let begin = Nanos(wait.begin.0.saturating_sub(margin)).max(first);
        let end = Nanos(wait.end.0.saturating_add(margin)).min(last);
        (begin.min(wait.begin), end.max(wait.end))
    }

    fn path_lane(&self, wait: &Wait) -> Lane {
        let piece = |segment: &Segment| {
            let label = self.segment_label(wait, segment);
            let job = segment.job.and_then(|job| self.timeline.label(job));
            let job = job.map_or(String::new(), |job| format!(", job `{job}`"));
            let title = format!(
                "{label}{job}: {} from {} on, {}",
                short(segment.length()),
                after(segment.begin, wait.begin),
                segment.confidence.word()
            );
            let ink = Ink::Fill(class(segment.kind));
            piece(segment.begin, segment.end, ink, label, title)
        };
        Lane {
            name: "cause".to_owned(),
            pieces: wait.segments.iter().map(piece).collect(),
        }
    }

    fn thread_lane(&self, task: Task, cast: &Cast, (begin, end): (Nanos, Nanos)) -> Lane {
        let name = self.thread(task);
        let piece = |stay: Stay| {
            let (ink, state) = self.state(task, stay.state, cast);
            let length = short(stay.end - stay.begin);
            let title = format!("{name} {state}: {length}");
            piece(stay.begin, stay.end, ink, state, title)
        };
        let stays = self.timeline.stays_within(task, begin, end);
        Lane {
            pieces: stays.map(piece).collect(),
            name,
        }
    }

    /// The drawing and the name of a state.
    fn state(&self, task: Task, state: State, cast: &Cast) -> (Ink, String) {
        match state {
            State::Running(cpu) => (cast.ink(task), format!("on CPU {}", cpu.0)),
            State::Awake => (cast.ink(task), "awake".to_owned()),
            State::Runnable(Since::Preempted) => (RUNNABLE, "preempted".to_owned()),
            State::Runnable(Since::Woken) => (RUNNABLE, "woken".to_owned()),
            State::Throttled(_) => (Ink::Fill("nowhere"), "put aside: CPU quota".to_owned()),
            State::Sleeping => (Ink::Line, "asleep".to_owned()),
            State::Blocked => (Ink::Line, "blocked".to_owned()),
            State::Dead => (Ink::Blank, "over".to_owned()),
            State::Unknown => (Ink::Fill("unknown"), "not known".to_owned()),
        }
    }

    /// The thread's own slices during the wait; none, if it has none.
    fn named_lane(&self, task: Task, (begin, end): (Nanos, Nanos)) -> Option<Lane> {
        let named = self.timeline.named_within(task, begin, end);
        let piece = |(from, to, name): (Nanos, Nanos, &str)| {
            let title = format!("{name}: {}", short(to - from));
            piece(from, to, Ink::Fill("named"), name.to_owned(), title)
        };
        (!named.is_empty()).then(|| Lane {
            name: String::new(),
            pieces: named.into_iter().map(piece).collect(),
        })
    }

    /// The CPUs that the threads on the path could use or used, those they used first if there are too many;
    /// and the number left out.
    fn cpus_of(&self, wait: &Wait, cast: &Cast, window: (Nanos, Nanos)) -> (Vec<Cpu>, usize) {
        if !self.timeline.says_who_ran() {
            return (Vec::new(), 0);
        }
        let (mut used, mut allowed) = (BTreeSet::new(), BTreeSet::new());
        for &task in &cast.path {
            let stays = self.timeline.stays_within(task, window.0, window.1);
            used.extend(stays.filter_map(|stay| match stay.state {
                State::Running(cpu) => Some(cpu),
                _ => None,
            }));
            allowed.extend(self.timeline.allowed(task, wait.begin).0);
        }
        let all: Vec<Cpu> = used.union(&allowed).copied().collect();
        let mut shown: Vec<Cpu> = if all.len() <= CPUS_MAX {
            all.clone()
        } else {
            used.iter()
                .chain(allowed.difference(&used))
                .copied()
                .collect()
        };
        shown.truncate(CPUS_MAX);
        shown.sort_unstable();
        let more = all.len() - shown.len();
        (shown, more)
    }

    fn cpu_lane(&self, cpu: Cpu, cast: &Cast, (begin, end): (Nanos, Nanos)) -> Lane {
        let said = |label: String, from, to, ink| {
            let title = format!("CPU {}: {label}, {}", cpu.0, short(to - from));
            piece(from, to, ink, label, title)
        };
        let run = |(from, to, who): (Nanos, Nanos, Who)| match who {
            Who::Task(task) => said(self.thread(task), from, to, cast.ink(task)),
            Who::Unknown => said("not known".to_owned(), from, to, Ink::Fill("unknown")),
            _ => said("idle".to_owned(), from, to, Ink::Line),
        };
        let runs = self.timeline.runs_within(cpu, begin, end).map(run);
        let offline = self.timeline.offline_within(cpu, begin, end).into_iter();
        let offline =
            offline.map(|(from, to)| said("offline".to_owned(), from, to, Ink::Fill("nowhere")));
        let mut pieces: Vec<LanePiece> = runs.chain(offline).collect();
        // A CPU's idle time does not end when it goes offline: that comes on top.
        pieces.sort_by_key(|piece| piece.begin);
        Lane {
            name: format!("CPU {}", cpu.0),
            pieces,
        }
    }
}

const RUNNABLE: Ink = Ink::Fill("runnable");

fn piece(begin: Nanos, end: Nanos, ink: Ink, label: String, title: String) -> LanePiece {
    // Lines have no room for their names.
    let label = match ink {
        Ink::Fill(_) => label,
        _ => String::new(),
    };
    LanePiece {
        begin,
        end,
        ink,
        label,
        title,
    }
}

/// When something began, as a person looks for it in the picture.
fn after(time: Nanos, begin: Nanos) -> String {
    short(Nanos(time.0.saturating_sub(begin.0)))
}
