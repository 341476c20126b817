//! Worlds of servers, relays and clients with seeded faults, a few of them:
//! `cargo xtask sim` runs many more.

use testkit::world::World;

mod kept;

const STEPS: usize = 400;

fn run(seed: u64) -> u64 {
    match World::new(seed).run(STEPS) {
        Ok(trace) => trace,
        Err(fault) => panic!(
            "seed {seed}: {fault}\n`cargo xtask sim --from {seed} --seeds 1 --tell` tells the story"
        ),
    }
}

#[test]
fn worlds_come_to_rest_with_what_was_published() {
    for seed in 0..60 {
        run(seed);
    }
}

#[test]
fn seeds_that_failed_once_pass() {
    let seeds = kept::seeds("relays");
    assert!(seeds.len() > 20);
    for seed in seeds {
        run(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
