//! A trace as the kernel prints it.

use std::io::{self, Write};

use super::events::{Event, Events, What};

const HEADER: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 1/1   #P:8
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// Writes at least `least` bytes. Returns the number of scheduler events.
pub(super) fn write(out: &mut dyn Write, least: u64) -> io::Result<u64> {
    out.write_all(HEADER.as_bytes())?;
    let (mut bytes, mut scheduled) = (HEADER.len() as u64, 0);
    let mut line = Vec::with_capacity(512);
    for event in Events::new() {
        if bytes >= least {
            break;
        }
        line.clear();
        scheduled += u64::from(describe(&mut line, &event)?);
        out.write_all(&line)?;
        bytes += line.len() as u64;
    }
    Ok(scheduled)
}

/// Writes the line. Returns whether it is a scheduler event.
fn describe(line: &mut Vec<u8>, event: &Event) -> io::Result<bool> {
    let Event {
        ns, cpu, current, ..
    } = *event;
    let (secs, micros) = (ns / 1_000_000_000, ns / 1_000 % 1_000_000);
    let (tid, priority) = (current.tid(), current.priority());
    let name = match tid {
        0 => "<idle>".to_owned(),
        _ => current.name(cpu),
    };
    write!(
        line,
        "{name:>16}-{tid:<7} [{cpu:03}] d..2. {secs:>5}.{micros:06}: "
    )?;
    match &event.what {
        What::Switch { next, sleeps } => {
            let state = if tid != 0 && *sleeps { "S" } else { "R" };
            let (prev, to) = (current.name(cpu), next.name(cpu));
            writeln!(
                line,
                "sched_switch: prev_comm={prev} prev_pid={tid} prev_prio={priority} prev_state={state} ==> \
                 next_comm={to} next_pid={} next_prio={}",
                next.tid(),
                next.priority()
            )?;
        }
        What::Waking { woken } => writeln!(
            line,
            "sched_waking: comm={} pid={} prio={} target_cpu={cpu:03}",
            woken.name(cpu),
            woken.tid(),
            woken.priority()
        )?,
        What::Begin { slice } => {
            writeln!(
                line,
                "tracing_mark_write: B|{}|part {slice}",
                current.tgid()
            )?;
        }
        What::End => writeln!(line, "tracing_mark_write: E|{}", current.tgid())?,
    }
    Ok(matches!(
        event.what,
        What::Switch { .. } | What::Waking { .. }
    ))
}
