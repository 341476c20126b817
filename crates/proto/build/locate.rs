//! Where the sources of `envoy-types` are. The order of attempts is in
//! `build.rs`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const CRATE: &str = "envoy-types";
const OVERRIDE: &str = "TRUNKLINE_ENVOY_TYPES_DIR";

/// The directory of the crate's manifest.
pub(crate) fn envoy_types() -> Result<PathBuf, String> {
    println!("cargo::rerun-if-env-changed={OVERRIDE}");
    if let Some(dir) = env::var_os(OVERRIDE) {
        return usable(PathBuf::from(dir)).ok_or_else(|| format!("{OVERRIDE} has no proto/envoy"));
    }
    let manifest = env::var("CARGO_MANIFEST_DIR").map_err(|e| e.to_string())?;
    let lock = lock_file(Path::new(&manifest));
    // Another version of the crate is another set of files.
    if let Some(lock) = &lock {
        println!("cargo::rerun-if-changed={}", lock.display());
    }
    ask_cargo(&manifest, &["--offline"])
        .or_else(|| in_registry(lock.as_deref()))
        .or_else(|| ask_cargo(&manifest, &[]))
        .ok_or_else(|| {
            format!(
                "cannot find the sources of {CRATE}: run `cargo fetch`, \
                 or set {OVERRIDE} to a directory that holds them"
            )
        })
}

/// The directory, if it is what it should be.
fn usable(dir: PathBuf) -> Option<PathBuf> {
    dir.join("proto/data-plane-api/envoy")
        .is_dir()
        .then_some(dir)
}

fn ask_cargo(manifest: &str, more: &[&str]) -> Option<PathBuf> {
    let cargo = env::var_os("CARGO")?;
    let target = env::var("TARGET").ok()?;
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--filter-platform",
            &target,
        ])
        .args(more)
        .arg("--manifest-path")
        .arg(Path::new(manifest).join("Cargo.toml"))
        .output()
        .ok()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    let packages = metadata["packages"].as_array()?;
    let package = packages.iter().find(|p| p["name"] == CRATE)?;
    let manifest = Path::new(package["manifest_path"].as_str()?);
    usable(manifest.parent()?.to_owned())
}

fn lock_file(manifest: &Path) -> Option<PathBuf> {
    let locks = manifest.ancestors().map(|dir| dir.join("Cargo.lock"));
    locks.into_iter().find(|path| path.is_file())
}

fn in_registry(lock: Option<&Path>) -> Option<PathBuf> {
    let lock = fs::read_to_string(lock?).ok()?;
    let entry = lock
        .split("[[package]]")
        .find(|p| p.contains(&format!("name = \"{CRATE}\"")))?;
    let version = entry.split("version = \"").nth(1)?.split('"').next()?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src")).ok()?;
    let dirs = registries
        .flatten()
        .map(|r| r.path().join(format!("{CRATE}-{version}")));
    dirs.into_iter().find_map(usable)
}
