//! How files are read and watched.

use std::time::Duration;

use trunkline::wire;
use trunkline_proto::text;

/// How files are read and watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What a reference to a resource that no file has means.
    pub dangling: Dangling,
    /// How text is read, and how much of it.
    pub text: text::Options,
    /// Whether the system is asked to tell of changes. Without that, only the
    /// rescan finds them.
    pub notify: bool,
    /// How long nothing may happen before files are read.
    pub quiet: Duration,
    /// How long reading is put off at most while something happens.
    pub patience: Duration,
    /// After which time a file that looks half written is read again.
    pub retry: Duration,
    /// How often all files are looked at, for file systems that tell nothing.
    pub rescan: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dangling: Dangling::default(),
            text: wire::text_options(),
            notify: true,
            quiet: Duration::from_millis(50),
            patience: Duration::from_millis(500),
            retry: Duration::from_millis(200),
            rescan: Duration::from_secs(10),
        }
    }
}

/// What a reference to a resource that no file has means.
///
/// References to routes and clusters are looked at always. Endpoints, secrets,
/// scopes and the like often come from another server: references to such a
/// type are looked at if the files have some of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dangling {
    /// A warning: an Envoy may have the resource from its bootstrap.
    #[default]
    Warn,
    /// A mistake, of the file that refers or of the one that took the resource
    /// away.
    Refuse,
}
