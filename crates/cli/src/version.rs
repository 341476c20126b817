//! The version of this program.

/// The version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit, if it is known.
pub(crate) const COMMIT: &str = env!("TRUNKLINE_COMMIT");

/// For `--version`.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit:  ",
    env!("TRUNKLINE_COMMIT"),
    "\ntarget:  ",
    env!("TRUNKLINE_TARGET"),
    "\nprofile: ",
    env!("TRUNKLINE_PROFILE"),
    "\nrustc:   ",
    env!("TRUNKLINE_RUSTC"),
);
