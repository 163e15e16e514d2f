//! `paceline diagnose`: where the time of waits went, in a trace of any program.
//!
//! [`arguments`] has the options. This file goes from a file to an account; [`report`] prints it.

mod against;
mod alike;
mod annotate;
mod arguments;
mod capacity;
mod change;
mod moment;
mod page;
mod report;
mod select;
mod what_if;

use console::{Failure, output};
use event::Nanos;
use trace::explain::explain;
use trace::timeline::{self, Timeline};

pub(crate) use arguments::DiagnoseArguments;

use super::accounts::Account;
use super::trace_file;

pub(crate) fn run(arguments: DiagnoseArguments) -> Result<(), Failure> {
    let mut inputs = vec![("the trace itself", arguments.trace.as_path())];
    inputs.extend(
        arguments
            .against
            .as_deref()
            .map(|other| ("the trace of --against", other)),
    );
    output::check_files(
        &inputs,
        &[
            ("--annotate", arguments.annotate.as_deref()),
            ("--report", arguments.report.as_deref()),
            ("--program", arguments.program.as_deref()),
        ],
    )?;
    what_if::check_names(&arguments)?;
    let recording = trace_file::load(&arguments.trace)?;
    let options = timeline::Options {
        capacities: arguments.capacity.clone().unwrap_or_default(),
        ..timeline::Options::default()
    };
    let timeline = Timeline::new(recording, &options);
    let selection = select::selection(&arguments, &timeline)?;
    let during = selection.within.unwrap_or(timeline.span());
    let explanation = explain(&timeline, &selection);
    let mut account = Account::new(timeline, explanation, Nanos::ZERO);
    if what_if::is_asked(&arguments) {
        return what_if::run(&arguments, &account);
    }
    if let Some(other) = &arguments.against {
        return against::run(&arguments, other, &account, &options);
    }
    what_if::say_gains(&arguments, &mut account)?;
    let totals = account.totals(&selection, during);
    let text = if arguments.json {
        output::json(&report::json(&account, &arguments, &totals))?
    } else {
        report::text(&account, &totals, output::columns())
    };
    // The files first: a reader of the text may stop before its end, which ends this process (`| head`).
    if let Some(out) = &arguments.report {
        page::write(out, &arguments.trace, &account)?;
    }
    if let Some(out) = &arguments.annotate {
        annotate::annotate(&arguments.trace, account, out)?;
    }
    output::print(text)
}
