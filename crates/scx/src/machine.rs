//! What is looked at before the scheduler is loaded: the kernel, the user, the CPUs, the file of a record.

use std::fs::{self, File};
use std::path::Path;

/// The kernel's folder about itself.
pub(crate) const SYSTEM: &str = "/sys/kernel";

/// Whether a scheduler can be loaded here. `system`: the kernel's folder about itself.
///
/// # Errors
/// In one line: why not, and what it takes.
pub(crate) fn check(system: &Path) -> Result<(), String> {
    let folder = system.join("sched_ext");
    if !folder.exists() {
        return Err(format!(
            "this kernel has no sched_ext (there is no {}); it takes Linux from 6.12 on, built with \
             CONFIG_SCHED_CLASS_EXT",
            folder.display()
        ));
    }
    // The libraries panic without it.
    let types = system.join("btf/vmlinux");
    if !types.exists() {
        return Err(format!(
            "this kernel does not describe its types (there is no {}); it takes one built with \
             CONFIG_DEBUG_INFO_BTF",
            types.display()
        ));
    }
    // SAFETY: the call takes nothing and always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return Err("loading a scheduler takes root; try it with sudo".to_owned());
    }
    let state = fs::read_to_string(folder.join("state")).unwrap_or_default();
    if state.trim() == "enabled" {
        let name = fs::read_to_string(folder.join("root/ops")).unwrap_or_default();
        return Err(format!(
            "another scheduler is loaded: {}; stop it first",
            name.trim()
        ));
    }
    Ok(())
}

/// How fast each CPU can be, as the kernel says; where it says nothing they are alike.
pub(crate) fn capacities() -> Vec<u32> {
    let count = fs::read_to_string("/sys/devices/system/cpu/possible").ok();
    let last = count.and_then(|text| text.trim().rsplit(['-', ',']).next()?.parse::<u32>().ok());
    let capacity = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse().ok()
    };
    let all = 0..=last.unwrap_or(0);
    all.map(|cpu| capacity(cpu).unwrap_or(1024)).collect()
}

/// The file of a record, which is empty from now on.
///
/// # Errors
/// In one line: why it cannot be written.
pub(crate) fn record_file(path: &Path) -> Result<(File, &Path), String> {
    let file = File::create(path);
    let file = file.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok((file, path))
}
