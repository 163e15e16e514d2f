//! What goes through the socket: one message of the broker's, with a file. The README describes it.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use event::Nanos;
use platform::{Os, Platform};

use crate::error::{ConnectErrorKind, MESSAGE_BYTES};
use crate::layout::{MAGIC, VERSION};

/// The words of a message.
const WORDS: usize = 4;
const BYTES: usize = MESSAGE_BYTES;
const _: () = assert!(WORDS * 8 == BYTES);

/// What the broker says to a process that has connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) status: Status,
    /// The size of the page.
    pub(super) bytes: u32,
    /// The process, as the broker numbers it.
    pub(super) process: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Granted,
    /// All pages have a process.
    Taken,
    /// The process has as many pages as one may have.
    Enough,
}

/// Why a message is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Garbled {
    Magic,
    Version(u32),
    Status,
}

impl Answer {
    pub(super) fn pack(self) -> [u64; WORDS] {
        let status = match self.status {
            Status::Granted => 0,
            Status::Taken => 1,
            Status::Enough => 2,
        };
        let version = u64::from(VERSION);
        [
            MAGIC,
            status << 32 | version,
            self.bytes.into(),
            self.process.into(),
        ]
    }

    pub(super) fn unpack(words: [u64; WORDS]) -> Result<Answer, Garbled> {
        let [magic, head, bytes, process] = words;
        if magic != MAGIC {
            return Err(Garbled::Magic);
        }
        let version = head as u32; // The lower half.
        if version != VERSION {
            return Err(Garbled::Version(version));
        }
        let status = match head >> 32 {
            0 => Status::Granted,
            1 => Status::Taken,
            2 => Status::Enough,
            _ => return Err(Garbled::Status),
        };
        let number = |word| u32::try_from(word).map_err(|_| Garbled::Status);
        Ok(Answer {
            status,
            bytes: number(bytes)?,
            process: number(process)?,
        })
    }
}

/// Room for one file beside a message, aligned as the system wants it.
#[repr(C)]
union FileRoom {
    header: libc::cmsghdr,
    // SAFETY: the macro computes with its argument, and reads no memory.
    bytes: [u8; unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as usize],
}

/// Sends a message without waiting, with a file if there is one.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    words: [u64; WORDS],
    file: Option<&File>,
) -> io::Result<()> {
    let mut words = words;
    // SAFETY: for a struct of numbers and pointers, and for bytes, all zeros are a value.
    let (mut message, mut room) = unsafe { mem::zeroed::<(libc::msghdr, FileRoom)>() };
    let mut part = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: BYTES,
    };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if let Some(file) = file {
        message.msg_control = (&raw mut room).cast();
        message.msg_controllen = size_of::<FileRoom>() as _;
        // SAFETY: the room is large enough for one file, and aligned for its header.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header)
                .cast::<RawFd>()
                .write_unaligned(file.as_raw_fd());
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message's parts are the values above, which live until the end.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    match usize::try_from(sent) {
        Ok(BYTES) => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Receives a message, with a file if one came. It may come in pieces, all of them until this moment.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    until: Nanos,
) -> Result<([u64; WORDS], Option<File>), ConnectErrorKind> {
    let (mut bytes, mut received, mut file) = ([0; BYTES], 0, None);
    while received < BYTES {
        if !is_readable(socket, until).map_err(ConnectErrorKind::NoAnswer)? {
            return Err(match received {
                0 => ConnectErrorKind::Silent,
                some => ConnectErrorKind::CutShort(some),
            });
        }
        let (count, beside) = match receive_piece(socket, &mut bytes[received..]) {
            Ok(piece) => piece,
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => continue,
                _ => return Err(ConnectErrorKind::NoAnswer(error)),
            },
        };
        if count == 0 {
            return Err(match received {
                0 => ConnectErrorKind::HungUp,
                some => ConnectErrorKind::CutShort(some),
            });
        }
        received += count;
        file = file.or(beside);
    }
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    Ok((words, file))
}

/// Waits until something can be read, or the socket is closed at its other end. False: the time is over.
fn is_readable(socket: BorrowedFd<'_>, until: Nanos) -> io::Result<bool> {
    loop {
        let left = until - Os.now();
        let mut asked = libc::pollfd {
            fd: socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // Rounded up, so that it does not turn round and round within the last millisecond.
        let millis = left.0.div_ceil(1_000_000).min(i32::MAX as u64) as libc::c_int;
        // SAFETY: the list is one value, which lives until the call is over.
        match unsafe { libc::poll(&raw mut asked, 1, millis) } {
            0 => return Ok(false),
            1.. => return Ok(true),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Receives what is there, without waiting: how many bytes, and the file beside them.
fn receive_piece(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Option<File>)> {
    // SAFETY: as in `send`.
    let (mut message, mut room) = unsafe { mem::zeroed::<(libc::msghdr, FileRoom)>() };
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut room).cast();
    message.msg_controllen = size_of::<FileRoom>() as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the message's parts are the values above, which live until the end.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let Ok(received) = usize::try_from(received) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the system has filled in the room, and how much of it. One file fits, so no more came.
    let file = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let is_file = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS;
        is_file.then(|| {
            let number = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
            File::from(OwnedFd::from_raw_fd(number))
        })
    };
    Ok((received, file))
}

/// Whether the socket is still open at its other end. Neither waits nor takes anything out of it.
pub(super) fn is_open(socket: BorrowedFd<'_>) -> bool {
    let mut byte = 0u8;
    let flags = libc::MSG_DONTWAIT | libc::MSG_PEEK;
    // SAFETY: the place is one byte, and as large as is said.
    let found = unsafe { libc::recv(socket.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
    match found {
        0 => false,
        1.. => true,
        _ => matches!(
            io::Error::last_os_error().kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an answer comes out as it went in, and words that are none are errors. Method: each status, then
    /// each word changed.
    #[test]
    fn answers_are_read_as_they_were_written() {
        for status in [Status::Granted, Status::Taken, Status::Enough] {
            let answer = Answer {
                status,
                bytes: 4096,
                process: 17,
            };
            let words = answer.pack();
            assert_eq!(Answer::unpack(words), Ok(answer));
            let changed = |word: usize, bits: u64| {
                let mut words = words;
                words[word] ^= bits;
                Answer::unpack(words)
            };
            assert_eq!(changed(0, 1), Err(Garbled::Magic));
            assert_eq!(changed(1, 2), Err(Garbled::Version(VERSION ^ 2)));
            assert_eq!(changed(1, 4 << 32), Err(Garbled::Status));
            assert_eq!(changed(2, 1 << 32), Err(Garbled::Status));
        }
    }
}
