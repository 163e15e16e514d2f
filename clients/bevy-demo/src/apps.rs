//! The apps.

use bevy_app::{App, PreUpdate, Startup, Update};
use bevy_ecs::prelude::*;

/// What puts an app together.
pub(crate) type Build = fn(&mut App);

pub(crate) const APPS: [(&str, Build); 4] = [
    ("systems", systems),
    ("particles", particles),
    ("mixed", mixed),
    ("short", short),
];

/// A number of its own for each system.
#[derive(Component)]
struct Cell<const N: usize>(u64);

/// What systems add to, in any order.
#[derive(Resource, Default)]
struct Sum(u64);

#[derive(Component)]
struct Position([f32; 3]);

#[derive(Component)]
struct Velocity([f32; 3]);

/// Some steps of a generator, as many as take a few microseconds.
fn mixed_up(mut number: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
    }
    number
}

fn turn<const N: usize>(mut cells: Query<&mut Cell<N>>) {
    for mut cell in &mut cells {
        cell.0 = mixed_up(cell.0 ^ N as u64, 200);
    }
}

fn add<const N: usize>(cells: Query<&Cell<N>>, mut sum: ResMut<Sum>) {
    for cell in &cells {
        sum.0 = sum.0.wrapping_add(cell.0);
    }
}

fn spawn_cells<const N: usize>(mut commands: Commands, count: Res<Count>) {
    for number in 0..count.0 {
        commands.spawn(Cell::<N>(number));
    }
}

/// How many cells each system has.
#[derive(Resource)]
struct Count(u64);

/// Adds a system that turns its own cells for each number, and one that reads them.
macro_rules! cells {
    ($app:ident, $($number:literal)*) => {
        $(
            $app.add_systems(Startup, spawn_cells::<$number>);
            $app.add_systems(Update, (turn::<$number>, add::<$number>).chain());
        )*
    };
}

/// A hundred systems: fifty pairs, of which the second waits for the first, and is alone among those that
/// add.
fn systems(app: &mut App) {
    app.insert_resource(Count(16)).init_resource::<Sum>();
    fifty(app);
}

/// The same with hardly any work: what systems themselves cost.
fn short(app: &mut App) {
    app.insert_resource(Count(1)).init_resource::<Sum>();
    fifty(app);
}

fn fifty(app: &mut App) {
    cells!(app, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
    cells!(app, 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49);
}

/// Many things that move: loops over components in pieces.
fn particles(app: &mut App) {
    app.init_resource::<Sum>();
    app.add_systems(Startup, |mut commands: Commands| {
        for number in 0..20_000_u16 {
            let part = |shift: u32| f32::from(number.rotate_left(shift) % 997) / 997.0;
            let position = Position([part(0), part(3), part(7)]);
            commands.spawn((position, Velocity([part(5), part(9), part(11)])));
        }
    });
    app.add_systems(Update, (pull, travel).chain());
}

fn pull(mut all: Query<(&Position, &mut Velocity)>) {
    all.par_iter_mut().for_each(|(position, mut velocity)| {
        let squares = position.0.map(|along| along * along);
        let distance = squares.iter().sum::<f32>().sqrt() + 0.1;
        for (speed, along) in velocity.0.iter_mut().zip(position.0) {
            *speed -= 0.01 * along / distance;
        }
    });
}

fn travel(mut all: Query<(&mut Position, &Velocity)>) {
    all.par_iter_mut().for_each(|(mut position, velocity)| {
        for (along, speed) in position.0.iter_mut().zip(velocity.0) {
            *along += 0.016 * speed;
        }
    });
}

/// Not to be sent to another thread.
struct Local(std::rc::Rc<std::cell::Cell<u64>>);

/// Systems of all kinds: in parallel, on the main thread, alone with the world, with pools in their middle.
fn mixed(app: &mut App) {
    app.insert_resource(Count(16)).init_resource::<Sum>();
    app.world_mut()
        .insert_non_send(Local(std::rc::Rc::default()));
    cells!(app, 0 1 2 3 4 5 6 7);
    let count_here = |local: NonSend<Local>| local.0.set(local.0.get() + 1);
    let take_count = |world: &mut World| {
        let count = world.non_send::<Local>().0.get();
        world.resource_mut::<Sum>().0 ^= count;
    };
    app.add_systems(PreUpdate, (count_here, take_count, in_pools).chain());
}

/// A scope, and a future that is waited for, in the middle of a system.
fn in_pools(mut sum: ResMut<Sum>) {
    let compute = bevy_tasks::ComputeTaskPool::get();
    let parts = compute.scope(|scope| {
        for number in 0..8 {
            scope.spawn(async move { mixed_up(number, 500) });
        }
    });
    let later = bevy_tasks::AsyncComputeTaskPool::get().spawn(async { mixed_up(9, 500) });
    let later = bevy_tasks::block_on(later);
    sum.0 = parts
        .into_iter()
        .fold(sum.0 ^ later, |sum, part| sum.rotate_left(3) ^ part);
}

/// A digest of what the world holds.
pub(crate) fn digest(app: &mut App) -> u64 {
    let world = app.world_mut();
    let mut digest = world.resource::<Sum>().0;
    let mut places = world.query::<&Position>();
    for position in places.iter(world) {
        for along in position.0 {
            digest = digest.rotate_left(7) ^ u64::from(along.to_bits());
        }
    }
    digest
}
