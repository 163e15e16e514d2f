//! The setting for checks of what jobs declare.

#[cfg(feature = "checks")]
impl<P: platform::Platform> super::Builder<P> {
    /// Whether jobs that declare what they touch are checked when they are scheduled: `false` by default.
    ///
    /// With checks the calls that schedule such jobs give an error if two jobs touch the same data, one of
    /// them changes it, and neither comes before the other, or was waited for ([`ScheduleError::Access`]).
    /// Calls of [`Shared::read`](crate::Shared::read) and `write` give one if a job may be touching the data,
    /// and so does the drop of its last handle. The answer does not depend on which jobs have run so far.
    /// It is needed for [`auto`](crate::NewJob::auto), too. See the guide to safety.
    ///
    /// Each call that schedules a job takes a lock, for some tens of nanoseconds. What jobs have declared is
    /// remembered until somebody waits for them, or for others that come after them, or until others have
    /// taken their place: about 100 bytes a job.
    ///
    /// ```
    /// use paceline::{Builder, ScheduleError};
    /// let js = Builder::new().checks(true).build().unwrap();
    /// let score = js.share("score", 0);
    /// let win = js.job("win").writes(&score).schedule(|_cx, score| *score += 1);
    /// let show = js.job("show").reads(&score).try_schedule(|_cx, score| println!("{score}"));
    /// let Err(ScheduleError::Access(error)) = show else {
    ///     unreachable!("nothing orders the two jobs");
    /// };
    /// assert!(error.to_string().contains("to 'show', add `.after(win)`, or `.auto()`"));
    /// js.wait(win);
    /// ```
    ///
    /// [`ScheduleError::Access`]: crate::ScheduleError::Access
    pub fn checks(mut self, on: bool) -> Self {
        self.checks = on;
        self
    }
}
