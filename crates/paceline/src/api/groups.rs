//! [`Group`]: jobs that a wait may run although it does not need them.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use event::Nanos;
use platform::{Os, Platform};

use super::handle::Owner;
use super::schedule::NewJob;
use super::system::JobSystem;
use crate::error::{ScheduleError, WaitError, or_panic};
#[cfg(all(test, paceline_models, not(miri)))]
use crate::store::Ticket;
use crate::store::{CallSite, JobId, Name};
use crate::work::Shared;

/// Jobs that belong together, from [`JobSystem::group`]. A wait of the group
/// ([`wait`](Group::wait)) may run all of its jobs, and what these have made in scopes, joins and loops,
/// besides what it needs; and no stranger's.
///
/// It is for *gangs*: jobs that wait for each other by means that the job system does not see. The solver of
/// a physics library has a job for each thread, and they meet at barriers of their own. A thread that waits
/// for the first of them, and finds it running, has to be able to run the others. An ordinary wait would
/// block instead, since it does not need them; and a pool that runs anything in a wait may run a level's
/// decompression in the middle of a physics step.
///
/// The jobs are ordinary otherwise: workers run them, they may depend on jobs outside of the group, and
/// others on them. Dropping the group ends nothing: its jobs run on, as jobs of no group. A job that was in
/// the middle of a wait of the group may not be what another job of it waits for, or the two could end up on
/// one thread; that is reported as a deadlock.
///
/// It takes a slot of the job table, and allocates nothing. A job of a group costs as much as any other.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let js = paceline::Builder::new().workers(1).build().unwrap();
/// let physics = js.group("physics");
/// // Each of the two goes on when both have begun.
/// let here = Arc::new(AtomicUsize::new(0));
/// let gang = [(); 2].map(|()| {
///     let here = here.clone();
///     physics.job("solve").schedule(move |_| {
///         here.fetch_add(1, Ordering::SeqCst);
///         while here.load(Ordering::SeqCst) < 2 {
///             std::hint::spin_loop();
///         }
///     })
/// });
/// for solver in gang {
///     physics.wait(solver); // The worker runs one of them, and this thread the other one.
/// }
/// ```
pub struct Group<P: Platform = Os> {
    shared: Arc<Shared<P>>,
    /// The event that the jobs of the group have as their parent.
    id: JobId,
}

impl<P: Platform> JobSystem<P> {
    /// Makes a group of jobs, without jobs; see [`Group`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let physics = js.group("physics");
    /// physics.wait(physics.job("step").schedule(|_| println!("stepping")));
    /// ```
    ///
    /// # Panics
    /// Where [`try_group`](JobSystem::try_group) gives an error.
    #[track_caller]
    pub fn group(&self, name: impl Into<Name>) -> Group<P> {
        or_panic(self.try_group(name))
    }

    /// As [`group`](JobSystem::group), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::Builder::new().max_jobs(1).build().unwrap();
    /// let mut groups = Vec::new();
    /// while let Ok(group) = js.try_group("island") {
    ///     groups.push(group); // Each takes a place in the job table.
    /// }
    /// assert!(!groups.is_empty());
    /// ```
    ///
    /// # Errors
    /// As [`NewJob::try_schedule`].
    #[track_caller]
    pub fn try_group(&self, name: impl Into<Name>) -> Result<Group<P>, ScheduleError> {
        Group::new(self.job(name))
    }

    /// Whether it pays at this moment to have workers run jobs of groups that wait for each other. It does
    /// not while other programs take the workers' CPUs in the middle of such jobs, so that the thread that
    /// waits would be done sooner if it had run them itself. If it does not, do their work at once instead
    /// of making them. Jobs that no thread waits for within some milliseconds are better shared all the same:
    /// do not ask for those.
    ///
    /// What workers have gained and lost in jobs of groups decides, in all groups of the job system together.
    /// After a no they are shared again to see whether it still holds: after a quarter of a second at first,
    /// and after 8 s at the latest. Always true without feature `adapt`, with
    /// [`follow_machine(false)`](crate::Builder::follow_machine), and where the system does not count how
    /// long a thread was without a CPU. It is a load; while the answer is no, a look at the clock, too.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let physics = js.group("physics");
    /// let solve = || println!("solved");
    /// if js.groups_are_worth_sharing() {
    ///     physics.wait(physics.job("solve").schedule(move |_| solve()));
    /// } else {
    ///     solve();
    /// }
    /// ```
    pub fn groups_are_worth_sharing(&self) -> bool {
        let shared = self.shared();
        let now = || shared.platform.now();
        shared.adapt.groups_are_worth_sharing(now)
    }
}

impl<P: Platform> Group<P> {
    pub(crate) fn new(described: NewJob<'_, '_, P>) -> Result<Group<P>, ScheduleError> {
        let (shared, id) = described.make_event(None)?;
        Ok(Group { shared, id })
    }

    /// The job that stands for it in the job table.
    #[cfg(all(test, paceline_models, not(miri)))]
    pub(crate) fn ticket(&self) -> Ticket {
        self.id.ticket()
    }

    /// Begins the description of a job of this group; as [`JobSystem::job`].
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let physics = js.group("physics");
    /// let step = physics.job("step").run(|_| "a step");
    /// physics.wait(&step);
    /// assert_eq!(step.wait(), "a step");
    /// ```
    #[track_caller]
    pub fn job(&self, name: impl Into<Name>) -> NewJob<'_, 'static, P> {
        NewJob::outside(&self.shared, name.into().as_str()).in_group(self)
    }

    /// Waits for a job, of this group or not, as [`JobSystem::wait`]. Meanwhile this thread runs what the job
    /// needs, and if none of that is ready, jobs of the group.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let physics = js.group("physics");
    /// let steps = [(); 4].map(|()| physics.job("step").schedule(|_| println!("stepping")));
    /// physics.wait(steps[0]); // It may have run the others, too.
    /// ```
    ///
    /// # Panics
    /// As [`JobSystem::wait`].
    #[track_caller]
    pub fn wait(&self, id: impl Into<JobId>) {
        if let Err(error) = self.wait_for(Location::caller(), id.into(), None) {
            error.raise();
        }
    }

    /// Waits for a job, as [`wait`](Group::wait), with an error instead of a panic.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let physics = js.group("physics");
    /// let step = physics.job("step").schedule(|_| panic!("no ground"));
    /// let error = physics.try_wait(step).unwrap_err();
    /// assert!(error.to_string().ends_with("panicked: no ground"));
    /// ```
    ///
    /// # Errors
    /// As [`JobSystem::try_wait`].
    #[track_caller]
    pub fn try_wait(&self, id: impl Into<JobId>) -> Result<(), WaitError> {
        let waited = self.wait_for(Location::caller(), id.into(), None);
        waited.map(|_| ())
    }

    /// Waits for a job, but not longer than `timeout`; as [`JobSystem::wait_timeout`]. False if it is not
    /// over yet.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let (physics, gate) = (js.group("physics"), js.event("gate"));
    /// assert!(!physics.wait_timeout(&gate, Duration::from_millis(1)).unwrap());
    /// # gate.complete();
    /// ```
    ///
    /// # Errors
    /// As [`JobSystem::try_wait`].
    #[track_caller]
    pub fn wait_timeout(&self, id: impl Into<JobId>, timeout: Duration) -> Result<bool, WaitError> {
        self.wait_for(Location::caller(), id.into(), Some(timeout))
    }

    fn wait_for(
        &self,
        site: CallSite,
        id: JobId,
        timeout: Option<Duration>,
    ) -> Result<bool, WaitError> {
        let cx = self.shared.context()?;
        let Some(job) = self.shared.ticket_of(id)? else {
            return Ok(true);
        };
        let now = || self.shared.platform.now();
        let deadline = timeout.map_or(Nanos::MAX, |timeout| now() + Nanos::from(timeout));
        let is_over = cx.wait_in_group(site, self.id.ticket(), (job, deadline))?;
        if is_over {
            self.shared.graph.failures.verdict(job)?;
        }
        Ok(is_over)
    }
}

impl<P: Platform> Drop for Group<P> {
    fn drop(&mut self) {
        // Nothing waits for it: it only gives back its slot.
        self.shared.end_event(self.id.ticket(), Some(&mut Some(())));
    }
}

impl<P: Platform> fmt::Debug for Group<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({:?})", self.id)
    }
}

impl<'a, P: Platform> NewJob<'a, 'static, P> {
    /// The job is one of this group: waits of the group may run it ([`Group::wait`]). It may be a job of a
    /// [`Frame`](crate::Frame), too. A second call takes the place of the first. A group of another job
    /// system makes the scheduling call fail.
    ///
    /// ```
    /// use std::time::Duration;
    /// let js = paceline::JobSystem::new();
    /// let physics = js.group("physics");
    /// let frame = js.frame("update", Duration::from_millis(16));
    /// let step = frame.job("step").in_group(&physics).schedule(|_| println!("stepping"));
    /// physics.wait(step);
    /// ```
    pub fn in_group(mut self, group: &Group<P>) -> Self {
        if group.id.pool == self.shared().id {
            self.from = self.from.in_group(group.id.ticket());
        } else {
            self.after.foreign = Some(group.id);
        }
        self
    }
}
