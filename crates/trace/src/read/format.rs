//! The formats that are read.

/// A format that is read. [`Origin::format`](crate::Origin::format) holds the [`word`](Format::word).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The kernel's own text, as tracefs and `atrace` give it.
    Ftrace,
    /// `trace-cmd report`.
    TraceCmd,
    /// `perf script` and `perf sched script`.
    PerfScript,
    /// A page with a trace in it, as systrace writes it.
    Systrace,
    /// Perfetto's protobuf.
    Perfetto,
    /// Chrome's JSON.
    Chrome,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Format] = &[
        Format::Ftrace,
        Format::TraceCmd,
        Format::PerfScript,
        Format::Systrace,
        Format::Perfetto,
        Format::Chrome,
    ];

    /// The word for it in JSON and in lists.
    pub fn word(self) -> &'static str {
        match self {
            Format::Ftrace => "ftrace",
            Format::TraceCmd => "trace-cmd",
            Format::PerfScript => "perf-script",
            Format::Systrace => "systrace",
            Format::Perfetto => "perfetto",
            Format::Chrome => "chrome",
        }
    }
}
