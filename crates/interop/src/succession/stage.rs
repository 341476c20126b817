//! A server whose contents go from round to round.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::contents::{Peer, Step};
use super::name_of;
use crate::{Backend, GrpcBackend, Serving, folder, of_files};

/// A server, the file that it reads, and an endpoint for each round.
#[derive(Debug)]
pub struct Stage {
    step: Step,
    peer: Peer,
    backends: Vec<Endpoint>,
    folder: PathBuf,
    serving: Option<Serving>,
}

#[derive(Debug)]
enum Endpoint {
    Http(Backend),
    Grpc(GrpcBackend),
}

impl Endpoint {
    fn start(peer: Peer, round: usize) -> Self {
        let text = name_of(round);
        match peer {
            Peer::Grpc => Self::Grpc(GrpcBackend::start(&text)),
            Peer::Envoy => Self::Http(Backend::start(&text)),
        }
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Http(backend) => backend.address(),
            Self::Grpc(backend) => backend.address(),
        }
    }
}

impl Stage {
    /// A server of round 0, that can go on to so many others.
    #[must_use]
    pub fn new(step: Step, peer: Peer, rounds: usize) -> Self {
        let backends = (0..=rounds).map(|round| Endpoint::start(peer, round));
        let mut stage = Self {
            step,
            peer,
            backends: backends.collect(),
            folder: folder("stage"),
            serving: None,
        };
        stage.change_to(0);
        stage.serving = Some(Serving::files(&stage.folder));
        stage
    }

    /// The server.
    ///
    /// # Panics
    ///
    /// Never, since there is one between any two calls.
    #[must_use]
    pub fn serving(&self) -> &Serving {
        let serving = self.serving.as_ref();
        serving.unwrap_or_else(|| panic!("a stage without a server"))
    }

    /// How many rounds come after the first.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.backends.len() - 1
    }

    /// Replaces the contents by those of a round, in one change.
    ///
    /// # Panics
    ///
    /// When the file cannot be written, or there is no such round.
    pub fn change_to(&self, round: usize) {
        let at = self.backends[round].address();
        self.write(&self.step.contents(self.peer, round, at));
    }

    /// Stops the server, and starts another in its place which knows nothing
    /// but the contents of a round.
    ///
    /// # Panics
    ///
    /// As [`Self::change_to`], and when the port cannot be had again.
    pub fn restart_with(&mut self, round: usize) {
        let port = self.serving().port;
        drop(self.serving.take());
        self.change_to(round);
        self.serving = Some(Serving::over(of_files(&self.folder), port, None));
    }

    /// A new file takes the name of the old one, so that no half of it is read.
    fn write(&self, text: &str) {
        let (new, file) = (self.folder.join(".new"), self.folder.join("all.yaml"));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &file));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    }
}
