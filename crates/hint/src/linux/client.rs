//! A program's way to its page.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;
use std::sync::Arc;

use event::Nanos;
use platform::{Atomic, Ordering, Os, Platform};

use super::memory::{Mapping, keeps_its_size};
use super::wire::{Answer, Garbled, Status, is_open, receive};
use crate::error::{ConnectError, ConnectErrorKind, PATH_BYTES_MAX, PATIENCE_MILLIS};
use crate::layout::{LINE_WORDS, MAGIC, VERSION, header, shape, version_in};
use crate::page::{Keeper, Page};

/// The sizes that a page may have.
const MEMORY_PAGE: u32 = 4096;
const BYTES_MAX: u32 = 1 << 20;

/// What keeps a page: its memory, and the socket, whose end gives the page back.
struct Connected {
    _mapping: Mapping,
    socket: OwnedFd,
}

impl Keeper for Connected {
    fn is_heard(&self) -> bool {
        is_open(self.socket.as_fd())
    }
}

/// Gets this process a page from the broker that listens at `path`. The process has it until the page and all
/// of its slots are dropped, or until it ends.
///
/// The child of a fork must not publish in it: the page is its parent's. (If it does, it lies about its
/// parent's threads, and no worse.)
///
/// Costs some system calls. Waits for the broker, a quarter of a second at most for each of two steps.
///
/// # Errors
/// If no broker listens there, if it does not answer, if it has no page left, or if it numbers processes
/// otherwise than this process is numbered here (as in a container).
pub fn connect(path: &Path) -> Result<Arc<Page<Os>>, ConnectError> {
    page_from(path).map_err(|kind| ConnectError::new(path, kind))
}

fn page_from(path: &Path) -> Result<Arc<Page<Os>>, ConnectErrorKind> {
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        return Err(ConnectErrorKind::PathTooLong(bytes));
    }
    let socket = open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => ConnectErrorKind::Denied(error),
        Some(libc::EAGAIN) => ConnectErrorKind::Busy,
        _ => ConnectErrorKind::NoBroker(error),
    })?;
    let patience = Nanos::from_millis(PATIENCE_MILLIS.into());
    let (words, file) = receive(socket.as_fd(), Os.now() + patience)?;
    let answer = Answer::unpack(words).map_err(|garbled| match garbled {
        Garbled::Version(theirs) => ConnectErrorKind::Version(theirs),
        Garbled::Magic | Garbled::Status => ConnectErrorKind::Garbled,
    })?;
    match answer.status {
        Status::Granted => {}
        Status::Taken => return Err(ConnectErrorKind::NoPage),
        Status::Enough => return Err(ConnectErrorKind::EnoughPages),
    }
    if answer.process != process::id() {
        return Err(ConnectErrorKind::OtherNumbers(answer.process));
    }
    let file = file.filter(|file| is_page(file, answer.bytes));
    let file = file.ok_or(ConnectErrorKind::Garbled)?;
    let mapping = Mapping::of(&file, answer.bytes as usize, true);
    let mapping = mapping.map_err(ConnectErrorKind::NoAnswer)?;
    check_header(&mapping, &answer).map_err(ConnectErrorKind::Header)?;
    let words = mapping.words();
    let connected = Connected {
        _mapping: mapping,
        socket,
    };
    // SAFETY: the mapping is kept, and the words are where it is.
    Ok(Arc::new(unsafe {
        Page::over(words, Some(process::id()), Box::new(connected))
    }))
}

/// Whether this is a file that a page can be, now and later.
fn is_page(file: &File, bytes: u32) -> bool {
    let has_size = bytes.is_multiple_of(MEMORY_PAGE)
        && (MEMORY_PAGE..=BYTES_MAX).contains(&bytes)
        && (bytes as usize).is_multiple_of(LINE_WORDS * 8);
    let found = file.metadata();
    let is_as_long = found.is_ok_and(|found| found.len() == u64::from(bytes));
    has_size && is_as_long && keeps_its_size(file.as_fd())
}

/// Whether the header is what the broker's answer says; the part that is not.
fn check_header(page: &Mapping, answer: &Answer) -> Result<(), &'static str> {
    let words = page.as_words();
    // Relaxed: the page was handed over by a system call.
    let word = |word: usize| words[word].load(Ordering::Relaxed);
    let slots = (words.len() / LINE_WORDS - 1) as u32;
    let parts = [
        ("magic", word(header::MAGIC) == MAGIC),
        ("version", version_in(word(header::SHAPE)) == VERSION),
        ("number of slots", word(header::SHAPE) == shape(slots)),
        (
            "process",
            word(header::PROCESS) == u64::from(answer.process),
        ),
    ];
    match parts.iter().find(|(_, fits)| !fits) {
        Some(&(part, _)) => Err(part),
        None => Ok(()),
    }
}

/// A socket that is connected to the one at this path. Waits no longer than the patience.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let number = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the number is that of a new socket, which nothing else has.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let patience = libc::timeval {
        tv_sec: 0,
        tv_usec: (PATIENCE_MILLIS * 1000) as _, // Of another type in each C library.
    };
    let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDTIMEO);
    let bytes = size_of::<libc::timeval>() as libc::socklen_t;
    let value = (&raw const patience).cast();
    // SAFETY: the value is as large as is said.
    if unsafe { libc::setsockopt(number, level, option, value, bytes) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: for a struct of numbers all zeros are a value.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    if name.len() >= address.sun_path.len() || name.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in address.sun_path.iter_mut().zip(name) {
        *place = *byte as libc::c_char;
    }
    let bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    let place = (&raw const address).cast();
    // SAFETY: the address is as large as is said, and its path ends in a zero.
    match unsafe { libc::connect(socket.as_raw_fd(), place, bytes) } {
        0 => Ok(socket),
        _ => Err(io::Error::last_os_error()),
    }
}
