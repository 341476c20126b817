//! Worlds of snapshots: a tree above the client's machine (C51, C53, C54), a few
//! of them: `cargo xtask sim` runs many more.

use testkit::snapshots::World;

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
fn c51_every_snapshot_is_whole_and_never_older() {
    (0..60).for_each(run);
}

#[test]
fn seeds_that_failed_once_pass() {
    kept::seeds("snapshots").into_iter().for_each(run);
}
