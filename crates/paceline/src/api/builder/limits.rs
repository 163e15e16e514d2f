//! How much there may be: jobs, threads, tickets, workers for one lane.

use platform::{Lane, Platform};

use super::Builder;
use crate::limits::WORKERS_MAX;

impl<P: Platform> Builder<P> {
    /// The number of jobs that may be live (waiting, ready or running) at the same time: from 1 to
    /// [`JOBS_MAX`](crate::JOBS_MAX), 2^20 by default.
    ///
    /// There is room for a few more: each thread that has used the job system keeps up to 62 free slots at
    /// hand, which come on top. Memory is taken as it is needed: about 200 bytes for each job of the largest
    /// number that were ever live at the same time. When all slots are taken, scheduling fails with
    /// [`ScheduleError::Full`](crate::ScheduleError::Full).
    ///
    /// ```
    /// let js = paceline::Builder::new().max_jobs(1000).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn max_jobs(mut self, jobs: u32) -> Self {
        self.max_jobs = jobs;
        self
    }

    /// The number of outside threads that may use the job system at the same time: from 1 to
    /// [`THREADS_MAX`](crate::THREADS_MAX), 256 by default.
    ///
    /// A thread counts from its first call until it ends. A further one gets
    /// [`ScheduleError::TooManyThreads`](crate::ScheduleError::TooManyThreads); it can complete and drop
    /// events, and drop the job system, all the same.
    ///
    /// ```
    /// let js = paceline::Builder::new().max_threads(1).build().unwrap();
    /// js.enter(|_| ()); // The first thread.
    /// let second = std::thread::scope(|s| s.spawn(|| js.job("job").try_schedule(|_| ())).join());
    /// assert!(second.unwrap().is_err());
    /// ```
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = threads;
        self
    }

    /// The most workers that run background jobs ([`NewJob::background`](crate::NewJob::background)) at a
    /// time: from 1 to [`WORKERS_MAX`]. Without this call all may.
    ///
    /// A job that has begun cannot be interrupted. So long background jobs can hold all workers, and a frame
    /// waits until one of them ends. With a limit some workers are always left. A wait for a background job
    /// is not held up by the limit, and a worker that rests in a wait, or in
    /// [`blocking`](crate::Context::blocking), does not count.
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(4).background_at_most(2).build().unwrap();
    /// js.wait(js.job("bake").background().schedule(|_| ()));
    /// ```
    pub fn background_at_most(mut self, workers: usize) -> Self {
        self.background_max = Some(workers);
        self
    }

    /// How much of the workers' time the lanes [`Share1`](platform::Lane::Share1), `Share2` and so on get, in
    /// percent, as long as there is work in the normal lane, too. The rest, at least 1 %, is that of the
    /// normal lane, and of frame and background jobs. A lane for which nothing is set gets 10 for each 100 of
    /// the others.
    ///
    /// A lane without work leaves its time to the others, and saves nothing for later. A share is counted by
    /// the wall clock, from one job that a worker takes to the next, so it is exact over times that are long
    /// beside a job. It is for work that is to go on at its own pace whatever else there is, such as loading
    /// what comes into view. A wait for such a job does not wait for its share.
    ///
    /// Jobs of such a lane go through a queue of their own that all threads share; each costs a lock. Once a
    /// program has used one, each search for a job reads a clock. There are few on purpose: see the guide on
    /// lanes.
    ///
    /// ```
    /// use paceline::Lane;
    /// let js = paceline::Builder::new().shares(&[25, 10]).build().unwrap();
    /// let tile = js.job("stream a tile").lane(Lane::Share1).schedule(|_| ());
    /// let path = js.job("find a path").lane(Lane::Share2).run(|_| vec![(0, 0), (1, 0)]);
    /// assert_eq!(path.wait().len(), 2); // At once: somebody waits for it.
    /// js.wait(tile);
    /// ```
    ///
    /// [`build`](Builder::build) fails if there are more than five, if one is 0, or if their sum is over 99.
    pub fn shares(mut self, percents: &[u8]) -> Self {
        let sum: u64 = percents.iter().map(|&percent| u64::from(percent)).sum();
        let lanes = Lane::SHARES.len();
        let wrong = if percents.len() > lanes {
            let range = (0, lanes as u64);
            Some(("the number of shares", percents.len() as u64, range))
        } else if percents.contains(&0) {
            Some(("a share (percent)", 0, (1, 99)))
        } else if sum > 99 {
            Some(("the sum of the shares (percent)", sum, (0, 99)))
        } else {
            None
        };
        self.wrong = self.wrong.or(wrong);
        for (lane, share) in self.shares.iter_mut().enumerate() {
            *share = share.of(percents.get(lane).copied().unwrap_or(0));
        }
        self
    }

    /// The most workers that run jobs of the lanes [`Share1`](platform::Lane::Share1), `Share2` and so on at
    /// a time: each from 1 to [`WORKERS_MAX`]. Where nothing is said all may.
    ///
    /// A [share](Builder::shares) is a part of the time over a while. It keeps no worker free for the moment
    /// in which a frame comes: a job that has begun cannot be interrupted, and where nothing else is ready
    /// all workers run such jobs. With a limit, some never do. A lane that its limit keeps below its share
    /// leaves the rest to the others. As for [the background](Builder::background_at_most), a wait for such a
    /// job is not held up by the limit, and a worker that rests in a wait, or in
    /// [`blocking`](crate::Context::blocking), does not count.
    ///
    /// A worker that begins with the lane, and one that leaves it for another one, pays for a
    /// read-modify-write; the latter for a fence, too.
    ///
    /// ```
    /// use paceline::Lane;
    /// let builder = paceline::Builder::new().workers(4);
    /// // A quarter of the time of all workers, and never more than two of them.
    /// let js = builder.shares(&[25]).shares_at_most(&[2]).build().unwrap();
    /// js.wait(js.job("stream a tile").lane(Lane::Share1).schedule(|_| ()));
    /// ```
    ///
    /// [`build`](Builder::build) fails if there are more than five, or if one is out of its range.
    pub fn shares_at_most(mut self, workers: &[usize]) -> Self {
        let lanes = Lane::SHARES.len();
        let is_wrong = |&&workers: &&usize| workers == 0 || workers > WORKERS_MAX;
        let wrong = if workers.len() > lanes {
            let range = (0, lanes as u64);
            Some(("the number of limits", workers.len() as u64, range))
        } else {
            let wrong = workers.iter().find(is_wrong);
            wrong.map(|&workers| ("shares_at_most", workers as u64, (1, WORKERS_MAX as u64)))
        };
        self.wrong = self.wrong.or(wrong);
        for (lane, share) in self.shares.iter_mut().enumerate() {
            *share = share.at_most(workers.get(lane).map_or(0, |&workers| workers as u16));
        }
        self
    }

    /// The number of spare workers that there may be: from 0 to [`SPARES_MAX`](crate::SPARES_MAX), 256 by
    /// default.
    ///
    /// A spare is a further thread that works while every worker waits inside a job and other work is ready,
    /// or in place of a worker that has made way at a [`checkpoint`](crate::Context::checkpoint).
    /// If all of them wait, too, ready work has to wait for one of these waits to end; see
    /// [`on_stuck`](Builder::on_stuck). A spare is started when it is first needed.
    ///
    /// ```
    /// let js = paceline::Builder::new().workers(1).max_spares(4).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn max_spares(mut self, spares: usize) -> Self {
        self.max_spares = spares;
        self
    }

    /// The number of tickets that a thread's own queue holds before half of them move to the queue that all
    /// threads share: a power of two from 2 to 4096, which is the default.
    ///
    /// ```
    /// let js = paceline::Builder::new().queue_capacity(256).build().unwrap();
    /// # let _ = js;
    /// ```
    pub fn queue_capacity(mut self, tickets: usize) -> Self {
        self.queue_capacity = tickets;
        self
    }
}
