//! Bevy apps without a window. `bevy-demo STEPS` runs each of them for so many frames and prints a line for
//! each: its name, a digest of its world, and the time of every frame in nanoseconds.
//!
//! The digest does not depend on the threads: an app that ends otherwise than on one thread says so and
//! fails.

mod apps;

use std::time::Instant;

use bevy_app::{App, TaskPoolPlugin};
use bevy_ecs::schedule::{Schedules, SingleThreadedExecutor};

use apps::{APPS, Build, digest};

/// The frames of the comparison with one thread.
const COMPARED: u32 = 20;

fn main() {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok());
    let Some(steps @ 1..) = steps else {
        eprintln!("usage: bevy-demo STEPS (a number of frames of each app, at least 1)");
        std::process::exit(2);
    };
    for (name, build) in APPS {
        let [serial, parallel] = [true, false].map(|is_serial| {
            let mut app = made(build, is_serial);
            (0..COMPARED).for_each(|_| app.update());
            digest(&mut app)
        });
        if serial != parallel {
            eprintln!("bevy-demo: {name}: the world is another one than on one thread");
            std::process::exit(1);
        }
        let mut app = made(build, false);
        // The first frame makes the schedules.
        app.update();
        let times = (0..steps).map(|_: u32| {
            let begin = Instant::now();
            app.update();
            begin.elapsed().as_nanos().to_string()
        });
        let times: Vec<String> = times.collect();
        println!("{name} {:016x} {}", digest(&mut app), times.join(" "));
    }
}

/// An app with the usual pools.
fn made(build: Build, is_serial: bool) -> App {
    let mut app = App::new();
    app.add_plugins(TaskPoolPlugin::default());
    build(&mut app);
    if is_serial {
        let mut schedules = app.world_mut().resource_mut::<Schedules>();
        for (_, schedule) in schedules.iter_mut() {
            schedule.set_executor(SingleThreadedExecutor::new());
        }
    }
    app
}
