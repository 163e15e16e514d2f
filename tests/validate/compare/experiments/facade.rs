//! V16: the cost of writing the runtime against a facade. If it cost anything, V12 would compare the
//! simulator with the facade and not with the machine.
//!
//! The same frames run on `JobSystem<Os>` and on a job system whose platform is another type, which only
//! passes every call on: as the simulator's does before it simulates anything.

use event::Nanos;
use paceline::{Builder, JobSystem};
use platform::{Memory, Ordering, Os, Platform};
use workload::graph::{Generator, GraphScene, Labels};

use super::Lab;
use crate::compare::judge::{Bound, Row};
use crate::compare::real::pin;

/// The operating system behind one more type.
#[derive(Clone, Debug)]
struct Through(Os);

// SAFETY: all of it is `Os`'s own.
unsafe impl Memory for Through {
    type AtomicU32 = <Os as Memory>::AtomicU32;
    type AtomicU64 = <Os as Memory>::AtomicU64;
    type Cell<T> = <Os as Memory>::Cell<T>;
    type Lock<T: Send> = <Os as Memory>::Lock<T>;

    fn fence(order: Ordering) {
        Os::fence(order);
    }

    fn prefetch<T>(value: &T) {
        Os::prefetch(value);
    }

    fn spin_until(word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: Nanos) -> u64 {
        Os::spin_until(word, wanted, deadline)
    }
}

// SAFETY: all of it is `Os`'s own.
unsafe impl Platform for Through {
    testkit::forward_platform!(Os: |this| this.0, now parker spawn);
}

/// How long a frame takes.
fn frame<P: Platform>(js: &JobSystem<P>, scene: &mut GraphScene) -> f64 {
    let begin = Os.now();
    scene.run(js);
    (Os.now() - begin).0 as f64
}

pub(super) fn run(lab: &Lab) -> Result<Vec<Row>, String> {
    pin(&lab.machine.cpus()[1..])?;
    let generator = Generator {
        piece: Nanos(500),
        ..Generator::default()
    };
    let graph = generator.generate().map_err(|error| error.to_string())?;
    let scene = || GraphScene::new(graph.clone(), lab.machine.busy(), Labels::OfKinds);
    let (mut direct_scene, mut through_scene) = (scene(), scene());
    // On one thread: the work of other threads would hide the difference.
    let direct = Builder::new()
        .workers(0)
        .build()
        .map_err(|error| error.to_string())?;
    let through = Builder::with_platform(Through(Os)).workers(0).build();
    let through = through.map_err(|error| error.to_string())?;
    let mut rounds = |rounds: usize| -> Vec<f64> {
        let round = |_| {
            let one = frame(&direct, &mut direct_scene);
            let other = frame(&through, &mut through_scene);
            let third = frame(&direct, &mut direct_scene);
            other / ((one + third) / 2.0)
        };
        (0..rounds).map(round).collect()
    };
    rounds(5);
    let ratios = lab.quiet.piece(|| Ok(rounds(lab.times(1000))))?;
    direct_scene.verify().map_err(|error| error.to_string())?;
    through_scene.verify().map_err(|error| error.to_string())?;
    let what = "a frame of 500 jobs through another platform type, to one without";
    Ok(vec![
        Row::new(what, ratios, None).bounded(Bound::AtMost(1.02)),
    ])
}
