//! What the kernel says about who runs: `sched_switch`, in a tracefs instance of our own.
//!
//! The instance is made when the recorder is, and removed with it. Should this process be killed, a shell
//! that waits for the end of a pipe removes it ([`Guardian`]). Where tracefs is not mounted it is, in a
//! mount namespace that only this process sees.

use std::ffi::CString;
use std::fs;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use event::Nanos;

use crate::compare::world::Switch;

const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An instance of the kernel's tracer.
pub(crate) struct Recorder {
    instance: PathBuf,
    /// Removes the instance if this process cannot.
    _guardian: Guardian,
}

/// A recording that goes on.
pub(crate) struct Recording<'a> {
    recorder: &'a Recorder,
    tids: Vec<i32>,
}

impl Recorder {
    /// Makes the instance.
    ///
    /// # Errors
    /// If tracefs cannot be used; why.
    pub(crate) fn new() -> Result<Recorder, String> {
        let root = tracefs()?;
        let name = format!("paceline-validate-{}", std::process::id());
        let instance = root.join("instances").join(name);
        let made = fs::create_dir(&instance);
        made.map_err(|error| format!("no instance of tracefs: {error}"))?;
        let undo = format!("echo 0 > '{0}/tracing_on'; rmdir '{0}'", instance.display());
        let recorder = Recorder {
            _guardian: Guardian::new(&undo)?,
            instance,
        };
        recorder.write("tracing_on", "0")?;
        recorder.write("trace_clock", "mono")?;
        recorder.write("buffer_size_kb", "4096")?;
        Ok(recorder)
    }

    /// Begins to record when these threads get and leave CPUs.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn start(&self, tids: &[i32]) -> Result<Recording<'_>, String> {
        let of = |tid: &i32| format!("prev_pid == {tid} || next_pid == {tid}");
        let filter: Vec<String> = tids.iter().map(of).collect();
        self.write("trace", "")?;
        self.write("events/sched/sched_switch/filter", &filter.join(" || "))?;
        self.write("events/sched/sched_switch/enable", "1")?;
        self.write("tracing_on", "1")?;
        Ok(Recording {
            recorder: self,
            tids: tids.to_vec(),
        })
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.instance.join(file);
        fs::write(path, text).map_err(|error| format!("tracefs, {file}: {error}"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        // Failing that, the guardian tries again.
        let _ = fs::remove_dir(&self.instance);
    }
}

impl Recording<'_> {
    /// Ends it; what happened, counted from `began`.
    ///
    /// # Errors
    /// If events were lost, or what the kernel says is not understood.
    pub(crate) fn finish(self, began: Nanos) -> Result<Vec<Switch>, String> {
        let recorder = self.recorder;
        recorder.write("tracing_on", "0")?;
        recorder.write("events/sched/sched_switch/enable", "0")?;
        let text = fs::read(recorder.instance.join("trace"));
        let text = text.map_err(|error| format!("tracefs, trace: {error}"))?;
        parse(&String::from_utf8_lossy(&text), &self.tids, began)
    }
}

/// Where tracefs is.
fn tracefs() -> Result<PathBuf, String> {
    let is_mounted = |root: &&&str| Path::new(root).join("instances").is_dir();
    if let Some(root) = TRACEFS.iter().find(is_mounted) {
        return Ok(PathBuf::from(root));
    }
    mount(TRACEFS[0]).map_err(|error| format!("tracefs is not mounted, and cannot be: {error}"))?;
    Ok(PathBuf::from(TRACEFS[0]))
}

/// Mounts tracefs for this thread, and for those and what it starts from now on.
fn mount(root: &str) -> Result<(), Error> {
    let text = |text: &str| CString::new(text).expect("no zero in it");
    let (root, all, kind) = (text(root), text("/"), text("tracefs"));
    let (none, no_data) = (std::ptr::null(), std::ptr::null());
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the calls read strings that live until they return, and nothing else of ours. The thread's
    // namespace becomes its own before anything is mounted.
    let done = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, all.as_ptr(), none, private, no_data) == 0
            && libc::mount(kind.as_ptr(), root.as_ptr(), kind.as_ptr(), 0, no_data) == 0
    };
    match done {
        true => Ok(()),
        false => Err(Error::last_os_error()),
    }
}

/// Reads the tracer's text: each line `comm-id [cpu] flags seconds: sched_switch: …`.
fn parse(text: &str, tids: &[i32], began: Nanos) -> Result<Vec<Switch>, String> {
    let mut switches = Vec::new();
    for line in text.lines() {
        if let Some(counts) = line.strip_prefix("# entries-in-buffer/entries-written: ") {
            let counts = counts.split_whitespace().next().unwrap_or_default();
            if counts.split_once('/').is_none_or(|(kept, all)| kept != all) {
                return Err(format!(
                    "the kernel's buffer was too small: {counts} events"
                ));
            }
        }
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let switch = parse_switch(line, tids);
        let (time, cpu, next) = switch.ok_or_else(|| format!("not understood: {line:?}"))?;
        // What came before is how the threads got to the gate.
        if time >= began {
            switches.push(Switch {
                time: time - began,
                cpu,
                next,
            });
        }
    }
    Ok(switches)
}

/// Time, CPU, and which of the threads comes next. Names of threads may hold anything.
fn parse_switch(line: &str, tids: &[i32]) -> Option<(Nanos, u32, Option<usize>)> {
    let (before, event) = line.rsplit_once(": sched_switch: ")?;
    let (before, time) = before.rsplit_once(' ')?;
    let (seconds, fraction) = time.split_once('.')?;
    let scale = 10u64.checked_pow(9u32.checked_sub(fraction.len() as u32)?)?;
    let nanos = fraction.parse::<u64>().ok()? * scale;
    let time = Nanos::from_secs(seconds.parse().ok()?) + Nanos(nanos);
    let (_, cpu) = before.rsplit_once('[')?;
    let cpu = cpu.split_once(']')?.0.parse().ok()?;
    let (_, next) = event.rsplit_once(" next_pid=")?;
    let next: i32 = next.split_whitespace().next()?.parse().ok()?;
    Some((time, cpu, tids.iter().position(|&tid| tid == next)))
}

/// A shell that does something when this process has ended, however it ended.
pub(crate) struct Guardian(Child);

impl Guardian {
    /// A guardian that runs this when the process ends or the guardian is dropped.
    ///
    /// # Errors
    /// If no shell can be started: nobody could be sure then.
    pub(crate) fn new(command: &str) -> Result<Guardian, String> {
        let script = format!("trap '' INT TERM HUP; cat; {{ {command}; }} 2>&-");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::piped());
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        let started = shell.spawn();
        started
            .map(Guardian)
            .map_err(|error| format!("no shell: {error}"))
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.flush();
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 2/2   #P:2\n#\n";

    fn line(time: &str, next: i32) -> String {
        format!(
            "  odd] name: -41 [001] d..2.  {time}: sched_switch: prev_comm=odd next_pid=9 prev_pid=41 \
             prev_prio=120 prev_state=R+ ==> next_comm=x next_pid=8 next_pid={next} next_prio=120\n"
        )
    }

    /// Goal: the kernel's lines are read, whatever threads are called, counted from the beginning.
    /// Method: two lines with names made to mislead, one from before the beginning.
    #[test]
    fn switches_are_read() {
        let text = format!(
            "{HEAD}{}{}{}",
            line("6.9", 41),
            line("7.000250", 42),
            line("7.5", 0)
        );
        let switches = parse(&text, &[41, 42], Nanos::from_secs(7)).unwrap();
        let switch = |time, next| Switch {
            time: Nanos(time),
            cpu: 1,
            next,
        };
        assert_eq!(
            switches,
            [switch(250_000, Some(1)), switch(500_000_000, None)]
        );
    }

    /// Goal: lost events and lines of another shape are errors, never fewer switches. Method: both.
    #[test]
    fn losses_are_errors() {
        let lost = HEAD.replace("2/2", "2/9");
        assert!(
            parse(&lost, &[1], Nanos::ZERO)
                .unwrap_err()
                .contains("too small")
        );
        for bad in [
            "what is this",
            "a-1 [000] x: sched_switch: next_pid=1",
            "a-1 [0] 1.1234567891: sched_switch: prev_pid=0 next_pid=1",
        ] {
            assert!(
                parse(bad, &[1], Nanos::ZERO)
                    .unwrap_err()
                    .contains("not understood"),
                "{bad}"
            );
        }
    }

    /// Goal: the guardian acts when it is dropped. Method: it writes a file.
    #[test]
    fn the_guardian_acts_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("done");
        let guardian = Guardian::new(&format!("echo yes > '{}'", file.display())).unwrap();
        assert!(!file.exists());
        drop(guardian);
        assert_eq!(fs::read_to_string(&file).unwrap(), "yes\n");
    }
}
