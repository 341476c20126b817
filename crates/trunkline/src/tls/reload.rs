//! Decides when changed files are used, and when a failure is reported.

use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;

use super::TlsError;
use super::config;
use super::files::{Fingerprint, TlsFiles};
use crate::pem::Stamps;

/// The files of earlier checks.
pub(super) struct FileHistory {
    stamps: Stamps,
    /// The files in use.
    used: Fingerprint,
    /// The files that could not be used at the last check.
    bad: Option<Bad>,
}

/// Files that cannot be used.
struct Bad {
    fingerprint: Fingerprint,
    /// Whether the failure was reported.
    is_reported: bool,
}

/// The outcome of a check: a new configuration, or `None` where the old files
/// are good again; or why the files cannot be used.
type CheckResult = Result<Option<Arc<ServerConfig>>, TlsError>;

impl FileHistory {
    /// Returns what is known at the start: the stamps and the fingerprint of
    /// the files in use.
    pub(super) fn new(stamps: Stamps, used: Fingerprint) -> Self {
        let bad = None;
        Self { stamps, used, bad }
    }

    /// Checks the files once, and builds a configuration of new ones. Returns
    /// `None` if there is nothing to report. The files are read only if their
    /// stamps changed, or if a failure has to be confirmed.
    pub(super) fn check(&mut self, files: &TlsFiles) -> Option<CheckResult> {
        let stamps = files.stamps();
        let must_confirm = self.bad.as_ref().is_some_and(|bad| !bad.is_reported);
        if stamps == self.stamps && !must_confirm {
            return None;
        }
        self.stamps = stamps;

        let contents = match files.read() {
            Ok(contents) => contents,
            Err(error) => return self.note_failure(Fingerprint::of_error(&error), error),
        };

        let fingerprint = contents.fingerprint();
        if fingerprint == self.used {
            // A reported failure needs a report of its end.
            let was_reported = self.bad.take().is_some_and(|bad| bad.is_reported);
            return was_reported.then_some(Ok(None));
        }

        match config::build(files, &contents) {
            Ok(config) => {
                self.used = fingerprint;
                self.bad = None;
                Some(Ok(Some(config)))
            }
            Err(error) => self.note_failure(fingerprint, error),
        }
    }

    /// Records that the files cannot be used. Returns the error at the second
    /// check in a row that finds the same failure, and only then: two files are
    /// replaced one after the other, and in between they do not match.
    fn note_failure(&mut self, fingerprint: Fingerprint, error: TlsError) -> Option<CheckResult> {
        let same_failure = self.bad.take();
        let same_failure = same_failure.filter(|bad| bad.fingerprint == fingerprint);
        let must_report = same_failure.as_ref().is_some_and(|bad| !bad.is_reported);
        self.bad = Some(Bad {
            fingerprint,
            is_reported: same_failure.is_some(),
        });
        must_report.then_some(Err(error))
    }
}
