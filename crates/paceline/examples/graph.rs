//! The twelve systems of example `ecs`, as a graph that is built once and runs every frame, in safe code.
//!
//! Each system says which arrays it reads and writes, and gets references to these. Where two systems touch
//! the same array, the order of the calls is their order (`auto`); all others run at the same time.
#![forbid(unsafe_code)]

use paceline::{Builder, BuiltGraph, JobSystem};

#[derive(Clone)]
struct World {
    goal: Vec<f32>,
    force: Vec<f32>,
    velocity: Vec<f32>,
    position: Vec<f32>,
    heat: Vec<f32>,
    health: Vec<f32>,
    phase: Vec<f32>,
    visible: Vec<bool>,
    light: Vec<f32>,
    score: f32,
    drawn: usize,
}

paceline::resources! {
    World: Keys {
        goal: Vec<f32>, force: Vec<f32>, velocity: Vec<f32>, position: Vec<f32>, heat: Vec<f32>,
        health: Vec<f32>, phase: Vec<f32>, visible: Vec<bool>, light: Vec<f32>, score: f32, drawn: usize,
    }
}

/// The frame, built once: a system a line.
#[rustfmt::skip]
fn frame(js: &JobSystem) -> BuiltGraph<'static, World> {
    let (mut graph, w) = js.graph_of::<World>("update");
    graph.auto();
    graph.job("think").writes(w.goal).reads(w.position).for_each(|(goal, x)| *goal = (x * 7.0).sin());
    graph.job("push").writes(w.force).reads(w.position).for_each(|(force, x)| *force = -0.1 * x);
    graph.job("steer").writes(w.velocity).reads(w.goal).reads(w.force)
        .for_each(|(v, goal, force)| *v += 0.1 * (goal + force));
    graph.job("bounce").writes(w.velocity).reads(w.position)
        .for_each(|(v, x)| *v = if x.abs() > 10.0 { -*v } else { *v });
    graph.job("travel").writes(w.position).reads(w.velocity).for_each(|(x, v)| *x += 0.016 * v);
    graph.job("warm").writes(w.heat).reads(w.velocity).for_each(|(heat, v)| *heat = 0.9 * *heat + v * v);
    graph.job("hurt").writes(w.health).reads(w.heat).for_each(|(health, heat)| *health -= 0.0001 * heat);
    graph.job("animate").writes(w.phase).reads(w.velocity).for_each(|(p, v)| *p = (*p + v.abs()).fract());
    graph.job("cull").writes(w.visible).reads(w.position).for_each(|(visible, x)| *visible = x.abs() < 0.5);
    graph.job("light").writes(w.light).reads(w.heat).reads(w.visible)
        .for_each(|(light, heat, visible)| *light = if *visible { *heat } else { 0.0 });
    graph.job("score").writes(w.score).reads(w.health)
        .run(|cx, (score, health)| *score = cx.over(health).reduce(|h| *h, |a, b| a + b).unwrap_or(0.0));
    graph.job("draw").writes(w.drawn).reads(w.visible).reads(w.light).reads(w.phase).run(|cx, (n, v, l, p)| {
        *n = cx.over((v, l, p)).fold(|| 0, |n, (v, l, p)| n + usize::from(*v && l + p > 0.2), |a, b| a + b);
    });
    graph.build()
}

fn world(entities: usize) -> World {
    let column = |step: f32| (0..entities).map(|i| (i as f32 * step).sin()).collect();
    World {
        goal: column(0.0),
        force: column(0.0),
        velocity: column(0.3),
        position: column(0.7),
        heat: column(0.0),
        health: column(0.1),
        phase: column(0.2),
        visible: vec![false; entities],
        light: column(0.0),
        score: 0.0,
        drawn: 0,
    }
}

fn main() {
    let js = JobSystem::new();
    let mut parallel = world(4096);
    let mut serial = parallel.clone();
    let mut graph = frame(&js);
    graph.measure(true);
    for _ in 0..100 {
        graph.run(&mut parallel);
    }
    println!(
        "{graph}\nscore {:.3}, {} drawn",
        parallel.score, parallel.drawn
    );
    println!("no frame is shorter than {:?}", graph.critical_path().time);
    if let Some(path) = std::env::args().nth(1) {
        std::fs::write(path, graph.to_svg()).expect("the picture can be written");
    }

    // Without workers, everything runs on this thread, one system after the other.
    let alone = Builder::new()
        .workers(0)
        .build()
        .expect("it needs no threads");
    let mut graph = frame(&alone);
    for _ in 0..100 {
        graph.run(&mut serial);
    }
    assert_eq!(
        (parallel.score, parallel.drawn),
        (serial.score, serial.drawn)
    );
    assert_eq!(parallel.position, serial.position);
}
