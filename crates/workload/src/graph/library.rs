//! The graphs that come with the crate, by name.

use super::JobGraph;

/// Name and file of each graph. How they were made: `testdata/graphs/README.md`.
const FILES: [(&str, &str); 2] = [
    (
        "gitoxide-build",
        include_str!("../../graphs/gitoxide-build.json"),
    ),
    ("late-chain", include_str!("../../graphs/late-chain.json")),
];

/// The names of the graphs that come with the crate.
pub fn library() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|&(name, _)| name)
}

/// The graph of this name, if there is one.
///
/// ```
/// let graph = paceline_workload::graph::named("gitoxide-build").unwrap();
/// assert!(graph.jobs().len() > 300);
/// ```
pub fn named(name: &str) -> Option<JobGraph> {
    let &(_, text) = FILES.iter().find(|&&(known, _)| known == name)?;
    Some(JobGraph::from_json(text.as_bytes(), name).expect("a test reads every file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every graph that comes with the crate can be used, under the name its file has, and is
    /// a frame. Method: read each and measure it.
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
            assert_eq!(
                JobGraph::from_json(graph.to_json().as_bytes(), name),
                Ok(graph)
            );
        }
        assert!(named("no such graph").is_none());
    }

    /// Goal: `testdata/graphs/README.md` describes the graph. Method: the measures in its table.
    #[test]
    fn the_graphs_are_as_described() {
        let described = [
            (
                "gitoxide-build",
                (732, 2_464, 129),
                ("12.161 ms", "3.407 ms"),
            ),
            ("late-chain", (132, 199, 69), ("12.240 ms", "6.040 ms")),
        ];
        for (name, shape, (work, span)) in described {
            let measure = named(name).unwrap().measure();
            assert_eq!((measure.jobs, measure.edges, measure.width), shape);
            assert_eq!(
                (measure.work.to_string(), measure.span.to_string()),
                (work.into(), span.into())
            );
        }
    }
}
