//! The graphs that come with the crate, by name.

use super::JobGraph;

/// Name and file of each graph. How they were made: `testdata/graphs/README.md`.
const FILES: [(&str, &str); 1] = [(
    "starship-build",
    include_str!("../../graphs/starship-build.json"),
)];

/// The names of the graphs that come with the crate.
pub fn library() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(name, _)| name)
}

/// The graph of this name, if there is one.
///
/// ```
/// let graph = workload::graph::named("starship-build").unwrap();
/// assert!(graph.jobs().len() > 300);
/// ```
pub fn named(name: &str) -> Option<JobGraph> {
    let &(_, text) = FILES.iter().find(|&&(known, _)| known == name)?;
    Some(JobGraph::from_json(text.as_bytes(), name).expect("a test reads every file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every graph that comes with the crate can be used, under the name its file has.
    /// Method: read each; work and span must be those of a frame.
    #[test]
    fn every_graph_of_the_library_can_be_read() {
        for name in library() {
            let graph = named(name).unwrap();
            let measure = graph.measure();
            assert_eq!(graph.about().name, name);
            assert!(
                (8_000_000..=16_000_000).contains(&measure.work.0),
                "{name}: {measure:?}"
            );
            assert!(
                measure.width > 2 && measure.span < measure.work,
                "{name}: {measure:?}"
            );
        }
        assert!(named("no such graph").is_none());
    }
}
