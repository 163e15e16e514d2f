//! Tests of comparisons.

use std::collections::BTreeMap;
use std::path::Path;

use event::Random;
use proptest::prelude::*;

use super::*;
use crate::set::{DataSet, Kind, Part, Unit};
use crate::table::{Rows, TableName, Value};

/// The causes of a frame: each with its mean in nanoseconds.
const CAUSES: [(&str, &str, f64); 3] = [
    ("running", "self", 8e6),
    ("preempted", "worker *", 2e6),
    ("lock", "loader", 5e5),
];

/// A number around 1 with a long tail: traces are unlike one another, a few of them very much.
fn uneven(random: &mut Random) -> f64 {
    let part = (random.below(1 << 30) as f64 + 1.0) / (1 << 30) as f64;
    0.5 - 0.5 * part.ln()
}

/// What so many traces have. Traces have a level of their own, around which their waits are, and cause `more`
/// is longer by a factor.
fn fleet(traces: usize, seed: u64, (more, factor): (usize, f64)) -> FleetSums {
    let mut random = Random::new(seed);
    let group = WaitGroup {
        process: Some("game".to_owned()),
        kind: "frame".to_owned(),
        name: "frame *".to_owned(),
    };
    let mut sums = GroupSums::default();
    for trace in 0..traces as u32 {
        let waits = random.within(3, 40);
        let levels = CAUSES.map(|_| uneven(&mut random));
        for _ in 0..waits {
            sums::add(&mut sums.waits, trace, 1.0);
            for (at, (kind, who, mean)) in CAUSES.into_iter().enumerate() {
                let noise = random.within(800, 1200) as f64 / 1000.0;
                let factor = if at == more { factor } else { 1.0 };
                let ns = (mean * levels[at] * noise * factor).round();
                let subject = Subject {
                    of: ChangeOf::Cause,
                    kind: kind.to_owned(),
                    who: Some(who.to_owned()),
                };
                sums::add(sums.parts.entry(subject).or_default(), trace, ns);
                sums::add(&mut sums.length, trace, ns);
            }
        }
    }
    FleetSums {
        traces,
        groups: BTreeMap::from([(group, sums)]),
    }
}

fn options(draws: usize, seed: u64) -> CompareOptions {
    CompareOptions {
        device: None,
        draws,
        seed,
    }
}

fn pool() -> JobSystem {
    Builder::new().workers(0).build().unwrap()
}

fn cause<'a>(changes: &'a Changes, kind: &str) -> &'a Change {
    let mut rows = changes.rows.iter();
    rows.find(|row| row.kind.as_deref() == Some(kind)).unwrap()
}

/// Goal: intervals contain what they should as often as they say, and of equal fleets hardly any row is
/// called changed. Method: 300 pairs of fleets of 24 and 30 traces with long tails; in half of them cause
/// `preempted` is half as long again in B, so that its true change is known. Counted: intervals that contain
/// the true change (95 % are expected, 92 and 98 are four standard deviations of 900 away), and pairs in
/// which a row that did not change is called changed (5 %, and 9 % are three deviations).
#[test]
fn intervals_contain_the_truth_as_often_as_they_say() {
    let (pairs, js) = (300, pool());
    let (mut held, mut asked, mut wrong) = (0, 0, 0);
    for pair in 0..pairs {
        let factor = if pair % 2 == 0 { 1.0 } else { 1.5 };
        let sums = [
            fleet(24, 2 * pair + 1, (1, 1.0)),
            fleet(30, 2 * pair + 2, (1, factor)),
        ];
        let found = changes(&js, &sums, &options(400, pair));
        let mut is_wrong = false;
        for (at, (kind, _, mean)) in CAUSES.into_iter().enumerate() {
            let row = cause(&found, kind);
            let truth = if at == 1 { mean * (factor - 1.0) } else { 0.0 };
            let [low, high] = row.interval_ns.unwrap();
            asked += 1;
            held += usize::from((low..=high).contains(&truth));
            is_wrong |= truth == 0.0 && row.direction != Direction::Same;
        }
        wrong += usize::from(is_wrong);
    }
    let part = held as f64 / f64::from(asked);
    assert!((0.92..=0.98).contains(&part), "{held} of {asked}");
    assert!(wrong * 100 <= pairs as usize * 9, "{wrong} of {pairs}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Goal: a cause that grew by a known factor is found first, with that factor; the other way round it
    /// shrank by as much, and the draws have nothing to do with the means. Method: fleets of 60 traces in
    /// which one cause is 3 to 6 times as long; the means against sums over all waits, made without the code
    /// under test.
    #[test]
    fn a_cause_that_grew_is_found(seed in 0..1000_u64, at in 0..3_usize, times in 3.0..6.0_f64) {
        let js = pool();
        let sums = [fleet(60, seed, (0, 1.0)), fleet(60, seed + 5000, (at, times))];
        let found = changes(&js, &sums, &options(300, seed));
        let (kind, _, mean) = CAUSES[at];
        let row = cause(&found, kind);
        prop_assert_eq!(row.direction, Direction::Grew);
        let growth = row.growth().unwrap();
        prop_assert!((0.6 * times..1.6 * times).contains(&growth), "{} of {}", growth, times);
        prop_assert!(row.change_ns().unwrap() > mean);
        for (side, sums) in sums.iter().enumerate() {
            let group = sums.groups.values().next().unwrap();
            let parts = group.parts.iter().find(|(subject, _)| subject.kind == kind).unwrap().1;
            let ns: f64 = parts.iter().map(|one| one.1).sum();
            let waits: f64 = group.waits.iter().map(|one| one.1).sum();
            prop_assert_eq!(row.mean_ns[side], Some(ns / waits));
            prop_assert_eq!(row.waits[side], waits as u64);
        }
        let first = found.rows.iter().find(|row| row.of == ChangeOf::Cause).unwrap();
        prop_assert_eq!(first.kind.as_deref(), Some(kind));
        let [a, b] = sums;
        let back = changes(&js, &[b, a], &options(300, seed));
        let back = cause(&back, kind);
        prop_assert_eq!(back.direction, Direction::Shrank);
        prop_assert_eq!(back.change_ns().map(|ns| -ns), row.change_ns());
    }
}

/// Goal: the same traces on both sides never changed, the result does not depend on threads, and another seed
/// gives other draws. Method: one fleet twice; two fleets on one thread and on three.
#[test]
fn draws_follow_from_the_seed() {
    let one = fleet(20, 7, (0, 1.0));
    let same = changes(&pool(), &[one.clone(), one.clone()], &options(500, 3));
    assert!(same.rows.iter().all(|row| row.direction == Direction::Same));
    let sums = [one, fleet(25, 8, (2, 1.3))];
    let several = Builder::new().workers(2).build().unwrap();
    let first = changes(&pool(), &sums, &options(500, 3));
    assert_eq!(first, changes(&several, &sums, &options(500, 3)));
    let other = changes(&pool(), &sums, &options(500, 4));
    let key = |changes: &Changes| {
        (
            cause(changes, "lock").mean_ns,
            cause(changes, "lock").interval_ns,
        )
    };
    let ((means, interval), (other_means, other_interval)) = (key(&first), key(&other));
    assert!(means == other_means && interval != other_interval);
}

/// Goal: whole traces are drawn, since waits of one trace are alike. Method: traces of 200 waits, all of a
/// trace equal, some traces twice as long as others. The interval is as wide as the spread of 12 means, and
/// not as narrow as that of 2400 waits; an exact value is known: the deviation of the mean of 12 numbers that
/// are 1 or 2 in halves is 0.5/√12, so the interval of a difference of two is 2·1.96·0.204 wide, and a little
/// more for Student's t.
#[test]
fn traces_are_drawn_and_not_waits() {
    let group = WaitGroup {
        process: None,
        kind: "slice".to_owned(),
        name: "load".to_owned(),
    };
    let mut sums = GroupSums::default();
    for trace in 0..12 {
        sums::add(&mut sums.waits, trace, 200.0);
        sums::add(
            &mut sums.length,
            trace,
            200.0 * 1e6 * f64::from(1 + trace % 2),
        );
    }
    let one = FleetSums {
        traces: 12,
        groups: BTreeMap::from([(group, sums)]),
    };
    let found = changes(&pool(), &[one.clone(), one], &options(4000, 1));
    let [low, high] = found.rows[0].interval_ns.unwrap();
    let width = (high - low) / 1e6;
    assert!((0.75..0.98).contains(&width), "{width}");
}

/// Goal: with too few traces there is no interval, and it says so. Method: seven traces on one side; a group
/// that is on one side only.
#[test]
fn few_traces_have_no_interval() {
    let mut sums = [fleet(7, 1, (0, 1.0)), fleet(40, 2, (0, 9.0))];
    let alone = WaitGroup {
        process: None,
        kind: "job".to_owned(),
        name: "new".to_owned(),
    };
    let waits = (0..20).map(|trace| (trace, 1.0)).collect();
    let group = GroupSums {
        waits,
        length: (0..20).map(|trace| (trace, 5.0)).collect(),
        parts: BTreeMap::new(),
    };
    sums[1].groups.insert(alone, group);
    let found = changes(&pool(), &sums, &options(100, 1));
    assert_eq!(found.rows.len(), 5);
    for row in &found.rows {
        assert_eq!((row.direction, row.interval_ns), (Direction::Few, None));
    }
    let new = found
        .rows
        .iter()
        .find(|row| row.wait_group == "new")
        .unwrap();
    assert_eq!((new.traces, new.mean_ns), ([0, 20], [None, Some(5.0)]));
    assert_eq!((new.change_ns(), new.growth()), (None, None));
}

/// A trace with one wait of `frame 1`, whose only cause is `ns` long, and an inversion of half of that.
fn unit(key: &str, build: Option<&str>, ns: u64) -> Unit {
    let null = Value::Null;
    let first = || [key.into(), Value::from("phone"), Value::from(build)];
    let row = |table, rest: &[Value<'_>]| {
        let mut rows = Rows::new(table);
        let values: Vec<Value<'_>> = first().into_iter().chain(rest.iter().copied()).collect();
        rows.push(&values);
        rows
    };
    let mut about = vec![Value::from(1_u64)];
    about.extend([null; 14]);
    let (zero, group) = (Value::from(0_u64), Value::from("frame *"));
    let wait = [
        zero,
        "frame".into(),
        "frame 1".into(),
        group,
        "game".into(),
        "main".into(),
        null,
        zero,
        ns.into(),
        null,
        null,
    ];
    let cause = [
        zero,
        group,
        zero,
        "preempted".into(),
        null,
        "main".into(),
        null,
        "self".into(),
        ns.into(),
        zero,
        null,
        null,
        null,
        null,
        null,
        null,
        "known".into(),
    ];
    let inversion = [
        zero,
        group,
        "lock".into(),
        "main".into(),
        Value::from("worker 3"),
        null,
        "hog".into(),
        zero,
        (ns / 2).into(),
        zero,
        "known".into(),
        "".into(),
    ];
    Unit {
        key: key.to_owned(),
        size: Some(1),
        error: None,
        rows: vec![
            row(TableName::Waits, &wait),
            row(TableName::Causes, &cause),
            row(TableName::Inversions, &inversion),
            row(TableName::Traces, &about),
        ],
    }
}

/// A data set of two builds with ten traces each, those of the second one twice as long, in several parts.
fn two_builds(path: &Path, made_with: &str) {
    let mut set = DataSet::open(path, Kind::Traces, made_with).unwrap();
    for at in 0..10_u64 {
        let units = [("1.4", 1), ("1.5", 2)].map(|(build, times)| {
            let ns = times * (1000 + 10 * at);
            unit(&format!("{build}/{at}"), Some(build), ns)
        });
        set.commit(&Part::new(Kind::Traces, units.into()).unwrap())
            .unwrap();
    }
}

fn side(path: &Path, build: Option<&str>) -> Side {
    Side {
        path: path.to_owned(),
        build: build.map(str::to_owned),
    }
}

const MADE: &str = r#"labels "", {"slices":[],"busy":[],"waits":20000}"#;

/// Goal: a data set's builds are compared: wait, cause and inversion. Method: all times are doubled in the
/// second build, so each row has growth 2 and grew; the table has the same numbers.
#[test]
fn builds_of_a_data_set_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.parquet");
    two_builds(&path, MADE);
    let (a, b) = (side(&path, Some("1.4")), side(&path, Some("1.5")));
    let found = compare(&a, &b, &CompareOptions::default()).unwrap();
    assert_eq!(found.traces, [10, 10]);
    let rows: Vec<_> = found
        .rows
        .iter()
        .map(|row| (row.of, row.kind.as_deref(), row.who.as_deref(), row.mean_ns))
        .collect();
    assert_eq!(
        rows,
        [
            (ChangeOf::Wait, None, None, [Some(1045.0), Some(2090.0)]),
            (
                ChangeOf::Cause,
                Some("preempted"),
                Some("self"),
                [Some(1045.0), Some(2090.0)]
            ),
            (
                ChangeOf::Inversion,
                Some("lock"),
                Some("worker *"),
                [Some(522.5), Some(1045.0)]
            ),
        ]
    );
    for row in &found.rows {
        assert_eq!((row.direction, row.growth()), (Direction::Grew, Some(2.0)));
        let [low, high] = row.interval_ns.unwrap();
        assert!((low..=high).contains(&row.change_ns().unwrap()));
    }
    let table = found.table();
    assert_eq!(table.len(), 3);
    found.write(&folder.path().join("changes.parquet")).unwrap();
    assert!(folder.path().join("changes.parquet").is_file());
}

/// Goal: what cannot be compared is one line of whoever asked. Method: no data set, a file, one of points, an
/// empty one, builds and devices that there are not, one side twice, other options, and a part that lacks a
/// column.
#[test]
fn what_cannot_be_compared_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    two_builds(&at("f"), MADE);
    two_builds(
        &at("other"),
        r#"labels "x\", {", {"slices":["a"],"busy":[],"waits":20000}"#,
    );
    drop(DataSet::open(&at("empty"), Kind::Traces, MADE).unwrap());
    drop(DataSet::open(&at("points"), Kind::Points, "").unwrap());
    std::fs::write(at("file"), "x").unwrap();
    {
        let mut plain = DataSet::open(&at("plain"), Kind::Traces, MADE).unwrap();
        plain
            .commit(&Part::new(Kind::Traces, vec![unit("a", None, 5)]).unwrap())
            .unwrap();
    }
    two_builds(&at("lacks"), MADE);
    for entry in std::fs::read_dir(at("lacks/causes")).unwrap() {
        let to = entry.unwrap().path();
        let from = at("lacks/inversions").join(to.file_name().unwrap());
        std::fs::copy(from, to).unwrap();
    }
    let device = |name: &str| CompareOptions {
        device: Some(name.to_owned()),
        ..CompareOptions::default()
    };
    let usual = CompareOptions::default();
    let good = side(&at("f"), Some("1.4"));
    for (other, options, part) in [
        (side(&at("none"), None), &usual, "is no data set of traces"),
        (side(&at("file"), None), &usual, "is a file"),
        (side(&at("points"), None), &usual, "simulated runs"),
        (side(&at("empty"), None), &usual, "has no traces"),
        (side(&at("empty"), Some("1.4")), &usual, "have no builds"),
        (side(&at("plain"), Some("1.4")), &usual, "have no builds"),
        (side(&at("f"), Some("1.6")), &usual, "there are: 1.4, 1.5"),
        (
            side(&at("f"), Some("1.5")),
            &device("pad"),
            "there are: phone",
        ),
        (good.clone(), &usual, "with itself"),
        (side(&at("other"), None), &usual, "make both alike"),
        (side(&at("lacks"), None), &usual, "no column `role`"),
        (side(&at("f"), Some("1.5")), &options_of(99), "100 to 20000"),
    ] {
        let why = compare(&good, &other, options).unwrap_err();
        let text = why.to_string();
        assert!(why.is_input() && !text.contains('\n'), "{text}");
        assert!(text.contains(part), "{part}: {text}");
    }
}

fn options_of(draws: usize) -> CompareOptions {
    options(draws, 1)
}
