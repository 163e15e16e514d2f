//! The data of a page, which its script draws.

use std::cmp::Reverse;

use serde::Serialize;
use trace::explain::Inversion;

use super::super::people::Group;
use super::super::{Account, AccountJson, InversionJson, WaitJson, WhoJson};
use super::bar::class;
use super::decided::Decision;
use super::frames::Chart;
use super::happened::Happened;

/// The number of inversions told of one wait, the most expensive ones.
const INVERSIONS_MAX: usize = 8;

/// How many changes of a CPU or a thread a page has room for: about 6 MB.
pub(super) const ROOM: usize = 1_000_000;

/// All of it.
#[derive(Serialize)]
pub(in crate::commands) struct PageData<'a> {
    chart: &'a Chart,
    /// The same objects as in `--json`, in the same order, so that a page cannot have other numbers.
    who: Vec<WhoJson>,
    waits: Vec<WaitJson>,
    inversions: Vec<InversionJson>,
    /// What is said of each wait, in the order of the waits.
    told: Vec<ToldWait>,
    /// What the job system decided about the machine.
    decisions: Vec<Decision>,
    /// What happened around them.
    happened: Option<Happened>,
    /// The style of each kind of cause.
    classes: Vec<(&'static str, &'static str)>,
    /// What the run is called, if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'static str>,
    /// The same of the run that this one is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    there: Option<Box<PageData<'a>>>,
}

/// A wait in sentences.
#[derive(Serialize)]
struct ToldWait {
    sentence: String,
    inversions: Vec<ToldInversion>,
}

#[derive(Serialize)]
struct ToldInversion {
    said: String,
    remedies: String,
}

impl<'a> PageData<'a> {
    /// `room`: for how many changes of a CPU or a thread.
    pub(super) fn new(chart: &'a Chart, account: Option<&Account>, room: usize) -> PageData<'a> {
        let happened = |account: &Account| {
            let waits: Vec<usize> = chart.explained().chain(account.outermost()).collect();
            Happened::around(account, &waits, room)
        };
        let json = account.map(AccountJson::of).unwrap_or_default();
        let classes = trace::explain::CauseKind::ALL.iter();
        PageData {
            chart,
            who: json.who.unwrap_or_default(),
            waits: json.waits.unwrap_or_default(),
            inversions: json.inversions.unwrap_or_default(),
            told: account.map(Account::told_waits).unwrap_or_default(),
            decisions: account.map(Account::decisions).unwrap_or_default(),
            happened: account.map(happened),
            classes: classes.map(|&kind| (kind.word(), class(kind))).collect(),
            run: None,
            there: None,
        }
    }

    /// The same, compared with another run.
    pub(super) fn against(self, there: PageData<'a>) -> PageData<'a> {
        PageData {
            run: Some("Here"),
            there: Some(Box::new(PageData {
                run: Some("There"),
                ..there
            })),
            ..self
        }
    }
}

impl Account {
    fn told_waits(&self) -> Vec<ToldWait> {
        let waits = self.explanation.waits.iter();
        let mut told: Vec<ToldWait> = waits
            .map(|wait| ToldWait {
                sentence: self.sentence(wait),
                inversions: Vec::new(),
            })
            .collect();
        let mut inversions: Vec<&Inversion> = self.explanation.inversions.iter().collect();
        inversions.sort_by_key(|inversion| Reverse(inversion.ns));
        for inversion in inversions {
            let of = told.get_mut(inversion.wait);
            if let Some(of) = of.filter(|of| of.inversions.len() < INVERSIONS_MAX) {
                let group = Group::alone(inversion);
                of.inversions.push(ToldInversion {
                    said: self.inverted(&group),
                    remedies: self.remedies(&group),
                });
            }
        }
        told
    }
}
