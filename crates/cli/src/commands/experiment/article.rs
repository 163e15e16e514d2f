//! What an experiment is: the question of an article, and the function that answers it.

use console::Failure;

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
    pub(super) run: fn(&Effort, &mut Findings) -> Result<(), Failure>,
}
