//! What a program can ask about its machine, and the roles that its threads adopt: see
//! [`adapt`](crate::adapt).

use std::marker::PhantomData;

use platform::Platform;

use crate::adapt::{Help, Interference, Role};
use crate::sitting;
use crate::system::JobSystem;

/// A thread with a role, until this is dropped; from [`JobSystem::adopt`]. It stays on its thread.
#[must_use = "the role is given back when this is dropped"]
pub struct Adopted<'js, P: Platform> {
    system: &'js JobSystem<P>,
    role: Role,
    thread: u64,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl<P: Platform> JobSystem<P> {
    /// Gives the calling thread a role: frames depend on it. From now on, until the guard is dropped, it is
    /// treated as the workers are: it stays on the [CPUs](crate::Builder::cpus) that they were told to stay
    /// on, where CPUs differ on the fast ones of these ([`Placement`](crate::Placement)), also when CPUs come
    /// and go, and gets the help that [`Builder::os_help`](crate::Builder::os_help) asks for together with
    /// them. Then both are as they were before. What the system refuses changes nothing else;
    /// [`JobSystem::os_help`] says so.
    ///
    /// A guard that is forgotten keeps the role until its thread ends.
    ///
    /// ```
    /// use paceline::{Builder, Role};
    /// use platform::Treatment;
    /// let js = Builder::new().os_help(Treatment::nice(-5)).build().unwrap();
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
        // In a fork's child there is nothing to be treated like.
        if !shared.is_forked() {
            // Where threads have no names nothing can be done to one by its name.
            if thread != 0 {
                sitting::note_role(&shared.platform, shared.host());
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

    /// What the kernel was asked for by [`Builder::os_help`](crate::Builder::os_help), wish by wish, and what
    /// it said. Nothing in a fork's child.
    pub fn os_help(&self) -> Vec<Help> {
        match self.shared().is_forked() {
            true => Vec::new(),
            false => self.shared().adapt.help(),
        }
    }

    /// What others on the same machine do to this job system: whether its threads wait for CPUs in most
    /// [frames](JobSystem::frame), and what it has decided about that. Nothing is noticed without frames, nor
    /// where the platform does not count what threads wait, nor if the job system does not
    /// [follow the machine](crate::Builder::follow_machine).
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// assert!(js.interference().decisions.is_empty(), "there was no frame yet");
    /// ```
    pub fn interference(&self) -> Interference {
        match self.shared().is_forked() {
            true => Interference::default(),
            false => self.shared().adapt.interference(),
        }
    }

    /// Why there are as many workers as there are, and why they are where they are: a sentence each, by what
    /// the last look at the machine has found.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// println!("{}", js.explain().join("\n"));
    /// ```
    pub fn explain(&self) -> Vec<String> {
        match self.shared().is_forked() {
            true => vec![
                "No workers: they stayed in the process that this one is a fork of.".to_owned(),
            ],
            false => self.shared().adapt.explain(),
        }
    }
}

impl<P: Platform> Adopted<'_, P> {
    /// The role.
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
