//! The findings, to be shown on the tracks of the threads they are about.

use trace::Annotation;
use trace::explain::{Inversion, Wait};

use super::{Account, short};

impl Account {
    /// For each wait: itself, its causes, and the inverted threads.
    pub(in crate::commands) fn findings(&self) -> Vec<Annotation> {
        let waits = self.explanation.waits.iter();
        let waits = waits.flat_map(|wait| self.wait_findings(wait));
        let inversions = self.explanation.inversions.iter();
        let inversions = inversions.filter_map(|inversion| self.inversion_finding(inversion));
        waits.chain(inversions).collect()
    }

    fn wait_findings(&self, wait: &Wait) -> Vec<Annotation> {
        let on = |track: &str, name, begin, end| Annotation {
            on: Some(wait.thread),
            track: format!("{}{track}", Annotation::FOUND),
            name,
            begin,
            end,
        };
        let whole = format!("{}: {}", wait.name, self.mostly(wait));
        let mut findings = vec![on("waits", whole, wait.begin, wait.end)];
        findings.extend(wait.segments.iter().map(|segment| {
            let name = self.segment_label(wait, segment);
            on("causes", name, segment.begin, segment.end)
        }));
        findings
    }

    /// On each thread that could have run, for the length of the wait.
    fn inversion_finding(&self, inversion: &Inversion) -> Option<Annotation> {
        let wait = self.explanation.waits.get(inversion.wait)?;
        let (kind, runner) = (inversion.kind.word(), self.who(inversion.runner));
        let (waiter, ns) = (self.thread(inversion.waiter), short(inversion.ns));
        Some(Annotation {
            on: Some(inversion.holder),
            track: format!("{}inversions", Annotation::FOUND),
            name: format!("{kind}: {runner} ran {ns} while {waiter} waited"),
            begin: inversion.begin,
            end: wait.end,
        })
    }
}
