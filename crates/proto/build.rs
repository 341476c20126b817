//! Compiles the `.proto` files that `envoy-types` ships into one descriptor
//! set, options included, for the module `descriptor`.
//!
//! No `.proto` is copied into this repository, so the files are read where
//! cargo has put the sources of `envoy-types`. Cargo tells a build script
//! nothing about that place, so it is asked, in this order:
//!
//! 1. `TRUNKLINE_ENVOY_TYPES_DIR`, for a build system that knows better;
//! 2. `cargo metadata --offline`, which knows vendored, patched and replaced
//!    registries, and fails only if some crate of the workspace that this
//!    build does not need was never downloaded;
//! 3. the registry under `CARGO_HOME`, by the version in `Cargo.lock`;
//! 4. `cargo metadata` with the network.

use std::{env, fs, path::PathBuf};

#[path = "build/compile.rs"]
mod compile;
#[path = "build/extra.rs"]
mod extra;
#[path = "build/locate.rs"]
mod locate;
#[path = "build/scope.rs"]
mod scope;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    if let Err(reason) = run() {
        println!("cargo::error={reason}");
    }
}

fn run() -> Result<(), String> {
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this through cargo")?;
    let sources = locate::envoy_types()?;
    let set = compile::descriptor_set(&sources.join("proto"))?;
    let path = PathBuf::from(out).join("envoy.bin");
    fs::write(&path, set).map_err(|e| format!("cannot write {}: {e}", path.display()))
}
