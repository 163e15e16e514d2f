//! Many waits of one name in words and as JSON: how long they are, and what the slow ones have in common.

use comfy_table::CellAlignment;
use console::output;
use event::Nanos;
use serde::Serialize;
use trace::explain::{Confidence, Factor, Group, InCommon, Role};

use super::people::wrapped;
use super::sentence::Part;
use super::{Account, short};

/// How many groups a person is told of, and how much of each.
const GROUPS_MAX: usize = 3;
const FACTORS_MAX: usize = 5;
/// How much of a label the table has room for.
const LABEL_MAX: usize = 60;

/// Waits of one program and one name.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct GroupJson {
    name: String,
    process: String,
    kind: &'static str,
    count: usize,
    /// Lengths that half of them, nine of ten, and all of them do not exceed.
    p50: u64,
    p90: u64,
    max: u64,
    /// How many were explained: the slowest quarter of these, and the others.
    slow: usize,
    others: usize,
    /// How much longer the slow ones are on average.
    slow_longer_ns: u64,
    in_common: Vec<InCommonJson>,
}

/// What holds waits up, as other recordings have it, too.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct FactorJson {
    kind: &'static str,
    /// `itself`, or a thread's name with `*` for numbers; null: not known.
    thread: Option<String>,
    function: Option<String>,
    within: Option<String>,
}

/// A factor that the slow ones have more of.
#[derive(Debug, Serialize)]
struct InCommonJson {
    #[serde(flatten)]
    factor: FactorJson,
    /// The difference of the means.
    more_ns: u64,
    slow: SeenJson,
    others: SeenJson,
}

/// In how many waits it takes a twentieth of the median, or more, and its mean over all of them.
#[derive(Debug, Serialize)]
struct SeenJson {
    waits: usize,
    mean_ns: u64,
}

impl FactorJson {
    pub(super) fn of(factor: &Factor) -> FactorJson {
        FactorJson {
            kind: factor.kind.word(),
            thread: match &factor.who {
                Role::Itself => Some("itself".to_owned()),
                Role::Named(name) => Some(name.clone()),
                Role::Unknown => None,
            },
            function: factor.function.clone(),
            within: factor.within.clone(),
        }
    }
}

impl Account {
    /// All groups, in the order of their worst waits.
    pub(in crate::commands) fn groups_json(&self) -> Vec<GroupJson> {
        let groups = self.explanation.groups.iter();
        groups.map(group_json).collect()
    }

    /// The groups with the worst waits: a sentence each, and a table of what their slow ones have in common.
    /// Nothing if no name has many waits.
    pub(in crate::commands) fn groups_text(&self, columns: usize) -> Option<String> {
        let groups = self.explanation.groups.iter().take(GROUPS_MAX);
        let told: Vec<String> = groups
            .map(|group| self.group_text(group, columns))
            .collect();
        (!told.is_empty()).then(|| told.join("\n\n"))
    }

    fn group_text(&self, group: &Group, columns: usize) -> String {
        let lengths = [0.5, 0.9, 1.0].map(|share| short(group.quantile(share)));
        let [p50, p90, max] = &lengths;
        let (count, name) = (group.lengths.len(), &group.name);
        let mut text = format!(
            "{count} `{name}` of {}: p50 {p50}, p90 {p90}, worst {max}.",
            group.program
        );
        let slow = group.slow().filter(|slow| slow.longer > Nanos::ZERO);
        let Some(slow) = slow.filter(|slow| !slow.in_common.is_empty()) else {
            return wrapped(&text, "", columns).join("\n");
        };
        text += &format!(
            " The slowest quarter took {} longer on average than the others, and has in common:",
            short(slow.longer)
        );
        let mut table = output::table();
        let titles = ["", "more on average", "in the slow", "in the others"];
        table.set_header(titles);
        for one in slow.in_common.iter().take(FACTORS_MAX) {
            let InCommon {
                factor,
                more,
                slow: of_slow,
                others,
            } = one;
            let label = group
                .factors
                .get(*factor)
                .map(|factor| self.factor_label(factor));
            table.add_row([
                output::cut(&label.unwrap_or_default(), LABEL_MAX),
                format!("+{}", short(*more)),
                format!("{} of {}", of_slow.0, slow.slow),
                format!("{} of {}", others.0, slow.others),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("{}\n{table}", wrapped(&text, "", columns).join("\n"))
    }

    /// A factor in a few words.
    pub(super) fn factor_label(&self, factor: &Factor) -> String {
        let who = match &factor.who {
            Role::Itself => "itself",
            Role::Named(name) => name,
            Role::Unknown => "an unknown thread",
        };
        let names = &self.timeline.recording().names;
        let part = Part {
            kind: factor.kind,
            thread: None,
            job: None,
            ns: Nanos::ZERO,
            by: Vec::new(),
            beside_idle: Nanos::ZERO,
            exit: None,
            function: factor.function.as_ref().and_then(|name| names.find(name)),
            confidence: Confidence::Known,
        };
        let label = self.label_of(who, &part);
        match &factor.within {
            Some(within) => format!("{label} in {within}"),
            None => label,
        }
    }
}

fn group_json(group: &Group) -> GroupJson {
    let [p50, p90, max] = [0.5, 0.9, 1.0].map(|share| group.quantile(share).0);
    let slow = group.slow();
    let in_common = slow.iter().flat_map(|slow| &slow.in_common);
    let seen = |(waits, mean): (usize, Nanos)| SeenJson {
        waits,
        mean_ns: mean.0,
    };
    let in_common = in_common.filter_map(|one| {
        Some(InCommonJson {
            factor: FactorJson::of(group.factors.get(one.factor)?),
            more_ns: one.more.0,
            slow: seen(one.slow),
            others: seen(one.others),
        })
    });
    GroupJson {
        name: group.name.clone(),
        process: group.program.clone(),
        kind: super::json::kind(group.kind),
        count: group.lengths.len(),
        p50,
        p90,
        max,
        slow: slow.as_ref().map_or(0, |slow| slow.slow),
        others: slow.as_ref().map_or(0, |slow| slow.others),
        slow_longer_ns: slow.as_ref().map_or(0, |slow| slow.longer.0),
        in_common: in_common.collect(),
    }
}
