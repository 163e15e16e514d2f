//! One wait in words.

use std::collections::BTreeMap;

use event::{Nanos, Task};
use trace::Name;
use trace::explain::{
    Cause, CauseKind, Confidence, IdleExit, InversionKind, Segment, Share, Wait, WaitKind, Who,
};

use super::bars::{TextBar, draw};
use super::{Account, plural, short};

/// The number of parts that a sentence has room for, and the share that is too little to be in one: a
/// fiftieth.
const PARTS_MAX: usize = 4;
const PART_MIN: u64 = 50;
/// The innermost slices of a path that are told.
const PATH_MAX: usize = 4;
/// The most bars, and the most threads that ran instead in each; anything shorter than a 200th is not seen.
const BARS_MAX: usize = 8;
const SHARES_MAX: usize = 4;
const BAR_PART_MIN: u64 = 200;

/// Causes that are one thing to a person: a thread could have run, whether it had run just before or not;
/// jobs were in the way, whichever.
pub(super) struct Part {
    pub(super) kind: CauseKind,
    pub(super) thread: Option<Task>,
    /// None: there was no job, or there were several.
    pub(super) job: Option<u64>,
    pub(super) ns: Nanos,
    pub(super) by: Vec<Share>,
    /// The part in which another CPU that the thread may use was idle.
    pub(super) beside_idle: Nanos,
    /// None: no CPU left its idle state, or several did.
    pub(super) exit: Option<IdleExit>,
    /// The kernel's function in which the thread slept; none: it is not known, or there were several.
    pub(super) function: Option<Name>,
    pub(super) confidence: Confidence,
}

impl Account {
    /// How long, where, when, and which thread had the time.
    pub(in crate::commands) fn sentence(&self, wait: &Wait) -> String {
        let parts = self.parts(wait);
        let worth = |part: &&Part| part.ns.0 * PART_MIN >= wait.length().0;
        let told: Vec<String> = parts
            .iter()
            .filter(worth)
            .take(PARTS_MAX)
            .map(|part| self.phrase(wait, part))
            .collect();
        let (mut head, at) = (self.head(wait), self.at(wait.begin));
        if wait.kind == WaitKind::Turn || lateness(wait).is_some() {
            head.push(',');
        }
        if told.is_empty() {
            format!("{head} at {at}.")
        } else {
            format!("{head} at {at}: {}.", told.join("; "))
        }
    }

    /// The causes of a wait as bars, the longest first, in `columns` columns. Causes too short for a bar are
    /// summed up as one.
    pub(in crate::commands) fn bars(&self, wait: &Wait, columns: usize) -> Vec<String> {
        let parts = self.parts(wait);
        let is_seen = |ns: Nanos| ns.0 * BAR_PART_MIN >= wait.length().0;
        let mut bars = Vec::new();
        let (seen, rest): (Vec<_>, Vec<_>) = parts.iter().partition(|part| is_seen(part.ns));
        let (seen, late) = seen.split_at(seen.len().min(BARS_MAX));
        for part in seen {
            bars.push(TextBar::whole(self.label(wait, part), part.ns));
            if alone(&part.by).is_none() {
                let shown = part.by.iter().filter(|share| is_seen(share.ns));
                let shown: Vec<&Share> = shown.take(SHARES_MAX).collect();
                let told = shown.iter().fold(Nanos::ZERO, |sum, share| sum + share.ns);
                let parts = shown
                    .iter()
                    .map(|share| TextBar::part(self.ran(share.who), share.ns));
                bars.extend(parts);
                let others = part.by.len() - shown.len();
                if others > 0 {
                    bars.push(TextBar::part(plural(others, "other"), part.ns - told));
                }
            }
        }
        let rest: Vec<Nanos> = late.iter().chain(&rest).map(|part| part.ns).collect();
        if !rest.is_empty() {
            let sum = rest.iter().fold(Nanos::ZERO, |sum, &ns| sum + ns);
            bars.push(TextBar::whole(plural(rest.len(), "more cause"), sum));
        }
        draw(&bars, wait.length(), columns)
    }

    /// The longest of the causes, in a few words.
    pub(super) fn mostly(&self, wait: &Wait) -> String {
        let parts = self.parts(wait);
        parts.first().map_or(String::new(), |part| {
            let label = self.label(wait, part);
            // Of a thread that could have run, the label ends with what ran instead.
            let path = self.within_slices(wait, part.kind, part.thread);
            let path = path.filter(|_| part.by.is_empty());
            let path = path.map_or(String::new(), |path| format!(" in {path}"));
            format!("{label}{path}, {}", short(part.ns))
        })
    }

    /// A segment in a few words.
    pub(super) fn segment_label(&self, wait: &Wait, segment: &Segment) -> String {
        let part = Part {
            kind: segment.kind,
            thread: segment.thread,
            job: segment.job,
            ns: segment.length(),
            by: segment.by.clone(),
            beside_idle: if segment.beside_idle {
                segment.length()
            } else {
                Nanos::ZERO
            },
            exit: segment.exit,
            function: segment.function,
            confidence: segment.confidence,
        };
        self.label(wait, &part)
    }

    /// The causes of a wait as a person counts them, the longest first.
    pub(super) fn parts(&self, wait: &Wait) -> Vec<Part> {
        merged(&wait.causes)
    }

    /// Which wait it was, and how long.
    pub(super) fn head(&self, wait: &Wait) -> String {
        let thread = self.of_program(wait.thread);
        let (length, name) = (short(wait.length()), &wait.name);
        match wait.kind {
            WaitKind::Sleep => format!("{thread} slept {length}"),
            WaitKind::Turn => format!("{thread} took {length} from a wake-up to its next sleep"),
            WaitKind::Job => format!("{thread} waited {length} for the job `{name}`"),
            WaitKind::Frame => format!("{name} of {thread} took {length}"),
            WaitKind::Slice => {
                let own = wait
                    .causes
                    .iter()
                    .filter(|cause| cause.thread == Some(wait.thread) && cause.kind.is_run());
                let own = own.fold(Nanos::ZERO, |sum, cause| sum + cause.ns);
                let verb = if is_frame(wait) || own.0 * 2 > wait.length().0 {
                    "took"
                } else {
                    "waited"
                };
                let late = lateness(wait);
                let late = late.map_or(String::new(), |late| format!(", {} late", short(late)));
                format!("{thread} {verb} {length} in `{name}`{late}")
            }
        }
    }

    /// One part, as half a sentence.
    pub(super) fn phrase(&self, wait: &Wait, part: &Part) -> String {
        let (ns, who) = (short(part.ns), self.path(wait, part.thread));
        let place = self.within_slices(wait, part.kind, part.thread);
        let place = place.map_or(String::new(), |path| format!(" in `{path}`"));
        match part.kind {
            CauseKind::Running => format!("{who} ran {ns}"),
            CauseKind::Awake => format!("for {ns} it is not known whether {who} ran"),
            CauseKind::SmallCore | CauseKind::LowFrequency | CauseKind::FrequencyLimit => {
                let why = slow(part.kind);
                format!("{who} took {ns} longer {why}{}", sure(part.confidence))
            }
            CauseKind::Throttled if part.confidence == Confidence::Assumed => {
                format!("{who} was put aside for {ns}, as by a CPU quota that is used up")
            }
            CauseKind::Throttled => {
                format!("{who} was put aside for {ns}: the CPU quota was used up")
            }
            CauseKind::NoCore => {
                format!("{who} could have run for {ns}, but no CPU it may use was online")
            }
            CauseKind::QueuedBehind => {
                format!("for {ns} {who} was busy with {} first", self.job(part.job))
            }
            CauseKind::NotReady => {
                format!("for {ns} the job could not begin, and nothing says what it waited for")
            }
            CauseKind::BusyWaitStolen => {
                let ran = self.ran_of(&part.by, part.ns);
                format!(
                    "{ran} while {who} was runnable{place} and a busy wait burnt a CPU it needed"
                )
            }
            CauseKind::Preempted | CauseKind::WakeLatency => {
                let held = self.holds(wait, part.thread);
                let ran = self.ran_of(&part.by, part.ns);
                let beside = beside(part.beside_idle, part.ns);
                format!("{ran} while {who}{held} was runnable{place}{beside}")
            }
            CauseKind::IdleExit => match part.exit {
                Some(exit) => {
                    format!("{} took {ns} to leave {} for {who}", cpu(exit), state(exit))
                }
                None => format!("CPUs took {ns} to leave their idle states for {who}"),
            },
            CauseKind::Lock => {
                format!("{who} slept {ns}{place} because of a lock, and nothing says who held it")
            }
            CauseKind::Io => format!("{who} waited {ns}{place} for a device{}", self.within(part)),
            CauseKind::Blocked => {
                format!("{who} slept {ns}{place} in the kernel{}", self.within(part))
            }
            CauseKind::Interrupt => {
                format!("{who} slept {ns}{place} until a timer or a device woke it")
            }
            CauseKind::Interrupted => format!("interrupts took {ns} of {who}'s CPU"),
            _ if !(place.is_empty() || self.timeline.says_who_ran()) => {
                format!("{ns} went by, most of it{place}, and nothing says whether {who} ran")
            }
            _ => format!("nothing says where {ns} went"),
        }
    }

    /// One part, in a few words.
    pub(super) fn label(&self, wait: &Wait, part: &Part) -> String {
        self.label_of(&self.path(wait, part.thread), part)
    }

    /// The same of any thread.
    pub(super) fn label_of(&self, who: &str, part: &Part) -> String {
        let alone = alone(&part.by).map(|share| format!(": {}", self.ran(share.who)));
        let alone = alone.unwrap_or_default();
        match part.kind {
            CauseKind::Running => format!("{who} ran"),
            CauseKind::SmallCore | CauseKind::LowFrequency | CauseKind::FrequencyLimit => {
                format!("{who} ran {}{}", slowly(part.kind), sure(part.confidence))
            }
            CauseKind::Preempted | CauseKind::WakeLatency => format!("{who} runnable{alone}"),
            CauseKind::IdleExit => match part.exit {
                Some(exit) => format!("{who} runnable: {} left {}", cpu(exit), state(exit)),
                None => format!("{who} runnable: CPUs left idle states"),
            },
            CauseKind::NoCore => format!("{who} runnable: no CPU online"),
            CauseKind::Throttled => format!("{who} put aside: CPU quota"),
            CauseKind::QueuedBehind => format!("{who} busy with {}", self.job(part.job)),
            CauseKind::NotReady => "not ready".to_owned(),
            CauseKind::BusyWaitStolen => format!("{who} runnable: busy wait{alone}"),
            CauseKind::Lock => format!("{who} slept: a lock"),
            CauseKind::Io => format!("{who} slept: a device{}", self.within(part)),
            CauseKind::Blocked => format!("{who} slept{}", self.within(part)),
            CauseKind::Interrupted => format!("{who} interrupted"),
            CauseKind::Interrupt => format!("{who} slept: a timer or device"),
            _ => format!("{who}: not known"),
        }
    }

    /// The thread on the path; the waiter is "itself".
    fn path(&self, wait: &Wait, thread: Option<Task>) -> String {
        match thread {
            None => "an unknown thread".to_owned(),
            Some(task) if task == wait.thread => format!("{} itself", self.thread(task)),
            Some(task) => self.thread(task),
        }
    }

    /// The slices inside of the wait, the outermost first, in which a thread was for most of a cause; none:
    /// it was in no single place, or ran, and so went from one to the next.
    pub(super) fn within_slices(
        &self,
        wait: &Wait,
        of: CauseKind,
        thread: Option<Task>,
    ) -> Option<String> {
        let task = thread.filter(|_| !of.is_run())?;
        let mut sums: BTreeMap<Vec<Name>, Nanos> = BTreeMap::new();
        let segments = wait.segments.iter();
        let mut all = Nanos::ZERO;
        for segment in
            segments.filter(|segment| segment.thread == thread && shown(segment.kind) == of)
        {
            let mut path = self.timeline.path(task, segment.end);
            if task == wait.thread {
                path.retain(|slice| slice.begin > wait.begin || slice.end < wait.end);
                path.retain(|slice| slice.begin >= wait.begin);
            }
            let names = path.iter().map(|slice| slice.name).collect();
            *sums.entry(names).or_default() += segment.length();
            all += segment.length();
        }
        let (path, most) = sums.into_iter().max_by_key(|(_, ns)| *ns)?;
        let is_told = !path.is_empty() && most.0 * 2 > all.0;
        let skipped = path.len().saturating_sub(PATH_MAX);
        let names: Vec<&str> = path[skipped..]
            .iter()
            .map(|name| self.word(*name))
            .collect();
        is_told.then(|| names.join(" > "))
    }

    /// The kernel's function in which the thread slept, if there is one.
    fn within(&self, part: &Part) -> String {
        let function = part
            .function
            .map(|name| format!(" in `{}`", self.word(name)));
        function.unwrap_or_default()
    }

    fn job(&self, job: Option<u64>) -> String {
        let label = job.and_then(|job| self.timeline.label(job));
        label.map_or("other jobs".to_owned(), |label| {
            format!("the job `{label}`")
        })
    }

    /// The part of the sentence about the holder of a lock.
    fn holds(&self, wait: &Wait, thread: Option<Task>) -> &'static str {
        let same = |found: &Wait| (found.thread, found.begin) == (wait.thread, wait.begin);
        let holds = self.explanation.inversions.iter().any(|inversion| {
            let of = self.explanation.waits.get(inversion.wait);
            inversion.kind == InversionKind::Lock
                && of.is_some_and(same)
                && Some(inversion.holder) == thread
        });
        if holds {
            ", which holds what it waits for,"
        } else {
            ""
        }
    }

    /// A bar's label for what had a CPU.
    fn ran(&self, who: Who) -> String {
        match who {
            Who::Task(_) => format!("{} ran", self.who(who)),
            _ => self.who(who),
        }
    }

    /// The threads that had the CPUs, as the subject of a sentence: "a ran 3 ms, b 1 ms and 2 more 0.5 ms of
    /// it".
    fn ran_of(&self, by: &[Share], all: Nanos) -> String {
        let by = alone(by).map_or(by, std::slice::from_ref);
        let Some((first, more)) = by.split_first() else {
            return format!("it is not known what ran for {}", short(all));
        };
        let told = |share: &Share| format!("{} {}", self.who(share.who), short(share.ns));
        let mut text = match first.who {
            Who::Task(_) => format!("{} ran {}", self.who(first.who), short(first.ns)),
            Who::Idle => format!("a CPU was idle for {}", short(first.ns)),
            Who::Offline => format!("no CPU was online for {}", short(first.ns)),
            Who::Unknown => format!("it is not known what ran for {}", short(first.ns)),
        };
        let (second, rest) = more.split_at(more.len().min(1));
        if let [second] = second {
            text.push_str(if rest.is_empty() { " and " } else { ", " });
            text.push_str(&told(second));
        }
        if !rest.is_empty() {
            let sum = rest.iter().fold(Nanos::ZERO, |sum, share| sum + share.ns);
            let others = plural(rest.len(), "other");
            text.push_str(&format!(" and {others} {}", short(sum)));
        }
        text + " of it"
    }
}

/// Whether a slice is a frame, and so no wait for something.
pub(super) fn is_frame(wait: &Wait) -> bool {
    wait.kind == WaitKind::Slice && (wait.late.is_some() || trace::explain::names_frame(&wait.name))
}

/// By how much a slice was late, if it was.
fn lateness(wait: &Wait) -> Option<Nanos> {
    let late = wait.late.filter(|late| *late > Nanos::ZERO);
    late.filter(|_| wait.kind == WaitKind::Slice)
}

/// How sure an answer is, as the end of a part of a sentence.
pub(super) fn sure(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Known => "",
        Confidence::Inferred => " (inferred)",
        _ => " (assumed)",
    }
}

/// Why a thread that ran took longer than on the fastest CPU: the end of a sentence. How sure that is stands
/// behind it, as how fast CPUs are is mostly not recorded.
fn slow(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::SmallCore => "on smaller CPUs than on the largest",
        CauseKind::LowFrequency => "at low frequencies than at the highest",
        _ => "because the frequency of its CPU was limited",
    }
}

/// The same in a few words.
fn slowly(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::SmallCore => "on a small CPU",
        CauseKind::LowFrequency => "at a low frequency",
        _ => "at a limited frequency",
    }
}

fn cpu(exit: IdleExit) -> String {
    format!("CPU {}", exit.cpu.0)
}

fn state(exit: IdleExit) -> String {
    match exit.state {
        Some(state) => format!("idle state {state}"),
        None => "its idle state".to_owned(),
    }
}

/// The part of a time in which another CPU was idle, as the end of a sentence; nothing if that is too little
/// to be told.
pub(super) fn beside(idle: Nanos, all: Nanos) -> String {
    match idle.0 {
        idle if idle == 0 || idle * PART_MIN < all.0 => String::new(),
        idle if (all.0 - idle.min(all.0)) * PART_MIN < all.0 => {
            ", though another CPU was idle".to_owned()
        }
        ns => format!(
            ", though another CPU was idle for {} of it",
            short(Nanos(ns))
        ),
    }
}

/// The thread that had all the time, or all but a fiftieth.
fn alone(by: &[Share]) -> Option<&Share> {
    let all: u64 = by.iter().map(|share| share.ns.0).sum();
    by.first()
        .filter(|share| (all - share.ns.0) * PART_MIN < all)
}

/// It could have run, whether or not it had run just before.
pub(super) fn shown(kind: CauseKind) -> CauseKind {
    match kind {
        CauseKind::WakeLatency => CauseKind::Preempted,
        kind => kind,
    }
}

/// Causes of the same kind, as people see it, with the same thread on the path, as one; the longest first.
pub(super) fn merged(causes: &[Cause]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for cause in causes {
        let kind = shown(cause.kind);
        let same = parts
            .iter_mut()
            .find(|part| (part.kind, part.thread) == (kind, cause.thread));
        match same {
            Some(part) => {
                part.ns += cause.ns;
                part.confidence = part.confidence.max(cause.confidence);
                part.job = part.job.filter(|_| part.job == cause.job);
                part.beside_idle += cause.beside_idle;
                part.exit = part.exit.filter(|_| part.exit == cause.exit);
                part.function = part.function.filter(|_| part.function == cause.function);
                add(&mut part.by, &cause.by);
            }
            None => parts.push(Part {
                kind,
                thread: cause.thread,
                job: cause.job,
                ns: cause.ns,
                by: cause.by.clone(),
                beside_idle: cause.beside_idle,
                exit: cause.exit,
                function: cause.function,
                confidence: cause.confidence,
            }),
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    parts
}

/// Sums up shares, the longest first.
fn add(sum: &mut Vec<Share>, more: &[Share]) {
    for share in more {
        match sum.iter_mut().find(|known| known.who == share.who) {
            Some(known) => known.ns += share.ns,
            None => sum.push(*share),
        }
    }
    sum.sort_by_key(|share| (std::cmp::Reverse(share.ns), share.who));
}
