//! What an experiment is: the question of an article, and the functions that answer it.

use console::Failure;

use super::chosen::ChosenValue;
use super::findings::Findings;
use super::lab::Effort;
use super::lesson::Lesson;

/// The experiment of an article.
pub(super) struct Experiment {
    pub(super) name: &'static str,
    /// The number of the source, and the experiment's name.
    pub(super) source: &'static str,
    /// The question, in a line.
    pub(super) question: &'static str,
    /// How it is asked.
    pub(super) setup: &'static str,
    /// On which simulated machines, under which policies.
    pub(super) machine: &'static str,
    pub(super) policy: &'static str,
    /// The lessons.
    pub(super) learnt: &'static [Lesson],
    /// What is simulated, in the order of the page.
    pub(super) parts: &'static [ExperimentPart],
    pub(super) here: Here,
}

type RunPart = fn(&Effort, &mut Findings) -> Result<(), Failure>;

/// A part of an experiment that is simulated. It adds the same claims each time, whatever is set.
pub(super) struct ExperimentPart {
    pub(super) run: RunPart,
    /// What was only chosen in it.
    pub(super) values: &'static [&'static ChosenValue],
    /// How many other seeds are tried. None where nothing is drawn.
    pub(super) seeds: u64,
    /// With other values it is run as in a quick run: the whole one takes too long.
    pub(super) is_varied_quickly: bool,
}

/// What of an experiment runs on the machine at hand.
pub(super) enum Here {
    Run(RunPart),
    /// Nothing: why.
    Nothing(&'static str),
}

impl Experiment {
    /// Why nothing of it runs on the machine at hand, if nothing does.
    pub(super) fn nothing_here(&self) -> Option<&'static str> {
        match self.here {
            Here::Run(_) => None,
            Here::Nothing(why) => Some(why),
        }
    }

    /// All that was only chosen in it, each once.
    pub(super) fn values(&self) -> Vec<&'static ChosenValue> {
        let mut values: Vec<&'static ChosenValue> = Vec::new();
        for value in self.parts.iter().flat_map(|part| part.values) {
            if values.iter().all(|other| other.name != value.name) {
                values.push(value);
            }
        }
        values
    }
}
