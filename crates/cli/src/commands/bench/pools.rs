//! Pools of the subjects, each with the same number of threads that may execute work.
//!
//! `threads` includes the thread that calls and waits, where it takes part: Paceline and chili start
//! one less, and so does bevy_tasks, whose scopes run tasks while they wait (documentation of
//! `TaskPool::scope_with_executor`). rayon's caller blocks outside its pool and takes no part, so the
//! pool has all of them, unless the caller is made a member.

use std::num::NonZero;

use bevy_tasks::{TaskPool, TaskPoolBuilder};
use paceline::{Builder, JobSystem};
use platform::{CpuSet, Os, Platform, Treatment};
use rayon::ThreadPoolBuilder;

pub(super) fn paceline(threads: usize) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1);
    builder.build().map_err(|error| error.to_string())
}

/// The kernel is asked to help it, as soon as somebody adopts a role.
pub(super) fn paceline_helped(threads: usize, help: &Treatment) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1).os_help(help.clone());
    builder.build().map_err(|error| error.to_string())
}

/// Its workers stay where the kernel puts them.
pub(super) fn paceline_unsteered(threads: usize) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1).steering(false);
    builder.build().map_err(|error| error.to_string())
}

/// Its workers have the time slice that the kernel gives everybody.
pub(super) fn paceline_unsliced(threads: usize) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1).slice(None);
    builder.build().map_err(|error| error.to_string())
}

pub(super) fn rayon(threads: usize) -> Result<rayon::ThreadPool, String> {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    builder.build().map_err(|error| error.to_string())
}

/// Each thread may run on one CPU only, a different one as far as there are enough.
pub(super) fn rayon_pinned(threads: usize) -> Result<rayon::ThreadPool, String> {
    let pool = rayon(threads)?;
    let cpus: Vec<u32> = Os.topology().allowed().iter().collect();
    let pinned = pool.broadcast(|thread| {
        let mut mask = CpuSet::new();
        mask.insert(cpus[thread.index() % cpus.len()]);
        Os.set_mask(Os.thread_id(), &mask)
    });
    let pinned: Result<Vec<()>, _> = pinned.into_iter().collect();
    pinned.map_err(|error| error.to_string())?;
    Ok(pool)
}

/// Makes the calling thread a member of a pool for the rest of its life.
pub(super) fn rayon_member(threads: usize) -> Result<rayon::ThreadPool, String> {
    let builder = ThreadPoolBuilder::new()
        .num_threads(threads)
        .use_current_thread();
    builder.build().map_err(|error| error.to_string())
}

pub(super) fn chili(threads: usize) -> chili::ThreadPool {
    chili::ThreadPool::with_config(chili::Config {
        thread_count: NonZero::new(threads),
        ..chili::Config::default()
    })
}

pub(super) fn bevy(threads: usize) -> TaskPool {
    TaskPoolBuilder::new().num_threads(threads - 1).build()
}

/// Runs `f` on a thread of its own, which it may make a member of a pool.
pub(super) fn on_own_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| match scope.spawn(f).join() {
        Ok(result) => result,
        Err(payload) => std::panic::resume_unwind(payload),
    })
}

#[cfg(test)]
mod tests {
    use platform::{Class, Treatment};

    use super::*;
    use crate::help::treat_caller;

    fn class() -> Option<Class> {
        treat_caller(&Treatment::default()).ok()?.class
    }

    /// Goal: threads of peers are treated as the thread that makes their pool. Method: one that is a little
    /// nicer than usual, which everybody may be, and what needs a privilege; its pools say what their
    /// threads are.
    #[test]
    fn pools_inherit_help() {
        let Some(Class::Fair { nice }) = class() else {
            return println!("not tried: this system tells no class");
        };
        let (nicer, less) = ((nice + 3).min(19), (nice - 3).max(-20));
        for help in [
            Treatment::nice(nicer),
            Treatment::nice(less),
            Treatment::round_robin(1),
        ] {
            on_own_thread(|| match treat_caller(&help.clone().inherited()) {
                Ok(_) => all_are(help.class),
                Err(why) if help != Treatment::nice(nicer) => println!("{help}: not tried: {why}"),
                Err(why) => panic!("everybody may be nicer: {why}"),
            });
        }
    }

    /// All threads of all pools that this thread makes have this class.
    fn all_are(wanted: Option<Class>) {
        let classes = rayon(3).unwrap().broadcast(|_| class());
        assert_eq!(classes, [wanted; 3]);
        let both = chili(2).scope().join(|_| class(), |_| class());
        assert_eq!(both, (wanted, wanted));
        let classes = bevy(3).scope(|scope| {
            (0..20).for_each(|_| scope.spawn(async { class() }));
        });
        assert_eq!(classes, [wanted; 20]);
        let classes = rayon_member(3).unwrap().broadcast(|_| class());
        assert_eq!(classes, [wanted; 3]);
    }
}
