//! The commands and their names.

mod accounts;
mod bench;
mod convert;
mod diagnose;
mod experiment;
pub(crate) mod fleets;
mod frames;
mod record;
mod simulate;
mod topology;
mod trace_file;
mod values;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

use console::{Failure, output, usage};

/// A job system for programs with deadlines, and the lab that goes with it.
///
/// Data goes to standard output, talk and progress to standard error. Exit code 0: fine; 1: the
/// thing failed or a bound was missed; 2: bad usage or bad input.
#[derive(Parser)]
#[command(name = "paceline", version, max_term_width = 80)]
#[command(disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
}

/// The most useful first.
#[derive(Subcommand)]
enum Command {
    Frames(frames::FramesArguments),
    Diagnose(diagnose::DiagnoseArguments),
    Record(record::RecordArguments),
    Simulate(simulate::SimulateArguments),
    Experiment(experiment::ExperimentArguments),
    Fleet(fleets::FleetArguments),
    Sweep(fleets::SweepArguments),
    Topology(topology::TopologyArguments),
    Convert(convert::ConvertArguments),
    #[command(hide = true, disable_help_flag = true)]
    Bench(bench::Arguments),
}

/// Runs the command on the command line.
pub(crate) fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Some(line) = usage::read::<CommandLine>(&arguments)? else {
        return Ok(());
    };
    match line.command {
        Some(Command::Frames(arguments)) => frames::run(arguments),
        Some(Command::Diagnose(arguments)) => diagnose::run(arguments),
        Some(Command::Record(arguments)) => record::run(arguments),
        Some(Command::Simulate(arguments)) => simulate::run(arguments),
        Some(Command::Experiment(arguments)) => experiment::run(arguments),
        Some(Command::Fleet(arguments)) => fleets::run_fleet(arguments),
        Some(Command::Sweep(arguments)) => fleets::run_sweep(arguments),
        Some(Command::Topology(arguments)) => topology::run(arguments),
        Some(Command::Convert(arguments)) => convert::run(arguments),
        Some(Command::Bench(arguments)) => Err(bench::elsewhere(&arguments)),
        None => output::print(CommandLine::command().render_help()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the derive attributes fit together. Method: clap checks them when asked.
    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    /// Goal: every command and every flag says what it is for, and the help of each command fits 80
    /// columns, however wide the terminal. Method: walk over all of them, hidden ones included.
    #[test]
    fn every_flag_has_a_doc_and_help_fits() {
        let mut root = CommandLine::command();
        root.build();
        let mut commands = vec![root];
        while let Some(mut command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let name = command.get_name().to_owned();
            assert!(command.get_about().is_some(), "{name} has no doc");
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{name} {argument} has no doc"
                );
            }
            for help in [command.render_help(), command.render_long_help()] {
                let help = help.to_string();
                let wide = help.lines().find(|line| line.chars().count() > 80);
                assert_eq!(wide, None, "{name}");
            }
        }
    }

    /// Goal: clap's message of many lines becomes one line that names the value, the option, the possible
    /// values, and where to read on. Method: an unknown scene, and an unknown command.
    #[test]
    fn bad_usage_is_one_line() {
        let line = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
            match usage::read::<CommandLine>(&arguments) {
                Err(Failure::Usage(line)) => line,
                _ => panic!("{arguments:?} is not bad usage"),
            }
        };
        let scene = line(&["paceline", "frames", "--scene", "disco"]);
        for part in ["disco", "--scene", "mandelbrot", "paceline frames --help"] {
            assert!(scene.contains(part), "{scene}");
        }
        let command = line(&["paceline", "frame"]);
        assert!(command.contains("'frames'"), "{command}");
        assert!(
            !command.contains('\n') && command.contains("'paceline --help'"),
            "{command}"
        );
    }

    /// Goal: a text whose lines are the author's, since it has examples or columns, is not broken a second
    /// time. Method: no line of one is longer than the help is wide, in any command, however deep.
    #[test]
    fn texts_with_lines_of_their_own_fit_the_width() {
        fn walk(command: &clap::Command, seen: &mut usize) {
            let about = [command.get_about(), command.get_long_about()];
            let about = about.into_iter().flatten().map(ToString::to_string);
            // Paragraphs of one line each are for clap to break.
            let about = about.filter(|text| text.replace("\n\n", "").contains('\n'));
            let around = [
                command.get_before_help(),
                command.get_before_long_help(),
                command.get_after_help(),
                command.get_after_long_help(),
            ];
            let around = around.into_iter().flatten().map(ToString::to_string);
            for text in about.chain(around) {
                for line in text.lines() {
                    *seen += 1;
                    let name = command.get_name();
                    assert!(line.chars().count() <= 80, "{name}: {line}");
                }
            }
            for command in command.get_subcommands() {
                walk(command, seen);
            }
        }
        let mut seen = 0;
        walk(&CommandLine::command(), &mut seen);
        assert!(seen > 200, "{seen}");
    }
}
