//! The first file system of the machine: busybox, our programs, their libraries, and a script, as a cpio
//! archive of the kind that the kernel unpacks (`newc`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output;

/// Folders that things are mounted at, or that programs expect.
const FOLDERS: &[&str] = &[
    "bin",
    "dev",
    "etc",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "var",
    "var/run",
    "var/run/scx",
    "var/run/scx/root",
];

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// The first program: mounts, then the script, then off.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
sh /script
poweroff -f
";

/// Writes the archive.
///
/// # Errors
/// In one line: which file cannot be read or written.
pub(super) fn write(
    to: &Path,
    busybox: &Path,
    programs: &[PathBuf],
    script: &str,
) -> Result<(), String> {
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.folder(folder);
    }
    archive.file("bin/busybox", PROGRAM, &read(busybox)?);
    for program in programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("bin/{name}"), PROGRAM, &read(program)?);
        for library in libraries(program)? {
            archive.file(
                library.trim_start_matches('/'),
                PROGRAM,
                &read(library.as_ref())?,
            );
        }
    }
    archive.file("init", PROGRAM, INIT.as_bytes());
    archive.file("script", PROGRAM, script.as_bytes());
    fs::write(to, archive.end()).map_err(|error| format!("{}: {error}", to.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The libraries that a program is linked with, as `ldd` finds them.
fn libraries(program: &Path) -> Result<Vec<String>, String> {
    let mut ldd = Command::new("ldd");
    ldd.arg(program);
    let text = output(ldd, "ldd")?;
    let words = text.split_whitespace();
    Ok(words
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect())
}

/// An archive that is being written.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    names: Vec<String>,
}

impl Archive {
    /// A folder, unless it is there; those above it have to be.
    fn folder(&mut self, name: &str) {
        if !self.names.iter().any(|known| known == name) {
            self.entry(name, FOLDER, &[]);
        }
    }

    /// A file with the folders above it, unless it is there.
    fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        for (at, _) in name.match_indices('/') {
            self.folder(&name[..at]);
        }
        if !self.names.iter().any(|known| known == name) {
            self.entry(name, mode, content);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.names.push(name.to_owned());
        let number = self.names.len();
        let (size, name_size) = (content.len(), name.len() + 1);
        // Inode, mode, owner, group, links, time, size, four of devices, length of the name, sum.
        let fields = [
            number,
            mode as usize,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        let whole = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(whole, 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the archive is one that others read, with each folder before what is in it and nothing twice.
    /// Method: the bytes of a small one, by hand.
    #[test]
    fn an_archive_has_its_parts_in_order() {
        let mut archive = Archive::default();
        archive.file("lib/a/b.so", PROGRAM, b"12345");
        archive.file("lib/a/b.so", PROGRAM, b"again");
        archive.folder("lib");
        assert_eq!(archive.names, ["lib", "lib/a", "lib/a/b.so"]);
        let bytes = archive.end();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("070701").count(), 4);
        // Header of 110 bytes and the name with its end, filled up to 4.
        let file = text.find("lib/a/b.so").expect("its name") + "lib/a/b.so\0".len();
        assert_eq!(&bytes[file.next_multiple_of(4)..][..8], b"12345\0\0\0");
        assert!(!text.contains("again"));
    }
}
