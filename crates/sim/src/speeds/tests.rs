//! The parts together, on machines made for the purpose.

use super::*;
use crate::machine::{IdleState, Thermal};

const HALF_LIFE: Nanos = Nanos(32_768_000);

/// One cluster of this many equal CPUs with these points.
fn machine(cpus: usize, points: &[(u32, u64)], governor: Governor) -> Machine {
    let mut machine = Machine::ideal(cpus);
    let point = |&(khz, microwatts): &(u32, u64)| OperatingPoint { khz, microwatts };
    machine.clusters[0].points = points.iter().map(point).collect();
    machine.clusters[0].governor = governor;
    machine
}

fn schedutil(rate_limit: Nanos) -> Governor {
    Governor::Schedutil {
        rate_limit,
        half_life: HALF_LIFE,
    }
}

/// All changes that `take_changed` returns.
fn changes(speeds: &mut Speeds) -> Vec<(u32, u32)> {
    std::iter::from_fn(|| speeds.take_changed())
        .map(|(cpu, speed)| (cpu.0, speed))
        .collect()
}

/// Goal: speed is capacity times frequency, and a cap acts at once and goes away. Method: a cluster of half
/// capacity at three points under a fixed governor; caps between, below and above the points.
#[test]
fn capacity_frequency_and_cap_make_the_speed() {
    let mut small = machine(
        2,
        &[(1000, 0), (2000, 0), (4000, 0)],
        Governor::Fixed { point: 2 },
    );
    small.clusters[0].capacity = 512;
    let mut speeds = Speeds::new(&small);
    assert_eq!(speeds.speed(Cpu(0)), FULL / 2);
    for (khz, speed) in [(3999, FULL / 4), (1, FULL / 8), (u32::MAX, FULL / 2)] {
        speeds.cap(Cpu(1), khz, Nanos::ZERO);
        assert_eq!(changes(&mut speeds), [(0, speed), (1, speed)]);
    }
    let frequencies: Vec<_> = std::iter::from_fn(|| speeds.take_frequency()).collect();
    assert_eq!(
        frequencies,
        [(Cpu(0), 2000), (Cpu(0), 1000), (Cpu(0), 4000)]
    );
    speeds.cap(Cpu(0), 5000, Nanos::ZERO);
    assert_eq!(
        (speeds.take_frequency(), speeds.take_changed()),
        (None, None)
    );
}

/// Goal: threads of one core share it, and only them. Method: two cores of four threads with shares of 60,
/// 40 and 30 %; threads become busy and idle one after the other.
#[test]
fn threads_of_a_core_share_it() {
    let mut wide = machine(8, &[(1000, 0)], Governor::Fixed { point: 0 });
    wide.clusters[0].smt_percent = vec![60, 40, 30];
    for (cpu, spec) in wide.cpus.iter_mut().enumerate() {
        spec.core = cpu as u32 % 2;
    }
    let mut speeds = Speeds::new(&wide);
    let percent = |percent: u64| (u64::from(FULL) * percent / 100) as u32;
    for (cpu, alone) in [(0, 100), (2, 60), (4, 40), (6, 30)] {
        speeds.set_busy(Cpu(cpu), true, Nanos::ZERO);
        assert_eq!(speeds.speed(Cpu(cpu)), percent(alone));
        assert_eq!(speeds.speed(Cpu(0)), percent(alone));
        assert_eq!(speeds.speed(Cpu(1)), FULL);
    }
    for cpu in [2, 4, 6] {
        speeds.set_busy(Cpu(cpu), false, Nanos::ZERO);
    }
    assert_eq!(speeds.speed(Cpu(0)), FULL);
    assert_eq!(
        speeds.speed(Cpu(6)),
        percent(60),
        "what it would have beside CPU 0"
    );
}

/// Goal: schedutil climbs as utilization does, at ticks only, no faster than the rate limit. Method: an
/// always busy CPU of full capacity with a floor at 80 % of the speed, ticks of 4 ms; the times by hand.
/// With c = 0.8 the utilization after t is 1024·(1 − 2^(−0.8·t/32.768 ms)). The point 900 is asked for from
/// 1.25·1000·u/1024 > 800, u > 655.36, on: t = 60.3 ms, so at the tick of 64 ms. There u = 677. From then on
/// c = 0.9: the point 1000 needs u > 737.28, 10.8 ms later: at the tick of 76 ms, or, if two changes have to
/// be 20 ms apart, at that of 84 ms.
#[test]
fn schedutil_climbs_with_utilization() {
    let points = [(800, 0), (900, 0), (1000, 0)];
    for (limit, last) in [(1, 76), (20, 84)] {
        let mut speeds = Speeds::new(&machine(2, &points, schedutil(Nanos::from_millis(limit))));
        speeds.set_busy(Cpu(1), true, Nanos::ZERO);
        let mut seen = Vec::new();
        for time in (4..=200).step_by(4) {
            speeds.tick(Cpu(1), Nanos::from_millis(time));
            seen.extend(speeds.take_frequency().map(|(cpu, khz)| (time, cpu, khz)));
        }
        assert_eq!(seen, [(64, Cpu(0), 900), (last, Cpu(0), 1000)]);
        assert_eq!(speeds.speed(Cpu(0)), FULL, "the frequency is the cluster's");
    }
}

/// Goal: after long idling a CPU starts slow again. Method: busy until it is at the top, idle for a second,
/// busy again: the first change is to the lowest point.
#[test]
fn schedutil_forgets() {
    let points = [(300, 0), (1000, 0)];
    let mut speeds = Speeds::new(&machine(1, &points, schedutil(Nanos::ZERO)));
    speeds.set_busy(Cpu(0), true, Nanos::ZERO);
    for tick in 1..200 {
        speeds.tick(Cpu(0), Nanos::from_millis(4 * tick));
    }
    assert_eq!(speeds.take_frequency(), Some((Cpu(0), 1000)));
    speeds.set_busy(Cpu(0), false, Nanos::from_secs(1));
    assert_eq!(speeds.take_frequency(), None, "it is not idle for long yet");
    speeds.set_busy(Cpu(0), true, Nanos::from_secs(2));
    assert_eq!(speeds.take_frequency(), Some((Cpu(0), 300)));
}

/// Goal: energy is power times time, by core, point and idle state. Method: a schedule by hand: two cores,
/// 1 W and 3 W; idle 0.1 W, after 10 ms 0.01 W. Core 0 is busy from 0 to 20 ms, core 1 from 5 to 10 ms; the
/// upper point is forbidden from 10 ms on; the books are closed at 40 ms.
/// Core 0: 10·3 + 10·1 + 10·0.1 + 10·0.01 = 41.1 mJ. Core 1: 5·0.1 + 5·3 + 10·0.1 + 20·0.01 = 16.7 mJ.
#[test]
fn the_energy_of_a_known_schedule() {
    let points = [(1000, 1_000_000), (2000, 3_000_000)];
    let mut two = machine(2, &points, Governor::Fixed { point: 1 });
    let state = |residency, microwatts| IdleState {
        name: String::new(),
        residency: Nanos::from_millis(residency),
        exit: Nanos::ZERO,
        microwatts,
    };
    two.clusters[0].idle_states = vec![state(0, 100_000), state(10, 10_000)];
    let at = Nanos::from_millis;
    let mut speeds = Speeds::new(&two);
    speeds.set_busy(Cpu(0), true, at(0));
    speeds.set_busy(Cpu(1), true, at(5));
    speeds.set_busy(Cpu(1), false, at(10));
    speeds.cap(Cpu(0), 1000, at(10));
    speeds.set_busy(Cpu(0), false, at(20));
    let usage = speeds.usage(at(40));
    assert_eq!(usage[0].microjoules, 41_100 + 16_700);
    assert_eq!(usage[0].busy, [(1000, at(10)), (2000, at(15))]);
    assert_eq!(usage[0].idle, at(20 + 35));
    assert_eq!(usage[0].hottest_millidegrees, None);
    assert_eq!(speeds.usage(at(40)), usage, "asking changes nothing");
}

/// Goal: two threads of a core cost as much as one. Method: both busy for 10 ms at 2 W, then one for 10 ms.
#[test]
fn a_core_is_counted_once() {
    let mut smt = machine(2, &[(1000, 2_000_000)], Governor::Fixed { point: 0 });
    smt.cpus[1].core = 0;
    let mut speeds = Speeds::new(&smt);
    speeds.set_busy(Cpu(0), true, Nanos::ZERO);
    speeds.set_busy(Cpu(1), true, Nanos::ZERO);
    speeds.set_busy(Cpu(0), false, Nanos::from_millis(10));
    let usage = speeds.usage(Nanos::from_millis(20));
    assert_eq!(usage[0].microjoules, 40_000);
}

/// Goal: heat lowers the speed, and idling restores it. Method: 5 W at full speed, 20 °C per watt and a time
/// constant of 10 s from 25 °C: 85 °C are passed after 9.16 s. A point below, 2 W lead to 65 °C, so the
/// cluster settles into going up and down between the two and never gets 1 °C above the limit.
#[test]
fn heat_takes_speed_away() {
    let points = [(500, 1_000_000), (800, 2_000_000), (1000, 5_000_000)];
    let mut hot = machine(1, &points, Governor::Fixed { point: 2 });
    hot.clusters[0].thermal = Some(Thermal {
        ambient_millidegrees: 25_000,
        millidegrees_per_watt: 20_000,
        time_constant: Nanos::from_secs(10),
        limit_millidegrees: 85_000,
        period: Nanos::from_millis(100),
    });
    let mut speeds = Speeds::new(&hot);
    speeds.set_busy(Cpu(0), true, Nanos::ZERO);
    let mut first = None;
    for tick in 1..=10_000 {
        let now = Nanos::from_millis(4 * tick);
        speeds.tick(Cpu(0), now);
        if speeds.take_frequency().is_some() {
            first.get_or_insert(now);
        }
    }
    let first = first.unwrap();
    assert!((9160..9400).contains(&(first.0 / 1_000_000)), "{first}");
    let usage = &speeds.usage(Nanos::from_secs(40))[0];
    let hottest = usage.hottest_millidegrees.unwrap();
    assert!((85_000..86_000).contains(&hottest), "{hottest}");
    assert!(usage.busy[1].1 > Nanos::from_secs(5), "{usage:?}");
    speeds.set_busy(Cpu(0), false, Nanos::from_secs(40));
    speeds.set_busy(Cpu(0), true, Nanos::from_secs(80));
    assert_eq!(speeds.speed(Cpu(0)), FULL);
}
