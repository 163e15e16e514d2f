//! Detection on the machine at hand, against other counts.

use platform::{Machine, Os};

/// Goal: detection on the machine at hand agrees with other counts. Method: std rounds quotas down and nproc
/// knows none, so std is a lower bound (but for the floor of two) and nproc an upper one.
#[test]
fn std_and_nproc_agree() {
    let machine = Os.topology();
    let here = machine.effective_parallelism();
    let std = std::thread::available_parallelism().map_or(1, usize::from);
    let quota = machine.limits().quota.is_some();
    if quota {
        assert!(here >= std, "{here} {std}")
    } else {
        assert_eq!(here, std)
    }
    if let Ok(nproc) = std::process::Command::new("nproc").output() {
        let text = String::from_utf8_lossy(&nproc.stdout).into_owned();
        let nproc: usize = text.trim().parse().expect("nproc prints a number");
        assert!(here <= nproc, "{here} {nproc}");
        assert_eq!(machine.allowed().len(), nproc);
    }
    let now = Os.limits();
    assert!(now.effective_parallelism() >= 1 && machine.allowed().is_subset(&now.usable()));
}
