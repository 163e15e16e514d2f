//! The kernel's own recorder: an instance of ftrace for this process alone.
//!
//! An [`Instance`] has buffers, events and a clock of its own, so that no other recording is disturbed. It is
//! called `paceline-PID`.
//!
//! The process removes it when it is done. If the process was killed a [`Guardian`] does, and if even that
//! failed, the next process that makes an instance. The process keeps a file of the instance open, and the
//! kernel refuses to remove an instance with open files: so a process that is alive, but cannot be seen
//! from here (in another container), keeps its instance.
//!
//! Where tracefs is not mounted, or only for reading, it is mounted for this process alone: at no place in
//! the file system, reached through a file descriptor (`fsopen`, Linux 5.2).

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::guardian::Guardian;
use super::kept::Kept;
use crate::error::Refused;

/// Where tracefs is mounted, usually.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// What instances are called, before the number of their process.
const PREFIX: &str = "paceline-";
/// The most instances of one process.
const INSTANCES_MAX: u32 = 64;

/// The file system by which the kernel's recorder is controlled.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Keeps the mount that only this process has.
    _mount: Option<OwnedFd>,
}

/// A recorder of our own.
#[derive(Debug)]
pub struct Instance {
    /// Its mount, if it is ours, must last as long.
    _tracefs: Tracefs,
    path: PathBuf,
    /// Open as long as the instance is ours; see the module.
    held: Option<File>,
    guardian: Option<Guardian>,
}

impl Tracefs {
    /// Finds tracefs, or mounts it for this process.
    ///
    /// # Errors
    /// If there is none or it may not be used, and what could be done about that.
    pub fn find() -> Result<Tracefs, Refused> {
        let mounted = MOUNTED.iter().map(Path::new);
        if let Some(root) = mounted.into_iter().find(|root| may_write_to(root)) {
            return Ok(Tracefs::at(root));
        }
        let mount = mount().map_err(|error| {
            let why = match error.raw_os_error() {
                Some(libc::ENODEV) => "this kernel has none (CONFIG_FTRACE)".to_owned(),
                Some(libc::ENOSYS) => {
                    format!(
                        "it is not mounted; run: mount -t tracefs nodev {}",
                        MOUNTED[0]
                    )
                }
                Some(libc::EPERM | libc::EACCES) => {
                    "that needs root (CAP_SYS_ADMIN); run the command as root, or with sudo"
                        .to_owned()
                }
                _ => error.to_string(),
            };
            Refused(format!(
                "the kernel's events cannot be recorded through tracefs: {why}"
            ))
        })?;
        Ok(Tracefs {
            root: format!("/proc/self/fd/{}", mount.as_raw_fd()).into(),
            _mount: Some(mount),
        })
    }

    /// The one that is mounted here.
    pub fn at(root: impl Into<PathBuf>) -> Tracefs {
        Tracefs {
            root: root.into(),
            _mount: None,
        }
    }

    /// Removes instances of processes that are no more. How many.
    pub fn remove_stale(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.root.join("instances")) else {
            return 0;
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let stale = names.filter(|name| name.to_str().and_then(owner).is_some_and(has_ended));
        // Of two that do so at the same time, one is told that there is nothing to remove.
        let paths = stale.map(|name| self.root.join("instances").join(name));
        paths.filter(|path| fs::remove_dir(path).is_ok()).count()
    }

    /// Makes an instance that records nothing yet. Those of processes that are no more are removed before.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn instance(self) -> Result<Instance, Refused> {
        self.remove_stale();
        let instances = self.root.join("instances");
        let own = format!("{PREFIX}{}", std::process::id());
        let names = (1..=INSTANCES_MAX).map(|number| match number {
            1 => own.clone(),
            _ => format!("{own}-{number}"),
        });
        let mut refused = io::Error::from(ErrorKind::AlreadyExists);
        for name in names {
            let path = instances.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => return Instance::guard(self, path, &name),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    refused = error;
                    break;
                }
            }
        }
        let place = instances.display();
        Err(Refused(format!(
            "cannot make an instance in {place}: {refused}"
        )))
    }
}

impl Instance {
    /// Of a folder that has just been made.
    fn guard(tracefs: Tracefs, path: PathBuf, name: &str) -> Result<Instance, Refused> {
        let undo = format!("rmdir 'instances/{name}'");
        let guardian = Guardian::new(&undo, &tracefs.root);
        let mut instance = Instance {
            held: None,
            guardian: None,
            _tracefs: tracefs,
            path,
        };
        instance.guardian = Some(guardian.map_err(|error| Refused(error.to_string()))?);
        instance.stop()?;
        let held = File::open(instance.path.join("tracing_on"));
        instance.held = Some(held.map_err(|error| refused("tracing_on", &error))?);
        Ok(instance)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes to one of its files.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set(&self, file: &str, text: &str) -> Result<(), Refused> {
        fs::write(self.path.join(file), text).map_err(|error| refused(file, &error))
    }

    /// Records events of this kind from now on, such as `sched/sched_switch`, those that `filter` lets
    /// through. False if the kernel does not know the kind.
    ///
    /// # Errors
    /// If it refuses.
    pub fn enable(&self, event: &str, filter: Option<&str>) -> Result<bool, Refused> {
        let folder = format!("events/{event}");
        if !self.path.join(&folder).is_dir() {
            return Ok(false);
        }
        if let Some(filter) = filter {
            self.set(&format!("{folder}/filter"), filter)?;
        }
        self.set(&format!("{folder}/enable"), "1").map(|()| true)
    }

    /// Begins, or goes on, to record.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn start(&self) -> Result<(), Refused> {
        self.set("tracing_on", "1")
    }

    /// Records nothing more; what was recorded stays.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn stop(&self) -> Result<(), Refused> {
        self.set("tracing_on", "0")
    }

    /// Forgets what was recorded.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn clear(&self) -> Result<(), Refused> {
        self.set("trace", "")
    }

    /// Adds a line to what is recorded.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn mark(&self, text: &str) -> Result<(), Refused> {
        self.set("trace_marker", text)
    }

    /// What was recorded, as the kernel prints it. Reading takes nothing out.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn text(&self) -> Result<File, Refused> {
        File::open(self.path.join("trace")).map_err(|error| refused("trace", &error))
    }

    /// How many events were kept and lost so far, over all CPUs.
    ///
    /// # Errors
    /// If the kernel does not say so.
    pub fn kept(&self) -> Result<Kept, Refused> {
        let folder = self.path.join("per_cpu");
        let cpus = fs::read_dir(folder).map_err(|error| refused("per_cpu", &error))?;
        let mut kept = Kept::default();
        for cpu in cpus.flatten() {
            let stats = fs::read_to_string(cpu.path().join("stats"));
            add(&mut kept, &stats.map_err(|error| refused("stats", &error))?);
        }
        Ok(kept)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.stop();
        self.held = None;
        // Failing that, the guardian tries again.
        let _ = fs::remove_dir(&self.path);
        self.guardian = None;
    }
}

fn refused(file: &str, error: &io::Error) -> Refused {
    Refused(format!("tracefs, {file}: {error}"))
}

/// Adds what the file `stats` of a CPU says.
fn add(kept: &mut Kept, stats: &str) {
    for (what, count) in stats.lines().filter_map(|line| line.split_once(": ")) {
        let count = count.trim().parse().unwrap_or(0);
        match what {
            "entries" => kept.entries += count,
            "overrun" | "commit overrun" | "dropped events" => kept.lost += count,
            _ => {}
        }
    }
}

/// The process that an instance belongs to.
fn owner(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX)?;
    let rest = rest.strip_prefix("validate-").unwrap_or(rest);
    rest.split('-').next()?.parse().ok()
}

/// Whether there is no such process, as far as can be seen.
fn has_ended(process: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists()
}

fn may_write_to(root: &Path) -> bool {
    let Ok(path) =
        std::ffi::CString::new(root.join("instances").into_os_string().into_encoded_bytes())
    else {
        return false;
    };
    // SAFETY: the call reads a string that lives until it returns.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

/// Mounts tracefs at no place.
fn mount() -> io::Result<OwnedFd> {
    const CLOSE_ON_EXEC: libc::c_long = 1;
    const CREATE: libc::c_long = 6; // FSCONFIG_CMD_CREATE
    const KIND: &CStr = c"tracefs";
    let none = 0 as libc::c_long;
    // SAFETY: the calls read a string that lives until they return; a descriptor they give is new, and
    // ours.
    unsafe {
        let context = owned(libc::syscall(
            libc::SYS_fsopen,
            KIND.as_ptr(),
            CLOSE_ON_EXEC,
        ))?;
        let fd = context.as_raw_fd();
        match libc::syscall(libc::SYS_fsconfig, fd, CREATE, none, none, none) {
            0 => owned(libc::syscall(libc::SYS_fsmount, fd, CLOSE_ON_EXEC, none)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// # Safety
/// `fd` is negative, or a descriptor that has no other owner.
unsafe fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(fd) {
        // SAFETY: the caller's promise.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
