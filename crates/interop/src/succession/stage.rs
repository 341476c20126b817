//! A server whose contents go from round to round.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use trunkline::checked::{Form, Item, decode};
use trunkline::{ResourceMessage, Server, wire};

use super::contents::{Peer, Step};
use super::endpoints::Endpoints;
use super::play::Scene;
use crate::{Serving, folder, of_files, of_store};

/// The origin of contents that are kept.
const ORIGIN: &str = "stage";

/// Trunkline, the contents that it is given, and an endpoint for each round.
#[derive(Debug)]
pub struct Stage {
    step: Step,
    peer: Peer,
    endpoints: Endpoints,
    folder: PathBuf,
    from: From,
    serving: Option<Serving>,
}

/// Where a server has its contents from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// A file, which says nothing of the rounds before.
    File,
    /// A store, whose history has the rounds before.
    Store,
}

impl Stage {
    /// A server of round 0, that can go on to so many others.
    #[must_use]
    pub fn new(step: Step, peer: Peer, rounds: usize) -> Self {
        Self::begin(step, peer, Endpoints::start(peer, rounds), From::File)
    }

    /// The same with contents that are kept by a store. Those of a restart come
    /// while no client can reach the server.
    #[must_use]
    pub fn kept(step: Step, peer: Peer, rounds: usize) -> Self {
        Self::begin(step, peer, Endpoints::start(peer, rounds), From::Store)
    }

    /// The same before gRPC servers that are processes of this program.
    ///
    /// # Panics
    ///
    /// When one does not listen.
    #[must_use]
    pub fn with_servers(step: Step, program: &Path, rounds: usize) -> Self {
        Self::begin(
            step,
            Peer::Grpc,
            Endpoints::run(program, rounds),
            From::File,
        )
    }

    fn begin(step: Step, peer: Peer, endpoints: Endpoints, from: From) -> Self {
        let mut stage = Self {
            step,
            peer,
            endpoints,
            folder: folder("stage"),
            from,
            serving: None,
        };
        stage.start(0, 0);
        stage
    }

    fn serving(&self) -> &Serving {
        let serving = self.serving.as_ref();
        serving.unwrap_or_else(|| panic!("a stage without a server"))
    }

    /// Gives the contents of a round to a server that does not run yet, and
    /// starts it.
    fn start(&mut self, round: usize, port: u16) {
        self.serving = Some(match self.from {
            From::File => {
                self.write(round);
                Serving::over(of_files(&self.folder), port, None)
            }
            From::Store => {
                keep(&self.folder, &self.text(round));
                Serving::kept(&self.folder, port)
            }
        });
    }

    fn text(&self, round: usize) -> String {
        let at = self.endpoints.address(round);
        self.step.contents(self.peer, round, at)
    }

    /// A new file takes the name of the old one, so that no half of it is read.
    fn write(&self, round: usize) {
        let text = self.text(round);
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
        match self.from {
            From::File => self.write(round),
            From::Store => set(&self.serving().server, &self.text(round)),
        }
    }

    fn restart_with(&mut self, round: usize) {
        let port = self.port();
        drop(self.serving.take());
        self.start(round, port);
    }
}

/// Changes what a store has kept, by a server that nobody can reach.
fn keep(folder: &Path, text: &str) {
    let (builder, restore) = of_store(folder);
    let server = builder.build();
    restore(&server);
    set(&server, text);
}

/// Makes the contents of a server those of a text.
fn set(server: &Server, text: &str) {
    let name = "all.yaml".into();
    let decoded = decode(
        &name,
        Form::ByName,
        Cursor::new(text),
        &wire::text_options(),
    );
    let decoded = decoded.unwrap_or_else(|error| panic!("not readable contents: {error}"));
    assert_eq!(decoded.errors, [], "{text}");
    let message = |item: Item| {
        let body = item.resource.body.clone();
        ResourceMessage::encoded(&item.type_url, body.unwrap_or_default())
    };
    let set = server.set(ORIGIN, decoded.document.items.into_iter().map(message));
    set.unwrap_or_else(|error| panic!("not sound contents: {error}"));
}
