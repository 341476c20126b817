//! Worlds of variants: random transitions under clients of many categories
//! (S62), a few of them: `cargo xtask sim` runs more.

use testkit::variants::World;

mod kept;

const ROUNDS: usize = 8;
const STEPS: usize = 60;
/// How much of what happened a failure shows.
const SHOWN: usize = 60;

fn run(seed: u64) {
    judge(seed, World::new);
}

fn run_wild(seed: u64) {
    judge(seed, World::wild);
}

fn judge(seed: u64, world: impl Fn(u64) -> World) {
    let Err(fault) = world(seed).run(ROUNDS, STEPS) else {
        return;
    };
    let mut again = world(seed).telling();
    let same = again.run(ROUNDS, STEPS);
    assert_eq!(same, Err(fault.clone()), "the same seed gives the same run");
    let story = again.story();
    let last = &story[story.len().saturating_sub(SHOWN)..];
    panic!("{}\nseed {seed}: {fault}", last.join("\n"));
}

#[test]
fn s62_no_client_is_without_its_variant_or_holds_two() {
    (0..60).for_each(run);
}

#[test]
fn seeds_that_failed_once_pass() {
    kept::seeds("variants").into_iter().for_each(run);
    kept::seeds("wild").into_iter().for_each(run_wild);
}

#[test]
fn s84_nor_when_some_are_rejected() {
    (0..60).for_each(run_wild);
}
