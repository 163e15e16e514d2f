//! Finding out what a machine is, from its files: Linux's, of this machine or of another. (`windows.rs` and
//! `macos.rs` do it from what those systems answer about the machine at hand.)
//!
//! [`detect`] reads everything once, [`limits()`] only what can change while a program runs (some ten files).
//! Sources, and which of two is believed: `speeds.rs` and `classes.rs` for how fast CPUs are, `sharing.rs`
//! for what they share, `limits.rs` and `cgroup.rs` for what may be used. Tested on the 160 machines of
//! `testdata/topology`.
//!
//! No crate does this: `num_cpus` and std count CPUs and know no classes, `core_affinity` knows the mask
//! alone, hwloc's bindings need hwloc's C library and know no quotas, and `gdt-cpus` takes classes from a
//! file that mainline kernels do not have and from two fixed shares of the highest capacity.
//!
//! Invariant: any input has an answer: no panic, no memory without bound. What makes no sense is noted and
//! left out, and no CPU is left out because something about it could not be read.

mod cgroup;
mod classes;
mod cpuinfo;
mod limits;
#[cfg(any(test, target_os = "macos"))]
pub(crate) mod macos;
mod reader;
mod sharing;
mod source;
mod speeds;
#[cfg(any(test, windows, target_os = "macos"))]
mod told;
#[cfg(any(test, windows))]
pub(crate) mod windows;

pub use source::{FILE_MAX, Folder, Source, Tree};

use super::{Limits, Topology, name_classes};
use cpuinfo::CpuInfo;
use reader::{CPUS, Reader};

/// Reads a machine.
pub fn detect(source: &dyn Source) -> Topology {
    // CPUs may come and go while they are looked at: once more then, which is enough but for a machine that
    // does nothing else.
    let (machine, changed) = read(source);
    if !changed {
        return machine;
    }
    let (mut machine, changed) = read(source);
    if changed {
        let note = "CPUs went on- or offline while they were read, twice";
        machine.notes.push(note.into());
    }
    machine
}

/// Reads only what the process may use at this moment.
pub fn limits(source: &dyn Source) -> Limits {
    limits::read(&mut Reader::new(source))
}

/// A machine, and whether its CPUs changed meanwhile.
fn read(source: &dyn Source) -> (Topology, bool) {
    let mut reader = Reader::new(source);
    let online_text = reader.text(&format!("{CPUS}/online"));
    let limits = limits::read(&mut reader);
    let online = limits.online.clone();
    let info = CpuInfo::read(&reader.text("proc/cpuinfo").unwrap_or_default());
    let mut speeds = speeds::read(&mut reader, &online, &info);
    let classes = classes::find(&mut reader, &mut speeds);
    let places = sharing::read(&mut reader, &online, &speeds);
    let present = reader.list(&format!("{CPUS}/present")).unwrap_or_default();
    let isolated = limits::isolated(&mut reader);
    let changed = reader.text(&format!("{CPUS}/online")) != online_text;
    let machine = Topology {
        places: places.places,
        usable: limits.usable(),
        effective_parallelism: limits.effective_parallelism(),
        limits,
        present: present.union(&online),
        isolated,
        classes: name_classes(classes.sets),
        witness: classes.witness,
        confidence: classes.confidence,
        caches_known: places.caches_known,
        notes: reader.notes.into_sentences(),
        model: info.model.unwrap_or_else(|| "unknown processor".into()),
    };
    (machine, changed)
}
