//! A program that hangs: the one of docs/guide/hangs.md.
use paceline::JobSystem;

pub(super) fn main() {
    let js = JobSystem::new();
    let loaded = js.event("loaded");
    let load = js.job("load").schedule(|_| println!("loading"));
    let meshes = js.job("meshes").after(load).after(&loaded).schedule(|_| ());
    let draw = js.job("draw").after(meshes).run(|_| "drawn");
    println!("{}", draw.wait());
    loaded.complete(); // Too late: the wait above is for this.
}
