//! Worlds of servers: the client's machine before servers that fail, hang and
//! come back (C46-C49, E11), a few of them: `cargo xtask sim` runs many more.

use testkit::servers::World;

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
fn c47_c48_a_source_has_what_the_best_of_its_servers_has() {
    (0..60).for_each(run);
}

#[test]
fn seeds_that_failed_once_pass() {
    kept::seeds("servers").into_iter().for_each(run);
}
