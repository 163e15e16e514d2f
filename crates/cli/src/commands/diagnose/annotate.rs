//! `--annotate`: the trace again, with the findings on top.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::commands::accounts::Account;
use console::Failure;

/// Writes the file. A Perfetto trace is copied byte for byte and the findings come behind it; others are
/// written as Perfetto traces.
pub(super) fn annotate(original: &Path, account: Account, out: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let shown = out.display();
        Failure::Failed(format!("--annotate: cannot write {shown}: {error}"))
    };
    let findings = account.findings();
    let mut recording = account.timeline.into_recording();
    let mut file = BufWriter::new(File::create(out).map_err(failed)?);
    if recording.origin.format == trace::read::Format::Perfetto.word() {
        let original = File::open(original).map_err(failed)?;
        trace::write::annotate(original, &recording, &findings, &mut file).map_err(failed)?;
    } else {
        recording.annotations.extend(findings);
        trace::write::perfetto(&recording, &mut file).map_err(failed)?;
    }
    file.flush().map_err(failed)
}
