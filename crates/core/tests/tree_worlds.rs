//! Worlds of trees: clients that move as gRPC and Envoy do, and come back to
//! servers with other contents (S81, S82), a few of them: `cargo xtask sim` runs
//! many more.

use testkit::trees::World;

mod kept;

const STEPS: usize = 400;
/// How much of what happened a failure shows.
const SHOWN: usize = 60;

fn run(seed: u64) {
    let Err(fault) = World::new(seed).run(STEPS) else {
        return;
    };
    let mut again = World::new(seed).telling();
    let same = again.run(STEPS);
    assert_eq!(same, Err(fault.clone()), "the same seed gives the same run");
    let story = again.story();
    let last = &story[story.len().saturating_sub(SHOWN)..];
    panic!("{}\nseed {seed}: {fault}", last.join("\n"));
}

#[test]
fn s81_what_a_client_routes_to_is_not_taken_from_it() {
    // Nobody comes back in these: see `Shape`.
    (0..480).step_by(8).for_each(run);
}

#[test]
fn s82_nor_when_it_comes_back() {
    (0..60).for_each(run);
}

#[test]
fn seeds_that_failed_once_pass() {
    kept::seeds("trees").into_iter().for_each(run);
}
