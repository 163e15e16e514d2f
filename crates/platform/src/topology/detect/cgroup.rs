//! Control groups, both versions: which cpuset and which quota hold for the process.
//!
//! `/proc/self/cgroup` names the process's group in each hierarchy, `/proc/self/mountinfo` says where a
//! hierarchy can be seen and from which of its groups on. A quota holds for everything below its group, so
//! the smallest one of all ancestors that can be seen counts; of cpusets the nearest one does, which is a
//! part of its ancestors'.
//!
//! Formats: cgroups(7), proc_pid_mountinfo(5), and the kernel's admin guides cgroup-v1/cpusets.rst,
//! scheduler/sched-bwc.rst and cgroup-v2.rst.

use super::reader::Reader;
use crate::{CpuSet, Quota};

/// What a hierarchy controls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Controller {
    Cpu,
    Cpuset,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Controller::Cpu => "cpu",
            Controller::Cpuset => "cpuset",
        }
    }

    /// Where its hierarchy of version 1 usually is.
    fn usual_place(self) -> &'static str {
        match self {
            Controller::Cpu => "sys/fs/cgroup/cpu",
            Controller::Cpuset => "dev/cpuset",
        }
    }
}

/// A line of `/proc/self/cgroup`.
#[derive(Debug, PartialEq, Eq)]
struct CgroupLine<'a> {
    /// Empty for version 2.
    controllers: &'a str,
    path: &'a str,
}

fn lines(text: &str) -> impl Iterator<Item = CgroupLine<'_>> {
    text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        parts.next()?.parse::<u32>().ok()?;
        Some(CgroupLine {
            controllers: parts.next()?,
            path: parts.next()?,
        })
    })
}

/// A hierarchy that can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// The group that is seen at `point`.
    root: String,
    point: String,
    /// `cgroup`, `cgroup2`, or `cpuset` as it was before there were control groups.
    kind: String,
    /// Separated by commas; those of version 1 name controllers.
    options: String,
}

impl Mount {
    /// A line of mountinfo: the root is the fourth field and the point the fifth; behind a field `-` come the
    /// kind, the device and the options of the file system.
    fn read_info(line: &str) -> Option<Mount> {
        let (place, what) = line.split_once(" - ")?;
        let mut place = place.split(' ');
        let mut what = what.split(' ');
        Some(Mount {
            root: unescaped(place.nth(3)?),
            point: unescaped(place.next()?),
            kind: what.next()?.to_owned(),
            options: what.nth(1).unwrap_or_default().to_owned(),
        })
    }

    /// A line of `/proc/mounts`: device, point, kind, options. It does not name roots.
    fn read_mounts(line: &str) -> Option<Mount> {
        let mut fields = line.split(' ').skip(1);
        Some(Mount {
            root: "/".into(),
            point: unescaped(fields.next()?),
            kind: fields.next()?.to_owned(),
            options: fields.next()?.to_owned(),
        })
    }

    fn controls(&self, controller: Controller) -> bool {
        match &*self.kind {
            "cpuset" => controller == Controller::Cpuset,
            "cgroup" => self
                .options
                .split(',')
                .any(|option| option == controller.name()),
            _ => false,
        }
    }
}

/// Blanks and such are written as a backslash and three octal digits.
fn unescaped(field: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| byte == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A group's folder, and those of its ancestors, from near to far.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Path {
    folders: Vec<String>,
    version: u8,
}

/// Deeper groups than this are not looked for. (The kernel's own limit is a setting; systemd nests about
/// ten.)
const DEPTH_MAX: usize = 128;

impl Path {
    fn new(mount: &Mount, group: &str, version: u8) -> Path {
        // What is above the mount's root cannot be seen, and neither can a group that is elsewhere.
        let inside = match mount.root.trim_end_matches('/') {
            "" => group,
            root => match group.strip_prefix(root) {
                Some(inside) if inside.is_empty() || inside.starts_with('/') => inside,
                _ => "",
            },
        };
        let point = mount.point.trim_matches('/');
        let mut folders = vec![point.to_owned()];
        let names = inside.split('/').filter(|name| !name.is_empty());
        for name in names.take(DEPTH_MAX) {
            let parent = folders.last().map_or("", |folder| folder);
            folders.push(format!("{parent}/{name}"));
        }
        folders.reverse();
        Path { folders, version }
    }

    /// Whether the group is not above what can be seen (`..` says so).
    fn is_below(&self) -> bool {
        let names = self.folders.iter().flat_map(|folder| folder.split('/'));
        names.into_iter().all(|name| name != "..")
    }

    /// The smallest quota of all, none if there is no limit; and nothing if no group is seen there.
    fn quota(&self, reader: &mut Reader<'_>) -> Option<Option<Quota>> {
        let limits = self.folders.iter().filter_map(|folder| match self.version {
            1 => quota_v1(reader, folder),
            _ => quota_v2(reader, folder),
        });
        limits.reduce(|a, b| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            _ => a.or(b),
        })
    }

    /// The nearest cpuset that says anything.
    fn cpuset(&self, reader: &mut Reader<'_>, online: &CpuSet) -> Option<CpuSet> {
        let find = |folder: &String| {
            FILES
                .iter()
                .find_map(|file| cpuset(reader, folder, file, online))
        };
        self.folders.iter().find_map(find)
    }
}

/// Where a cpuset is named, best first; the last ones are those of version 1 mounted without prefix.
const FILES: [&str; 5] = [
    "cpuset.cpus.effective",
    "cpuset.effective_cpus",
    "cpuset.cpus",
    "effective_cpus",
    "cpus",
];

fn cpuset(reader: &mut Reader<'_>, folder: &str, file: &str, online: &CpuSet) -> Option<CpuSet> {
    let path = format!("{folder}/{file}");
    let (set, sound) = reader.sound_list(&path)?;
    if !sound || set.is_empty() {
        return None;
    }
    // What the kernel made of it at this moment is a part of what is online.
    if file.contains("effective") && !set.is_subset(online) {
        let note = format!("{path} names CPUs that are offline: it is of another moment, left out");
        reader.notes.add(note);
        return None;
    }
    Some(set)
}

fn quota_v1(reader: &mut Reader<'_>, folder: &str) -> Option<Option<Quota>> {
    let runtime = reader.text(&format!("{folder}/cpu.cfs_quota_us"))?;
    if runtime.starts_with('-') {
        return Some(None);
    }
    let period = reader.text(&format!("{folder}/cpu.cfs_period_us"));
    let number = |text: String| text.parse().unwrap_or(0);
    Some(sound(
        reader,
        folder,
        number(runtime),
        period.map_or(0, number),
    ))
}

/// `cpu.max` holds a runtime or the word `max`, and a period.
fn quota_v2(reader: &mut Reader<'_>, folder: &str) -> Option<Option<Quota>> {
    let text = reader.text(&format!("{folder}/cpu.max"))?;
    let mut fields = text.split_whitespace();
    let runtime = fields.next().unwrap_or_default();
    if runtime == "max" {
        return Some(None);
    }
    let period = fields.next().map_or(Ok(Quota::PERIOD), str::parse);
    let runtime = runtime.parse().unwrap_or(0);
    Some(sound(reader, folder, runtime, period.unwrap_or(0)))
}

fn sound(reader: &mut Reader<'_>, folder: &str, runtime: u64, period: u64) -> Option<Quota> {
    let quota = Quota::new(runtime, period);
    if quota.is_none() {
        let note = format!("the quota in {folder} is none that a kernel takes: left out");
        reader.notes.add(note);
    }
    quota
}

/// The process's groups, each by every way it can be seen, best first.
pub(super) struct Groups {
    cpu: Vec<Path>,
    cpuset: Vec<Path>,
}

impl Groups {
    pub(super) fn read(reader: &mut Reader<'_>) -> Groups {
        let text = reader.text("proc/self/cgroup").unwrap_or_default();
        let mounts = mounts(reader);
        let cpuset_file = reader.text("proc/self/cpuset");
        let mut visible = |controller: Controller| {
            let mut paths = paths(&text, cpuset_file.as_deref(), &mounts, controller);
            let seen = paths.len();
            paths.retain(Path::is_below);
            if paths.len() < seen {
                let note = format!(
                    "the process's group for {} cannot be seen from here: no limit is taken from it",
                    controller.name()
                );
                reader.notes.add(note);
            }
            paths
        };
        Groups {
            cpu: visible(Controller::Cpu),
            cpuset: visible(Controller::Cpuset),
        }
    }

    /// The smallest quota of the process's group and its ancestors.
    pub(super) fn quota(&self, reader: &mut Reader<'_>) -> Option<Quota> {
        self.cpu
            .iter()
            .find_map(|path| path.quota(reader))
            .flatten()
    }

    /// The CPUs of the nearest cpuset.
    pub(super) fn cpuset(&self, reader: &mut Reader<'_>, online: &CpuSet) -> Option<CpuSet> {
        self.cpuset
            .iter()
            .find_map(|path| path.cpuset(reader, online))
    }
}

/// All hierarchies that can be seen.
fn mounts(reader: &Reader<'_>) -> Vec<Mount> {
    let of = |path: &str, read: fn(&str) -> Option<Mount>| -> Vec<Mount> {
        let text = reader.text(path).unwrap_or_default();
        let mounts = text.lines().filter_map(read);
        let groups = |mount: &Mount| matches!(&*mount.kind, "cgroup" | "cgroup2" | "cpuset");
        mounts.filter(groups).collect()
    };
    let known = of("proc/self/mountinfo", Mount::read_info);
    if known.is_empty() {
        of("proc/mounts", Mount::read_mounts)
    } else {
        known
    }
}

/// The group of version 1 if one is named for the controller, else the one of version 2.
fn paths(
    groups: &str,
    cpuset: Option<&str>,
    mounts: &[Mount],
    controller: Controller,
) -> Vec<Path> {
    let names = |line: &CgroupLine<'_>| {
        line.controllers
            .split(',')
            .any(|name| name == controller.name())
    };
    let named = lines(groups).find(names).map(|line| line.path);
    let both = lines(groups).find(|line| line.controllers.is_empty());
    // Older kernels name the cpuset in a file of its own.
    let alone = cpuset.filter(|_| controller == Controller::Cpuset);
    let first = |group| seen(mounts, group, 1, |mount| mount.controls(controller));
    let unified = |group| seen(mounts, group, 2, |mount| mount.kind == "cgroup2");
    let or_usual = |paths: Vec<Path>, point: &str, group, version| {
        if paths.is_empty() {
            vec![Path::new(&usual_mount(point), group, version)]
        } else {
            paths
        }
    };
    if let Some(group) = named {
        return or_usual(first(group), controller.usual_place(), group, 1);
    }
    if let Some(group) = both.map(|line| line.path) {
        return or_usual(unified(group), "sys/fs/cgroup", group, 2);
    }
    let Some(group) = alone else {
        return Vec::new();
    };
    let paths = [first(group), unified(group)].concat();
    or_usual(paths, controller.usual_place(), group, 1)
}

fn usual_mount(point: &str) -> Mount {
    Mount {
        root: "/".into(),
        point: point.into(),
        kind: String::new(),
        options: String::new(),
    }
}

/// The group by each of these mounts: first by those that show it, and of these by the one that begins
/// nearest.
fn seen(mounts: &[Mount], group: &str, version: u8, which: impl Fn(&Mount) -> bool) -> Vec<Path> {
    let shows = |mount: &&Mount| match mount.root.trim_end_matches('/') {
        "" => (0, 0),
        root if group.starts_with(root) => (0, root.len()),
        root => (1, root.len()),
    };
    let mut mounts: Vec<&Mount> = mounts.iter().filter(|mount| which(mount)).collect();
    mounts.sort_by_key(shows);
    let paths = mounts.into_iter().take(MOUNTS_MAX);
    paths
        .map(|mount| Path::new(mount, group, version))
        .collect()
}

/// More ways to see a hierarchy are not tried.
const MOUNTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::detect::{Tree, limits};

    /// A process in a group below two mounts, each with a quota.
    fn tree(group: &str, mountinfo: &str) -> Tree {
        let mut tree = Tree::default();
        tree.put("sys/devices/system/cpu/online", "0-7");
        tree.put("proc/self/cgroup", group);
        tree.put("proc/self/mountinfo", mountinfo);
        tree
    }

    /// Goal: the quota of the group counts, or of an ancestor if that is smaller; and none where the group
    /// cannot be seen. Method: version 2 below a mount whose name has a blank, which begins at a group of
    /// its own.
    #[test]
    fn the_smallest_visible_quota_counts() {
        let mounts = "1 0 0:1 /box /c\\040g rw - cgroup2 cgroup2 rw\n";
        let mut machine = tree("0::/box/a/b\n", mounts);
        let quota = |machine: &Tree| limits(machine).quota.map(Quota::cpus);
        assert_eq!(quota(&machine), None);
        machine.put("c g/a/b/cpu.max", "300000 100000");
        assert_eq!(quota(&machine), Some(3.0));
        machine.put("c g/a/cpu.max", "250000 100000");
        machine.put("c g/cpu.max", "max 100000");
        assert_eq!(quota(&machine), Some(2.5));
        machine.put("proc/self/cgroup", "0::/../elsewhere\n");
        assert_eq!(quota(&machine), None);
    }

    /// Goal: a controller of version 1 wins over version 2, and its cpuset counts beside it. Method: both
    /// at once.
    #[test]
    fn version_one_wins_where_it_is_named() {
        let mounts = "1 0 0:1 / /v1 rw - cgroup none rw,cpu,cpuacct\n2 0 0:2 / /v2 rw - cgroup2 none rw\n\
                      3 0 0:3 / /sets rw - cgroup none rw,cpuset,noprefix\n";
        let mut machine = tree("4:cpuset:/s\n3:cpu,cpuacct:/g\n0::/g\n", mounts);
        machine.put("v1/g/cpu.cfs_quota_us", "150000");
        machine.put("v1/g/cpu.cfs_period_us", "100000");
        machine.put("v2/g/cpu.max", "100000 100000");
        machine.put("sets/s/cpus", "2-5");
        let found = limits(&machine);
        assert_eq!(found.quota.map(Quota::cpus), Some(1.5));
        assert_eq!(found.usable().to_string(), "2-5");
        machine.put("v1/g/cpu.cfs_quota_us", "-1");
        assert_eq!(limits(&machine).quota, None);
    }
}
