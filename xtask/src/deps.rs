//! Which crate may depend on which.
//!
//! ```text
//! core    proto          neither knows the other
//!   |    /  |
//!   |   /  traffic       traffic knows proto only
//!   |  /   /
//!   trunkline            its channel for tonic decides by traffic
//!   /    |    \
//! store bench proxy
//!   \    |    /
//!      cli
//! ```
//!
//! Crates that exist for tests may use any of these and are no one's
//! dependency, except for tests. Core is also held to a short list of crates
//! from outside: it stays free of IO, async and clocks because nothing that
//! offers them can be imported. The program and the stores change contents by
//! settling them, and not past the checks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::workspace::{Workspace, capture};

/// A crate of the workspace and those of its siblings it may use.
struct Place {
    name: &'static str,
    may_use: &'static [&'static str],
}

const PLACES: &[Place] = &[
    Place {
        name: "trunkline-core",
        may_use: &[],
    },
    Place {
        name: "trunkline-proto",
        may_use: &[],
    },
    // Decisions of traffic need Envoy's messages and nothing of xDS.
    Place {
        name: "trunkline-traffic",
        may_use: &["trunkline-proto"],
    },
    Place {
        name: "trunkline",
        may_use: &["trunkline-core", "trunkline-proto", "trunkline-traffic"],
    },
    Place {
        name: "trunkline-store",
        may_use: &["trunkline-core", "trunkline-proto", "trunkline"],
    },
    Place {
        name: "trunkline-bench",
        may_use: &["trunkline-core", "trunkline-proto", "trunkline"],
    },
    Place {
        name: "trunkline-proxy",
        may_use: &[
            "trunkline-core",
            "trunkline-proto",
            "trunkline-traffic",
            "trunkline",
        ],
    },
    Place {
        name: "trunkline-cli",
        may_use: PRODUCT,
    },
    // It speaks with a program over sockets, and shares nothing with it.
    Place {
        name: "trunkline-attack",
        may_use: &[],
    },
    Place {
        name: "testkit",
        may_use: PRODUCT,
    },
    Place {
        name: "interop",
        may_use: &[
            "trunkline-core",
            "trunkline-proto",
            "trunkline-traffic",
            "trunkline",
            "trunkline-store",
            "trunkline-proxy",
            "testkit",
        ],
    },
    Place {
        name: "xtask",
        may_use: &[],
    },
];

/// What is shipped, below the binary.
const PRODUCT: &[&str] = &[
    "trunkline-core",
    "trunkline-proto",
    "trunkline-traffic",
    "trunkline",
    "trunkline-store",
    "trunkline-bench",
    "trunkline-proxy",
];

/// Crates that any crate may use in its tests.
const FOR_TESTS: &[&str] = &["testkit", "interop"];

/// Everything from outside that core may rest on, directly or not.
const CORE_ALLOWED: &[&str] = &[
    "bytes",
    "smol_str",
    "twox-hash",
    // hashbrown and its hasher
    "hashbrown",
    "allocator-api2",
    "equivalent",
    "foldhash",
    // thiserror and its macro, which runs in the compiler only
    "thiserror",
    "thiserror-impl",
    "proc-macro2",
    "quote",
    "syn",
    "unicode-ident",
];

/// Crates that change contents only by settling them: nothing gets past the
/// checks of `ContentSet`.
const SETTLING: &[&str] = &["crates/store/src", "crates/cli/src"];

/// Calls that change a server's contents past these checks.
const UNCHECKED: &[&str] = &[".apply(", ".apply_as(", "::apply(", "::apply_as("];

/// Checks all rules and shows every breach.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut breaches = direction(&metadata(workspace)?);
    let tree = core_tree(workspace)?;
    breaches.extend(impurities(&tree));
    for folder in SETTLING {
        unchecked_in(&workspace.root().join(folder), &mut breaches)?;
    }
    for breach in &breaches {
        println!("{breach}");
    }
    if !breaches.is_empty() {
        return Err(Failure::new(format!("{} wrong dependencies", breaches.len()))
            .remedy("move the code to where its dependency is allowed (ARCHITECTURE.md), or change the table in xtask/src/deps.rs with a reason"));
    }
    println!("core rests on {} crates, all of them allowed", tree.len());
    Ok(())
}

fn metadata(workspace: &Workspace) -> Result<Value> {
    let mut cargo = workspace.cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    serde_json::from_str(&capture(&mut cargo)?)
        .map_err(|error| Failure::new(format!("cargo metadata is not JSON: {error}")))
}

/// Every dependency between crates of the workspace that the table does not
/// allow.
fn direction(metadata: &Value) -> Vec<String> {
    let mut breaches = Vec::new();
    for package in array(&metadata["packages"]) {
        let name = text(&package["name"]);
        let Some(place) = PLACES.iter().find(|place| place.name == name) else {
            breaches.push(format!("{name} has no place in the table of dependencies"));
            continue;
        };
        for dependency in array(&package["dependencies"]) {
            let other = text(&dependency["name"]);
            let sibling = PLACES.iter().any(|place| place.name == other);
            let in_tests = dependency["kind"] == "dev" && FOR_TESTS.contains(&other);
            if sibling && !in_tests && !place.may_use.contains(&other) {
                breaches.push(format!("{name} may not depend on {other}"));
            }
        }
    }
    breaches
}

/// The names of the crates that core rests on, on every platform.
fn core_tree(workspace: &Workspace) -> Result<BTreeSet<String>> {
    let mut cargo = workspace.cargo(&["tree", "--package", "trunkline-core"]);
    cargo.args(["--edges", "normal,build", "--target", "all"]);
    cargo.args(["--prefix", "none", "--format", "{p}"]);
    Ok(capture(&mut cargo)?
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "trunkline-core")
        .map(str::to_owned)
        .collect())
}

fn impurities(tree: &BTreeSet<String>) -> Vec<String> {
    tree.iter()
        .filter(|name| !CORE_ALLOWED.contains(&name.as_str()))
        .map(|name| format!("trunkline-core may not rest on {name}"))
        .collect()
}

/// Adds the calls in a folder that change contents past the checks.
fn unchecked_in(folder: &Path, breaches: &mut Vec<String>) -> Result<()> {
    let unreadable = |error: std::io::Error| {
        Failure::new(format!("{} cannot be read: {error}", folder.display()))
    };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            unchecked_in(&path, breaches)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).map_err(unreadable)?;
            let lines = unchecked_calls(&source);
            breaches.extend(lines.map(|(number, call)| {
                format!(
                    "{}:{number}: `{call}` changes contents past the checks; settle them",
                    path.display()
                )
            }));
        }
    }
    Ok(())
}

/// Returns the calls of a source that change contents past the checks, with
/// their lines. Tests may.
fn unchecked_calls(source: &str) -> impl Iterator<Item = (usize, &'static str)> + '_ {
    let lines = source.lines().zip(1..);
    let product = lines.take_while(|(line, _)| line.trim() != "#[cfg(test)]");
    let code = product.filter(|(line, _)| !line.trim_start().starts_with("//"));
    code.filter_map(|(line, number)| {
        let call = UNCHECKED.iter().find(|call| line.contains(**call))?;
        Some((number, *call))
    })
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn breaches(name: &str, dependency: &str, kind: Option<&str>) -> usize {
        direction(&json!({"packages": [
            {"name": name, "dependencies": [{"name": dependency, "kind": kind}]},
        ]}))
        .len()
    }

    #[test]
    fn core_and_proto_do_not_know_each_other() {
        assert_eq!(breaches("trunkline-core", "trunkline-proto", None), 1);
        assert_eq!(breaches("trunkline-proto", "trunkline-core", None), 1);
        assert_eq!(
            breaches("trunkline-core", "trunkline-proto", Some("dev")),
            1
        );
        assert_eq!(breaches("trunkline", "trunkline-core", None), 0);
    }

    #[test]
    fn test_crates_are_for_tests() {
        assert_eq!(breaches("trunkline-core", "testkit", None), 1);
        assert_eq!(breaches("trunkline-core", "testkit", Some("build")), 1);
        assert_eq!(breaches("trunkline-core", "testkit", Some("dev")), 0);
    }

    #[test]
    fn a_crate_without_a_place_is_a_breach() {
        assert_eq!(breaches("trunkline-extra", "bytes", None), 1);
    }

    #[test]
    fn contents_are_settled_except_in_tests() {
        let source = "// server.apply(x)\nserver.apply(x);\n#[cfg(test)]\nserver.apply(x);\n";
        let found: Vec<_> = unchecked_calls(source).collect();
        assert_eq!(found, [(2, ".apply(")]);
    }

    #[test]
    fn a_runtime_under_core_is_a_breach() {
        let tree = ["bytes", "tokio"].map(str::to_owned).into();
        assert_eq!(impurities(&tree), ["trunkline-core may not rest on tokio"]);
    }
}
