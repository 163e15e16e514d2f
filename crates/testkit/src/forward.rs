//! Platforms that stand before another one: the calls that they pass on.
//!
//! A platform that counts, spoils or breaks something differs from the one behind it in a few calls.
//! These macros write the others.

/// Inside an `impl Platform` for a type that stands before `$behind`, a platform: all but what the type
/// writes itself. Each method is a call of the same method of an expression that says where the platform
/// behind is; the machine is that of the platform behind. `now`, `parker` (with its type) and `spawn` (with
/// the type of threads) are forwarded if they are named.
///
/// ```
/// use platform::{Machine, Os, Platform};
/// # use platform::{Memory, Ordering};
/// # #[derive(Clone)]
/// struct Late(Os);
/// # // SAFETY: all of it is `Os`'s own.
/// # unsafe impl Memory for Late {
/// #     type AtomicU32 = <Os as Memory>::AtomicU32;
/// #     type AtomicU64 = <Os as Memory>::AtomicU64;
/// #     type Cell<T> = <Os as Memory>::Cell<T>;
/// #     type Lock<T: Send> = <Os as Memory>::Lock<T>;
/// #     fn fence(order: Ordering) { Os::fence(order); }
/// #     fn spin_until(
/// #         word: &Self::AtomicU64, wanted: impl Fn(u64) -> bool, deadline: event::Nanos,
/// #     ) -> u64 {
/// #         Os::spin_until(word, wanted, deadline)
/// #     }
/// # }
/// // SAFETY: all of it is `Os`'s own; a clock that is late is still monotone.
/// unsafe impl Platform for Late {
///     fn now(&self) -> event::Nanos {
///         self.0.now() - event::Nanos(5)
///     }
///     paceline_testkit::forward_platform!(Os: |this| this.0, parker spawn);
/// }
/// assert!(std::ptr::eq(Late(Os).machine().topology(), Os.topology()));
/// ```
#[macro_export]
macro_rules! forward_platform {
    ($platform:ty: |$this:ident| $behind:expr $(, $($named:ident)+)?) => {
        type Machine = <$platform as platform::Platform>::Machine;

        $($($crate::forward_platform!(@$named $platform: |$this| $behind);)+)?
        fn local(&self) -> *const () {
            let $this = self;
            $behind.local()
        }
        fn set_local(&self, word: *const (), at_exit: unsafe fn(*const ())) -> bool {
            let $this = self;
            $behind.set_local(word, at_exit)
        }
        fn stack_end(&self) -> Option<usize> {
            let $this = self;
            $behind.stack_end()
        }
        fn machine(&self) -> &Self::Machine {
            let $this = self;
            $behind.machine()
        }
        fn current_cpu(&self) -> Option<u32> {
            let $this = self;
            $behind.current_cpu()
        }
        fn thread_id(&self) -> u64 {
            let $this = self;
            $behind.thread_id()
        }
        fn is_alone(&self) -> bool {
            let $this = self;
            $behind.is_alone()
        }
        fn thread_name(&self) -> Option<String> {
            let $this = self;
            $behind.thread_name()
        }
        fn on_signal(
            &self,
            signal: platform::Signal,
            call: Box<dyn Fn() + Send + Sync>,
        ) -> Result<platform::OnSignal, platform::SignalError> {
            let $this = self;
            $behind.on_signal(signal, call)
        }
        fn charge(&self, work: event::Nanos) {
            let $this = self;
            $behind.charge(work);
        }
        fn seed(&self) -> u64 {
            let $this = self;
            $behind.seed()
        }
        fn fork_epoch(&self) -> u32 {
            let $this = self;
            $behind.fork_epoch()
        }
    };
    (@now $platform:ty: |$this:ident| $behind:expr) => {
        fn now(&self) -> event::Nanos {
            let $this = self;
            $behind.now()
        }
    };
    (@parker $platform:ty: |$this:ident| $behind:expr) => {
        type Parker = <$platform as platform::Platform>::Parker;

        #[track_caller]
        fn parker(&self) -> Self::Parker {
            let $this = self;
            $behind.parker()
        }
    };
    (@spawn $platform:ty: |$this:ident| $behind:expr) => {
        type Thread = <$platform as platform::Platform>::Thread;

        #[track_caller]
        fn spawn(
            &self,
            spec: platform::ThreadSpec,
            body: Box<dyn FnOnce() + Send>,
        ) -> Result<Self::Thread, platform::SpawnError> {
            let $this = self;
            $behind.spawn(spec, body)
        }
    };
}

/// Inside an `impl Atomic<u64>` (or of another word): the methods that are named, each a call of the same
/// method of `$behind`.
///
/// ```
/// use platform::{Atomic, Memory, Ordering, Os};
///
/// /// A word that cannot be added to.
/// struct Stuck(<Os as Memory>::AtomicU64);
///
/// impl Atomic<u64> for Stuck {
///     fn new(value: u64) -> Self {
///         Stuck(Atomic::new(value))
///     }
///     fn fetch_add(&self, _: u64, order: Ordering) -> u64 {
///         self.0.fetch_add(0, order)
///     }
///     paceline_testkit::forward_atomic!(|this| this.0, u64:
///         load store swap compare_exchange fetch_sub fetch_and fetch_or fetch_max);
/// }
/// let stuck = Stuck::new(7);
/// stuck.fetch_add(1, Ordering::Relaxed);
/// stuck.fetch_sub(2, Ordering::Relaxed);
/// assert_eq!(stuck.load(Ordering::Relaxed), 5);
/// ```
#[macro_export]
macro_rules! forward_atomic {
    (|$this:ident| $behind:expr, $word:ty: $($method:ident)*) => {
        $($crate::forward_atomic!(@$method |$this| $behind, $word);)*
    };
    (@load |$this:ident| $behind:expr, $word:ty) => {
        #[track_caller]
        fn load(&self, order: platform::Ordering) -> $word {
            let $this = self;
            $behind.load(order)
        }
    };
    (@store |$this:ident| $behind:expr, $word:ty) => {
        #[track_caller]
        fn store(&self, value: $word, order: platform::Ordering) {
            let $this = self;
            $behind.store(value, order);
        }
    };
    (@compare_exchange |$this:ident| $behind:expr, $word:ty) => {
        #[track_caller]
        fn compare_exchange(
            &self,
            current: $word,
            new: $word,
            success: platform::Ordering,
            failure: platform::Ordering,
        ) -> Result<$word, $word> {
            let $this = self;
            $behind.compare_exchange(current, new, success, failure)
        }
    };
    // The others have one form.
    (@$change:ident |$this:ident| $behind:expr, $word:ty) => {
        #[track_caller]
        fn $change(&self, value: $word, order: platform::Ordering) -> $word {
            let $this = self;
            $behind.$change(value, order)
        }
    };
}
