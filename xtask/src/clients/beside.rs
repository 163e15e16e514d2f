//! What else the machine is asked for while programs are measured: other programs that compute, a quota of
//! CPU time, a CPU that goes away.
//!
//! Each is begun and ended by a small script, which ends it also if this process is killed: the script waits
//! until its input is closed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use clap::ValueEnum;

use crate::context::Context;

/// What the programs have beside them.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Beside {
    /// Four threads that compute all the time, of the same session
    Hogs,
    /// The same in a session of their own, as a build in another terminal is; some kernels give each session
    /// the same share of a CPU
    HogsApart,
    /// A control group with the time of one and a half CPUs (as root)
    Quota,
    /// CPU 1 is offline (as root)
    Offline,
}

/// The control group of the quota: by version 1 of the interface, and by version 2.
const GROUP_1: &str = "/sys/fs/cgroup/cpu/paceline-clients";
const GROUP_2: &str = "/sys/fs/cgroup/paceline-clients";

/// One and a half CPUs, in periods of 100 ms.
const BEGIN_QUOTA_1: &str = "mkdir -p $1 && echo 100000 > $1/cpu.cfs_period_us && \
    echo 150000 > $1/cpu.cfs_quota_us";
const BEGIN_QUOTA_2: &str = "echo +cpu > $1/../cgroup.subtree_control && mkdir -p $1 && \
    echo '150000 100000' > $1/cpu.max";
const BEGIN_HOGS: &str = "for hog in 1 2 3 4; do (while :; do :; done) & hogs=\"$hogs $!\"; done";
const END_HOGS: &str = "kill $hogs; wait";
const BEGIN_OFFLINE: &str = "test $(cat $1) = 1 && echo 0 > $1";
const CPU: &str = "/sys/devices/system/cpu/cpu1/online";

impl Beside {
    /// Said above a table.
    fn shown(self) -> &'static str {
        match self {
            Beside::Hogs => "beside four threads that compute all the time, of the same session",
            Beside::HogsApart => {
                "beside four threads that compute all the time, of a session of their own"
            }
            Beside::Quota => "in a control group with the time of 1.5 CPUs, in periods of 100 ms",
            Beside::Offline => "while CPU 1 is offline",
        }
    }

    /// The scripts that begin and end it, and their argument.
    fn scripts(self, is_version_1: bool) -> [&'static str; 3] {
        match (self, is_version_1) {
            (Beside::Hogs | Beside::HogsApart, _) => [BEGIN_HOGS, END_HOGS, ""],
            (Beside::Quota, true) => [BEGIN_QUOTA_1, "rmdir $1", GROUP_1],
            (Beside::Quota, false) => [BEGIN_QUOTA_2, "rmdir $1", GROUP_2],
            (Beside::Offline, _) => [BEGIN_OFFLINE, "echo 1 > $1", CPU],
        }
    }
}

/// What there is beside programs now. It ends with this value.
pub(super) struct Surroundings {
    _kept: Option<Kept>,
    /// The control group that the programs run in.
    group: Option<&'static str>,
}

struct Kept {
    script: Child,
    /// Closed to end it.
    input: Option<ChildStdin>,
}

impl Surroundings {
    /// Begins it, and says so; nothing, if there is to be nothing.
    pub(super) fn begin(context: &Context, beside: Option<Beside>) -> Result<Surroundings, String> {
        let Some(beside) = beside else {
            return Ok(Surroundings {
                _kept: None,
                group: None,
            });
        };
        println!("{}", beside.shown());
        let is_version_1 = Path::new(GROUP_1).parent().is_some_and(Path::exists);
        let scripts = beside.scripts(is_version_1);
        let kept = Kept::begin(context, scripts, beside != Beside::Hogs)
            .map_err(|why| format!("{}: {why}", beside.shown()))?;
        Ok(Surroundings {
            _kept: Some(kept),
            group: (beside == Beside::Quota).then_some(scripts[2]),
        })
    }

    /// A command for a program that has it beside it.
    pub(super) fn command(&self, context: &Context, program: &Path) -> Command {
        let Some(group) = self.group else {
            return context.command(program);
        };
        let mut command = context.command("sh");
        let enter = format!("echo $$ > {group}/cgroup.procs && exec \"$0\" \"$@\"");
        command.args(["-c", &enter]).arg(program);
        command
    }
}

impl Kept {
    /// Runs the first script; the second when this ends. `apart` from the session of this process, whose
    /// terminal may interrupt all that is in it.
    fn begin(
        context: &Context,
        [begin, end, argument]: [&str; 3],
        apart: bool,
    ) -> Result<Kept, String> {
        let script = format!("{{ {begin}; }} || exit 1; echo begun; read end; {end}");
        let mut command = context.command(if apart { "setsid" } else { "sh" });
        if apart {
            command.arg("sh");
        }
        command.args(["-c", &script, "sh", argument]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().map_err(|why| format!("sh: {why}"))?;
        let mut said = String::new();
        if let Some(output) = script.stdout.take() {
            // What the script prints is one line; if it cannot begin it prints none.
            let _ = BufReader::new(output).read_line(&mut said);
        }
        let input = script.stdin.take();
        let kept = Kept { script, input };
        if said.trim() == "begun" {
            Ok(kept)
        } else {
            Err("it cannot be had here (see above)".to_owned())
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.input.take());
        // The script ends by itself, now that its input has.
        let _ = self.script.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Goal: what is begun is ended, and what cannot begin is an error. Method: scripts that leave a file.
    #[test]
    fn scripts_begin_and_end() {
        let context = Context::load().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark");
        let argument = file.to_str().unwrap();
        // Not every system has a command for a session of its own.
        for apart in [false, cfg!(target_os = "linux")] {
            let kept = Kept::begin(&context, ["touch $1", "rm $1", argument], apart).unwrap();
            assert!(fs::exists(&file).unwrap());
            drop(kept);
            assert!(!fs::exists(&file).unwrap());
            let refused = Kept::begin(&context, ["false", "touch $1", argument], apart);
            assert!(refused.is_err());
            assert!(!fs::exists(&file).unwrap());
        }
    }

    /// Goal: hogs end with what began them. Method: one of the scripts for them, and whether a process with
    /// a mark of its own in its name is left.
    #[cfg(target_os = "linux")]
    #[test]
    fn hogs_end() {
        let context = Context::load().unwrap();
        let [begin, end, _] = Beside::HogsApart.scripts(true);
        let mark = format!("hogs-of-{}", std::process::id());
        let alive = || {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
            lines
                .filter(|line| String::from_utf8_lossy(line).contains(&mark))
                .count()
        };
        let kept = Kept::begin(&context, [begin, end, &mark], true).unwrap();
        assert_eq!(alive(), 5, "the script and four hogs");
        drop(kept);
        assert_eq!(alive(), 0, "the script waits for them");
    }
}
