//! `paceline topology`: the machine, and the workers that the job system would have on it.
//!
//! This file declares the options and gets the machine; [`report`] describes it, [`draw`] draws it.

mod draw;
mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use measure::dump;
use platform::topology::detect::{Folder, Source, detect};
use platform::{Machine, Os, Topology};

use console::{Failure, help, output};

/// Show this machine, and the workers that the job system would have on it
///
/// Classes of CPUs go from slow to fast. Numbers in brackets are CPUs of one core;
/// in parentheses are CPUs that this process may not use. The workers are those of
/// a job system with default settings.
#[derive(Args)]
#[command(after_long_help = JSON)]
#[command(verbatim_doc_comment)]
pub(crate) struct TopologyArguments {
    /// Another machine: a folder that holds its sys and proc, or a .tar.gz of one
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write the files that describe this machine to an archive, to be sent with a report
    ///
    /// Serial numbers become zeros; of lists of mounts only those of control groups are left, whose names
    /// stay.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sysroot", "json"])]
    dump: Option<PathBuf>,
}

/// The keys of `--json`, at the end of the help.
const JSON: &str = "\
JSON (--json), one object:
  model, present[], online[], allowed[], isolated[], effective_parallelism
  cpus                how many are plugged in
  classes[]{name, cpus[], capacity}
                      the capacity of the fastest is 1024; null if not known
  class_source
  confidence          high or low
  smt[][]             CPUs of one core
  llc[][]             CPUs of one last-level cache
  numa[][]            CPUs of one memory node
  quota_cpus          null without a limit
  fast[]              for work with a deadline
  workers[]{cpus[], class, lanes[]}
  os_help[]{asked, granted, why}
                      granted: would this process be given it; why (not)
  notes[]             what was distrusted";

pub(crate) fn run(arguments: TopologyArguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.dump {
        return write_dump(path);
    }
    let machine = match &arguments.sysroot {
        Some(path) => machine_at(path)?,
        None => Os.topology().clone(),
    };
    // Of another machine's kernel nothing is known.
    let help = match arguments.sysroot {
        None => help::usual().iter().map(help::probe).collect(),
        Some(_) => Vec::new(),
    };
    if arguments.json {
        output::print_json(&report::json(&machine, help))
    } else {
        output::print(report::text(&machine, &help, output::columns()))
    }
}

/// The machine whose files are in a folder or an archive.
fn machine_at(path: &Path) -> Result<Topology, Failure> {
    const HINT: &str = "give a folder that holds sys and proc, or a .tar.gz of one";
    let refused =
        |why: String| Failure::usage(format!("--sysroot {}: {why}; {HINT}", path.display()));
    if !path.is_dir() {
        let tree = dump::read(path).map_err(|error| refused(error.to_string()))?;
        return Ok(detect(&tree));
    }
    let folder = Folder(path.to_owned());
    if ["sys", "proc"]
        .iter()
        .all(|name| folder.names(name).is_empty())
    {
        return Err(refused("it holds neither sys nor proc".into()));
    }
    Ok(detect(&folder))
}

fn write_dump(path: &Path) -> Result<(), Failure> {
    output::check_can_create("--dump", path)?;
    let mut bytes = Vec::new();
    let written = dump::write(&mut bytes)
        .map_err(|error| Failure::failed(format!("cannot make the archive: {error}")))?;
    output::write_file(path, &bytes)?;
    output::note(format!("{written} files in {}", path.display()));
    Ok(())
}
