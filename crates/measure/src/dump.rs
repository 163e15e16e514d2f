//! The files that say what a machine is, in one archive, so that a result of detection can be looked into
//! without the machine.
//!
//! An archive is a tar file, packed with gzip or not, whose members begin with `sys/`, `proc/`, `dev/` and
//! so on. [`read`] keeps them in memory; nothing is written to the disk. [`write()`] collects those of this
//! machine that detection reads, and of these nothing that names the device or what else is on it: serial
//! numbers become zeros, and of lists of mounts and of the process's state only the lines that matter are
//! left.
//!
//! Invariant: an archive takes bounded memory, whatever is in it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use platform::topology::detect::{FILE_MAX, Folder, Source, Tree, detect};

/// Why an archive cannot be read.
#[derive(Debug)]
pub enum DumpError {
    /// The file cannot be opened, or is no archive.
    Io(io::Error),
    /// There is no file of a machine in it.
    Foreign,
    /// It holds more than any machine.
    TooMuch,
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::Io(error) => error.fmt(f),
            DumpError::Foreign => f.write_str("it holds neither sys/ nor proc/"),
            DumpError::TooMuch => f.write_str("it holds more files than any machine"),
        }
    }
}

impl std::error::Error for DumpError {}

impl From<io::Error> for DumpError {
    fn from(error: io::Error) -> DumpError {
        DumpError::Io(error)
    }
}

/// Most bytes of an archive, unpacked, and most members. The largest of 160 machines has 3 MB in 16 000.
const BYTES_MAX: u64 = 1 << 28;
const MEMBERS_MAX: usize = 1 << 20;

/// Reads an archive.
///
/// # Errors
/// If it cannot be read, is no tar file, holds no machine, or too much.
pub fn read(path: &Path) -> Result<Tree, DumpError> {
    let mut file = BufReader::new(fs::File::open(path)?);
    let packed = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    if packed {
        read_tar(MultiGzDecoder::new(file))
    } else {
        read_tar(file)
    }
}

fn read_tar(bytes: impl Read) -> Result<Tree, DumpError> {
    let mut tree = Tree::default();
    let mut archive = tar::Archive::new(bytes.take(BYTES_MAX));
    for (index, member) in archive.entries()?.enumerate() {
        if index == MEMBERS_MAX {
            return Err(DumpError::TooMuch);
        }
        let member = member?;
        let path = String::from_utf8_lossy(&member.path_bytes()).into_owned();
        let kind = member.header().entry_type();
        if kind.is_file() {
            let mut bytes = Vec::new();
            member.take(FILE_MAX as u64).read_to_end(&mut bytes)?;
            tree.put(&path, bytes);
        } else if kind.is_symlink()
            && let Some(target) = member.link_name_bytes()
        {
            tree.link(&path, &String::from_utf8_lossy(&target));
        }
    }
    if ["sys", "proc"]
        .iter()
        .any(|folder| !tree.names(folder).is_empty())
    {
        Ok(tree)
    } else {
        Err(DumpError::Foreign)
    }
}

/// Writes what detection reads of this machine, packed, and says how many files that were.
///
/// # Errors
/// If `to` cannot be written to.
pub fn write(to: impl Write) -> io::Result<usize> {
    write_from(&Folder("/".into()), to)
}

fn write_from(machine: &dyn Source, to: impl Write) -> io::Result<usize> {
    let kept = Kept {
        machine,
        files: RefCell::default(),
    };
    // The result of detection is shown elsewhere; here only the list of files matters.
    let _ = detect(&kept);
    let mut archive = tar::Builder::new(GzEncoder::new(to, Compression::best()));
    let files = kept.files.into_inner();
    for (path, bytes) in &files {
        let bytes = without_names(path, bytes);
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o444);
        archive.append_data(&mut header, path, &*bytes)?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(files.len())
}

/// Keeps every file that is read.
struct Kept<'a> {
    machine: &'a dyn Source,
    files: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Source for Kept<'_> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let bytes = self.machine.read(path)?;
        let mut files = self.files.borrow_mut();
        files.insert(path.to_owned(), bytes.clone());
        Some(bytes)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.machine.names(folder)
    }
}

/// The file as it is published: kept are the lines that detection reads, and numbers that name the device are
/// zeros.
fn without_names(path: &str, bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let keep = |wanted: &dyn Fn(&str) -> bool| -> Vec<u8> {
        let lines = text.lines().filter(|line| wanted(line));
        lines
            .flat_map(|line| [line, "\n"])
            .collect::<String>()
            .into_bytes()
    };
    match path {
        "proc/cpuinfo" => {
            let line = |line: &str| match line.split_once(':') {
                Some((key, value)) if key.trim_end() == "Serial" => {
                    let zero = |c: char| if c.is_alphanumeric() { '0' } else { c };
                    format!("{key}:{}\n", value.chars().map(zero).collect::<String>())
                }
                _ => format!("{line}\n"),
            };
            text.lines().map(line).collect::<String>().into_bytes()
        }
        "proc/self/status" => keep(&|line| line.starts_with("Cpus_allowed")),
        // Other mounts are the owner's business.
        "proc/self/mountinfo" => keep(&|line| line.contains(" - cgroup")),
        "proc/mounts" => keep(&|line| {
            [" cgroup ", " cgroup2 ", " cpuset "]
                .iter()
                .any(|kind| line.contains(kind))
        }),
        _ => bytes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an archive is read back as the same machine, without the names of a device or its owner. Method:
    /// a machine made up, of one CPU with a serial number, a disk and a group.
    #[test]
    fn an_archive_is_read_back_without_names() {
        let mut machine = Tree::default();
        machine.put("sys/devices/system/cpu/online", "0\n");
        machine.put("sys/devices/system/cpu/cpu0/cpu_capacity", "1024\n");
        machine.put("proc/cpuinfo", "processor : 0\nSerial : 12ab\n");
        machine.put("proc/self/status", "Name:\tme\nCpus_allowed_list:\t0\n");
        machine.put("proc/self/cgroup", "0::/a\n");
        let mounts =
            "1 0 0:1 / / rw - ext4 /dev/secret rw\n2 1 0:2 / /cg rw - cgroup2 cgroup2 rw\n";
        machine.put("proc/self/mountinfo", mounts);
        machine.put("cg/a/cpu.max", "150000 100000\n");
        let mut packed = Vec::new();
        let written = write_from(&machine, &mut packed).unwrap();
        assert_eq!(written, 7);
        let back = read_tar(MultiGzDecoder::new(&*packed)).unwrap();
        let text = |path| String::from_utf8(back.read(path).unwrap()).unwrap();
        assert_eq!(text("proc/cpuinfo"), "processor : 0\nSerial : 0000\n");
        assert_eq!(text("proc/self/status"), "Cpus_allowed_list:\t0\n");
        assert!(!text("proc/self/mountinfo").contains("secret"));
        let (was, is) = (detect(&machine), detect(&back));
        assert_eq!(was, is);
        assert_eq!(is.limits().quota.map(platform::Quota::cpus), Some(1.5));
    }

    /// Goal: an input that is no machine is refused. Method: text, and an archive of something else.
    #[test]
    fn other_files_are_refused() {
        assert!(read_tar(&b"no archive, but a longer text than nothing"[..]).is_err());
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        archive
            .append_data(&mut header, "music/song", &b"la"[..])
            .unwrap();
        let bytes = archive.into_inner().unwrap();
        assert!(matches!(read_tar(&*bytes), Err(DumpError::Foreign)));
    }
}
