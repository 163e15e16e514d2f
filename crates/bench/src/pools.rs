//! Pools of the subjects, each with the same number of threads that may execute work.
//!
//! `threads` includes the thread that calls and waits, where it takes part. Paceline and chili start one
//! thread less, and so does bevy_tasks, whose scopes run tasks while they wait (documentation of
//! `TaskPool::scope_with_executor`). rayon's caller blocks outside its pool and takes no part, so the pool
//! has all threads, unless the caller is made a member.

use std::num::NonZero;

use bevy_tasks::{TaskPool, TaskPoolBuilder};
use paceline::{Builder, JobSystem};
use platform::{CpuSet, Machine, Os, Platform, SchedParams};
use rayon::ThreadPoolBuilder;

pub(crate) fn paceline(threads: usize) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1);
    builder.build().map_err(|error| error.to_string())
}

/// It asks the kernel for help as soon as a thread adopts a role.
pub(crate) fn paceline_helped(threads: usize, help: &SchedParams) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1).os_help(help.clone());
    builder.build().map_err(|error| error.to_string())
}

/// Its workers stay where the kernel puts them.
pub(crate) fn paceline_unsteered(threads: usize) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1).steering(false);
    builder.build().map_err(|error| error.to_string())
}

/// Its workers have the kernel's usual time slice.
pub(crate) fn paceline_unsliced(threads: usize) -> Result<JobSystem<Os>, String> {
    let builder = Builder::new().workers(threads - 1).slice(None);
    builder.build().map_err(|error| error.to_string())
}

pub(crate) fn rayon(threads: usize) -> Result<rayon::ThreadPool, String> {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    builder.build().map_err(|error| error.to_string())
}

/// Each thread may run on one CPU only, on different ones if there are enough.
pub(crate) fn rayon_pinned(threads: usize) -> Result<rayon::ThreadPool, String> {
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

/// The calling thread becomes a member of the pool for the rest of its life.
pub(crate) fn rayon_member(threads: usize) -> Result<rayon::ThreadPool, String> {
    let builder = ThreadPoolBuilder::new()
        .num_threads(threads)
        .use_current_thread();
    builder.build().map_err(|error| error.to_string())
}

pub(crate) fn chili(threads: usize) -> chili::ThreadPool {
    chili::ThreadPool::with_config(chili::Config {
        thread_count: NonZero::new(threads),
        ..chili::Config::default()
    })
}

pub(crate) fn bevy(threads: usize) -> TaskPool {
    TaskPoolBuilder::new().num_threads(threads - 1).build()
}

/// Runs `f` on a thread of its own, which it may make a member of a pool.
pub(crate) fn on_own_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| match scope.spawn(f).join() {
        Ok(result) => result,
        Err(payload) => std::panic::resume_unwind(payload),
    })
}

#[cfg(test)]
mod tests {
    use platform::{Class, SchedParams};

    use super::*;
    use console::help::set_caller_params;

    fn class() -> Option<Class> {
        set_caller_params(&SchedParams::default()).ok()?.class
    }

    /// Goal: threads of peers are treated as the thread that makes their pool. Method: a thread that is a
    /// little nicer than usual, which every thread may be, and treatments that need a privilege; the threads
    /// of its pools read their own class.
    #[test]
    fn pools_inherit_help() {
        let Some(Class::Fair { nice }) = class() else {
            return println!("not tried: this system tells no class");
        };
        let (nicer, less) = ((nice + 3).min(19), (nice - 3).max(-20));
        for help in [
            SchedParams::nice(nicer),
            SchedParams::nice(less),
            SchedParams::round_robin(1),
        ] {
            on_own_thread(|| match set_caller_params(&help.clone().inherited()) {
                Ok(_) => all_are(help.class),
                Err(why) if help != SchedParams::nice(nicer) => {
                    println!("{help}: not tried: {why}")
                }
                Err(why) => panic!("every thread may be nicer: {why}"),
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
            for _ in 0..20 {
                scope.spawn(async { class() });
            }
        });
        assert_eq!(classes, [wanted; 20]);
        let classes = rayon_member(3).unwrap().broadcast(|_| class());
        assert_eq!(classes, [wanted; 3]);
    }
}
