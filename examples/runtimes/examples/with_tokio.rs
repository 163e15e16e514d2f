//! A program that loads levels: tokio waits for what comes from outside, and jobs compute.
//!
//! The sources are timers here, so that the program runs anywhere; sockets and files are awaited in the same
//! way.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use paceline::{CancelToken, JobSystem, WaitError};
use tokio::time::{sleep, timeout};

/// A file that takes its time.
async fn read(name: &str, after: Duration) -> Vec<u8> {
    sleep(after).await;
    name.bytes().cycle().take(10_000).collect()
}

/// Reads a file and decodes it. The task that calls this is on a thread of tokio's, which computes nothing.
async fn load(js: Arc<JobSystem>, name: &'static str, after: Duration) -> Result<u64, WaitError> {
    let bytes = read(name, after).await;
    let decode = js.job("decode").background().run(move |cx| {
        assert!(bytes[0] != b'!', "the file is damaged");
        cx.over(&bytes)
            .reduce(|&byte| u64::from(byte), |a, b| a + b)
            .unwrap_or(0)
    });
    decode.outcome().await
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("the system has room for a runtime");
    let js = Arc::new(JobSystem::new());
    runtime.block_on(async {
        // All three are under way at the same time.
        let names = [("rocks", 3), ("trees", 1), ("!water", 2)];
        let loads = names.map(|(name, millis)| {
            let load = load(js.clone(), name, Duration::from_millis(millis));
            (name, tokio::spawn(load))
        });
        for (name, load) in loads {
            match load.await.expect("no task panics") {
                Ok(sum) => println!("{name}: {sum}"),
                Err(error) => println!("{name}: {}", error.to_string().replace('\\', "/")),
            }
        }

        // A job that may take too long is called off; what has begun runs on.
        let (gate, level) = (js.event("gate"), CancelToken::new());
        let bake = js
            .job("bake")
            .after(&gate)
            .cancelled_by(&level)
            .schedule(|_| ());
        let done = js.when_done(bake);
        if timeout(Duration::from_millis(5), done).await.is_err() {
            level.cancel();
            gate.complete();
        }
        println!("bake: {}", js.when_done(bake).await.is_err());
    });
}
