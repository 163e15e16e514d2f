//! From a file to a recording, with a bar if that takes long.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use trace::Recording;

use console::{Failure, OnJobs, Progress};

/// Reads the trace in this file.
pub(in crate::commands) fn load(path: &Path) -> Result<Recording, Failure> {
    let name = path.display().to_string();
    if name == "-" {
        return Err(Failure::Usage(
            "-: is no trace; give /dev/stdin for standard input, or ./- for a file of that name"
                .into(),
        ));
    }
    let unreadable = |error: io::Error| Failure::Usage(format!("{name}: cannot be read: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(Failure::Usage(format!(
            "{name}: is a folder; give the file of a trace"
        )));
    }
    let source = Counted {
        file,
        bytes: 0,
        progress: Progress::new("reading MB", about.len() >> 20),
    };
    trace::read::read_on(source, &name, &OnJobs::default()).map_err(Failure::usage)
}

/// A file, and how much of it was read.
struct Counted {
    file: File,
    bytes: u64,
    progress: Progress,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes += count as u64;
        self.progress.reach(self.bytes >> 20);
        Ok(count)
    }
}
