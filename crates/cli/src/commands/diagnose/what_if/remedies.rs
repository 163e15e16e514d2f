//! `--try-remedies`: what the remedies are worth that the explanation names.

use std::cmp::Reverse;

use event::Task;
use replay::{Change, ProgramThread};
use trace::explain::{Inversion, Remedy, Who};

use super::study::Study;
use super::{masks, urgency};

/// How many of them are tried: each is a number of runs.
const REMEDIES_MAX: usize = 6;

/// Tries the remedies of the worst waits that can be played, and puts all that was tried in the order of its
/// gain.
pub(super) fn try_all(study: &mut Study<'_>) {
    let mut texts: Vec<String> = Vec::new();
    for inversion in &study.account.explanation.inversions {
        for remedy in &inversion.remedies {
            let text = as_change(study, inversion, *remedy);
            texts.extend(text.filter(|text| !texts.contains(text)));
        }
        if texts.len() >= REMEDIES_MAX {
            break;
        }
    }
    texts.truncate(REMEDIES_MAX);
    for text in texts {
        // A remedy that cannot be played (a lock that inherits already) is left out.
        let change = Change::parse(&text);
        if let Ok(tried) = change.and_then(|change| study.try_change(&change)) {
            study.tried.push(tried);
        }
    }
    let gains: Vec<i64> = study.tried.iter().map(|tried| study.gain(tried)).collect();
    let mut tried: Vec<_> = gains
        .into_iter()
        .zip(std::mem::take(&mut study.tried))
        .collect();
    tried.sort_by_key(|(gain, _)| Reverse(*gain));
    study.tried = tried.into_iter().map(|(_, tried)| tried).collect();
}

/// A remedy as a change, if a replay can show what it does.
pub(super) fn as_change(
    study: &Study<'_>,
    inversion: &Inversion,
    remedy: Remedy,
) -> Option<String> {
    let thread = |task: Task| -> Option<&ProgramThread> {
        let mut threads = study.program.threads.iter();
        let thread = threads.find(|thread| thread.task == task)?;
        // These would be read as something else.
        let is_plain = !thread.name.contains(" and ") && !thread.name.contains('=');
        Some(thread).filter(|_| is_plain)
    };
    let (waiter, holder) = (thread(inversion.waiter), thread(inversion.holder)?);
    let machine = &study.program.machine;
    match remedy {
        Remedy::PriorityInheritance => Some("inherit".to_owned()),
        Remedy::Park => Some(format!("park:{}", waiter?.name)),
        Remedy::SamePriority => urgency::better(holder, inversion.priorities),
        Remedy::RealtimeClass => urgency::realtime(holder),
        Remedy::FewerThreads => match inversion.runner {
            Who::Task(runner) => Some(format!("without:{}", thread(runner)?.name)),
            _ => None,
        },
        Remedy::WiderAffinity => masks::wider(holder, machine),
        Remedy::MoveAway => masks::without(holder, machine, inversion.queue?),
        Remedy::LeaveOutSlowCores => masks::fastest(holder, machine),
        Remedy::RaiseQuota => Some(format!("quota:{}=none", waiter?.process.0.as_ref()?)),
        _ => None,
    }
}
