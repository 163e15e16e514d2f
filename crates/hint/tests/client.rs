//! Programs before sockets that are no broker's, or not as they should be; each is told so in one line.
//!
//! Nothing is asserted about time.

#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::Write;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, process, ptr};

use paceline_hint::{ConnectErrorKind, MAGIC, VERSION, connect};
use platform::{Os, Platform, Thread, ThreadSpec};

/// What a broker would send: the message, and the header of the page beside it.
#[derive(Clone, Copy)]
struct Told {
    message: [u64; 4],
    header: [u64; 3],
}

impl Told {
    /// As it should be.
    fn right() -> Told {
        let (process, version) = (u64::from(process::id()), u64::from(VERSION));
        Told {
            message: [MAGIC, version, 4096, process],
            header: [MAGIC, 63 << 32 | version, process],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let words = self.message.iter();
        words.flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// The page.
    fn file(&self) -> File {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let name = CString::new("test").unwrap();
        // SAFETY: the name ends in a zero; the number is that of a new file, which nothing else has.
        let file = unsafe {
            let number = libc::memfd_create(name.as_ptr(), flags);
            File::from(OwnedFd::from_raw_fd(number))
        };
        file.set_len(4096).unwrap();
        for (number, word) in (0..).zip(self.header) {
            file.write_all_at(&word.to_ne_bytes(), number * 8).unwrap();
        }
        // SAFETY: no memory is passed.
        let sealed =
            unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
        assert_eq!(sealed, 0);
        file
    }
}

/// Sends bytes, with a file beside them.
fn send(socket: &UnixStream, bytes: &[u8], file: &File) {
    let mut room = [0u64; 4];
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: for a struct of numbers and pointers all zeros are a value.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = room.as_mut_ptr().cast();
    // SAFETY: the room is larger than what one file takes, and aligned for it; the parts live until the end.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        ptr::write(&raw mut (*header).cmsg_level, libc::SOL_SOCKET);
        ptr::write(&raw mut (*header).cmsg_type, libc::SCM_RIGHTS);
        ptr::write(&raw mut (*header).cmsg_len, libc::CMSG_LEN(4) as _);
        libc::CMSG_DATA(header)
            .cast::<i32>()
            .write_unaligned(file.as_raw_fd());
        let sent = libc::sendmsg(socket.as_raw_fd(), &raw const message, 0);
        assert_eq!(sent, bytes.len() as isize);
    }
}

/// What a program is told by a broker that answers so; `None` if it got a page.
fn told(answer: impl FnOnce(&UnixStream) + Send + 'static) -> Option<(ConnectErrorKind, String)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hints.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (done, is_done) = UnixStream::pair().unwrap();
    let broker = move || {
        let (socket, _) = listener.accept().unwrap();
        answer(&socket);
        // The connection is open until the program has had its answer, unless `answer` has ended it.
        _ = std::io::Read::read(&mut &is_done, &mut [0]);
    };
    let broker = Os.spawn(ThreadSpec::default(), Box::new(broker)).unwrap();
    let got = connect(&path);
    drop(done);
    broker.join().unwrap();
    got.err().map(|error| {
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("hints: {}: ", path.display())),
            "{text}"
        );
        assert!(!text.contains('\n') && text.contains(';'), "{text}");
        (error.into_kind(), text)
    })
}

/// Goal: a broker that does not answer as it should is told from others. Method: one that says nothing, one
/// that hangs up, one that says a part, and one that says something else.
#[test]
fn a_broker_that_does_not_answer_is_named() {
    let (kind, text) = told(|_| ()).unwrap();
    assert!(matches!(kind, ConnectErrorKind::Silent), "{text}");
    assert!(text.contains("did not answer within 250 ms"), "{text}");
    let (kind, text) = told(|socket| socket.shutdown(std::net::Shutdown::Both).unwrap()).unwrap();
    assert!(matches!(kind, ConnectErrorKind::HungUp), "{text}");
    let part = |mut socket: &UnixStream| socket.write_all(&Told::right().bytes()[..20]).unwrap();
    let (kind, text) = told(part).unwrap();
    assert!(matches!(kind, ConnectErrorKind::CutShort(20)), "{text}");
    let ends = move |socket: &UnixStream| {
        part(socket);
        socket.shutdown(std::net::Shutdown::Both).unwrap();
    };
    let (kind, text) = told(ends).unwrap();
    assert!(matches!(kind, ConnectErrorKind::CutShort(20)), "{text}");
    assert!(text.contains("20 bytes of an answer"), "{text}");
    let (kind, text) = told(|mut socket| socket.write_all(&[7; 32]).unwrap()).unwrap();
    assert!(matches!(kind, ConnectErrorKind::Garbled), "{text}");
}

/// Goal: a message that comes in pieces is one message, wherever the file is. Method: two pieces, the file
/// beside the first and beside the second.
#[test]
fn a_message_may_come_in_pieces() {
    let first = |mut socket: &UnixStream| {
        let right = Told::right();
        send(socket, &right.bytes()[..10], &right.file());
        socket.write_all(&right.bytes()[10..]).unwrap();
    };
    assert!(told(first).is_none());
    let second = |mut socket: &UnixStream| {
        let right = Told::right();
        socket.write_all(&right.bytes()[..31]).unwrap();
        send(socket, &right.bytes()[31..], &right.file());
    };
    assert!(told(second).is_none());
}

/// Goal: a page is refused whose header is not what the answer says. Method: each part of it changed.
#[test]
fn a_page_with_another_header_is_refused() {
    let whole = |told: Told| move |socket: &UnixStream| send(socket, &told.bytes(), &told.file());
    assert!(told(whole(Told::right())).is_none());
    for (word, bits, part) in [
        (0, 1, "magic"),
        (1, 2, "version"),
        (1, 1 << 32, "number of slots"),
        (2, 1, "process"),
    ] {
        let mut wrong = Told::right();
        wrong.header[word] ^= bits;
        let (kind, text) = told(whole(wrong)).unwrap();
        assert!(
            matches!(kind, ConnectErrorKind::Header(found) if found == part),
            "{text}"
        );
        assert!(
            text.contains(&format!("whose {part} does not fit")),
            "{text}"
        );
    }
}

/// The reason why this path leads to no broker.
fn reason(path: &Path) -> (ConnectErrorKind, String) {
    let error = connect(path).unwrap_err();
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    (error.into_kind(), text)
}

/// Goal: why a socket cannot be connected to is said. Method: no socket, a path that is too long, a queue
/// that is full, and a socket that this user may not write to.
#[test]
fn a_socket_that_leads_nowhere_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hints.sock");
    let (kind, text) = reason(&path);
    assert!(matches!(kind, ConnectErrorKind::NoBroker(_)), "{text}");
    assert!(text.contains("no scheduler listens there"), "{text}");
    let (kind, text) = reason(&folder.path().join("x".repeat(200)));
    assert!(matches!(kind, ConnectErrorKind::PathTooLong(_)), "{text}");
    assert!(text.contains("107 at most"), "{text}");
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: no memory is passed. The socket listens already, and gets a shorter queue.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let _waits = UnixStream::connect(&path).unwrap();
    let (kind, text) = reason(&path);
    assert!(matches!(kind, ConnectErrorKind::Busy), "{text}");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    // SAFETY: no memory is passed.
    let may_all = unsafe { libc::geteuid() } == 0;
    if may_all {
        println!("root may connect to any socket: nothing is refused");
        return;
    }
    let (kind, text) = reason(&path);
    assert!(matches!(kind, ConnectErrorKind::Denied(_)), "{text}");
}

/// The C compiler's name, if there is one.
fn compiler() -> Option<String> {
    let name = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let asked = process::Command::new(&name).arg("--version").output();
    asked.is_ok_and(|out| out.status.success()).then_some(name)
}

/// Goal: the program in C takes part as the README says. Method: compile it without a warning, and run it
/// beside a broker: what it prints of its slot, and what a scheduler sees of it.
#[test]
fn the_program_in_c_takes_part() {
    let Some(compiler) = compiler() else {
        println!("there is no C compiler (cc, or CC): examples/client.c is not tried");
        return;
    };
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/client.c");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("client");
    let built = process::Command::new(compiler)
        .args([
            "-std=c11",
            "-pthread",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O1",
            "-o",
        ])
        .args([&program, &file])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    let path = folder.path().join("hints.sock");
    let shape = paceline_hint::Shape {
        pages: 1,
        slots: 63,
    };
    let (hints, broker) = paceline_hint::Segment::new(shape, &path).unwrap();
    let broker = broker.fork().unwrap();
    let mut run = process::Command::new(&program);
    run.env(paceline_hint::PATH_VARIABLE, &path);
    run.stdin(process::Stdio::piped())
        .stdout(process::Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        line.trim_end().to_owned()
    };
    let waits = line();
    let mut seen = Vec::new();
    hints.read(&mut |entry| seen.push((entry.thread.0, entry.waits_for.to_vec())));
    let [(thread, others)] = &seen[..] else {
        panic!("{waits}: {seen:?}");
    };
    let (me, other) = (child.id(), others[0].0);
    assert_eq!((*thread, others.len()), (me, 1));
    assert_eq!(
        waits,
        format!("2 {:x} 0 {other:x} 0 0 0 0", u64::from(me) | 1 << 40)
    );
    drop(child.stdin.take());
    assert_eq!(line(), format!("4 {me:x} 0 {other:x} 0 0 0 0"));
    assert!(child.wait().unwrap().success());
    drop(broker);
    let alone = process::Command::new(&program)
        .env(paceline_hint::PATH_VARIABLE, &path)
        .output();
    let alone = alone.unwrap();
    assert!(!alone.status.success() && alone.stdout.is_empty());
}
