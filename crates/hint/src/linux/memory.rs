//! Memory files: made, mapped, and asked whether anything else has them.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::ptr::{self, NonNull};

use platform::{Memory, Os};

/// A word of memory that is shared with other processes. It is laid out as the number itself.
pub(super) type Word = <Os as Memory>::AtomicU64;

/// The seals of a memory file: its size stays, and so do the seals.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A memory file of a size that does not change.
#[derive(Debug)]
pub(super) struct MemoryFile {
    file: File,
    bytes: usize,
}

impl MemoryFile {
    /// A file of zeros, which only its owner may open.
    pub(super) fn new(name: &CStr, bytes: usize) -> io::Result<MemoryFile> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string that ends in a zero.
        let number = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the number is that of a new file, which nothing else has.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        file.set_len(bytes as u64)?;
        // Nobody but the owner opens it again by its name in /proc.
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
        // SAFETY: no memory is passed.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(MemoryFile { file, bytes })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Maps it, to write or only to read. All of it is in memory then.
    pub(super) fn map(&self, writes: bool) -> io::Result<Mapping> {
        Mapping::of(&self.file, self.bytes, writes)
    }

    /// Overwrites all of it: these words, then zeros. Pages of memory that are mapped stay where they are.
    pub(super) fn fill(&self, first: &[u64]) -> io::Result<()> {
        let mut bytes = vec![0; self.bytes];
        for (place, word) in bytes.chunks_exact_mut(8).zip(first) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        self.file.write_all_at(&bytes, 0)
    }

    /// The same file, opened for another process: [`is_held`](MemoryFile::is_held) says so until all of its
    /// copies are closed and all of its mappings are gone.
    pub(super) fn open_again(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path())
    }

    /// Whether another process can still write to it, by a file that was opened
    /// [again](MemoryFile::open_again). A read lease is granted for files that are open for no writer;
    /// the file that was made at first does not count as one.
    pub(super) fn is_held(&self) -> io::Result<bool> {
        let look = File::open(self.path())?;
        let lease = |kind: libc::c_int| {
            // SAFETY: no memory is passed.
            match unsafe { libc::fcntl(look.as_raw_fd(), libc::F_SETLEASE, kind) } {
                0.. => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        match lease(libc::F_RDLCK) {
            Ok(()) => lease(libc::F_UNLCK).map(|()| false),
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}

/// Whether the file is a memory file that never becomes shorter: else to read its mapping could end the
/// process.
pub(super) fn keeps_its_size(file: BorrowedFd<'_>) -> bool {
    // SAFETY: no memory is passed.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
}

/// Mapped words of a memory file.
#[derive(Debug)]
pub(super) struct Mapping {
    first: NonNull<Word>,
    bytes: usize,
}

// SAFETY: the words are atomics, and the mapping is of the whole process.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps that many bytes of a file that has them for ever.
    pub(super) fn of(file: &File, bytes: usize, writes: bool) -> io::Result<Mapping> {
        let access = if writes {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: the system chooses where, so nothing of this process is replaced.
        let place =
            unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), 0) };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(place.cast()).expect("nothing is mapped at zero");
        Ok(Mapping { first, bytes })
    }

    /// All words. Those of a mapping that is only read are to be loaded and nothing else.
    pub(super) fn words(&self) -> NonNull<[Word]> {
        NonNull::slice_from_raw_parts(self.first, self.bytes / size_of::<Word>())
    }

    /// The same as long as the mapping is there.
    pub(super) fn as_words(&self) -> &[Word] {
        // SAFETY: the memory is mapped, aligned to a page, and never becomes shorter; a word is an atomic of
        // the same layout as its number, for which all bits are valid.
        unsafe { self.words().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and its words live no longer than it.
        _ = unsafe { libc::munmap(self.first.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use platform::{Atomic, Ordering};

    use super::*;

    /// Goal: a file counts as held as long as another open file of it is there, in whatever way. Method: an
    /// open file, then its mapping alone, then neither.
    #[test]
    fn a_file_is_held_until_the_last_mapping_is_gone() {
        let made = MemoryFile::new(c"test", 4096).unwrap();
        let own = (made.map(true).unwrap(), made.map(false).unwrap());
        assert!(!made.is_held().unwrap());
        let opened = made.open_again().unwrap();
        assert!(made.is_held().unwrap());
        let mapped = Mapping::of(&opened, 4096, true).unwrap();
        drop(opened);
        assert!(made.is_held().unwrap());
        mapped.as_words()[3].store(5, Ordering::Relaxed);
        assert_eq!(own.1.as_words()[3].load(Ordering::Relaxed), 5);
        drop(mapped);
        assert!(!made.is_held().unwrap());
        made.fill(&[7]).unwrap();
        let read = |word: usize| own.1.as_words()[word].load(Ordering::Relaxed);
        assert_eq!((read(0), read(3)), (7, 0));
        assert!(keeps_its_size(std::os::fd::AsFd::as_fd(&made.file)));
        assert!(made.file.set_len(0).is_err());
    }
}
