//! The meanings of slices' names.
//!
//! Programs choose the names of their slices freely. These are words of Android, Unity, Chrome and ordinary
//! programs: "wait for job", "WaitForJobGroupID", "lock bus", "monitor contention with owner …",
//! "Choreographer#doFrame 1234", "DrawFrames", "frame 15".

use crate::recording::Mark;
use crate::timeline::Timeline;

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct NameHints {
    /// Its thread waits.
    pub(super) waits: bool,
    /// It waits for a lock.
    pub(super) locks: bool,
    /// Its thread holds a lock.
    pub(super) holds: bool,
    /// It waits for a device, as the kernel says.
    pub(super) device: bool,
    /// It is a frame.
    pub(super) frame: bool,
    /// It waits for the display.
    pub(super) display: bool,
    /// It is of Android's frame timeline.
    pub(super) planned: Option<TimelineFrame>,
    /// The thread with this number has the lock that it waits for.
    pub(super) owner: Option<u32>,
}

/// A frame of Android's frame timeline, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TimelineFrame {
    /// Its number, which the plan and the result have in common.
    pub(super) token: u64,
    pub(super) is_expected: bool,
    /// Whether it was late, or dropped.
    pub(super) is_missed: bool,
}

/// `frame timeline 77, expected`, `frame timeline 78, late, App Deadline Missed`.
fn planned(name: &str) -> Option<TimelineFrame> {
    let rest = name.strip_prefix("frame timeline ")?;
    let (token, how) = rest.split_once(", ").unwrap_or((rest, ""));
    let is_expected = how == "expected";
    Some(TimelineFrame {
        token: token.parse().ok()?,
        is_expected,
        is_missed: !is_expected && !how.is_empty(),
    })
}

/// Names of the kernel's own threads begin so: those of its core, and drivers of displays, GPUs and disks.
const KERNEL: [&str; 32] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "watchdog/",
    "cpuhp/",
    "irq/",
    "rcu_",
    "rcuc/",
    "rcuo",
    "kthreadd",
    "kswapd",
    "kcompactd",
    "khungtaskd",
    "khugepaged",
    "kauditd",
    "kblockd",
    "jbd2/",
    "mmcqd",
    "mmc-",
    "scsi_",
    "dm_",
    "ext4-",
    "f2fs_",
    "sugov:",
    "core_ctl/",
    "crtc_",
    "kgsl",
    "mdss_",
    "sde_",
    "decon",
    "dhd_",
    "spi",
];

/// Whether a name is that of one of the kernel's own threads.
pub(super) fn is_of_kernel(name: &str) -> bool {
    KERNEL.iter().any(|begin| name.starts_with(begin))
}

/// Whether a program, or a thread of it, is Android's server of the display.
pub(super) fn is_display_server(name: &str) -> bool {
    name.to_lowercase().contains("surfaceflinger")
}

/// The longest name of a thread that a kernel keeps.
const COMM: usize = 15;
/// The domains that packages' names begin with.
const DOMAINS: [&str; 8] = ["com", "org", "net", "de", "io", "me", "tv", "app"];
/// Services of devices have such names, too.
const SERVICES: [&str; 3] = ["android.hardwar", "vendor.", "android.process"];

/// Whether a name is that of an Android app: of its program, which is its package's, or of its main thread,
/// whose name is the end of that, as much of it as a kernel keeps. Mostly right: other programs can have such
/// names.
pub(super) fn is_app(name: &str) -> bool {
    // A package's process may have a name of its own behind the package's.
    let package = name.split(':').next().unwrap_or(name);
    let is_cut = name.len() == COMM;
    let parts: Vec<&str> = package.split('.').collect();
    let is_part = |(at, part): (usize, &&str)| {
        let first = part.bytes().next();
        first.map_or(at == 0 && is_cut, |byte| byte.is_ascii_alphabetic())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_long = parts.last().is_some_and(|last| last.len() > 2);
    parts.len() > 1
        && (is_cut || DOMAINS.contains(&parts[0]))
        && is_long
        && parts.iter().enumerate().all(is_part)
        && !SERVICES.iter().any(|begin| name.starts_with(begin))
}

/// Whether the name of a slice says that it is a frame.
///
/// ```
/// use paceline_trace::explain::names_frame;
/// assert!(names_frame("Choreographer#doFrame 77") && names_frame("frame timeline 78, late"));
/// assert!(!names_frame("frame buffer") && !names_frame("wait for the next frame"));
/// ```
pub fn names_frame(name: &str) -> bool {
    let says = says(name);
    says.frame || says.planned.is_some()
}

/// The meaning of a name.
pub(super) fn says(name: &str) -> NameHints {
    // Of a call the rest is a program's name.
    if name.starts_with(Mark::BINDER_CALL) {
        return NameHints::default();
    }
    if name.starts_with(Mark::FENCE_WAIT) {
        return NameHints {
            device: true,
            ..NameHints::default()
        };
    }
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&&**word));
    let begins = |list: &[&str]| words.first().is_some_and(|word| list.contains(&&**word));
    let holds = has(&["hold", "holds", "holding", "locked"]);
    let display = has(&["vsync", "vblank", "flip"]) || (has(&["commit"]) && has(&["done"]));
    let locks = !(holds || display)
        && (has(&["lock", "locking", "mutex", "contention", "futex"])
            || begins(&["acquire", "acquiring"]));
    let waits = locks || has(&["wait", "waits", "waiting", "await", "join", "joining"]);
    let planned = planned(name);
    // "frame 15", "doFrame 1234", "DrawFrames": the last word that is no number.
    let last = words
        .iter()
        .rfind(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
    // Android's views before 4.3 have a frame's traversals, and no name for the frame.
    let last = last.map_or("", String::as_str);
    let frame = !waits && ["frame", "frames", "traversals"].contains(&last);
    NameHints {
        waits,
        locks,
        holds,
        device: false,
        frame: frame && planned.is_none(),
        display,
        planned,
        owner: owner(name).filter(|_| locks),
    }
}

/// The number of a lock's owner, as Android's runtime names it: "Lock contention on a monitor lock (owner
/// tid: 32403)", "monitor contention with owner main (1234) at void …".
fn owner(name: &str) -> Option<u32> {
    let number = match name.split_once("(owner tid: ") {
        Some((_, rest)) => rest.split(')').next()?,
        None => {
            let (_, rest) = name.split_once(" with owner ")?;
            // The owner's name may hold brackets, too, and so may the text behind it.
            let owner = rest.split_once(" at ").map_or(rest, |(owner, _)| owner);
            owner.trim_end().strip_suffix(')')?.rsplit_once('(')?.1
        }
    };
    number.parse().ok()
}

/// The words of a name, in lower case: cut at all characters but letters and digits, and where an upper-case
/// letter follows a lower-case one.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut small = false;
    // No name worth reading is longer.
    for letter in name.chars().take(200) {
        if !letter.is_alphanumeric() || (small && letter.is_uppercase()) {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        small = letter.is_lowercase() || letter.is_ascii_digit();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The meanings of a recording's names, by number.
pub(super) fn of_all(timeline: &Timeline, busy: &[String]) -> Vec<NameHints> {
    let names = timeline.recording().names.iter();
    let told = |name: &str| busy.iter().any(|text| name.contains(text.as_str()));
    names
        .map(|name| {
            let says = says(name);
            NameHints {
                waits: says.waits || told(name),
                ..says
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names of real programs are understood, and words that only look alike are not taken for
    /// them. Method: one of each.
    #[test]
    fn names() {
        let waits = [
            "wait for job",
            "WaitForJobGroupID",
            "Waiting for GPU",
            "thread_join",
        ];
        let locks = [
            "lock bus",
            "monitor contention with owner main (1)",
            "Lock contention on thread list lock (owner tid: 5)",
            "mutex",
        ];
        let frames = [
            "frame 15",
            "Choreographer#doFrame",
            "DrawFrames 12",
            "doFrame",
            "performTraversals",
        ];
        let none = [
            "low holds bus",
            "mid burst",
            "job 15",
            "block",
            "clock",
            "unlock",
            "deadlocked",
            "frame buffer",
            "cycle 1",
            "",
            "15",
        ];
        for name in waits {
            assert!(says(name).waits && !says(name).locks, "{name}");
        }
        for name in locks {
            assert!(says(name).waits && says(name).locks, "{name}");
        }
        for name in frames {
            assert!(says(name).frame && !says(name).waits, "{name}");
        }
        for name in none {
            assert!(!says(name).frame && !says(name).waits, "{name}");
        }
        assert!(says("low holds bus").holds);
    }

    /// Goal: names of apps' programs and main threads are told from those of daemons and other threads.
    /// Method: names of each kind from traces of phones.
    #[test]
    fn apps() {
        for name in [
            "com.android.chrome",
            "com.google.android.gms.persistent",
            "com.example.app:remote",
            "ndroid.launcher",
            "pandora.android",
            ".evenko.osheaga",
            "m.android.phone",
        ] {
            assert!(is_app(name), "{name}");
        }
        for name in [
            "surfaceflinger",
            "/system/bin/logd",
            "android.fg",
            "android.hardwar",
            "vendor.qti.hard",
            "perf@1.0-servic",
            "polling.audio.c",
            "19978_logd.read",
            "sensors.qcom",
            "Binder:1150_D",
            "RenderThread",
            "SDHMS:B0.c",
            "system_server",
            "com",
            "",
        ] {
            assert!(!is_app(name), "{name}");
        }
        assert!(is_display_server("SurfaceFlinger") && !is_display_server("ui"));
        assert!(says("lockPageFlip").display && !says("lockPageFlip").waits);
    }

    /// Goal: the owner that Android's runtime names is found, and there is none where it names none. Method:
    /// its texts, of several versions, with odd names.
    #[test]
    fn owners() {
        for (name, owner) in [
            (
                "Lock contention on a monitor lock (owner tid: 32403)",
                Some(32403),
            ),
            (
                "Lock contention on InternTable lock (owner tid: 7)",
                Some(7),
            ),
            ("monitor contention with owner main (1234)", Some(1234)),
            (
                "monitor contention with owner Binder:9_1 (x) (55) at void a.B.c(int)(B.java:12) waiters=0 \
                 blocking from void d.E.f()(E.java:1)",
                Some(55),
            ),
            ("monitor contention with owner main", None),
            ("Lock contention on a lock (owner tid: 0x7)", None),
            ("lock bus", None),
            ("frame (owner tid: 7)", None),
        ] {
            assert_eq!(says(name).owner, owner, "{name}");
        }
    }
}
