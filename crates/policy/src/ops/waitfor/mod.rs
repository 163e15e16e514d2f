//! `waitfor`: fair scheduling in which a task that waits pays for what it waits for.
//!
//! Source 000 ends with a wish: "if the scheduler could deduce that this thread is waiting for another one to
//! finish, and take this into account". Programs state their waits ([`Kernel::waits`]), and this policy acts
//! on the statements. It is proxy execution (charge the waiter, run the dependency) for waits that the
//! kernel's own inheritance does not see: a program's own locks, jobs and events.
//!
//! The rules:
//!
//! - *Virtual time.* Each task has an account: the CPU time that it has used, times 100 by its weight. The
//!   task with the least account goes first, the lower number among equals. A task that slept comes back at
//!   most one [credit](WaitForConstants::credit) behind the *floor*. The floor is the largest account that a
//!   turn was ever given for. A new task begins at the floor. The message of a task's last turn comes when it
//!   wakes up, so what it saved up is counted as if the turn had been paid for before it slept.
//! - *Funding.* A task that waits funds what it waits for, and what that waits for in turn. A ready task's
//!   turn comes with its own account or with the least one that funds it, whichever is less. A task whose own
//!   account is below the floor pays for itself; else the account that brought it forward pays.
//! - *Dependency first.* A ready task that states a wait for another ready one comes after it. It would only
//!   look in vain. This is for those that wait busily, and those that are about to sleep: the wait of a task
//!   that was woken up is over, though its program could not take the statement back yet.
//! - *Place.* A task that is waited for gets the fastest idle CPU; another one stays near where it was.
//! - *Batch.* A round dispatches a task for each CPU that has nothing to run, and no more. A task that is
//!   dispatched early can be neither funded nor overtaken.
//!
//! A false statement gains no CPU time beyond the program's own share, because each turn is paid for: a
//! false waiter gives its own share away. An account owes for a turn from the moment at which the turn is
//! given, as much as the task's turns usually take, until the turn is paid. So one account does not fill the
//! machine. A turn of which the process hears nothing for two slices is paid as estimated, and the rest when
//! it hears of it.
//!
//! Bounds: a round follows at most [`STEPS_MAX`] statements; circles end where they come back.
//!
//! Where it is bad: each decision costs a round trip through a process. A turn that began on an idle CPU,
//! without the process, is free unless it is the last one before a message, and then, too, as far as the
//! floor had pushed its waiting task before it. So shares are exact only where CPUs are scarce. A false
//! statement can bring a task forward that has not used its share. A dependency that runs on a slow CPU
//! stays there until its slice ends. A wait for one of many, as for any worker of a pool, names no task and
//! helps none.

mod funding;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use event::{Cpu, Nanos, Task};

use self::funding::{Claim, Funding};
use super::{Dispatch, Kernel, Ops, Queued};

/// How many statements of waits a round follows, each to each of its tasks.
pub const STEPS_MAX: usize = 4096;

/// The constants of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitForConstants {
    /// How long a task runs at a time. Default: 3 ms, the base slice of Linux's fair class on eight CPUs or
    /// more.
    pub slice: Nanos,
    /// How far behind the floor a sleeper comes back at most, and a waiter funds others. Default: two slices,
    /// as Linux's fair class has it; there it is a tick where that is more.
    pub credit: Nanos,
}

impl WaitForConstants {
    /// With this slice, and the credit that is usual with it.
    pub const fn of_slice(slice: Nanos) -> WaitForConstants {
        WaitForConstants {
            slice,
            credit: Nanos(slice.0 * 2),
        }
    }
}

impl Default for WaitForConstants {
    fn default() -> WaitForConstants {
        WaitForConstants::of_slice(Nanos::from_millis(3))
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct WaitFor {
    constants: WaitForConstants,
    /// The tasks that wait for a decision, by their own accounts.
    pool: BTreeSet<(Nanos, Task)>,
    /// By task.
    accounts: Vec<Account>,
    floor: Nanos,
    dispatched: u64,
    /// When a funded turn is paid at the latest, by time.
    turns: VecDeque<(Nanos, Task, u64)>,
    funding: Funding,
}

#[derive(Clone, Debug)]
struct Account {
    vtime: Nanos,
    /// Of the last message.
    weight: u64,
    /// It is in the pool with this message.
    message: Option<Queued>,
    /// How long its turns take, averaged; a slice as long as nothing is known.
    typical: Option<Nanos>,
    /// What it owes for the turns of others that are not paid yet.
    owed: Nanos,
    /// The turn that it was given on another one's account.
    funded: Option<Turn>,
    /// When its last turn began and ended that was told of.
    told: (Nanos, Nanos),
    /// How far the floor has pushed it since its task's last turn, which is not paid yet.
    pushed: Nanos,
    is_new: bool,
}

/// A turn on another one's account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Turn {
    payer: Task,
    /// How long it will take, as far as is known.
    estimate: Nanos,
    number: u64,
    /// The payer has paid the estimate.
    is_paid: bool,
}

impl Default for Account {
    fn default() -> Account {
        Account {
            vtime: Nanos::ZERO,
            weight: 100,
            message: None,
            typical: None,
            owed: Nanos::ZERO,
            funded: None,
            told: (Nanos::ZERO, Nanos::ZERO),
            pushed: Nanos::ZERO,
            is_new: true,
        }
    }
}

impl Account {
    /// CPU time in units of this account.
    fn scaled(&self, time: Nanos) -> Nanos {
        let scaled = u128::from(time.0) * 100 / u128::from(self.weight.max(1));
        Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// What it counts with when it funds others.
    fn with_debts(&self) -> Nanos {
        self.vtime + self.scaled(self.owed)
    }

    /// Its task sleeps, or slept: what lies behind this is lost, debts being as good as paid.
    fn push(&mut self, least: Nanos) {
        let before = self.vtime;
        self.vtime = before.max(least - self.scaled(self.owed));
        self.pushed += self.vtime - before;
    }

    /// How long the turn took of which this message tells. Nothing if that was told before: a task that is
    /// queued and gets another mask is a message once more.
    fn news(&mut self, queued: &Queued) -> Nanos {
        let turn = (queued.start, queued.stop);
        if std::mem::replace(&mut self.told, turn) == turn {
            return Nanos::ZERO;
        }
        queued.stop - queued.start
    }

    /// A turn took this long.
    fn learn(&mut self, used: Nanos) {
        if used > Nanos::ZERO {
            let before = self.typical.unwrap_or(used);
            self.typical = Some(Nanos(before.0 / 4 * 3 + used.0 / 4));
        }
    }
}

impl WaitFor {
    /// The policy.
    pub fn new(constants: WaitForConstants) -> WaitFor {
        WaitFor {
            constants,
            pool: BTreeSet::new(),
            accounts: Vec::new(),
            floor: Nanos::ZERO,
            dispatched: 0,
            turns: VecDeque::new(),
            funding: Funding::default(),
        }
    }

    /// How many rounds did not follow all statements, because there were more than [`STEPS_MAX`].
    pub fn cut_short(&self) -> u64 {
        self.funding.cut_short
    }

    fn account(&mut self, task: Task) -> &mut Account {
        let index = task.index();
        if self.accounts.len() <= index {
            self.accounts.resize(index + 1, Account::default());
        }
        &mut self.accounts[index]
    }

    /// A message came: the last turn is paid, and the task joins the pool.
    fn take(&mut self, queued: Queued) {
        let (floor, least) = (self.floor, self.least_credit());
        let account = self.account(queued.task);
        let used = account.news(&queued);
        // It was taken out of the kernel's queue and put in again: this message takes the old one's place.
        if account.message.take().is_some() {
            let place = (account.vtime, queued.task);
            self.pool.remove(&place);
        }
        let account = self.account(queued.task);
        account.weight = queued.weight;
        account.learn(used);
        let from = match (account.is_new, has_slept(&queued)) {
            (true, _) => floor,
            (false, true) => least,
            (false, false) => Nanos::ZERO,
        };
        account.is_new = false;
        self.settle(queued.task, used);
        let account = self.account(queued.task);
        account.push(from);
        account.pushed = Nanos::ZERO;
        account.message = Some(queued);
        let vtime = account.vtime;
        self.pool.insert((vtime, queued.task));
    }

    /// The task's last turn is paid: it took this long.
    ///
    /// The message comes when the task wakes up, and the turn was before it slept: what its account was
    /// pushed since would have been less by the turn.
    fn settle(&mut self, task: Task, used: Nanos) {
        let account = self.account(task);
        let Some(turn) = account.funded.take() else {
            let (price, pushed) = (account.scaled(used), account.pushed);
            return self.charge(task, Nanos::ZERO, price - pushed);
        };
        let payer = self.account(turn.payer);
        let price = payer.scaled(used);
        let estimate = payer.scaled(turn.estimate);
        if turn.is_paid {
            return self.charge(turn.payer, estimate, price);
        }
        payer.owed = payer.owed - turn.estimate;
        self.charge(turn.payer, Nanos::ZERO, price);
    }

    /// Turns of which nothing has been heard for long are paid as estimated, until their messages come.
    fn settle_old_turns(&mut self, now: Nanos) {
        while let Some(&(due, task, number)) = self.turns.front() {
            if due > now {
                return;
            }
            self.turns.pop_front();
            let Some(turn) = &mut self.account(task).funded else {
                continue;
            };
            if turn.number == number {
                turn.is_paid = true;
                let Turn {
                    payer, estimate, ..
                } = *turn;
                let account = self.account(payer);
                account.owed = account.owed - estimate;
                let price = account.scaled(estimate);
                self.charge(payer, Nanos::ZERO, price);
            }
        }
    }

    /// The account pays this price, in its own units, of which it has paid a part before. Its task keeps its
    /// place in the pool, if it is there.
    fn charge(&mut self, payer: Task, paid: Nanos, price: Nanos) {
        let account = self.account(payer);
        let before = account.vtime;
        account.vtime = before + price - paid;
        let after = account.vtime;
        if account.message.is_some() {
            self.pool.remove(&(before, payer));
            self.pool.insert((after, payer));
        }
    }

    /// The least account that a task comes back with.
    fn least_credit(&self) -> Nanos {
        self.floor - self.constants.credit
    }

    /// Works out what the waiting tasks fund at this moment.
    fn fund(&mut self, kernel: &mut dyn Kernel) {
        let Self {
            funding, accounts, ..
        } = self;
        let is_over = |waiter: Task| {
            let message = accounts.get(waiter.index()).and_then(|it| it.message);
            message.is_some_and(|queued| queued.woken)
        };
        funding.begin();
        kernel.waits(&mut |waiter, others| {
            if !is_over(waiter) {
                funding.note(waiter, others);
            }
        });
        if self.funding.is_empty() {
            return;
        }
        let least = self.least_credit();
        for waiter in self.funding.waiters() {
            let account = self.account(waiter);
            // What it did not use while it slept is lost to it, as to a task that wakes up.
            if account.message.is_none() {
                account.push(least);
            }
        }
        let Self { accounts, .. } = self;
        let is_ready = |task: Task| {
            let account = accounts.get(task.index());
            account.is_some_and(|account| account.message.is_some())
        };
        let vtime = |waiter: Task| accounts[waiter.index()].with_debts();
        let slice = self.constants.slice;
        let price = |waiter: Task, other: Task| {
            let typical = accounts[other.index()].typical.unwrap_or(slice);
            accounts[waiter.index()].scaled(typical)
        };
        self.funding.follow(&vtime, &price, &is_ready);
    }

    /// The task that goes next, and the account that pays; none of those for which there is no place.
    fn next(&self, no_place: &BTreeSet<Task>) -> Option<Claim> {
        let pool = self.pool.iter().map(|&(vtime, task)| Claim {
            vtime,
            task,
            payer: task,
        });
        let mut pool = pool.filter(|claim| !no_place.contains(&claim.task));
        let first = pool.clone().next();
        let own = pool.find(|claim| !self.funding.has_to_yield(claim.task));
        match (self.funding.first(no_place), own.or(first)) {
            (Some(funded), Some(own)) if own.vtime < funded.vtime => Some(own),
            (Some(funded), _) => Some(funded),
            (None, own) => own,
        }
    }

    /// Where the task was queued.
    fn home(&self, task: Task) -> Cpu {
        let message = self.accounts[task.index()].message;
        message.map_or(Cpu(0), |queued| queued.cpu)
    }

    fn dispatch(&mut self, claim: Claim, cpu: Cpu, kernel: &mut dyn Kernel) {
        let Claim { vtime, task, payer } = claim;
        self.funding.remove(task);
        self.dispatched += 1;
        let (floor, slice, number) = (self.floor, self.constants.slice, self.dispatched);
        self.floor = floor.max(self.account(payer).vtime);
        let account = self.account(task);
        let own = account.vtime;
        let Some(queued) = account.message.take() else {
            return;
        };
        self.pool.remove(&(own, task));
        if claim.is_funded() && own >= floor {
            self.owe(task, payer, number, kernel.now());
        }
        kernel.dispatch(Dispatch {
            cpu: Some(cpu),
            ..Dispatch::of(&queued, slice, vtime.0)
        });
    }

    /// The task has its next turn on the payer's account.
    fn owe(&mut self, task: Task, payer: Task, number: u64, now: Nanos) {
        let slice = self.constants.slice;
        let account = self.account(task);
        let estimate = account.typical.unwrap_or(slice);
        account.funded = Some(Turn {
            payer,
            estimate,
            number,
            is_paid: false,
        });
        let payer = self.account(payer);
        payer.owed += estimate;
        self.turns.push_back((now + slice + slice, task, number));
    }
}

/// Whether the task has slept before or after the turn that this message tells of. One that wakes up on an
/// idle CPU is no message until its slice is over, and has run no longer since it slept than in this turn.
fn has_slept(queued: &Queued) -> bool {
    queued.woken || queued.exec_runtime <= queued.stop - queued.start
}

/// An idle CPU: the fastest one for a task that is waited for, else the one near its home.
fn place(claim: &Claim, home: Cpu, kernel: &mut dyn Kernel) -> Option<Cpu> {
    if claim.is_funded() {
        return fastest_idle(claim.task, kernel);
    }
    kernel.select_cpu(claim.task, home)
}

/// The fastest idle CPU that the task may use, the lowest number among equals.
fn fastest_idle(task: Task, kernel: &mut dyn Kernel) -> Option<Cpu> {
    let mut all: Vec<Cpu> = (0..kernel.cpus() as u32).map(Cpu).collect();
    all.sort_by_key(|&cpu| (Reverse(kernel.capacity(cpu)), cpu));
    let is_idle = |&cpu: &Cpu| kernel.select_cpu(task, cpu) == Some(cpu);
    all.into_iter().find(is_idle)
}

impl Ops for WaitFor {
    fn name(&self) -> &'static str {
        "waitfor"
    }

    fn listens(&self) -> bool {
        true
    }

    /// A turn that was paid for it is settled as estimated; one that it paid for is free.
    fn forget(&mut self, task: Task) {
        let Some(account) = self.accounts.get(task.index()) else {
            return;
        };
        self.pool.remove(&(account.vtime, task));
        if let Some(turn) = account.funded {
            self.settle(task, turn.estimate);
        }
        self.accounts[task.index()] = Account::default();
        for account in &mut self.accounts {
            account.funded = account.funded.filter(|turn| turn.payer != task);
        }
    }

    fn round(&mut self, kernel: &mut dyn Kernel) -> usize {
        while let Some(queued) = kernel.dequeue() {
            self.take(queued);
        }
        self.settle_old_turns(kernel.now());
        self.fund(kernel);
        let mut no_place = BTreeSet::new();
        while kernel.wanted() > 0
            && let Some(claim) = self.next(&no_place)
        {
            match place(&claim, self.home(claim.task), kernel) {
                Some(cpu) => self.dispatch(claim, cpu, kernel),
                None => _ = no_place.insert(claim.task),
            }
        }
        self.pool.len()
    }
}
