//! The parts of the gate, in the order in which they run: what fails fast
//! comes first.

use crate::failure::Result;
use crate::workspace::{Workspace, run};
use crate::{api, attack, bench, deps, rules, setup, sim, tidy};

/// One part of the gate.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Parts without which this one says nothing; they stand before it.
    pub(super) needs: &'static [&'static str],
    pub(super) run: fn(&Workspace) -> Result<()>,
}

/// Every part; a new one is a line here.
pub(super) const PARTS: &[Part] = &[
    Part {
        name: "format",
        about: "the code is formatted",
        needs: &[],
        run: |workspace| run(&mut workspace.cargo(&["fmt", "--all", "--check"])),
    },
    Part {
        name: "tidy",
        about: "the tree keeps its habits",
        needs: &[],
        run: tidy::run,
    },
    Part {
        name: "deps",
        about: "dependencies point one way and core stays pure",
        needs: &[],
        run: deps::run,
    },
    Part {
        name: "api",
        about: "the public API is the one that is listed",
        needs: &[],
        run: api::check,
    },
    Part {
        name: "setup",
        about: "the real peers are installed",
        needs: &[],
        run: setup::run,
    },
    Part {
        name: "lint",
        about: "no warning from the compiler or clippy, also for each feature of the library alone",
        needs: &[],
        run: lint,
    },
    Part {
        name: "doc",
        about: "the documentation builds and its links resolve",
        needs: &[],
        run: doc,
    },
    Part {
        name: "rules",
        about: "every rule is shown by a scenario or a test, and the table is current",
        needs: &[],
        run: rules::check,
    },
    Part {
        name: "test",
        about: "unit tests, scenarios, properties, examples in the documentation, guides",
        needs: &["setup"],
        run: |workspace| {
            let all_but_interop = ["test", "--workspace", "--exclude", "interop"];
            run(workspace.cargo(&all_but_interop).arg("--no-fail-fast"))
        },
    },
    Part {
        name: "sim",
        about: "simulated worlds of servers, relays and clients with faults",
        needs: &[],
        run: sim::gate,
    },
    Part {
        name: "bench",
        about: "the measuring tool runs, and its clients hold what they should",
        needs: &[],
        run: bench::gate,
    },
    Part {
        name: "attack",
        about: "hostile peers, each once and small: the server lives, and a client beside them loses nothing",
        needs: &[],
        run: attack::gate,
    },
    Part {
        name: "interop",
        about: "real Envoy and real gRPC",
        needs: &["setup"],
        run: |workspace| {
            run(workspace
                .cargo(&["test", "--package", "interop"])
                .arg("--no-fail-fast"))
        },
    },
];

fn lint(workspace: &Workspace) -> Result<()> {
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    run(&mut workspace.cargo(&clippy))?;
    for feature in ["client", "server"] {
        run(&mut workspace.cargo(&lint_alone(feature)))?;
    }
    // A workspace of its own, which nothing else here compiles.
    let fuzz = [
        "check",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target-dir",
        "target/fuzz",
    ];
    run(&mut workspace.cargo(&fuzz))
}

/// The library with one of its features only.
fn lint_alone(feature: &str) -> [&str; 10] {
    [
        "clippy",
        "--package",
        "trunkline",
        "--all-targets",
        "--no-default-features",
        "--features",
        feature,
        "--",
        "-D",
        "warnings",
    ]
}

fn doc(workspace: &Workspace) -> Result<()> {
    let mut doc = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
    run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}
