//! Signals that end the program.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, Result};

/// SIGTERM and SIGINT. SIGHUP does nothing: files are watched, and a terminal
/// that goes away must not take a server with it. Nor does SIGXFSZ: a file that
/// may not grow is an error of a write, as a full disk is.
pub(crate) struct Ends {
    term: Signal,
    int: Signal,
    _hup: Signal,
    _xfsz: Signal,
}

impl Ends {
    /// Starts to handle the signals. From then on, none of them ends the
    /// program by itself.
    ///
    /// # Errors
    /// The system refuses a signal handler.
    pub(crate) fn new() -> Result<Self> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::wrong(format!("no signal handler: {error}")))
        };
        Ok(Self {
            term: listen(SignalKind::terminate())?,
            int: listen(SignalKind::interrupt())?,
            _hup: listen(SignalKind::hangup())?,
            _xfsz: listen(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for the next signal that ends the program: SIGTERM or SIGINT.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
