//! The broker: it listens at a socket, hands each process that connects a page of its own, and takes the page
//! back when the process ends.
//!
//! Which process connects, the socket says (SO_PEERCRED); nothing that a process sends is read. A page has a
//! process from the message with its file on until the process has ended or closed the socket, whichever is
//! first. It is handed out again only when nothing else can write to it any more: a child of the last process
//! may still have it mapped.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use platform::{Atomic, Ordering};

use super::memory::{Mapping, MemoryFile};
use super::place::Place;
use super::wire::{Answer, Status, send};
use crate::layout::{LINE_WORDS, MAGIC, shape};

/// How many pages one process can have: it may have more than one job system.
const PAGES_EACH: usize = 4;

/// How long the broker accepts nothing after the system had no file left for that.
const EXHAUSTED_MILLIS: libc::c_int = 100;

/// Newer than the constants of crate libc; Linux from 6.5 on.
const SO_PEERPIDFD: libc::c_int = 77;

/// What hands out pages. See the module.
pub struct Broker {
    place: Place,
    listener: UnixListener,
    pages: Vec<MemoryFile>,
    bindings: Mapping,
    /// Whether the system can say that nothing else has a page. If not, each is handed out once.
    can_ask: bool,
    /// Which pages have been handed out before.
    used: Vec<bool>,
    clients: Vec<Client>,
}

/// A process with a page.
struct Client {
    process: u32,
    page: usize,
    socket: UnixStream,
    /// Readable once the process has ended; `None` where the system has no such thing.
    end: Option<OwnedFd>,
}

impl Broker {
    pub(super) fn new(
        path: &Path,
        pages: Vec<MemoryFile>,
        bindings: Mapping,
    ) -> io::Result<Broker> {
        let (listener, place) = Place::listen(path)?;
        let can_ask = pages.first().is_some_and(can_be_asked);
        Ok(Broker {
            place,
            listener,
            used: vec![false; pages.len()],
            pages,
            bindings,
            can_ask,
            clients: Vec::new(),
        })
    }

    /// Hands out pages and takes them back until `stop` can be read or is closed at its other end.
    ///
    /// # Errors
    /// If the system refuses to wait. No process can bring that about.
    pub fn serve(&mut self, stop: BorrowedFd<'_>) -> io::Result<()> {
        let mut rests = false;
        loop {
            let asked = |file: BorrowedFd<'_>| libc::pollfd {
                fd: file.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let mut polled = vec![asked(stop), asked(self.listener.as_fd())];
            if rests {
                polled[1].events = 0;
            }
            for client in &self.clients {
                polled.push(asked(client.socket.as_fd()));
                let mut end = asked(client.socket.as_fd());
                // A negative number is passed over.
                end.fd = client.end.as_ref().map_or(-1, AsRawFd::as_raw_fd);
                polled.push(end);
            }
            let timeout = if rests { EXHAUSTED_MILLIS } else { -1 };
            let count = polled.len() as libc::nfds_t;
            // SAFETY: the list is there until the call is over, and is that long.
            if unsafe { libc::poll(polled.as_mut_ptr(), count, timeout) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
                continue;
            }
            let said = |number: usize| polled[number].revents != 0;
            if said(0) {
                return Ok(());
            }
            // From the last on, so that the numbers of the others stay.
            for client in (0..self.clients.len()).rev() {
                if said(2 + 2 * client) || said(3 + 2 * client) {
                    self.take_back(client);
                }
            }
            rests = said(1) && !self.accept_all();
        }
    }

    /// Serves in a child of this process, which ends when the returned value is dropped or this process has
    /// ended. It is to be called before the process starts threads, as any fork is.
    ///
    /// # Errors
    /// If the system refuses another process.
    pub fn fork(mut self) -> io::Result<BrokerProcess> {
        let (stop, keep) = UnixStream::pair()?;
        // SAFETY: the child makes system calls and uses the allocator, which the C library keeps usable
        // there.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(keep);
                // SAFETY: what the terminal sends is for the scheduler, whose end is the broker's.
                unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
                let ended = self.serve(stop.as_fd());
                drop(self);
                // SAFETY: none of what the parent has prepared for its end is to be done twice.
                unsafe { libc::_exit(i32::from(ended.is_err())) }
            }
            process => {
                let path = self.place.leave();
                Ok(BrokerProcess {
                    process,
                    keep: Some(keep),
                    path,
                })
            }
        }
    }

    /// Answers all that wait. False if the system has no file left.
    fn accept_all(&mut self) -> bool {
        loop {
            match self.listener.accept() {
                // A client that cannot be answered finds its socket closed.
                Ok((socket, _)) => _ = self.welcome(socket),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => {
                        return false;
                    }
                    Some(libc::EINTR | libc::ECONNABORTED) => {}
                    _ => return true,
                },
            }
        }
    }

    /// Answers a process that has connected.
    fn welcome(&mut self, socket: UnixStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let Some(process) = process_of(&socket)? else {
            // It is of another namespace, and has no number here.
            return Ok(());
        };
        let end = end_of(&socket, process);
        let has = self
            .clients
            .iter()
            .filter(|client| client.process == process);
        let (status, page) = if has.count() >= PAGES_EACH {
            (Status::Enough, None)
        } else {
            match self.free_page() {
                None => (Status::Taken, None),
                page => (Status::Granted, page),
            }
        };
        let file = page.map(|page| self.prepare(page, process)).transpose()?;
        let bytes = page.map_or(0, |page| self.pages[page].bytes() as u32);
        let answer = Answer {
            status,
            bytes,
            process,
        };
        if let Some(page) = page {
            self.bind(page, process);
        }
        let sent = send(socket.as_fd(), answer.pack(), file.as_ref());
        if let Some(page) = page {
            self.clients.push(Client {
                process,
                page,
                socket,
                end,
            });
            if sent.is_err() {
                self.take_back(self.clients.len() - 1);
            }
        }
        sent
    }

    /// A page that no process has and no process can write to.
    fn free_page(&self) -> Option<usize> {
        let is_free = |&page: &usize| {
            let is_bound = self.clients.iter().any(|client| client.page == page);
            let is_held = || !self.can_ask || self.pages[page].is_held().unwrap_or(true);
            !(is_bound || self.used[page] && is_held())
        };
        (0..self.pages.len()).find(is_free)
    }

    /// Clears the page, writes its header, and opens it for the process.
    fn prepare(&mut self, page: usize, process: u32) -> io::Result<fs::File> {
        let file = &self.pages[page];
        let slots = (file.bytes() / 8 / LINE_WORDS - 1) as u32;
        file.fill(&[MAGIC, shape(slots), process.into()])?;
        self.used[page] = true;
        file.open_again()
    }

    fn bind(&self, page: usize, process: u32) {
        // Release, partner: the Acquire load in `bound`: the page was cleared before.
        self.bindings.as_words()[page].store(process.into(), Ordering::Release);
    }

    /// The process of this client has ended, or has hung up.
    fn take_back(&mut self, client: usize) {
        let client = self.clients.swap_remove(client);
        self.bind(client.page, 0);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        for client in 0..self.clients.len() {
            self.bind(self.clients[client].page, 0);
        }
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut broker = f.debug_struct("Broker");
        broker
            .field("path", &self.place.path())
            .field("pages", &self.pages.len())
            .finish_non_exhaustive()
    }
}

/// A broker in a process of its own. Dropped, it ends, and removes its socket.
#[derive(Debug)]
pub struct BrokerProcess {
    process: libc::pid_t,
    /// The broker ends when this is closed.
    keep: Option<UnixStream>,
    path: PathBuf,
}

impl BrokerProcess {
    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        drop(self.keep.take());
        // SAFETY: the process is a child of this one, which nothing else waits for.
        _ = unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
    }
}

/// Whether the system says truly whether a file is held: it is not, and then it is.
fn can_be_asked(file: &MemoryFile) -> bool {
    let held = |expected: bool| file.is_held().is_ok_and(|held| held == expected);
    let free = held(false);
    let opened = file.open_again();
    free && opened.is_ok() && held(true)
}

/// The process that has connected.
fn process_of(socket: &UnixStream) -> io::Result<Option<u32>> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    ask(socket, libc::SO_PEERCRED, &mut peer)?;
    Ok(u32::try_from(peer.pid).ok().filter(|&process| process != 0))
}

/// What tells that the process which has connected has ended.
fn end_of(socket: &UnixStream, process: u32) -> Option<OwnedFd> {
    let mut number: libc::c_int = -1;
    if ask(socket, SO_PEERPIDFD, &mut number).is_err() {
        // An older system: by its number, which could be that of another process by now. Then the socket is
        // closed already, and that ends it, too.
        // SAFETY: no memory is passed.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        number = opened as libc::c_int;
    }
    // SAFETY: the number is that of a new file, which nothing else has.
    (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

/// Asks about a socket.
fn ask<T: Copy>(socket: &UnixStream, what: libc::c_int, answer: &mut T) -> io::Result<()> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    let place = (&raw mut *answer).cast();
    let number = socket.as_raw_fd();
    // SAFETY: the place is as large as is said, and all bits that the system puts there are a value of it.
    match unsafe { libc::getsockopt(number, libc::SOL_SOCKET, what, place, &raw mut bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
