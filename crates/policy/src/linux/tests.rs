//! Linux's classes against what was measured, by tables of what tasks do.

mod balance;
mod fair;
mod machine;
mod property;
mod realtime;
mod script;
mod yields;
