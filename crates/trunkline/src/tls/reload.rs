//! Decides when changed files are used, and when a failure is reported.

use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;

use super::TlsError;
use super::config;
use super::files::{Print, Stamps, TlsFiles};

/// The files of earlier checks.
pub(super) struct Seen {
    stamps: Stamps,
    /// The files in use.
    used: Print,
    /// The files that could not be used at the last check.
    bad: Option<Bad>,
}

struct Bad {
    print: Print,
    told: bool,
}

/// A new configuration, or `None` where the old files are good again; or why
/// not.
type News = Result<Option<Arc<ServerConfig>>, TlsError>;

impl Seen {
    pub(super) fn new(stamps: Stamps, used: Print) -> Self {
        let bad = None;
        Self { stamps, used, bad }
    }

    /// One check; `None` if there is nothing to report.
    pub(super) fn look(&mut self, files: &TlsFiles) -> Option<News> {
        let stamps = files.stamps();
        let waits = self.bad.as_ref().is_some_and(|bad| !bad.told);
        if stamps == self.stamps && !waits {
            return None;
        }
        self.stamps = stamps;
        let contents = match files.read() {
            Ok(contents) => contents,
            Err(error) => return self.failed(Print::of_error(&error), error),
        };
        let print = contents.print();
        if print == self.used {
            // A reported failure needs a report of its end.
            let told = self.bad.take().is_some_and(|bad| bad.told);
            return told.then_some(Ok(None));
        }
        match config::build(files, &contents) {
            Ok(config) => {
                self.used = print;
                self.bad = None;
                Some(Ok(Some(config)))
            }
            Err(error) => self.failed(print, error),
        }
    }

    /// Reports at the second check that finds the same: two files are replaced
    /// one after the other, and in between they do not fit.
    fn failed(&mut self, print: Print, error: TlsError) -> Option<News> {
        let again = self.bad.as_ref().is_some_and(|bad| bad.print == print);
        let told_before = again && self.bad.as_ref().is_some_and(|bad| bad.told);
        self.bad = Some(Bad { print, told: again });
        (again && !told_before).then_some(Err(error))
    }
}
