//! The text after the worst wait: inversions with what would help, the other waits, and what the recording
//! cannot know.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use comfy_table::CellAlignment;
use console::output;
use event::{Nanos, Task};
use trace::explain::{CauseKind, Confidence, Inversion, InversionKind, Remedy, Who};
use trace::{Losses, Wakers};

use super::sentence::{beside, sure};
use super::{Account, plural, short};

/// How many lines of each.
pub(super) const INVERSIONS_MAX: usize = 6;
const WAITS_MAX: usize = 10;
/// How much of a wait's name the table has room for.
const NAME_MAX: usize = 48;

/// Inversions of the same kind between the same threads; a wait inside of another one has the same ones.
pub(super) struct Group<'a> {
    pub(super) first: &'a Inversion,
    pub(super) waits: BTreeSet<usize>,
    pub(super) ns: Nanos,
    by: BTreeMap<Who, Nanos>,
    beside_idle: Nanos,
    confidence: Confidence,
    /// How many others waited for the same thread, each with less to complain of. Their times are not added:
    /// they are mostly the same time.
    also: usize,
}

impl<'a> Group<'a> {
    /// One that has nothing yet.
    fn like(first: &'a Inversion) -> Group<'a> {
        Group {
            first,
            waits: BTreeSet::new(),
            ns: Nanos::ZERO,
            by: BTreeMap::new(),
            beside_idle: Nanos::ZERO,
            confidence: first.confidence,
            also: 0,
        }
    }

    fn add(&mut self, inversion: &Inversion) {
        self.waits.insert(inversion.wait);
        self.ns += inversion.ns;
        self.beside_idle += inversion.beside_idle;
        self.confidence = self.confidence.max(inversion.confidence);
        for share in &inversion.by {
            *self.by.entry(share.who).or_default() += share.ns;
        }
    }

    /// One inversion alone.
    pub(super) fn alone(inversion: &'a Inversion) -> Group<'a> {
        let mut group = Group::like(inversion);
        group.add(inversion);
        group
    }

    /// The thread with most of it; of a bad place, the CPU that was idle, if one was.
    pub(super) fn runner(&self) -> Who {
        if self.first.kind == InversionKind::Placement && self.by.contains_key(&Who::Idle) {
            return Who::Idle;
        }
        let most = self
            .by
            .iter()
            .max_by_key(|(who, ns)| (**ns, Reverse(**who)));
        most.map_or(self.first.runner, |(who, _)| *who)
    }
}

impl Account {
    /// The worst wait: a sentence, and its causes as bars in `columns` columns.
    pub(in crate::commands) fn worst_text(&self, columns: usize) -> Option<String> {
        let worst = self.worst()?;
        let mut lines = wrapped(&self.sentence(worst), "", columns);
        lines.push(String::new());
        let bars = self.bars(worst, columns.saturating_sub(2));
        lines.extend(bars.iter().map(|bar| format!("  {}", bar.trim_end())));
        Some(lines.join("\n"))
    }

    /// The inversions, the most expensive first, each with its remedies; nothing if there are none.
    pub(in crate::commands) fn inversions_text(&self, columns: usize) -> Option<String> {
        let groups = self.groups();
        if groups.is_empty() {
            return None;
        }
        let mut lines = vec!["Inversions:".to_owned()];
        for group in groups.iter().take(INVERSIONS_MAX) {
            lines.extend(wrapped(&self.inverted(group), "  ", columns));
            let remedies = format!("remedy: {}", self.remedies(group));
            lines.extend(wrapped(&remedies, "    ", columns));
        }
        if let Some(why) = self.gains_left_out() {
            lines.extend(wrapped(&why, "  ", columns));
        }
        if let Some(more) = groups
            .len()
            .checked_sub(INVERSIONS_MAX)
            .filter(|&more| more > 0)
        {
            lines.push(format!("  {more} more, between other threads: see --json"));
        }
        Some(lines.join("\n"))
    }

    /// The longest waits as a table.
    pub(in crate::commands) fn waits_table(&self) -> String {
        let mut table = output::table();
        let has_late = self
            .explanation
            .waits
            .iter()
            .any(|wait| wait.late.is_some());
        let late = if has_late { "late by" } else { "" };
        let header = ["thread", "waited in", "at", "length", late, "mostly"];
        table.set_header(header.iter().filter(|title| !title.is_empty()));
        // The positions are in the order of lengths.
        let outermost = self.outermost();
        let waits = &self.explanation.waits;
        for wait in outermost.iter().take(WAITS_MAX).map(|&at| &waits[at]) {
            let mut row = vec![
                self.of_program(wait.thread),
                output::cut(&wait.name, NAME_MAX),
                self.at(wait.begin),
                short(wait.length()),
            ];
            row.extend(has_late.then(|| wait.late.map_or(String::new(), short)));
            row.push(self.mostly(wait));
            table.add_row(row);
        }
        for column in 2..4 + usize::from(has_late) {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let all = waits.len() + self.explanation.omitted;
        let shown = outermost.len().min(WAITS_MAX);
        match all - shown {
            0 => table.to_string(),
            1 => format!("{table}\n1 more wait, shorter or inside of one of these: see --json"),
            more => {
                format!("{table}\n{more} more waits, shorter or inside of one of these: see --json")
            }
        }
    }

    /// The inversions of waits that are not inside of others, the most expensive first.
    pub(super) fn groups(&self) -> Vec<Group<'_>> {
        let outermost = self.outermost();
        let mut groups = BTreeMap::new();
        let inversions = self.explanation.inversions.iter();
        for inversion in inversions.filter(|inversion| outermost.contains(&inversion.wait)) {
            let key = (inversion.kind, inversion.waiter, inversion.holder);
            let group = groups.entry(key).or_insert_with(|| Group::like(inversion));
            group.add(inversion);
        }
        let mut groups: Vec<Group<'_>> = groups.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.ns));
        merged(groups)
    }

    /// The positions of the waits that are not inside of another wait of their thread.
    pub(super) fn outermost(&self) -> BTreeSet<usize> {
        let waits = &self.explanation.waits;
        let mut in_time: Vec<usize> = (0..waits.len()).collect();
        // Of those that begin together, the longest first.
        in_time.sort_by_key(|&at| {
            (
                waits[at].thread,
                waits[at].begin,
                Reverse(waits[at].end),
                at,
            )
        });
        let mut last: Option<(Task, Nanos)> = None;
        let mut outermost = BTreeSet::new();
        for at in in_time {
            let wait = &waits[at];
            let is_inside =
                last.is_some_and(|(thread, end)| thread == wait.thread && wait.end <= end);
            if !is_inside {
                outermost.insert(at);
                last = Some((wait.thread, wait.end));
            }
        }
        outermost
    }

    /// One kind of inversion in words.
    pub(super) fn inverted(&self, group: &Group<'_>) -> String {
        let Inversion {
            kind,
            waiter,
            holder,
            ..
        } = *group.first;
        let runner = group.runner();
        let (ns, who, waiting) = (short(group.ns), self.thread(holder), self.thread(waiter));
        let (ran, is_own) = (self.who(runner), waiter == holder);
        let (waiting, at_most) = match group.also {
            0 => (waiting, ""),
            more => (format!("{waiting} and {}", plural(more, "other")), "up to "),
        };
        let while_waiting = if is_own {
            String::new()
        } else {
            format!(" while {waiting} waited for it")
        };
        let by_cpu = by_cpu(kind, &who).map(|what| what + &while_waiting);
        let what = by_cpu.unwrap_or_else(|| match (kind, runner) {
            (InversionKind::Lock, Who::Idle) => {
                format!(
                    "a CPU was idle while {who} could have run and held what {waiting} waited for"
                )
            }
            (InversionKind::Lock, _) => {
                format!("{ran} ran while {who} held what {waiting} waited for")
            }
            (InversionKind::BusyWait, _) => {
                format!("{waiting} burnt the CPU that {who} needed, by waiting for it")
            }
            (InversionKind::Throttled, _) => {
                format!("a CPU quota kept {who} from running{while_waiting}")
            }
            (InversionKind::Placement, Who::Idle) => {
                let unless = match group.confidence {
                    Confidence::Assumed => ", unless a CPU quota forbade it",
                    _ => "",
                };
                format!("a CPU was idle that {who} could have used{while_waiting}{unless}")
            }
            (InversionKind::Placement, _) => {
                format!("{ran} ran on a faster CPU than {who} did{while_waiting}")
            }
            _ if is_own => format!("{ran} ran while {who} could have run"),
            _ => format!("{ran} ran instead of {who}{while_waiting}"),
        });
        let times = match group.waits.len() {
            1 => String::new(),
            count => format!(" in {count} waits"),
        };
        let sure = sure(group.confidence);
        format!(
            "{}: {what}: {at_most}{ns}{times}{}{sure}{}",
            kind.word(),
            self.others(group),
            beside(group.beside_idle, group.ns)
        )
    }

    /// What else had the CPU.
    fn others(&self, group: &Group<'_>) -> String {
        if group.first.kind == InversionKind::Throttled {
            // A thread with a CPU of its own took nothing away.
            return String::new();
        }
        let mut others: Vec<(Reverse<Nanos>, Task)> = group
            .by
            .iter()
            .filter(|(who, _)| **who != group.runner())
            .filter_map(|(who, ns)| match who {
                Who::Task(task) => Some((Reverse(*ns), *task)),
                _ => None,
            })
            .collect();
        others.sort_unstable();
        match others.as_slice() {
            [] => String::new(),
            [(_, one)] => format!(", {} too", self.thread(*one)),
            [(_, one), more @ ..] => {
                let more = plural(more.len(), "other");
                format!(", {} and {more} too", self.thread(*one))
            }
        }
    }

    /// The limits of the recording, each as a sentence.
    pub(in crate::commands) fn limits(&self) -> Vec<&'static str> {
        let recording = self.timeline.recording();
        let mut limits = Vec::new();
        match recording.origin.wakers {
            Wakers::Decided => {}
            _ if recording.kernel.is_empty() => {
                limits.push("no scheduler events: it is not known which threads ran");
            }
            Wakers::Queued => limits.push(
                "wakers are known from sched_wakeup only: a wake-up by another CPU may have no waker",
            ),
            Wakers::Unknown => limits.push("wakers are not in the recording"),
        }
        let is_unmarked = recording.origin.is_unmarked;
        if is_unmarked {
            limits.push(
                "interrupts are not marked in this text: each waker is assumed, and may be a thread that was \
                 interrupted; trace-cmd report -l keeps the marks",
            );
        }
        if recording
            .threads
            .iter()
            .all(|thread| thread.allowed.is_none())
        {
            limits.push("which CPUs a thread may use is inferred from where it was seen");
        }
        if !self.timeline.has_capacities() {
            limits.push("how fast the CPUs are is not in the recording: see --capacity");
        }
        let causes = self.explanation.waits.iter().flat_map(|wait| &wait.causes);
        let assumed = causes.filter(|cause| cause.confidence == Confidence::Assumed);
        let kinds: BTreeSet<CauseKind> = assumed.map(|cause| cause.kind).collect();
        let is_ready = |kind: &CauseKind| {
            matches!(
                kind,
                CauseKind::Throttled
                    | CauseKind::Preempted
                    | CauseKind::WakeLatency
                    | CauseKind::IdleExit
            )
        };
        if !is_unmarked && kinds.iter().any(|kind| !is_ready(kind)) {
            limits.push("a thread is assumed to have waited for the one that woke it");
        }
        let mut inversions = self.explanation.inversions.iter();
        if inversions.any(|inversion| {
            inversion.confidence == Confidence::Assumed
                && inversion.remedies.contains(&Remedy::RaiseQuota)
        }) {
            limits.push(
                "no event says when a CPU quota is used up: see cpu.stat of the control group",
            );
        }
        limits
    }
}

/// How the CPU of a thread kept it up, if it is that and no other thread.
fn by_cpu(kind: InversionKind, who: &str) -> Option<String> {
    Some(match kind {
        InversionKind::IdleExit => format!("{who} had to wait until its CPU left an idle state"),
        InversionKind::LowFrequency => format!("{who} ran at a low frequency"),
        InversionKind::FrequencyLimit => {
            format!("{who} ran while the frequency of its CPU was limited")
        }
        InversionKind::NoCore => format!("no CPU that {who} may use was online"),
        _ => return None,
    })
}

/// Groups that differ in the waiting thread alone are one line, the one of the longest wait: each reason that
/// kept a thread from running is told once, however many threads wait for it. Waits that burn a CPU are not
/// merged.
fn merged(groups: Vec<Group<'_>>) -> Vec<Group<'_>> {
    let mut merged: Vec<Group<'_>> = Vec::new();
    let mut first: BTreeMap<(InversionKind, Task), usize> = BTreeMap::new();
    for group in groups {
        let Inversion {
            kind,
            waiter,
            holder,
            ..
        } = *group.first;
        if kind != InversionKind::BusyWait && waiter != holder {
            let at = *first.entry((kind, holder)).or_insert(merged.len());
            if let Some(known) = merged.get_mut(at) {
                known.also += 1;
                known.confidence = known.confidence.max(group.confidence);
                continue;
            }
        }
        merged.push(group);
    }
    merged
}

/// Missing events, in one line; nothing if there are none.
pub(in crate::commands) fn losses(losses: &Losses) -> Option<String> {
    let told: Vec<String> = losses
        .iter()
        .map(|(loss, count)| format!("{} {count}", loss.word().replace('_', " ")))
        .collect();
    (!told.is_empty()).then(|| format!("Lost or odd: {}.", told.join(", ")))
}

/// Text in lines of `columns` columns, each behind this indent, all but the first of them by two more.
pub(in crate::commands) fn wrapped(text: &str, indent: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        match lines.last_mut().filter(|_| width + 1 + length <= columns) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
                width += 1 + length;
            }
            None => {
                let more = if lines.is_empty() || indent.is_empty() {
                    ""
                } else {
                    "  "
                };
                lines.push(format!("{indent}{more}{word}"));
                width = indent.len() + more.len() + length;
            }
        }
    }
    lines
}
