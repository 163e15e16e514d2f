//! What goes wrong is reported where somebody waits, by name, and nothing hangs.
#![forbid(unsafe_code)]
use paceline::{JobSystem, WaitError};

fn main() {
    std::panic::set_hook(Box::new(|_| ())); // the report below is enough here
    let js = JobSystem::new();
    let load = js.job("load").schedule(|_| panic!("file not found"));
    let parse = js.job("parse").after(load).run(|_| 1);
    match parse.try_wait() {
        Err(WaitError::Cancelled { label, cause, .. }) => {
            println!(
                "'{}' was cancelled because '{}' failed",
                label.name, cause.name
            );
        }
        other => panic!("unexpected: {other:?}"),
    }
    match js.try_wait(load) {
        Err(WaitError::Panicked { label, message, .. }) => {
            println!("'{}' panicked: {message}", label.name);
        }
        other => panic!("unexpected: {other:?}"),
    }
    let (a, b) = (js.event("a"), js.event("b"));
    let (x, y) = (
        js.job("x").after(a.id()).schedule(|_| ()),
        js.job("y").after(b.id()).schedule(|_| ()),
    );
    js.add_dependency(x, y).expect("x may wait for y");
    let error = js.add_dependency(y, x).expect_err("and then y not for x");
    println!(
        "refused: {}",
        error.to_string().split(':').next().unwrap_or_default()
    );
    a.complete();
    b.complete();
    js.wait(x);
}
