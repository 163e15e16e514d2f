//! Many traces and many simulated runs as tables, on all cores, to be continued.
#![doc = include_str!("guide.md")]
#![forbid(unsafe_code)]

mod compare;
mod error;
mod set;
mod sweep;
mod table;
mod traces;
mod work;

pub use compare::{
    Change, ChangeOf, Changes, CompareOptions, Direction, LEAST_TRACES, Side, compare,
};
pub use error::FleetError;
pub use set::{DataSet, Failed, Kind, Part, Unit};
pub use sweep::{Figures, Outcome, Point, SpanFigures, Sweep, unit_of_point};
pub use table::{Rows, Table, TableName, Value, concat};
pub use traces::{
    FetchedTrace, LabelPattern, Labels, TraceFile, TraceOptions, Traces, broken_trace, find,
    unit_of_fetched, unit_of_file, unit_of_recording, unit_of_source,
};
pub use work::{Done, Watch, Worked, run};
