//! The client acknowledges by itself: the order of a source's trials is its own
//! affair, and their outcome is not.

use std::collections::HashSet;

use super::super::client::Seen;
use super::super::script::Talk;
use super::Stage;

/// More responses than this are a loop.
const ENDLESS: usize = 100;

impl Stage {
    /// Acknowledges until no response comes. A resource that was NACKed alone
    /// must not come again alone (S12).
    pub(super) fn talk(&mut self, name: &str, talk: &Talk) -> Result<(), String> {
        let mut rejected = HashSet::new();
        for _ in 0..ENDLESS {
            let Some(got) = self.poll(name)? else {
                return Ok(());
            };
            let (now, line, url) = (self.now, got.line(), got.type_url);
            let alone = got.parts.len() == 1;
            let (stream, db, labels) = self.parts(name)?;
            let seen = Seen {
                nonce: got.nonce,
                version: got.version,
                parts: got.parts,
            };
            stream.client.received(&url, seen);
            let (answer, lost) = stream.client.judge(&url, talk);
            if answer.is_nack() && alone && !rejected.insert(line.clone()) {
                return Err(format!("it was rejected, and comes again:  {line}"));
            }
            if let Some(lost) = lost.iter().find(|name| talk.keeping.contains(name)) {
                return Err(format!("the client loses {lost} by  {line}"));
            }
            let (sent, result) = stream.request(db, &answer, labels, now)?;
            result.map_err(|error| error.to_string())?;
            self.note(name, sent);
        }
        Err("there is no end to what is said".to_owned())
    }
}
