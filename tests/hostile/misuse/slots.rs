//! One thread at a time on each thread slot, also while the job system ends: a worker that is started then
//! would get a slot where another one still works.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use paceline::{Builder, Context, JobSystem};
use platform::{CpuSet, Machine, Os, Platform};

use super::{Trial, Verdict, check, fine};
use crate::watchdog;

const PAUSE: Duration = Duration::from_micros(100);

/// Counts threads on thread slots, as the hooks tell.
#[derive(Clone, Default)]
struct Usher {
    /// For each thread slot that is taken, by how many.
    holding: Arc<Mutex<BTreeMap<usize, u64>>>,
    twice: Arc<AtomicU64>,
}

impl Usher {
    fn at_the_door(&self, builder: Builder) -> Builder {
        let (comes, goes) = (self.clone(), self.clone());
        let builder = builder.on_thread_start(move |slot| comes.change(slot, |count| *count += 1));
        builder.on_thread_stop(move |slot| goes.change(slot, |count| *count -= 1))
    }

    fn change(&self, slot: usize, change: impl FnOnce(&mut u64)) {
        let mut holding = self.holding.lock().expect("nothing panics inside");
        let count = holding.entry(slot).or_default();
        change(count);
        match *count {
            0 => _ = holding.remove(&slot),
            1 => {}
            _ => _ = self.twice.fetch_add(1, Ordering::SeqCst),
        }
    }

    /// When the last thread has left: no thread slot ever had two.
    fn verdict(&self) -> Verdict {
        while !self.holding.lock().is_ok_and(|holding| holding.is_empty()) {
            thread::sleep(PAUSE);
        }
        let twice = self.twice.load(Ordering::SeqCst);
        check(
            twice == 0,
            format!("{twice} times a thread was started on a slot that another thread had"),
        )
    }
}

/// Jobs and their maker ask for other numbers of workers up to the last moment. The last owner is the maker,
/// or one of the jobs.
pub(super) fn resized_at_the_end(trial: &Trial) -> Verdict {
    const ROUNDS: u64 = 10;
    for round in 0..ROUNDS {
        watchdog::progress();
        let usher = Usher::default();
        let js = usher.at_the_door(trial.builder()).build();
        let js = Arc::new(fine("build", js)?);
        let failed = Arc::new(Mutex::new(None));
        for number in 0..4 {
            let (weak, told) = (Arc::downgrade(&js), Arc::clone(&failed));
            js.schedule(move |cx| resizes(cx, &weak, number, &told));
        }
        // Without this there is no worker in some combinations, and no job runs before the end.
        fine("resize(1)", js.resize(1))?;
        js.flush();
        thread::sleep(PAUSE * round as u32);
        fine("resize", js.resize((round % 4) as usize))?;
        drop(js);
        usher.verdict()?;
        let told = failed.lock().map_err(|_| "a job panicked")?.take();
        told.map_or(Ok(()), |text| Err(format!("resize in a job: {text}")))?;
    }
    Ok(())
}

/// Asks for a number of workers, and schedules a job that asks for another one, while there is an owner.
fn resizes(
    cx: &Context<'_, Os>,
    weak: &std::sync::Weak<JobSystem>,
    number: usize,
    told: &Arc<Mutex<Option<String>>>,
) {
    const TURNS: usize = 200;
    if number >= TURNS {
        return;
    }
    let Some(js) = weak.upgrade() else {
        return;
    };
    if let Err(error) = js.resize(number % 5)
        && let Ok(mut place) = told.lock()
    {
        *place = Some(error.to_string());
    }
    let (weak, told) = (weak.clone(), Arc::clone(told));
    cx.schedule(move |cx| resizes(cx, &weak, number + 3, &told));
    // Perhaps the last owner.
    drop(js);
}

/// Gives the calling thread its mask back.
struct Mask(CpuSet);

impl Drop for Mask {
    fn drop(&mut self) {
        // Refused: the threads that come later stay on one CPU.
        _ = Os.set_mask(Os.thread_id(), &self.0);
    }
}

/// The process gets more CPUs just before the end, and a look at the machine is due: the worker that has it
/// would start further ones.
pub(super) fn wider_at_the_end(trial: &Trial) -> Verdict {
    const SYSTEMS: usize = 8;
    let usable = Os.limits().usable();
    let Some(first) = usable.first().filter(|_| usable.len() > 1) else {
        return Ok(());
    };
    if Os
        .set_mask(Os.thread_id(), &CpuSet::from_iter([first]))
        .is_err()
    {
        // Not a system on which threads have masks.
        return Ok(());
    }
    let mask = Mask(usable);
    let ushers: Vec<_> = (0..SYSTEMS).map(|_| Usher::default()).collect();
    let build = |usher: &Usher| {
        let builder = trial.builder_for_this_machine().reserve(0);
        fine("build", usher.at_the_door(builder).build())
    };
    let systems: Result<Vec<_>, String> = ushers.iter().map(build).collect();
    // A look is due once a second.
    thread::sleep(Duration::from_millis(1_050));
    drop(mask);
    for (number, js) in (0..).zip(systems?) {
        js.flush();
        // Before the look, in the middle of it, or after it.
        thread::sleep(PAUSE * number / 2);
        drop(js);
    }
    ushers.iter().try_for_each(Usher::verdict)
}
