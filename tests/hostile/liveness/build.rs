//! Makes a graph, as its maker would: schedules it, completes its events, waits for a part, and calls nothing
//! any more.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use paceline::{Context, Event, Grain, JobId, JobSystem, NewJob};
use platform::Os;

use super::graph::{Completer, Graph, Last, Piece, Work};
use super::{Token, Tokens};

/// When this returns, the last call has been made; also those of threads that complete events.
pub(super) fn make(js: &Arc<JobSystem>, graph: &Graph, tokens: &Tokens) {
    let mut maker = Maker {
        js,
        tokens,
        ids: Vec::new(),
        events: Vec::new(),
    };
    maker.resize(graph.resizes[0]);
    for piece in &graph.pieces {
        let id = maker.piece(piece);
        maker.ids.push(id);
    }
    let threads = maker.complete();
    maker.last(graph.last);
    maker.resize(graph.resizes[1]);
    for thread in threads {
        // A panic would be one of `complete`, which shows as an event that is not over.
        _ = thread.join();
    }
}

struct Maker<'a> {
    js: &'a Arc<JobSystem>,
    tokens: &'a Tokens,
    /// The graph's nodes so far.
    ids: Vec<JobId>,
    events: Vec<(Event, Completer)>,
}

impl Maker<'_> {
    fn resize(&self, workers: Option<usize>) {
        if let Some(workers) = workers {
            let resized = self.js.resize(workers);
            assert!(resized.is_ok(), "resize({workers}): {resized:?}");
        }
    }

    fn piece(&mut self, piece: &Piece) -> JobId {
        let after: Vec<JobId> = piece.after.iter().map(|&at| self.ids[at]).collect();
        let mut job = self.js.job("node").after_all(&after);
        if piece.is_background {
            job = job.background();
        }
        let turns = piece.turns;
        match piece.work {
            Work::Combine => job.try_combine().unwrap_or_else(|error| panic!("{error}")),
            Work::Event(completer) => {
                let event = job.try_event().unwrap_or_else(|error| panic!("{error}"));
                let id = event.id();
                self.events.push((event, completer));
                id
            }
            Work::Waits { target, is_short } => self.waits(job, self.ids[target], is_short, turns),
            work => bodies(job, work, turns, self.tokens),
        }
    }

    /// A job that waits for another one in its body. It holds the job system, as jobs do.
    fn waits(
        &self,
        job: NewJob<'_, 'static, Os>,
        target: JobId,
        is_short: bool,
        turns: u64,
    ) -> JobId {
        let (js, token) = (Arc::clone(self.js), self.tokens.token());
        job.schedule(move |_| {
            if is_short {
                _ = js.wait_timeout(target, Duration::from_micros(turns / 8));
            } else {
                _ = js.try_wait(target);
            }
            // Before the token: the maker may go when all tokens are gone.
            drop(js);
            drop(token);
        })
    }

    /// Completes all events, or sees to it.
    fn complete(&mut self) -> Vec<thread::JoinHandle<()>> {
        let mut threads = Vec::new();
        for (event, completer) in self.events.drain(..) {
            match completer {
                Completer::Maker => event.complete(),
                Completer::Job => {
                    let token = self.tokens.token();
                    self.js.schedule(move |_| {
                        event.complete();
                        drop(token);
                    });
                }
                Completer::Thread => threads.push(thread::spawn(move || event.complete())),
                Completer::Nothing => drop(event),
            }
        }
        threads
    }

    fn last(&self, last: Last) {
        let js = self.js;
        match last {
            Last::Nothing => {}
            Last::Waits(at) => _ = js.try_wait(self.ids[at]),
            Last::WaitsShortly(at, micros) => {
                _ = js.wait_timeout(self.ids[at], Duration::from_micros(micros));
            }
            // Refused if the last node has begun.
            Last::AddsEdge => _ = js.add_dependency(self.ids[self.ids.len() - 1], self.ids[0]),
            Last::Polls => _ = js.poll(),
            Last::Flushes => js.flush(),
        }
    }
}

/// A job that does nothing but work of its own.
fn bodies(job: NewJob<'_, 'static, Os>, work: Work, turns: u64, tokens: &Tokens) -> JobId {
    let token = tokens.token();
    match work {
        Work::Range(items) => job.schedule_for(0..items as usize, Grain::Items(1), move |_, _| {
            let _held = &token;
            spin(turns);
        }),
        Work::Makes(jobs) => {
            let mut tokens: Vec<Token> = (0..jobs).map(|_| tokens.token()).collect();
            job.schedule(move |cx| {
                while let Some(theirs) = tokens.pop() {
                    cx.schedule(move |_| end(turns, theirs));
                }
                drop(token);
            })
        }
        Work::Failing => job.schedule(move |_| {
            let _held = token;
            std::panic::resume_unwind(Box::new("a job of a graph fails"));
        }),
        Work::Detached => {
            let job = job.run(move |_| {
                spin(turns);
                token
            });
            job.id()
        }
        work => job.schedule(move |cx| {
            borrows(cx, work, turns);
            end(turns, token);
        }),
    }
}

/// Parts that borrow from the body's own stack.
fn borrows(cx: &Context<'_, Os>, work: Work, turns: u64) {
    match work {
        Work::Scope(jobs) => cx.scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|_| spin(turns));
            }
        }),
        Work::Join => _ = cx.join(|_| spin(turns), |_| spin(turns)),
        Work::Loop(items) => cx.parallel_for(0..items as usize, Grain::Auto, |part, _| {
            part.for_each(|_| spin(turns));
        }),
        _ => {}
    }
}

fn end(turns: u64, token: Token) {
    spin(turns);
    drop(token);
}

fn spin(turns: u64) {
    for _ in 0..turns {
        std::hint::spin_loop();
    }
}
