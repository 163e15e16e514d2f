//! Loading a level: files that a thread reads, jobs that decode them, and what happens if one is missing,
//! damaged, or not wanted any more. Values go from job to job; no job waits for a file.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program has threads and locks of its own"
)]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use paceline::{Event, Job, JobSystem};

/// What reading a file gives, and what decoding it may make of that. A file that is missing is no panic.
type Read = io::Result<Vec<u8>>;

/// Reads files, one after another, on a thread of its own: a worker that waited for a disk would run nothing
/// meanwhile.
struct Reader {
    requests: mpsc::Sender<(PathBuf, Event<Read>)>,
}

impl Reader {
    fn start(folder: &Path) -> Reader {
        let folder = folder.to_owned();
        let (requests, wanted) = mpsc::channel::<(PathBuf, Event<Read>)>();
        thread::spawn(move || {
            for (name, read) in wanted {
                read.complete_with(fs::read(folder.join(name)));
            }
        });
        Reader { requests }
    }

    /// The event is completed with what is in the file. If the thread is gone, so is the event, and all that
    /// comes after it is cancelled.
    fn request(&self, name: &str, read: Event<Read>) {
        let _ = self.requests.send((name.into(), read));
    }

    /// The handle of what will have been read.
    fn read(&self, js: &JobSystem, name: &'static str) -> Job<Read> {
        let (read, bytes) = js.event_with(name);
        self.request(name, read);
        bytes
    }
}

/// Numbers, as a decoded picture, sound or mesh has them.
fn decode(read: Read) -> io::Result<Vec<u32>> {
    let text =
        String::from_utf8(read?).map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
    let number = |word: &str| word.parse().expect("a number");
    Ok(text.split_whitespace().map(number).collect())
}

/// Two pictures are loaded at the same time; the atlas needs both.
fn pictures(js: &JobSystem, reader: &Reader) -> Job<io::Result<Vec<u32>>> {
    let grass = reader.read(js, "grass").then(decode);
    let stone = reader.read(js, "stone").then(decode);
    let atlas = js.job("atlas").background().with((grass, stone));
    atlas.run(|_cx, (grass, stone)| Ok([grass?, stone?].concat()))
}

/// A list says which sounds there are, so their number is known when it has been read. The latch counts those
/// that are still to come, and the job after it comes after all of them.
fn sounds(js: &JobSystem, reader: Reader) -> Job<Vec<(String, usize)>> {
    let bank = Arc::new(Mutex::new(Vec::new()));
    let loaded = js.latch("sounds", 1);
    let filled = bank.clone();
    let sorted = js.job("sort the sounds").after(&loaded).run(move |_cx| {
        let mut bank = std::mem::take(&mut *filled.lock().expect("no panic while it is held"));
        bank.sort();
        bank
    });
    let list = js.job("list of sounds").with(reader.read(js, "sounds"));
    list.schedule(move |cx, read| {
        let names = String::from_utf8(read.expect("the list is there")).expect("the list is text");
        for name in names.split_whitespace().map(str::to_owned) {
            let (bank, loaded) = (bank.clone(), loaded.clone());
            loaded.add(1);
            let (read, bytes) = cx.event_with(name.clone());
            reader.request(&name, read);
            cx.job(name.clone()).with(bytes).schedule(move |_cx, read| {
                let sound = decode(read).expect("each sound of the list is there");
                let mut bank = bank.lock().expect("no panic while it is held");
                bank.push((name, sound.len()));
                drop(bank);
                loaded.complete_one();
            });
        }
        loaded.complete_one(); // That of the list itself.
    });
    sorted
}

fn main() -> io::Result<()> {
    std::panic::set_hook(Box::new(|_| ())); // what follows reports panics itself
    let folder = std::env::temp_dir().join(format!("paceline-assets-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    for (name, text) in [
        ("grass", "1 2 3"),
        ("stone", "4 5"),
        ("music", "7 7 oops"),
        ("sounds", "wind rain steps"),
        ("rain", "1 1 1 1"),
        ("steps", "2 2"),
        ("wind", "3 3 3"),
    ] {
        fs::write(folder.join(name), text)?;
    }

    let js = JobSystem::new();
    let reader = Reader::start(&folder);

    // Handles are futures. This one holds no thread while it waits for files.
    let atlas = pictures(&js, &reader);
    let level = js.spawn_future("level", async {
        Ok::<_, io::Error>(atlas.await?.iter().sum::<u32>())
    });
    println!("level: {:?}", level.wait().expect("its pictures are there"));

    // A file that is missing is a value like any other, and goes where the picture would have gone.
    let mesh = reader.read(&js, "mesh").then(decode);
    let shape = mesh.then(|mesh| mesh.map(|points| points.len()));
    println!("mesh: {:?}", shape.wait().map_err(|why| why.kind()));

    // A decoder that panics: what depends on it is cancelled, and the error names the first cause.
    let music = js.job("decode music").with(reader.read(&js, "music"));
    let music = music.run(|_cx, read| decode(read));
    let playing = js
        .job("play music")
        .with(music)
        .run(|_cx, music| music.map(|it| it.len()));
    let outcome = js.spawn_future("music", async {
        playing.outcome().await.map_err(|why| why.to_string())
    });
    println!(
        "music: {}",
        without_lines(&outcome.wait().expect_err("it is damaged"))
    );

    // The player leaves, and the next level is not wanted. Giving up its event cancels what waits for it.
    let (chosen, next) = js.event_with::<Read>("next level");
    let ready = js.job("decode the level").with(next);
    let ready = ready.run(|_cx, read| decode(read));
    drop(chosen);
    let cancelled = ready.try_wait().expect_err("its event was dropped");
    println!("next level: {}", without_lines(&cancelled.to_string()));

    println!("sounds: {:?}", sounds(&js, reader).wait());
    fs::remove_dir_all(folder)
}

/// The text without the places in this file, which change with it.
fn without_lines(text: &str) -> String {
    let mut parts = text.split(" (");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    rest.fold(first, |text, part| text + part)
}
