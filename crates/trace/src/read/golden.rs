//! Golden.
#[test]
fn show() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/traces");
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    names.sort();
    for path in names {
        if !path.is_file() {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        match super::read(std::fs::File::open(&path).unwrap(), name) {
            Err(error) => println!("ERR {error}"),
            Ok(r) => {
                use event::KernelEventKind as K;
                let c = |f: &dyn Fn(&K) -> bool| r.kernel.iter().filter(|e| f(&e.what)).count();
                println!(
                    "{name}: {} sw {} wk {} mig {} freq {} idle {} prio {} inh {} int {} futex {} threads {} procs {} cpus {} marks {} counters {} span {:?} wakers {:?} losses {:?}",
                    r.origin.format,
                    c(&|k| matches!(k, K::Switch { .. })),
                    c(&|k| matches!(k, K::Waking { .. })),
                    c(&|k| matches!(k, K::Migrate { .. })),
                    c(&|k| matches!(k, K::Frequency(_))),
                    c(&|k| matches!(k, K::Idle(_))),
                    c(&|k| matches!(k, K::Priority { .. })),
                    c(&|k| matches!(k, K::Inherit { .. })),
                    c(&|k| matches!(k, K::Interrupt { .. })),
                    c(&|k| matches!(k, K::FutexCall { .. })),
                    r.threads.len(),
                    r.processes.len(),
                    r.cpus.len(),
                    r.marks.len(),
                    r.counters.len(),
                    r.span(),
                    r.origin.wakers,
                    r.losses.iter().collect::<Vec<_>>()
                );
            }
        }
    }
}
