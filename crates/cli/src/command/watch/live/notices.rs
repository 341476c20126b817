//! What happens to connections, in sentences.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use trunkline::client::{ClientEvent, Observer, StreamInfo};
use trunkline_proto::redact;

use crate::command::control_plane::Servers;

/// How many notices wait to be told.
const WAITING: usize = 1024;

/// Something that happened to a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Connecting(String),
    Connected(String),
    Disconnected(String, String),
    /// A server has sent what could not be used, or even read; why.
    Bad(String, String),
}

/// An observer that puts notices into a queue. One that has no room is left
/// out: an observer does not wait.
pub(super) struct Narrator(mpsc::Sender<Notice>);

/// Makes a narrator and its queue.
pub(super) fn notices() -> (Narrator, mpsc::Receiver<Notice>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Narrator(sender), receiver)
}

impl Observer for Narrator {
    /// Sends a notice about the connection to a server, or about a response
    /// with a mistake. Other events have no notice.
    fn observe(&self, event: &ClientEvent<'_>) {
        let server = |stream: &StreamInfo| stream.server.address.to_string();

        let notice = match event {
            ClientEvent::Connecting(stream) => Notice::Connecting(server(stream)),
            ClientEvent::Connected(stream) => Notice::Connected(server(stream)),
            ClientEvent::Disconnected(stream, reason) => {
                Notice::Disconnected(server(stream), (*reason).to_owned())
            }
            ClientEvent::Fault(stream, error) => Notice::Bad(server(stream), error.to_string()),
            ClientEvent::Judged {
                stream, verdict, ..
            } => {
                // A rejected resource with a name is reported as an event of
                // the name.
                let mut rejected = verdict.rejected.iter();
                let Some(nameless_rejection) = rejected.find(|rejection| rejection.name.is_none())
                else {
                    return;
                };
                let reason = redact::quoted(&nameless_rejection.reason);
                let message = format!("a resource without a name was rejected: {reason}");
                Notice::Bad(server(stream), message)
            }
            _ => return,
        };
        // A notice is dropped if the reader is too slow for it.
        let _ = self.0.try_send(notice);
    }
}

/// How the connection to a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    New,
    Up,
    /// It was lost, or was never there; that was told.
    Down,
}

/// The connections to all servers, as they were told.
pub(super) struct Connections {
    given_servers: Servers,
    /// The first answer is the last: nothing is tried again.
    is_once: bool,
    links: BTreeMap<String, Link>,
}

impl Connections {
    /// Makes the record of the servers before the first connection.
    pub(super) fn new(given_servers: Servers, is_once: bool) -> Self {
        Self {
            given_servers,
            is_once,
            links: BTreeMap::new(),
        }
    }

    /// Returns the servers that were given, for people.
    pub(super) fn servers(&self) -> &str {
        &self.given_servers.shown
    }

    /// Returns what to look at if no server can be reached.
    pub(super) fn hint(&self) -> &'static str {
        self.given_servers.hint
    }

    /// Records a notice, and returns its sentence for the user. Returns `None`
    /// for an attempt that fails like the previous one.
    pub(super) fn describe_notice(&mut self, notice: Notice) -> Option<String> {
        match notice {
            Notice::Connecting(server) => self.describe_attempt(server),
            Notice::Connected(server) => {
                let previous_link = self.links.insert(server.clone(), Link::Up);
                match previous_link {
                    Some(Link::Up) => None,
                    Some(Link::Down) => Some(format!("connected to {server} again")),
                    Some(Link::New) | None => Some(format!("connected to {server}")),
                }
            }
            Notice::Disconnected(server, reason) => self.describe_loss(server, &reason),
            Notice::Bad(server, problem) => Some(format!("warning: {server}: {problem}")),
        }
    }

    /// Records the first attempt to connect to a server, and returns its
    /// sentence. Returns `None` for a later attempt.
    fn describe_attempt(&mut self, server: String) -> Option<String> {
        if self.links.contains_key(&server) {
            return None;
        }
        let is_down = |link: &Link| *link == Link::Down;
        let is_fallback = self.links.values().any(is_down);
        let sentence = match is_fallback {
            true => format!("falling back to {server}"),
            false => format!("connecting to {server}"),
        };
        self.links.insert(server, Link::New);
        Some(sentence)
    }

    /// Records the end of a connection or of an attempt, and returns its
    /// sentence. Returns `None` if the connection was down before.
    fn describe_loss(&mut self, server: String, reason: &str) -> Option<String> {
        let previous_link = self.links.insert(server.clone(), Link::Down);
        let event = match previous_link {
            Some(Link::Down) => return None,
            Some(Link::Up) => "the connection is lost",
            Some(Link::New) | None => "no connection",
        };
        Some(match (self.is_once, previous_link) {
            (true, _) => format!("{server}: {event}: {reason}"),
            (false, Some(Link::Up)) => format!("{server}: {event}, trying again: {reason}"),
            (false, _) => {
                let hint = self.given_servers.hint;
                format!("{server}: {event}, trying again: {reason} ({hint})")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(is_once: bool) -> Connections {
        let given = Servers {
            shown: "a, b".into(),
            hint: "look there",
        };
        Connections::new(given, is_once)
    }

    #[test]
    fn each_change_of_a_connection_is_told_once() {
        let mut all = connections(false);
        let lost = || Notice::Disconnected("a".into(), "refused".into());
        let mut tell = |notice| all.describe_notice(notice).unwrap_or_default();
        assert_eq!(tell(Notice::Connecting("a".into())), "connecting to a");
        assert_eq!(
            tell(lost()),
            "a: no connection, trying again: refused (look there)"
        );
        assert_eq!(tell(Notice::Connecting("a".into())), "");
        assert_eq!(tell(lost()), "");
        assert_eq!(tell(Notice::Connecting("b".into())), "falling back to b");
        assert_eq!(tell(Notice::Connected("b".into())), "connected to b");
        assert_eq!(tell(Notice::Connected("a".into())), "connected to a again");
        assert_eq!(tell(Notice::Connected("a".into())), "");
        assert_eq!(
            tell(lost()),
            "a: the connection is lost, trying again: refused"
        );
    }

    #[test]
    fn what_is_tried_once_is_not_tried_again() {
        let mut all = connections(true);
        let lost = Notice::Disconnected("a".into(), "refused".into());
        assert_eq!(
            all.describe_notice(lost).as_deref(),
            Some("a: no connection: refused")
        );
    }
}
