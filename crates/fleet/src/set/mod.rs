//! Data sets: folders of Parquet files that grow by parts and can be continued.

mod lock;
mod part;
mod read;
mod reader;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::FleetError;
use crate::table::{Table, TableName};
use lock::SetLock;
pub(crate) use part::parquet_file;
pub use part::{Part, Unit};
pub(crate) use reader::{ReadRows, SetReader};

/// What a data set is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Recorded traces.
    Traces,
    /// Simulated runs.
    Points,
}

impl Kind {
    /// Its tables, the leading one last.
    pub fn tables(self) -> &'static [TableName] {
        match self {
            Kind::Traces => TableName::OF_TRACES,
            Kind::Points => TableName::OF_POINTS,
        }
    }

    /// The table with a row for each unit.
    pub fn leading(self) -> TableName {
        match self {
            Kind::Traces => TableName::Traces,
            Kind::Points => TableName::Points,
        }
    }
}

/// A unit with an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Its key.
    pub key: String,
    /// Why it failed.
    pub error: String,
    /// The command that repeats it.
    pub again: String,
}

/// The file that says what a data set is. Readers of folders pass over names that begin like this.
const ABOUT: &str = "_paceline.json";
/// The end of the names of files that are not whole yet.
const UNFINISHED: &str = "part";
const PARQUET: &str = "parquet";

/// The contents of the file [`ABOUT`].
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize)]
struct About {
    version: u32,
    holds: Kind,
    /// How its rows were made: what is not a part of a key.
    made_with: String,
}

/// A folder of Parquet files, with a folder for each table.
#[derive(Debug)]
pub struct DataSet {
    path: PathBuf,
    kind: Kind,
    /// The keys in it, and of traces the sizes of their files.
    units: BTreeMap<String, Option<i64>>,
    _lock: SetLock,
}

impl DataSet {
    /// Opens the data set at `path`, or makes an empty one there. `made_with` tells how rows are made beyond
    /// their keys, such as which slices are waits; rows that were made otherwise are not mixed with these.
    /// What an interrupted run has left unfinished is removed.
    ///
    /// # Errors
    /// If there is something else at that path, or a data set of another kind or made otherwise; if another
    /// process writes it; if a file cannot be read or written.
    pub fn open(path: &Path, kind: Kind, made_with: &str) -> Result<DataSet, FleetError> {
        let about = About {
            version: 1,
            holds: kind,
            made_with: made_with.to_owned(),
        };
        let shown = path.display();
        if path.exists() && !path.is_dir() {
            return Err(FleetError::input(format!(
                "{shown}: is a file; a data set is a folder of Parquet files, so give another name"
            )));
        }
        check_about(path, &about)?;
        fs::create_dir_all(path).map_err(|why| FleetError::of_file("make", path, why))?;
        let lock = SetLock::take(path)?;
        let text = serde_json::to_string(&about).expect("texts and numbers become JSON");
        write_whole(&path.join(ABOUT), text.as_bytes())?;
        let mut set = DataSet {
            path: path.to_owned(),
            kind,
            units: BTreeMap::new(),
            _lock: lock,
        };
        for table in kind.tables() {
            let folder = set.folder(*table);
            fs::create_dir_all(&folder).map_err(|why| FleetError::of_file("make", &folder, why))?;
        }
        let leading = set.files(kind.leading())?;
        for (name, file) in &leading {
            set.units.extend(read::keys(file, kind.leading())?);
            debug_assert!(name.starts_with("part-"));
        }
        for table in kind.tables() {
            for (name, file) in set.files(*table)? {
                if !leading.contains_key(&name) {
                    fs::remove_file(&file)
                        .map_err(|why| FleetError::of_file("remove", &file, why))?;
                }
            }
        }
        Ok(set)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is of.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether this unit is complete in it.
    pub fn has(&self, key: &str) -> bool {
        self.units.contains_key(key)
    }

    /// The size that the file of this trace had when it was read.
    pub fn size_of(&self, key: &str) -> Option<u64> {
        let size = self.units.get(key).copied().flatten();
        size.and_then(|size| u64::try_from(size).ok())
    }

    /// How many units are complete in it.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Adds a part. A part whose units are all in it already changes nothing, and the answer is `false`.
    ///
    /// # Errors
    /// If some of its units are there and others are not, or a file cannot be written.
    pub fn commit(&mut self, part: &Part) -> Result<bool, FleetError> {
        let here = part.keys().iter().filter(|key| self.has(key)).count();
        if here == part.keys().len() {
            return Ok(false);
        }
        if here > 0 {
            return Err(FleetError::failed(format!(
                "{}: a part has {here} units that are there already, and others; nothing of it was written",
                self.path.display()
            )));
        }
        for (table, bytes) in part.files() {
            let file = self
                .folder(*table)
                .join(format!("{}.{PARQUET}", part.name()));
            write_whole(&file, bytes)?;
        }
        let sizes = part.sizes().iter().copied();
        self.units.extend(part.keys().iter().cloned().zip(sizes));
        Ok(true)
    }

    /// All rows of one table, in the order of their keys and, of one unit, in the order in which they were
    /// made: equal for equal units, in whatever order they were done. All of the table is in memory.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn table(&self, table: TableName) -> Result<Table, FleetError> {
        let files = self.files(table)?;
        read::sorted(table, files.into_values())
    }

    /// How many rows of this table are in it.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn rows(&self, table: TableName) -> Result<u64, FleetError> {
        let files = self.files(table)?;
        files.values().map(|file| read::rows(file)).sum()
    }

    /// The units with an error, in the order of their keys.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn failures(&self) -> Result<Vec<Failed>, FleetError> {
        let leading = self.kind.leading();
        let mut found = Vec::new();
        for file in self.files(leading)?.values() {
            found.extend(read::failures(file, leading)?);
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn folder(&self, table: TableName) -> PathBuf {
        self.path.join(table.word())
    }

    /// The whole Parquet files of a table, by name; those that are not whole are removed.
    fn files(&self, table: TableName) -> Result<BTreeMap<String, PathBuf>, FleetError> {
        let folder = self.folder(table);
        let mut files = BTreeMap::new();
        let unreadable = |why| FleetError::of_file("read", &folder, why);
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let has_end = |end: &str| path.extension().is_some_and(|it| it == end);
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if has_end(UNFINISHED) {
                fs::remove_file(&path).map_err(|why| FleetError::of_file("remove", &path, why))?;
            } else if has_end(PARQUET) && name.starts_with("part-") {
                files.insert(name, path);
            }
        }
        Ok(files)
    }
}

/// Whether a data set may be here: none is yet, or one that was made so.
fn check_about(path: &Path, wanted: &About) -> Result<(), FleetError> {
    let shown = path.display();
    let file = path.join(ABOUT);
    let Ok(text) = fs::read_to_string(&file) else {
        let is_free = fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
        return if is_free {
            Ok(())
        } else {
            Err(FleetError::input(format!(
                "{shown}: is a folder with other files in it; give the name of a new one"
            )))
        };
    };
    let about: About = serde_json::from_str(&text).map_err(|why| {
        FleetError::input(format!(
            "{}: is no description of a data set ({why}); give another name",
            file.display()
        ))
    })?;
    if about == *wanted {
        return Ok(());
    }
    let what = match about.holds {
        Kind::Traces => "traces",
        Kind::Points => "simulated runs",
    };
    Err(FleetError::input(format!(
        "{shown}: is a data set of {what}, version {}, made with {:?}, and this one is made with {:?}; give \
         another name",
        about.version, about.made_with, wanted.made_with
    )))
}

/// Writes a file that is there whole, or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    let unfinished = path.with_extension(UNFINISHED);
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        drop(file);
        fs::rename(&unfinished, path)
    };
    write().map_err(|why: std::io::Error| FleetError::of_file("write", path, why))
}

#[cfg(test)]
mod tests;
