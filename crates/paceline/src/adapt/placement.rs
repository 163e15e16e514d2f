//! Whether workers are held to classes of CPUs, as a program says it.

/// Whether workers are held to classes of CPUs.
///
/// ```
/// use paceline::{Builder, Placement};
/// let js = Builder::new().placement(Placement::LittleCoresInLoops).build().unwrap();
/// println!("{}", js.explain().join("\n")); // Where the workers are, and why.
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Placement {
    /// Where CPUs differ, jobs run on the fast ones (the fastest class, and slower ones until there are
    /// four CPUs or half of all, and where an even loop ends sooner with more), and
    /// [background](crate::NewJob::background) jobs on any CPU. Masks are those of classes, never of single
    /// CPUs. Where CPUs are equal nothing is done.
    #[default]
    Classes,
    /// As `Classes`, and the little cores take part in loops, with pieces that fit their speed. For each
    /// place in the program that has a loop the job system tries now and then whether that makes the loop
    /// shorter.
    ///
    /// It is not the default, because only simulated machines have shown that it helps. Loops that are
    /// divided evenly are known to become *longer* with little cores. Measure your frames with it and
    /// without.
    LittleCoresInLoops,
    /// Every worker runs everything, on the CPU that the kernel chooses.
    Free,
}

impl Placement {
    /// Every placement, with its word in `PACELINE_PLACEMENT`.
    pub(crate) const WORDS: [(&'static str, Placement); 3] = [
        ("classes", Placement::Classes),
        ("little-cores-in-loops", Placement::LittleCoresInLoops),
        ("free", Placement::Free),
    ];

    /// Whether workers are held to classes of CPUs.
    pub(crate) fn has_classes(self) -> bool {
        self != Placement::Free
    }
}
