//! Questions of a program about its machine, and the roles that its threads adopt; the answers are in
//! [`adapt`](crate::adapt).

use std::marker::PhantomData;

use platform::{Os, Platform};

use super::system::JobSystem;
use crate::adapt::{Help, Interference, Role};
use crate::work::thread_record;

/// The guard of a role: the thread has it until the guard is dropped. From [`JobSystem::adopt`]. The guard
/// stays on its thread.
///
/// ```
/// use paceline::{JobSystem, Role};
/// let js = JobSystem::new();
/// {
///     let _main = js.adopt(Role::Main);
///     // Frames run here.
/// } // From here on the thread is scheduled as before.
/// ```
#[must_use = "the role is given back when this is dropped"]
pub struct Adopted<'js, P: Platform = Os> {
    system: &'js JobSystem<P>,
    role: Role,
    thread: u64,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl<P: Platform> JobSystem<P> {
    /// Gives the calling thread a role: frames depend on this thread.
    ///
    /// Until the guard is dropped, the thread is scheduled as the workers are:
    ///
    /// - It stays on the [CPUs](crate::Builder::cpus) that the workers were told to stay on, and where CPUs
    ///   differ, on the fast ones of these ([`Placement`](crate::Placement)). That holds when CPUs come and
    ///   go, too.
    /// - It gets the help that [`Builder::os_help`](crate::Builder::os_help) asks for, together with the
    ///   workers.
    ///
    /// A thread without a role keeps its class, its slice and its mask, whatever it runs: also if it runs in
    /// a wait a job that a thread with a role waits for. So threads that wait for jobs, and help with what
    /// frames need, should adopt one, too.
    ///
    /// Afterwards both are as they were before. A refusal of the system changes nothing else;
    /// [`JobSystem::os_help`] tells it. A guard that is forgotten keeps the role until its thread ends.
    ///
    /// Takes a lock and a few system calls; with help there are two more for each worker. In a fork's child
    /// nothing happens.
    ///
    /// ```
    /// use paceline::{Builder, Role, SchedParams};
    /// let js = Builder::new().os_help(SchedParams::nice(-5)).build().unwrap();
    /// assert!(!js.os_help()[0].granted, "workers alone get no help");
    /// let main = js.adopt(Role::Main);
    /// for help in js.os_help() {
    ///     println!("{}: {}", help.asked, if help.granted { "granted" } else { &help.why });
    /// }
    /// drop(main);
    /// ```
    pub fn adopt(&self, role: Role) -> Adopted<'_, P> {
        let shared = self.shared();
        let thread = shared.platform.thread_id();
        // A fork's child has no workers to be scheduled like.
        if !shared.is_forked() {
            // On platforms without names for threads nothing can be done to one.
            if thread != 0 {
                thread_record::note_role(&shared.platform, shared.host());
            }
            shared.adapt.adopt(shared, thread);
        }
        Adopted {
            system: self,
            role,
            thread,
            _stays_on_its_thread: PhantomData,
        }
    }

    /// The requests of [`Builder::os_help`](crate::Builder::os_help), in order, each with the kernel's
    /// answer. Empty in a fork's child. Takes a lock and allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert!(js.os_help().is_empty(), "nothing was asked for");
    /// ```
    pub fn os_help(&self) -> Vec<Help> {
        if self.shared().is_forked() {
            Vec::new()
        } else {
            self.shared().adapt.help()
        }
    }

    /// The effect of other programs on this job system: whether its threads wait for CPUs in most
    /// [frames](JobSystem::frame), and what it has decided about that.
    ///
    /// Nothing is noticed without frames, nor where the platform does not count how long threads wait, nor if
    /// the job system does not [follow the machine](crate::Builder::follow_machine). Takes a lock and
    /// allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert!(js.interference().decisions.is_empty(), "there was no frame yet");
    /// ```
    pub fn interference(&self) -> Interference {
        if self.shared().is_forked() {
            Interference::default()
        } else {
            self.shared().adapt.interference()
        }
    }

    /// The reasons for the number of workers and for their places, a sentence each, by what the last look at
    /// the machine found; whether [groups are not worth sharing](JobSystem::groups_are_worth_sharing) at this
    /// moment; and whether a scheduler hears hints, if they were asked for. Takes a lock and allocates.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// println!("{}", js.explain().join("\n"));
    /// ```
    pub fn explain(&self) -> Vec<String> {
        if self.shared().is_forked() {
            vec!["No workers: they stayed in the process that this one is a fork of.".to_owned()]
        } else {
            let shared = self.shared();
            let mut sentences = shared.adapt.explain(shared.platform.now());
            sentences.extend(shared.hints.explain());
            sentences
        }
    }
}

impl<P: Platform> Adopted<'_, P> {
    /// The role of the thread.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let main = js.adopt(paceline::Role::Main);
    /// assert_eq!(main.role(), paceline::Role::Main);
    /// ```
    pub fn role(&self) -> Role {
        self.role
    }
}

impl<P: Platform> Drop for Adopted<'_, P> {
    fn drop(&mut self) {
        let shared = self.system.shared();
        if !shared.is_forked() {
            shared.adapt.give_back(shared, self.thread);
        }
    }
}
