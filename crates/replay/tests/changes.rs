//! Changes against the truth: the simulator runs the program itself with the change.

mod common;

use common::record;
use event::{Nanos, Task};
use paceline_replay::{BuildOptions, Change, Program, ProgramThread, play};
use sim::Machine;
use sim::scenario::Scenario;
use trace::timeline::{Options, Stay, Timeline};

const MACHINE: &str = "vm-2";
const POLICY: &str = "eevdf-6.18-hrtick";

/// `ui` asks `worker` for 4 ms of work, beside hogs, all on one CPU.
fn scenario(quota: &str, worker: &str) -> Scenario {
    let text = format!(
        "about = 'a test'\nmachine = '{MACHINE}'\npolicy = '{POLICY}'\nuntil = '6 s'\n\
         full-speed = true\n{quota}\n\
         [[thread]]\nname = 'ui'\ncpus = [0]\nrepeat = 'forever'\n\
         phases = [{{ work = '1 ms' }}, {{ set = 'go' }}, {{ wait = {{ flag = 'done', by = 'park' }} }}, \
         {{ sleep = '7 ms' }}]\n\
         [[thread]]\nname = 'worker'\ncpus = [0]\n{worker}\nrepeat = 'forever'\n\
         phases = [{{ wait = {{ flag = 'go', by = 'park' }} }}, {{ work = '4 ms' }}, {{ set = 'done' }}]\n\
         [[thread]]\nname = 'hog'\ncpus = [0]\nrepeat = 'forever'\nphases = [{{ work = '3 ms' }}]\n"
    );
    Scenario::parse("a test", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The third part of a recording's sleeps of `worker`, one a round: from the beginning of the first to the
/// end of the last.
fn stretch(timeline: &Timeline, count: Option<usize>) -> (Task, Nanos, Nanos, usize) {
    let worker = timeline
        .threads()
        .find(|task| timeline.name(*task) == "worker");
    let worker = worker.expect("it ran");
    let asleep: Vec<Stay> = timeline
        .stays(worker)
        .filter(|stay| stay.state.is_asleep())
        .collect();
    let count = count.unwrap_or(asleep.len() / 3);
    assert!(count >= 8, "{count} sleeps");
    (worker, asleep[0].begin, asleep[count].end, count)
}

/// How long `worker` takes for so many rounds by a change, in the replay of a recording and in truth.
fn both(before: &Scenario, change: &str, after: &Scenario) -> [Nanos; 2] {
    let machine = Machine::named(MACHINE).unwrap();
    let timeline = |scenario: &Scenario| {
        let recording = record(scenario, &machine, POLICY, 0);
        Timeline::new(recording, &Options::default())
    };
    let recorded = timeline(before);
    let (worker, from, to, count) = stretch(&recorded, None);
    let options = BuildOptions {
        machine: Some(machine.clone()),
        policy: Some(POLICY.to_owned()),
        ..BuildOptions::default()
    };
    let program = Program::of(&recorded, &[(worker, from, to)], &options).unwrap();
    let meant = |name: &str, _: bool, thread: &ProgramThread| name == "*" || thread.name == name;
    let changed = Change::parse(change).unwrap();
    let changed = changed.apply(&program, meant).unwrap();
    let predicted = changed.lengths(&play(&changed, 0))[0].expect("it comes to its end");
    let (_, from, to, _) = stretch(&timeline(after), Some(count));
    [predicted, to - from]
}

/// Checks that a change does in a replay what it does in truth, within a twentieth, and that it does
/// something.
fn check(before: &Scenario, change: &str, after: &Scenario) {
    let [_, unchanged] = both(before, "work:*=100%", before);
    let [predicted, truth] = both(before, change, after);
    let off = predicted.0.abs_diff(truth.0);
    assert!(
        off * 20 <= truth.0,
        "{change}: {predicted} and in truth {truth}"
    );
    let moved = unchanged.0.abs_diff(truth.0);
    assert!(moved * 10 >= truth.0, "{change} does nothing: {unchanged}");
}

/// Goal: a quota that is raised, lowered or taken away does in a replay what it really does. Method: a
/// program that has 40 % of a CPU, and the same with others, in the simulator.
#[test]
fn a_quota_can_be_another_one() {
    let quota = |cpus: f64| scenario(&format!("[quota]\ncpus = {cpus}\n"), "");
    let before = quota(0.4);
    check(&before, "quota:*=70%", &quota(0.7));
    check(&before, "quota:*=30%", &quota(0.3));
    check(&before, "quota:*=none", &scenario("", ""));
    let [same, truth] = both(&before, "quota:*=40%", &before);
    assert!(
        same.0.abs_diff(truth.0) * 20 <= truth.0,
        "{same} and {truth}"
    );
}

/// `worker` does a job of 1 ms for `ui` between pieces of this length, if `ui` asks for one by then. The two
/// have a CPU each.
fn between_pieces(piece: &str) -> Scenario {
    let sleeps = (0..400u64).map(|round| 1_000_000 + round * 1_370_000 % 9_000_000);
    let asks = sleeps.map(|sleep| format!("work 200 us\nwait worker\nsleep {sleep} ns\n"));
    let asks: String = asks.collect();
    let does = format!("begin piece 1\nwork {piece}\nend piece 1\nserve ui for 1 ms\n");
    let does = does.repeat(4000);
    two_threads(("ui", &asks), ("worker", &does))
}

/// Two threads with these segments, each on a CPU of its own.
fn two_threads(first: (&str, &str), second: (&str, &str)) -> Scenario {
    let thread = |(name, segments): (&str, &str), cpu: u32| {
        format!(
            "[[thread]]\nname = '{name}'\ncpus = [{cpu}]\nsegments = \"\"\"\n{segments}\"\"\"\n"
        )
    };
    let text = format!(
        "about = 'a test'\nmachine = '{MACHINE}'\npolicy = '{POLICY}'\nuntil = '10 s'\n\
         full-speed = true\n{}{}",
        thread(first, 0),
        thread(second, 1)
    );
    Scenario::parse("a test", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn mean(lengths: &[Nanos]) -> u64 {
    lengths.iter().map(|length| length.0).sum::<u64>() / lengths.len() as u64
}

/// Goal: pieces that are cut let jobs be done between them, as shorter pieces do in truth, whatever the
/// phases of the two threads are. Method: in the simulator a thread works on pieces of 8 ms, and of 2 ms;
/// of its recording with 8 ms the slices of the pieces are known, and nothing of its queue. The waits of the
/// thread that asks are compared in the mean, over as many rounds.
#[test]
fn pieces_can_be_cut() {
    const ROUNDS: usize = 100;
    let machine = Machine::named(MACHINE).unwrap();
    let ui = Task(0);
    let waits = |timeline: &Timeline| {
        let asleep = timeline.stays(ui).filter(|stay| stay.state.is_asleep());
        let by_worker = asleep.step_by(2).take(ROUNDS);
        let waits: Vec<(Task, Nanos, Nanos)> =
            by_worker.map(|stay| (ui, stay.begin, stay.end)).collect();
        assert_eq!(waits.len(), ROUNDS);
        waits
    };
    let recorded = |piece: &str| {
        let recording = record(&between_pieces(piece), &machine, POLICY, 0);
        Timeline::new(recording, &Options::default())
    };
    let lengths = |waits: &[(Task, Nanos, Nanos)]| -> Vec<Nanos> {
        waits.iter().map(|(_, begin, end)| *end - *begin).collect()
    };
    let before = recorded("8 ms");
    let asked = waits(&before);
    let options = BuildOptions {
        machine: Some(machine.clone()),
        policy: Some(POLICY.to_owned()),
        pieces: vec!["piece".to_owned()],
        ..BuildOptions::default()
    };
    let program = Program::of(&before, &asked, &options).unwrap();
    let replayed = |change: &str| {
        let changed = Change::parse(change)
            .unwrap()
            .apply(&program, |name, _, thread| thread.name == name);
        let changed = changed.unwrap();
        let lengths = changed.lengths(&play(&changed, 0));
        mean(&lengths.into_iter().flatten().collect::<Vec<_>>())
    };
    let unchanged = mean(&lengths(&asked));
    let truth = mean(&lengths(&waits(&recorded("2 ms"))));
    let predicted = replayed("cut:piece=4");
    assert!(
        predicted.abs_diff(truth) * 10 <= truth,
        "{predicted} and in truth {truth}"
    );
    assert!(
        truth * 2 <= unchanged,
        "nothing changes: {truth} and {unchanged}"
    );
    assert!(replayed("work:worker=100%").abs_diff(unchanged) * 100 <= unchanged);
    let no_job = Change::parse("cut:other=4")
        .unwrap()
        .apply(&program, |_, _, _| true);
    assert!(no_job.unwrap_err().0.contains("no slice has"));
}

/// Goal: a piece that is itself what another thread waits for is not delivered before it is whole. Method:
/// `worker` works on a piece and wakes `ui` at its end; to cut that piece is refused, with the reason.
#[test]
fn a_piece_that_is_waited_for_is_not_cut() {
    let machine = Machine::named(MACHINE).unwrap();
    let asks = "wake worker\nwait worker\nsleep 3 ms\n".repeat(50);
    let does = "wait ui\nbegin piece 1\nwork 8 ms\nend piece 1\nwork 3 us\nwake ui\n".repeat(50);
    let text = format!(
        "about = 'a test'\nmachine = '{MACHINE}'\npolicy = '{POLICY}'\nuntil = '3 s'\n\
         full-speed = true\n\
         [[thread]]\nname = 'ui'\nsegments = '''\n{asks}'''\n\
         [[thread]]\nname = 'worker'\nsegments = '''\n{does}'''\n"
    );
    let scenario = Scenario::parse("a test", &text).unwrap_or_else(|error| panic!("{error}"));
    let recording = record(&scenario, &machine, POLICY, 0);
    let timeline = Timeline::new(recording, &Options::default());
    let options = BuildOptions {
        machine: Some(machine),
        policy: Some(POLICY.to_owned()),
        pieces: vec!["piece".to_owned()],
        ..BuildOptions::default()
    };
    let program = Program::of(&timeline, &[], &options).unwrap();
    let cut = Change::parse("cut:piece=4").unwrap();
    let refused = cut.apply(&program, |_, _, _| true).unwrap_err();
    let why = "the piece itself may be what is waited for";
    assert!(refused.0.contains(why), "{refused}");
}

/// `low` takes the lock four times with hardly a break and rests; `ui` tries again whenever `low` gives it
/// back. With a fair lock both take it in turn. The two have a CPU each. `is_held`: `ui` works with the lock,
/// and says so; else it gives it back at once, and works then.
fn sharing_a_lock(is_fair: bool, is_held: bool) -> Scenario {
    let begins = (0..1000u64).map(|round| round * 9_370_000);
    let (tries, gives) = if is_fair {
        ("take low\n".to_owned(), "hand low\n")
    } else {
        ("lock low\nwork 200 ns\n".repeat(5), "")
    };
    let work = if is_held {
        format!("begin ui holds lock\nwork 300 us\nend ui holds lock\n{gives}")
    } else {
        format!("{gives}work 300 us\n")
    };
    let wants = begins.map(|begin| {
        format!("until {begin} ns\nwork 200 us\nbegin lock 1\n{tries}end lock 1\n{work}")
    });
    let wants: String = wants.collect();
    let [takes, gives] = if is_fair {
        ["take", "hand"]
    } else {
        ["hold", "free"]
    };
    let holds = format!(
        "{takes} ui\nbegin low holds lock\nwork 1 ms\nend low holds lock\n{gives} ui\nwork 2 us\n"
    );
    let does = format!("{}sleep 3 ms\n", holds.repeat(4)).repeat(2000);
    two_threads(("ui", &wants), ("low", &does))
}

/// Goal: a lock that is handed over lets a thread wait for the end of one turn of its owner, as a fair lock
/// does in truth. Method: in the simulator a thread tries a lock until its owner rests, and both take it in
/// turn; of the recording of the first the slices are known. The lengths of the slices in which the thread
/// wants it are compared in the mean: where a slice says how long it has the lock, and where none does.
#[test]
fn locks_can_be_handed_over() {
    for is_held in [true, false] {
        hands_over(is_held);
    }
}

fn hands_over(is_held: bool) {
    const ROUNDS: usize = 1000;
    let machine = Machine::named(MACHINE).unwrap();
    let recorded = |is_fair| {
        let recording = record(&sharing_a_lock(is_fair, is_held), &machine, POLICY, 0);
        Timeline::new(recording, &Options::default())
    };
    let ui = Task(0);
    let waits = |timeline: &Timeline| {
        let names = &timeline.recording().names;
        let slices = timeline.slices(ui).iter();
        let wanted = slices.filter(|slice| names.word(slice.name) == "lock 1");
        let waits = wanted.map(|slice| (ui, slice.begin, slice.end));
        let waits: Vec<(Task, Nanos, Nanos)> = waits.take(ROUNDS).collect();
        assert_eq!(waits.len(), ROUNDS);
        waits
    };
    let lengths = |waits: &[(Task, Nanos, Nanos)]| -> Vec<Nanos> {
        waits.iter().map(|(_, begin, end)| *end - *begin).collect()
    };
    let before = recorded(false);
    let asked = waits(&before);
    let options = BuildOptions {
        machine: Some(machine.clone()),
        policy: Some(POLICY.to_owned()),
        owners: true,
        ..BuildOptions::default()
    };
    let program = Program::of(&before, &asked, &options).unwrap();
    let replayed = |change: &str| {
        let changed = Change::parse(change)
            .unwrap()
            .apply(&program, |name, _, thread| thread.name == name)?;
        let lengths = changed.lengths(&play(&changed, 0));
        Ok::<u64, paceline_replay::BadChange>(mean(
            &lengths.into_iter().flatten().collect::<Vec<_>>(),
        ))
    };
    let unchanged = mean(&lengths(&asked));
    let after = recorded(true);
    let truth = mean(&lengths(&waits(&after)));
    for change in ["hand-over", "hand-over:lock 1"] {
        let predicted = replayed(change).unwrap();
        assert!(
            predicted.abs_diff(truth) * 10 <= truth,
            "{change}: {predicted} and in truth {truth}"
        );
    }
    assert!(
        truth * 2 <= unchanged,
        "nothing changes: {truth} and {unchanged}"
    );
    assert!(replayed("work:low=100%").unwrap().abs_diff(unchanged) * 100 <= unchanged);
    let other = replayed("hand-over:bus").unwrap_err();
    assert!(other.0.contains("in no slice with \"bus\""), "{other}");
    // Where the lock is fair already, nothing can change.
    let fair = Program::of(&after, &[], &options).unwrap();
    let nothing = Change::parse("hand-over")
        .unwrap()
        .apply(&fair, |_, _, _| true);
    let why = nothing.unwrap_err().0;
    assert!(why.contains("in no slice a thread slept again"), "{why}");
}

/// Goal: other changes do so, too: niceness, a class, less work, a thread away. Method: as above.
#[test]
fn changes_do_what_they_do_in_truth() {
    let before = scenario("", "");
    check(&before, "nice:worker=-5", &scenario("", "nice = -5"));
    check(
        &before,
        "fifo:worker=10",
        &scenario("", "discipline = 'fifo'\npriority = 10"),
    );
    let mut alone = before.clone();
    alone.threads.retain(|thread| thread.name != "hog");
    check(&before, "without:hog", &alone);
}
