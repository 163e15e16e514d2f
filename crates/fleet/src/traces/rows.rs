//! The rows of one trace that was explained.

use event::Task;
use trace::explain::{
    Cause, Explanation, Inversion, Wait, WaitKind, Who, names_frame, without_numbers,
};
use trace::timeline::Timeline;

use super::TraceAbout;
use crate::table::{Rows, TableName, Value};

/// The rows of all tables.
pub(super) fn of(timeline: &Timeline, found: &Explanation, about: &TraceAbout<'_>) -> Vec<Rows> {
    let maker = RowMaker { timeline, about };
    let groups: Vec<String> = found
        .waits
        .iter()
        .map(|wait| without_numbers(&wait.name))
        .collect();
    let (frames, waits, causes) = maker.waits(&found.waits, &groups);
    let inversions = maker.inversions(&found.inversions, &groups);
    let traces = maker.trace(found, frames.len(), inversions.len());
    vec![frames, waits, causes, inversions, maker.losses(), traces]
}

struct RowMaker<'a> {
    timeline: &'a Timeline,
    about: &'a TraceAbout<'a>,
}

impl<'a> RowMaker<'a> {
    /// A row: what all tables begin with, then `rest`.
    fn push<'v>(&'v self, rows: &mut Rows, rest: &[Value<'v>]) {
        let mut values = self.about.first().to_vec();
        values.extend_from_slice(rest);
        rows.push(&values);
    }

    fn waits(&self, waits: &[Wait], groups: &[String]) -> (Rows, Rows, Rows) {
        let mut frames = Rows::new(TableName::Frames);
        let mut all = Rows::new(TableName::Waits);
        let mut causes = Rows::new(TableName::Causes);
        for (at, (wait, group)) in waits.iter().zip(groups).enumerate() {
            let name = self.timeline.name(wait.thread);
            let rest: [Value<'_>; 9] = [
                wait.name.as_str().into(),
                group.into(),
                self.timeline.program(wait.thread).into(),
                name.trim().into(),
                self.timeline.tid(wait.thread).into(),
                wait.begin.0.into(),
                wait.length().0.into(),
                wait.late.map(|late| late.0).into(),
                wait.preemptions.into(),
            ];
            let mut row = vec![Value::from(at), kind(wait.kind).into()];
            row.extend(rest);
            self.push(&mut all, &row);
            if is_frame(wait) {
                row.remove(1);
                self.push(&mut frames, &row);
            }
            for (position, cause) in wait.causes.iter().enumerate() {
                self.cause(&mut causes, (at, wait, group), (position, cause));
            }
        }
        (frames, all, causes)
    }

    fn cause(
        &self,
        rows: &mut Rows,
        (at, wait, group): (usize, &Wait, &String),
        (position, cause): (usize, &Cause),
    ) {
        let name = cause.thread.map(|task| self.timeline.name(task));
        let name = name.as_deref().map(str::trim);
        let is_self = cause.thread == Some(wait.thread);
        let role = name.map(|name| {
            if is_self {
                "self".to_owned()
            } else {
                without_numbers(name)
            }
        });
        let instead = cause.by.first();
        let ran_instead = instead.map(|share| self.who(share.who));
        let words = &self.timeline.recording().names;
        self.push(
            rows,
            &[
                at.into(),
                group.into(),
                position.into(),
                cause.kind.word().into(),
                cause
                    .thread
                    .and_then(|task| self.timeline.program(task))
                    .into(),
                name.into(),
                cause.thread.and_then(|task| self.timeline.tid(task)).into(),
                role.as_ref().into(),
                cause.ns.0.into(),
                cause.beside_idle.0.into(),
                ran_instead.as_ref().into(),
                instead.map(|share| share.ns.0).into(),
                cause.function.map(|name| words.word(name)).into(),
                cause.job.and_then(|job| self.timeline.label(job)).into(),
                cause.exit.map(|exit| exit.cpu.0).into(),
                cause.exit.and_then(|exit| exit.state).map(u32::from).into(),
                cause.confidence.word().into(),
            ],
        );
    }

    fn inversions(&self, inversions: &[Inversion], groups: &[String]) -> Rows {
        let mut rows = Rows::new(TableName::Inversions);
        for inversion in inversions {
            let [waiter, holder] =
                [inversion.waiter, inversion.holder].map(|task| self.thread(task));
            let runner = self.who(inversion.runner);
            let remedies: Vec<&str> = inversion.remedies.iter().map(|it| it.word()).collect();
            self.push(
                &mut rows,
                &[
                    inversion.wait.into(),
                    (&groups[inversion.wait]).into(),
                    inversion.kind.word().into(),
                    (&waiter).into(),
                    (&holder).into(),
                    self.timeline.program(inversion.holder).into(),
                    (&runner).into(),
                    inversion.begin.0.into(),
                    inversion.ns.0.into(),
                    inversion.beside_idle.0.into(),
                    inversion.confidence.word().into(),
                    (&remedies.join(",")).into(),
                ],
            );
        }
        rows
    }

    fn losses(&self) -> Rows {
        let mut rows = Rows::new(TableName::Losses);
        for (loss, count) in self.timeline.losses().iter() {
            self.push(&mut rows, &[loss.word().into(), count.into()]);
        }
        rows
    }

    fn trace(&self, found: &Explanation, frames: usize, inversions: usize) -> Rows {
        let recording = self.timeline.recording();
        let origin = &recording.origin;
        let (start, end) = self.timeline.span();
        let mut rows = Rows::new(TableName::Traces);
        self.push(
            &mut rows,
            &[
                self.about.size.into(),
                origin.format.as_str().into(),
                origin.clock.name().into(),
                origin.kernel.as_ref().into(),
                self.timeline.cpus().len().into(),
                recording.threads.len().into(),
                recording.kernel.len().into(),
                start.0.into(),
                (end - start).0.into(),
                found.waits.len().into(),
                found.omitted.into(),
                frames.into(),
                inversions.into(),
                Value::Null,
                Value::Null,
            ],
        );
        rows
    }

    fn thread(&self, task: Task) -> String {
        self.timeline.name(task).trim().to_owned()
    }

    fn who(&self, who: Who) -> String {
        match who {
            Who::Task(task) => self.thread(task),
            Who::Idle => "idle".to_owned(),
            Who::Offline => "offline".to_owned(),
            Who::Unknown => "unknown".to_owned(),
        }
    }
}

fn is_frame(wait: &Wait) -> bool {
    match wait.kind {
        WaitKind::Frame => true,
        WaitKind::Slice => names_frame(&wait.name),
        WaitKind::Job | WaitKind::Turn | WaitKind::Sleep => false,
    }
}

fn kind(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Job => "job",
        WaitKind::Frame => "frame",
        WaitKind::Slice => "slice",
        WaitKind::Turn => "turn",
        WaitKind::Sleep => "sleep",
    }
}
