//! Bevy on `clients/bevy-tasks`: its own tests, and apps without a window.

use super::Tested;
use super::rayon::test;
use super::unpack::{fresh, read, write};
use crate::context::Context;

/// What the package promises of pools and scopes.
pub(super) fn own_tests(context: &Context) -> Result<Tested, String> {
    let ours = context.root.join("clients/bevy-tasks");
    let copied = fresh(context, &ours, "bevy-tasks")?;
    let manifest = read(&copied.join("Cargo.toml"))?;
    let paceline = context.root.join("crates/paceline");
    let manifest = manifest.replace("../../crates/paceline", &paceline.display().to_string());
    write(&copied.join("Cargo.toml"), &manifest)?;
    test(
        context,
        &copied,
        "bevy_tasks",
        &["--features", "multi_threaded"],
    )
}
