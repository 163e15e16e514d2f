//! Shows what programs say about their waits, as a scheduler sees it, without being one.
//!
//! ```text
//! cargo run -p paceline-hint --example listen -- /tmp/hints.sock
//! PACELINE_HINTS=/tmp/hints.sock ./program
//! ```
//!
//! It looks twenty times a second, and prints all that is said whenever that has changed: a line for each
//! thread, `nothing` if no thread says anything, and what was passed over, which the README explains. Without
//! an argument it says something itself, shows that, and ends.
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own, with std's threads"
)]

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    listen::run()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("hints are Linux's");
}

#[cfg(target_os = "linux")]
mod listen {
    use std::fmt::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use std::process::ExitCode;
    use std::time::Duration;

    use event::{Nanos, Task};
    use paceline_hint::{Entry, Run, Segment, Shape, Skipped, connect};
    use platform::Lane;

    const SHAPE: Shape = Shape {
        pages: 64,
        slots: 255,
    };
    const LOOK: Duration = Duration::from_millis(50);

    pub(crate) fn run() -> ExitCode {
        let told = match socket() {
            Ok(told) => told,
            Err(usage) => {
                eprintln!("{usage}");
                return ExitCode::from(2);
            }
        };
        let own = || std::env::temp_dir().join(format!("paceline-listen-{}", std::process::id()));
        let path = told.clone().unwrap_or_else(own);
        let (segment, mut broker) = match Segment::new(SHAPE, &path) {
            Ok(both) => both,
            Err(why) => {
                eprintln!("{why}");
                return ExitCode::FAILURE;
            }
        };
        let (stop, stopped) = UnixStream::pair().expect("two sockets");
        let serving = std::thread::spawn(move || broker.serve(stopped.as_fd()));
        if told.is_some() {
            println!("listening at {}", path.display());
            look_while(&segment, || !serving.is_finished());
            let why = match serving.join() {
                Ok(Err(why)) => why.to_string(),
                _ => "the broker has ended".to_owned(),
            };
            eprintln!("{}: {why}", path.display());
            return ExitCode::FAILURE;
        }
        let page = connect(&path).expect("the broker of this process answers");
        // The first thread has the number of its process.
        let me = std::process::id();
        let mut slot = page.slot(Task(me)).expect("a new page has slots");
        slot.publish_run(Run {
            lane: Lane::Frame,
            deadline: Some(Nanos::from_secs(1)),
        });
        print!("{}", look(&segment).replace(&me.to_string(), "ME"));
        slot.clear_run();
        println!(
            "and then {}",
            if look(&segment).is_empty() {
                "nothing"
            } else {
                "more"
            }
        );
        drop((slot, page, stop));
        let served = serving.join().is_ok_and(|served| served.is_ok());
        if served {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// The path that was given.
    fn socket() -> Result<Option<PathBuf>, &'static str> {
        let mut words = std::env::args_os().skip(1);
        let first = words.next();
        let is_path = first.as_ref().is_none_or(|word| {
            let text = word.to_string_lossy();
            !text.is_empty() && !text.starts_with('-')
        });
        if is_path && words.next().is_none() {
            Ok(first.map(PathBuf::from))
        } else {
            Err("usage: listen [SOCKET], where SOCKET is the path to listen at")
        }
    }

    fn look_while(segment: &Segment, goes_on: impl Fn() -> bool) {
        let mut last = String::new();
        while goes_on() {
            let now = look(segment);
            if now != last {
                print!("{}", if now.is_empty() { "nothing\n" } else { &now });
                last = now;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// All that is said, a line each.
    fn look(segment: &Segment) -> String {
        let mut text = String::new();
        let skipped = segment.read(&mut |entry| text += &line(entry));
        if skipped != Skipped::default() {
            let _ = writeln!(text, "passed over: {skipped}");
        }
        text
    }

    fn line(entry: &Entry<'_>) -> String {
        let mut text = format!("process {}: thread {}", entry.process, entry.thread.0);
        if let Some(Run { lane, deadline }) = entry.runs {
            let lane = format!("{lane:?}").to_lowercase();
            let _ = write!(text, " runs {lane}");
            if let Some(deadline) = deadline {
                let _ = write!(text, " until {deadline}");
            }
        }
        if !entry.waits_for.is_empty() {
            let tids = entry.waits_for.iter().map(|task| task.0.to_string());
            let _ = write!(text, " waits for {}", tids.collect::<Vec<_>>().join(", "));
        }
        text + "\n"
    }
}
