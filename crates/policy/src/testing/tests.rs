//! The kernel for tests is tested, too.

use super::{Script, Shape, Step, letters, ms, run, shares, switches};
use crate::Attr;
use crate::random::{Explore, Order};

/// Goal: the kernel for tests keeps time: no task runs twice at once, every task gets what it needs, and a
/// message wakes its receiver. Method: four tasks that run, sleep, yield and send to each other on one CPU in
/// any order.
#[test]
fn everybody_gets_exactly_its_time() {
    let work = [Step::Run(ms(3)), Step::Sleep(ms(1)), Step::Run(ms(2))];
    let scripts = [
        Script::once(Attr::default(), &work),
        Script::once(Attr::default(), &[Step::Receive(0), Step::Run(ms(4))]),
        Script::once(
            Attr::default(),
            &[Step::Run(ms(5)), Step::Yield, Step::Send(0)],
        ),
        Script {
            begins: ms(2),
            rounds: 3,
            ..Script::once(Attr::default(), &work)
        },
    ];
    for seed in 0..50 {
        let shape = Shape {
            cpus: 1,
            tick: ms(1),
        };
        let mut class = Explore::new(Order::Random, seed);
        let stints = run(&mut class, shape, &scripts, ms(1000));
        assert_eq!(shares(&stints, 4), [ms(5), ms(4), ms(5), ms(15)]);
        assert!(stints.windows(2).all(|two| two[0].to <= two[1].from));
        assert!(switches(&stints) > 4, "{}", letters(&stints, ms(1)));
    }
}
