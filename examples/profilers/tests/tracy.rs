//! The example `with_tracy` as a viewer sees it.
#![forbid(unsafe_code)]
#![cfg(feature = "tracy")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The version of Tracy's protocol that the client of `Cargo.lock` speaks (`TracyProtocol.hpp`).
const PROTOCOL: u32 = 82;

/// The first byte of the answer: the client speaks this version.
const WELCOME: u8 = 1;

/// A client that has sent nothing for this long has sent all that it has.
const SILENCE: Duration = Duration::from_secs(10);

/// How often the client's port is tried, and how long after each time.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// The example; ended with this.
struct Example(Child);

impl Example {
    /// Starts it so that it waits, at its end, for a viewer on this port.
    fn start(port: u16) -> Example {
        let mut path: PathBuf = std::env::current_exe().expect("a test has a path");
        path.pop();
        path.pop();
        path.push("examples");
        path.push(format!("with_tracy{}", std::env::consts::EXE_SUFFIX));
        let child = Command::new(&path)
            .env("TRACY_PORT", port.to_string())
            .env("TRACY_NO_EXIT", "1")
            .stdout(Stdio::null())
            .spawn();
        let hint = "build it: cargo build -p paceline-profilers --examples --features tracy";
        Example(child.unwrap_or_else(|why| panic!("{}: {why}; {hint}", path.display())))
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn connect(port: u16) -> TcpStream {
    for _ in 0..TRIES {
        if let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            return stream;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("the client does not listen on port {port}");
}

/// Goal: a viewer of Tracy's gets the zones of jobs with their names and places. Method: the first words of
/// Tracy's protocol, and a look for the names in what comes back (it is packed, but a text that has not been
/// there before is in it as it is).
#[test]
fn a_viewer_gets_the_names_of_jobs() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
    let port = free.local_addr().expect("it is bound").port();
    drop(free);
    let _example = Example::start(port);
    let mut viewer = connect(port);
    viewer
        .set_read_timeout(Some(SILENCE))
        .expect("it is not zero");
    viewer.write_all(b"TracyPrf").expect("it listens");
    viewer
        .write_all(&PROTOCOL.to_le_bytes())
        .expect("it listens");

    let mut missing = vec!["physics", "animation", "draw", "with_tracy.rs"];
    let (mut got, mut part) = (Vec::new(), [0; 1 << 16]);
    while !missing.is_empty() {
        match viewer.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => got.extend_from_slice(&part[..bytes]),
        }
        missing.retain(|name| !got.windows(name.len()).any(|text| text == name.as_bytes()));
    }
    assert_eq!(
        got.first(),
        Some(&WELCOME),
        "the client speaks another version than {PROTOCOL}"
    );
    assert!(
        missing.is_empty(),
        "{missing:?} are not in {} bytes",
        got.len()
    );
}
