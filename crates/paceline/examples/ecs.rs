//! A frame of twelve systems over component arrays, as a game has it, in safe code.
//!
//! A system is a function that loops over arrays of the world. The frame is the list of systems, each with
//! those that it comes after. Several systems may write the same array in order (`steer` and `bounce` write
//! the velocities). The arrays are behind locks of the standard library that are only tried: if a dependency
//! is missing, a system panics and says so, instead of waiting for the other one.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program has threads and locks of its own"
)]

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use paceline::{Context, JobId, JobSystem};

/// An array of one component, for all entities.
type Column<T> = RwLock<Vec<T>>;

struct World {
    goal: Column<f32>,
    force: Column<f32>,
    velocity: Column<f32>,
    position: Column<f32>,
    heat: Column<f32>,
    health: Column<f32>,
    phase: Column<f32>,
    visible: Column<bool>,
    light: Column<f32>,
    score: RwLock<f32>,
    drawn: RwLock<usize>,
}

fn read<T>(data: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    data.try_read()
        .expect("no dependency orders this reader after the writer")
}

fn write<T>(data: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    data.try_write()
        .expect("no dependency orders this writer after the other user")
}

fn think(cx: &Context, w: &World) {
    let (mut goal, position) = (write(&w.goal), read(&w.position));
    cx.over((&mut *goal, &*position))
        .for_each(|(goal, x)| *goal = (x * 7.0).sin());
}

fn push(cx: &Context, w: &World) {
    let (mut force, position) = (write(&w.force), read(&w.position));
    cx.over((&mut *force, &*position))
        .for_each(|(force, x)| *force = -0.1 * x);
}

fn steer(cx: &Context, w: &World) {
    let (mut velocity, goal, force) = (write(&w.velocity), read(&w.goal), read(&w.force));
    cx.over((&mut *velocity, &*goal, &*force))
        .for_each(|(v, goal, force)| *v += 0.1 * (goal + force));
}

fn bounce(cx: &Context, w: &World) {
    let (mut velocity, position) = (write(&w.velocity), read(&w.position));
    cx.over((&mut *velocity, &*position))
        .for_each(|(v, x)| *v = if x.abs() > 10.0 { -*v } else { *v });
}

fn travel(cx: &Context, w: &World) {
    let (mut position, velocity) = (write(&w.position), read(&w.velocity));
    cx.over((&mut *position, &*velocity))
        .for_each(|(x, v)| *x += 0.016 * v);
}

fn warm(cx: &Context, w: &World) {
    let (mut heat, velocity) = (write(&w.heat), read(&w.velocity));
    cx.over((&mut *heat, &*velocity))
        .for_each(|(heat, v)| *heat = 0.9 * *heat + v * v);
}

fn hurt(cx: &Context, w: &World) {
    let (mut health, heat) = (write(&w.health), read(&w.heat));
    cx.over((&mut *health, &*heat))
        .for_each(|(health, heat)| *health -= 0.0001 * heat);
}

fn animate(cx: &Context, w: &World) {
    let (mut phase, velocity) = (write(&w.phase), read(&w.velocity));
    cx.over((&mut *phase, &*velocity))
        .for_each(|(phase, v)| *phase = (*phase + v.abs()).fract());
}

fn cull(cx: &Context, w: &World) {
    let (mut visible, position) = (write(&w.visible), read(&w.position));
    cx.over((&mut *visible, &*position))
        .for_each(|(visible, x)| *visible = x.abs() < 0.5);
}

fn light(cx: &Context, w: &World) {
    let (mut light, heat, visible) = (write(&w.light), read(&w.heat), read(&w.visible));
    cx.over((&mut *light, &*heat, &*visible))
        .for_each(|(light, heat, visible)| *light = if *visible { *heat } else { 0.0 });
}

fn score(cx: &Context, w: &World) {
    let sum = cx
        .over(&*read(&w.health))
        .reduce(|health| *health, |a, b| a + b);
    *write(&w.score) = sum.unwrap_or(0.0);
}

fn draw(cx: &Context, w: &World) {
    let lit = (&*read(&w.visible), &*read(&w.light), &*read(&w.phase));
    let bright = |(visible, light, phase): (&bool, &f32, &f32)| *visible && light + phase > 0.2;
    let count = cx
        .over(lit)
        .fold(|| 0, |n, item| n + usize::from(bright(item)), |a, b| a + b);
    *write(&w.drawn) = count;
}

type System = fn(&Context, &World);

/// The frame. It returns when all systems have run.
fn update(js: &JobSystem, w: &World) {
    let frame = js.frame("update", Duration::from_millis(16));
    frame.scope(|s| {
        let add = |name: &'static str, system: System, after: &[JobId]| {
            s.job(name)
                .after_all(after)
                .schedule(move |cx| system(cx, w))
        };
        let think = add("think", think, &[]);
        let push = add("push", push, &[]);
        let steer = add("steer", steer, &[think, push]);
        let bounce = add("bounce", bounce, &[steer]);
        let travel = add("travel", travel, &[bounce]);
        let warm = add("warm", warm, &[bounce]);
        let hurt = add("hurt", hurt, &[warm]);
        let animate = add("animate", animate, &[bounce]);
        let cull = add("cull", cull, &[travel]);
        let light = add("light", light, &[warm, cull]);
        add("score", score, &[hurt]);
        add("draw", draw, &[animate, light]);
    });
}

fn world(entities: usize) -> World {
    let column = |step: f32| RwLock::new((0..entities).map(|i| (i as f32 * step).sin()).collect());
    World {
        goal: column(0.0),
        force: column(0.0),
        velocity: column(0.3),
        position: column(0.7),
        heat: column(0.0),
        health: column(0.1),
        phase: column(0.2),
        visible: RwLock::new(vec![false; entities]),
        light: column(0.0),
        score: RwLock::new(0.0),
        drawn: RwLock::new(0),
    }
}

fn main() {
    let systems: [System; 12] = [
        think, push, steer, bounce, travel, warm, hurt, animate, cull, light, score, draw,
    ];
    let (js, parallel, serial) = (JobSystem::new(), world(4096), world(4096));
    for _ in 0..100 {
        update(&js, &parallel);
        js.enter(|cx| systems.iter().for_each(|system| system(cx, &serial)));
    }
    println!(
        "score {:.3}, {} drawn",
        read(&parallel.score),
        read(&parallel.drawn)
    );
    assert_eq!(*read(&parallel.score), *read(&serial.score));
    assert_eq!(*read(&parallel.position), *read(&serial.position));
    assert_eq!(js.stats().frames, 100);
}
