//! Faults: streams break, readers stall, processes restart.

use trunkline_core::database::Database;

use super::client::Client;
use super::relay::Relay;
use super::{Role, World, has_parts};

impl World {
    /// A stream is lost with all messages on it.
    pub(super) fn break_stream(&mut self, index: usize) {
        let Some(link) = self.children[index].link.take() else {
            return;
        };
        let parent = self.children[index].parent;
        self.with_parent(parent, |db| link.session.close(db));
        self.hang_up(index);
        self.note("break", index);
        self.tell(|| format!("stream of {index} breaks"));
    }

    fn hang_up(&mut self, index: usize) {
        match &mut self.children[index].role {
            Role::Client(client) => client.disconnected(),
            Role::Relay(relay) => relay.disconnected(),
        }
    }

    /// The child stops reading, or reads again.
    pub(super) fn stall(&mut self, index: usize) {
        if let Some(link) = &mut self.children[index].link {
            link.stalled = !link.stalled;
        }
    }

    /// The server or a process below it begins anew.
    pub(super) fn restart(&mut self) {
        match self.rng.usize(0..=self.children.len()).checked_sub(1) {
            None => self.restart_server(),
            Some(index) => self.restart_child(index),
        }
    }

    fn restart_server(&mut self) {
        self.lose_streams_of(None);
        self.server = Database::new();
        #[expect(clippy::expect_used, reason = "the operator writes no variants")]
        self.server
            .apply(self.contents.load())
            .expect("sound contents");
        self.note("restart", usize::MAX);
        self.tell(|| "server restarts".to_owned());
    }

    fn restart_child(&mut self, index: usize) {
        self.break_stream(index);
        self.lose_streams_of(Some(index));
        let now = self.now;
        let child = &mut self.children[index];
        match &mut child.role {
            Role::Client(client) => {
                **client = Client::new(index, client.mode, client.habit, client.rejects_whole);
                client.want(now);
            }
            Role::Relay(relay) => {
                **relay = Relay::new(index, child.mode, has_parts(&child.limits));
            }
        }
        self.note("restart", index);
        self.tell(|| format!("{index} restarts"));
    }

    /// The process has ended: its children's streams end, and nothing is
    /// closed.
    fn lose_streams_of(&mut self, parent: Option<usize>) {
        for index in 0..self.children.len() {
            if self.children[index].parent == parent && self.children[index].link.take().is_some() {
                self.hang_up(index);
            }
        }
    }
}
