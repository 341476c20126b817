//! A server whose contents go from round to round.

use std::fs;
use std::path::{Path, PathBuf};

use super::contents::{Peer, Step};
use super::endpoints::Endpoints;
use super::play::Scene;
use crate::{Serving, folder, of_files};

/// Trunkline, the file that it reads, and an endpoint for each round.
#[derive(Debug)]
pub struct Stage {
    step: Step,
    peer: Peer,
    endpoints: Endpoints,
    folder: PathBuf,
    serving: Option<Serving>,
}

impl Stage {
    /// A server of round 0, that can go on to so many others.
    #[must_use]
    pub fn new(step: Step, peer: Peer, rounds: usize) -> Self {
        Self::over(step, peer, Endpoints::start(peer, rounds))
    }

    /// The same before gRPC servers that are processes of this program.
    ///
    /// # Panics
    ///
    /// When one does not listen.
    #[must_use]
    pub fn with_servers(step: Step, program: &Path, rounds: usize) -> Self {
        Self::over(step, Peer::Grpc, Endpoints::run(program, rounds))
    }

    fn over(step: Step, peer: Peer, endpoints: Endpoints) -> Self {
        let mut stage = Self {
            step,
            peer,
            endpoints,
            folder: folder("stage"),
            serving: None,
        };
        stage.write(0);
        stage.serving = Some(Serving::files(&stage.folder));
        stage
    }

    fn serving(&self) -> &Serving {
        let serving = self.serving.as_ref();
        serving.unwrap_or_else(|| panic!("a stage without a server"))
    }

    /// A new file takes the name of the old one, so that no half of it is read.
    fn write(&self, round: usize) {
        let at = self.endpoints.address(round);
        let text = self.step.contents(self.peer, round, at);
        let (new, file) = (self.folder.join(".new"), self.folder.join("all.yaml"));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &file));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    }
}

impl Scene for Stage {
    fn port(&self) -> u16 {
        self.serving().port
    }

    fn rounds(&self) -> usize {
        self.endpoints.rounds()
    }

    fn change_to(&mut self, round: usize) {
        self.write(round);
    }

    fn restart_with(&mut self, round: usize) {
        let port = self.port();
        drop(self.serving.take());
        self.write(round);
        self.serving = Some(Serving::over(of_files(&self.folder), port, None));
    }
}
