//! The kernel's record of the running threads: `sched_switch`, in a tracefs instance of our own.

use std::io::Read;

use event::Nanos;
use platform::os::Refused;
use platform::os::tracefs::{Instance, Tracefs};

use crate::compare::world::Switch;

const SWITCH: &str = "sched/sched_switch";

/// An instance of the kernel's tracer.
pub(crate) struct Recorder {
    instance: Instance,
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
        let instance = Tracefs::find().and_then(Tracefs::instance);
        let recorder = Recorder {
            instance: instance.map_err(said)?,
        };
        recorder.set("trace_clock", "mono")?;
        recorder.set("buffer_size_kb", "4096")?;
        Ok(recorder)
    }

    /// Begins to record when these threads get and leave CPUs.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn start(&self, tids: &[i32]) -> Result<Recording<'_>, String> {
        let of = |tid: &i32| format!("prev_pid == {tid} || next_pid == {tid}");
        let filter: Vec<String> = tids.iter().map(of).collect();
        let instance = &self.instance;
        instance.clear().map_err(said)?;
        let known = instance.enable(SWITCH, Some(&filter.join(" || ")));
        if !known.map_err(said)? {
            return Err("the kernel has no sched_switch".into());
        }
        instance.start().map_err(said)?;
        Ok(Recording {
            recorder: self,
            tids: tids.to_vec(),
        })
    }

    fn set(&self, file: &str, text: &str) -> Result<(), String> {
        self.instance.set(file, text).map_err(said)
    }
}

fn said(refused: Refused) -> String {
    refused.to_string()
}

impl Recording<'_> {
    /// Ends it; what happened, counted from `began`.
    ///
    /// # Errors
    /// If events were lost, or the kernel's text is not understood.
    pub(crate) fn finish(self, began: Nanos) -> Result<Vec<Switch>, String> {
        let instance = &self.recorder.instance;
        instance.stop().map_err(said)?;
        self.recorder.set(&format!("events/{SWITCH}/enable"), "0")?;
        let mut text = Vec::new();
        let read = instance.text().map_err(said)?.read_to_end(&mut text);
        read.map_err(|error| format!("tracefs, trace: {error}"))?;
        parse(&String::from_utf8_lossy(&text), &self.tids, began)
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
        // Before that, the threads were on their way to the gate.
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
}
