//! Goal and method stand at each test. Those that need the kernel's recorder say so and pass where it may
//! not be used.

use std::io::Read;
use std::process::Command;

use super::*;

/// An instance, or none where the kernel refuses it, with a word about it.
fn instance() -> Option<Instance> {
    match Tracefs::find().and_then(Tracefs::instance) {
        Ok(instance) => Some(instance),
        Err(refused) => {
            eprintln!("skipped: {refused}");
            None
        }
    }
}

/// The number of a process that has just ended.
fn dead_process() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Goal: all kinds of losses are counted, over all CPUs. Method: the file as Linux 6.18 writes it, twice,
/// with numbers put in.
#[test]
fn losses_of_every_kind_are_counted() {
    let stats = "entries: 42\noverrun: 5\ncommit overrun: 3\nbytes: 2412\n\
                 oldest event ts: 48443.193763\nnow ts: 48443.267695\n\
                 dropped events: 2\nread events: 7\n";
    let mut kept = Kept::default();
    add(&mut kept, stats);
    add(&mut kept, stats);
    let expected = Kept {
        entries: 84,
        lost: 20,
    };
    assert_eq!(kept, expected);
}

/// Goal: instances of the dead are removed, and nothing else. Method: a folder in place of tracefs, with
/// the names of a dead process, of this one, and of others' instances.
#[test]
fn instances_of_the_dead_are_removed() {
    let root = std::env::temp_dir().join(format!("paceline-tracefs-{}", std::process::id()));
    let (dead, alive) = (dead_process(), std::process::id());
    let gone = [
        format!("paceline-{dead}"),
        format!("paceline-{dead}-2"),
        format!("paceline-validate-{dead}"),
    ];
    let kept = [
        format!("paceline-{alive}"),
        "paceline-".to_owned(),
        "paceline-x".to_owned(),
        format!("rasdaemon-{dead}"),
    ];
    for name in gone.iter().chain(&kept) {
        fs::create_dir_all(root.join("instances").join(name)).unwrap();
    }
    assert_eq!(Tracefs::at(&root).remove_stale(), gone.len());
    let mut left: Vec<String> = fs::read_dir(root.join("instances"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    fs::remove_dir_all(&root).unwrap();
    left.sort();
    let mut kept = kept.to_vec();
    kept.sort();
    assert_eq!(left, kept);
}

/// Goal: an instance records what it is told to, counts it, and is gone afterwards; two at a time have
/// names of their own. Method: markers and this thread's switches.
#[test]
fn an_instance_records_and_goes() {
    let (Some(one), Some(two)) = (instance(), instance()) else {
        return;
    };
    assert_ne!(one.path(), two.path());
    assert!(!one.enable("sched/no_such_event", None).unwrap());
    assert!(one.enable("sched/sched_switch", None).unwrap());
    one.set("trace_clock", "mono").unwrap();
    one.start().unwrap();
    one.mark("paceline was here").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    one.stop().unwrap();
    let mut text = String::new();
    one.text().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("paceline was here"), "{text}");
    assert!(text.contains("sched_switch: "), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#')).count();
    let kept = one.kept().unwrap();
    assert_eq!((kept.entries, kept.lost), (lines as u64, 0));
    assert_eq!(two.kept().unwrap().entries, 0, "it is another's");
    let paths = [&one, &two].map(|it| it.path().to_owned());
    drop((one, two));
    assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
}

/// Goal: a process that cannot see another one does not remove its instance. Method: try to.
#[test]
fn an_instance_in_use_stays() {
    let Some(instance) = instance() else { return };
    assert!(fs::remove_dir(instance.path()).is_err());
    instance.start().unwrap();
    let path = instance.path().to_owned();
    drop(instance);
    assert!(!path.exists());
}

/// Goal: tracefs can be used where it is not mounted. Method: mount it so.
#[test]
fn a_mount_of_our_own_works() {
    match mount() {
        Ok(mount) => {
            let root = format!("/proc/self/fd/{}/instances", mount.as_raw_fd());
            assert!(Path::new(&root).is_dir());
        }
        Err(error) => eprintln!("skipped: {error}"),
    }
}
