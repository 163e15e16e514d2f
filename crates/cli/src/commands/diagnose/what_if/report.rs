//! What the replays say, for a person.

use comfy_table::CellAlignment;
use console::output;
use event::Nanos;

use super::study::{self, Asked, Study, Trial, Tried};
use crate::commands::accounts::{is_felt, plural, short, wrapped};

/// How many waits a table shows.
const WAITS_MAX: usize = 10;
/// How many groups of waits are told.
const GROUPS_MAX: usize = 3;
/// How many threads lose CPU time, of those that are named.
const LOSERS_MAX: usize = 3;

/// The whole text.
pub(super) fn text(study: &Study<'_>, columns: usize) -> String {
    let mut parts = vec![folded(&as_it_was(study), "", columns)];
    for tried in &study.tried {
        parts.push(answer(study, tried, columns));
    }
    if study.tried.is_empty() || !study.is_answered() {
        parts.push(refused(study, columns));
    }
    let assumed = study.program.assumed.iter();
    let assumed = assumed.map(|what| folded(&format!("- {what}"), "  ", columns));
    let assumed: Vec<String> = assumed.collect();
    parts.push(format!("Assumed:\n{}", assumed.join("\n")));
    parts.join("\n\n") + "\n"
}

/// A text in lines of this width, the later ones behind an indent.
fn folded(text: &str, indent: &str, columns: usize) -> String {
    wrapped(text, indent, columns).join("\n")
}

/// How near the replay without a change is to the recording.
fn as_it_was(study: &Study<'_>) -> String {
    let good = study.answered().count();
    let cpus = study.program.machine.cpus.len();
    format!(
        "Run again as it was ({}, {}, {} of the ticks): {good} of {} within 10 % of the recording; {} of the \
         CPU time went to other threads.",
        plural(cpus, "CPU"),
        study.program.policy,
        plural(study.seeds as usize, "draw"),
        plural(study.asked.len(), "long wait"),
        percent(study.before.share_error),
    )
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// The answer to a change.
fn answer(study: &Study<'_>, tried: &Tried, columns: usize) -> String {
    let mut parts = vec![format!("What if: {}", tried.text)];
    if let Some(first) = study.asked.first() {
        parts.push(folded(&headline(study, tried, first), "", columns));
    }
    let answered: Vec<&Asked> = study.answered().collect();
    if !answered.is_empty() {
        parts.push(table(study, tried, &answered));
        parts.push(folded(&sums(study, tried, &answered), "", columns));
    }
    parts.extend(groups(study, tried, columns));
    parts.join("\n\n")
}

/// The worst wait in a sentence.
fn headline(study: &Study<'_>, tried: &Tried, asked: &Asked) -> String {
    let wait = study.wait(asked);
    let head = study.account.head_of(wait);
    match (&asked.refused, tried.trials.waits[asked.at], asked.error) {
        (None, Some(with), Some(error)) => format!(
            "{head}; it would have been {}. (As it was, the replay takes {}, {} off.)",
            spread(with),
            asked
                .replayed
                .map_or(String::new(), |was| short(was.median)),
            percent(error),
        ),
        (None, None, _) => format!("{head}; with the change it does not end."),
        (Some(why), ..) => format!("{head}: no answer, {}{}.", why, off(asked)),
        _ => format!("{head}: no answer."),
    }
}

fn off(asked: &Asked) -> String {
    match (asked.replayed, asked.error) {
        (Some(was), Some(error)) => format!(" ({}, {} off)", short(was.median), percent(error)),
        _ => String::new(),
    }
}

/// A length with what it is under other seeds.
fn spread(with: Trial) -> String {
    if with.least == with.most {
        short(with.median)
    } else {
        format!(
            "{} ({} to {})",
            short(with.median),
            short(with.least),
            short(with.most)
        )
    }
}

fn table(study: &Study<'_>, tried: &Tried, answered: &[&Asked]) -> String {
    let mut table = output::table();
    table.set_header([
        "thread",
        "waited in",
        "recorded",
        "as it was",
        "with the change",
        "of runs",
    ]);
    for asked in answered.iter().take(WAITS_MAX) {
        let wait = study.wait(asked);
        let with = tried.trials.waits[asked.at];
        table.add_row([
            output::cut(&study.account.name_of(wait.thread), 24),
            output::cut(&wait.name, 32),
            short(wait.length()),
            asked.replayed.map_or("-".into(), |was| short(was.median)),
            with.map_or("does not end".into(), |with| short(with.median)),
            with.map_or(String::new(), |with| {
                format!("{} to {}", short(with.least), short(with.most))
            }),
        ]);
    }
    for column in 2..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let more = answered.len().saturating_sub(WAITS_MAX);
    let more = match more {
        0 => String::new(),
        more => format!(
            "\n{} more that replay well: see --json",
            plural(more, "wait")
        ),
    };
    format!("{table}{more}")
}

/// The means and medians of waits of one name.
fn groups(study: &Study<'_>, tried: &Tried, columns: usize) -> Option<String> {
    let groups = study.groups.iter().take(GROUPS_MAX);
    let lines = groups.filter_map(|group| {
        let means = study.means(group, &tried.trials);
        let medians = study.medians(group, &tried.trials);
        let means = means.map(|means| of_group("on average", means.of, means.refused()));
        let medians = medians.map(|of| of_group("in the median", of, study::refused(of)));
        let told = [means, medians].into_iter().flatten();
        let told: Vec<String> = told.collect();
        let name = format!("{} `{}` of {}", group.waits.len(), group.name, group.thread);
        let line = format!("{name}: {}.", told.join("; "));
        (!told.is_empty()).then(|| folded(&line, "", columns))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A length that stands for many: recorded, as it was, and with the change.
fn of_group(
    which: &str,
    [recorded, was, with]: [Nanos; 3],
    refused: Option<&'static str>,
) -> String {
    let (known, was) = (short(recorded), short(was));
    match refused {
        None => {
            let with = short(with);
            format!("{which} {known} as recorded, {was} as it was, {with} with the change")
        }
        Some(why) => format!("{which} {known} as recorded and {was} as it was, no answer: {why}"),
    }
}

/// What all waits gain together, and what that costs others.
fn sums(study: &Study<'_>, tried: &Tried, answered: &[&Asked]) -> String {
    let (mut was, mut with) = (Nanos::ZERO, Nanos::ZERO);
    let mut worst: Option<(Nanos, &Asked)> = None;
    let mut is_any_longer = false;
    for asked in answered {
        let (Some(before), Some(after)) = (asked.replayed, tried.trials.waits[asked.at]) else {
            continue;
        };
        was += before.median;
        with += after.median;
        let longer = after.median - before.median;
        is_any_longer |= longer > Nanos::ZERO;
        if is_felt(longer, before.median) && worst.is_none_or(|(most, _)| longer > most) {
            worst = Some((longer, asked));
        }
    }
    let mut text = format!(
        "{} that replay well: {} in all as it was, {} with the change.",
        plural(answered.len(), "long wait"),
        short(was),
        short(with)
    );
    match worst {
        Some((longer, asked)) => {
            let wait = study.wait(asked);
            text += &format!(
                " Longest loss: {} of {} takes {} longer.",
                wait.name,
                study.account.name_of(wait.thread),
                short(longer)
            );
        }
        None if is_any_longer => text += " None takes 1 % longer.",
        None => text += " None takes longer.",
    }
    let losers = losers(study, tried);
    if !losers.is_empty() {
        let losers: Vec<String> = losers
            .iter()
            .map(|(name, less)| format!("{name} {}", short(*less)))
            .collect();
        text += &format!(" Less CPU time: {}.", losers.join(", "));
    }
    text
}

/// The threads that get less CPU time with a change, those that lose most first.
pub(super) fn losers(study: &Study<'_>, tried: &Tried) -> Vec<(String, Nanos)> {
    let before = study.before.ran.iter().zip(&tried.trials.ran);
    let threads = before.zip(&study.program.threads);
    let mut losers: Vec<(String, Nanos)> = threads
        .map(|((was, with), thread)| (thread.name.clone(), *was - *with))
        .filter(|(_, less)| *less >= Nanos::from_millis(1))
        .collect();
    losers.sort_by_key(|(_, less)| std::cmp::Reverse(*less));
    losers.truncate(LOSERS_MAX);
    losers
}

/// What differs in the waits for which there is no answer.
fn refused(study: &Study<'_>, columns: usize) -> String {
    let told = study.asked.iter().filter(|asked| asked.refused.is_some());
    let lines = told.take(WAITS_MAX).map(|asked| {
        let wait = study.wait(asked);
        let part = match &asked.difference {
            Some(part) => format!(
                "; most differs {}{}: {} recorded, {} replayed",
                part.kind.word().replace('_', " "),
                part.thread
                    .as_ref()
                    .map_or(String::new(), |name| format!(" of {name}")),
                short(part.recorded),
                short(part.replayed)
            ),
            None => String::new(),
        };
        let why = asked.refused.unwrap_or_default();
        let line = format!(
            "- {}: {why}{}{part}",
            study.account.head_of(wait),
            off(asked)
        );
        folded(&line, "  ", columns)
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return "No long wait is refused.".to_owned();
    }
    format!("No answer for:\n{}", lines.join("\n"))
}
