//! How files are read and watched.

use std::time::Duration;

use trunkline::checked::Dangling;
use trunkline::wire;
use trunkline_proto::text;

/// Options of reading and watching files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The treatment of a reference to a resource that does not exist.
    pub dangling: Dangling,
    /// Whether a change is held that empties a file, removes all files of a
    /// path, or removes most resources of a type.
    pub guard: bool,
    /// Whether files without any resource count as loaded. If not, a first load
    /// waits for resources: a directory that is not mounted yet looks empty.
    pub allow_empty: bool,
    /// Options of reading text, with limits.
    pub text: text::Options,
    /// Whether the system notifies of changes. Without that, only the rescan
    /// finds them.
    pub notify: bool,
    /// How long no change may be seen before files are read.
    pub quiet: Duration,
    /// How long reading is put off at most while changes go on.
    pub patience: Duration,
    /// The delay after which a file that looks half written is read again.
    pub retry: Duration,
    /// How long a certificate and a key that do not belong together are no
    /// mistake yet: they are replaced one after the other. Not at a start.
    pub pair: Duration,
    /// The interval at which all files are scanned, for file systems without
    /// notifications.
    pub rescan: Duration,
}

impl Default for Options {
    /// Returns the options that a server has without settings: files are read
    /// after 50 ms without a change, and a dangling reference is a warning.
    fn default() -> Self {
        Self {
            dangling: Dangling::default(),
            guard: true,
            allow_empty: false,
            text: wire::text_options(),
            notify: true,
            quiet: Duration::from_millis(50),
            patience: Duration::from_millis(500),
            retry: Duration::from_millis(200),
            pair: Duration::from_secs(3),
            rescan: Duration::from_secs(10),
        }
    }
}
