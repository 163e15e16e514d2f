//! Detection on the machines of `testdata/topology`, whose truth is known.

mod broken;
mod live;
mod numbering;
mod truth;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use paceline_measure::dump;
use platform::CpuSet;
use platform::topology::detect::Tree;
use serde_json::Value;

/// A machine of the test data.
struct Machine {
    id: String,
    tree: Tree,
    truth: Value,
}

impl Machine {
    /// All of them, by name; read once.
    fn all() -> &'static [Machine] {
        static MACHINES: OnceLock<Vec<Machine>> = OnceLock::new();
        MACHINES.get_or_init(Machine::read_all)
    }

    fn read_all() -> Vec<Machine> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/topology");
        let entries = std::fs::read_dir(&folder).expect("the test data is there");
        let is_machine = |path: &PathBuf| path.join("truth.json").is_file();
        let folders = entries.map(|entry| entry.expect("it can be read").path());
        let mut folders: Vec<PathBuf> = folders.filter(is_machine).collect();
        folders.sort();
        folders.iter().map(|path| Machine::read(path)).collect()
    }

    fn read(folder: &Path) -> Machine {
        let truth = std::fs::read_to_string(folder.join("truth.json")).expect("it can be read");
        let name = folder.file_name().expect("it has one");
        Machine {
            id: name.to_string_lossy().into_owned(),
            tree: dump::read(&folder.join("fs.tar.gz")).expect("it is an archive"),
            truth: serde_json::from_str(&truth).expect("it is JSON"),
        }
    }

    /// A list of CPUs in the truth; none if it says null.
    fn list(&self, pointer: &str) -> Option<CpuSet> {
        let value = self.truth.pointer(pointer).expect("the truth says it");
        value.as_str().map(CpuSet::parse)
    }

    fn is_certain(&self) -> bool {
        self.truth["certain"].as_bool().expect("the truth says it")
    }
}
