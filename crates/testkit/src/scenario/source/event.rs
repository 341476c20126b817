//! Events: what a session reports, compared with what a line expects.

use std::collections::HashMap;

use trunkline_core::resource::Version;
use trunkline_core::session::{Event, ProtocolError, Refusal};

use super::super::client::{Labels, find};
use super::super::contents::short;
use super::Stage;

/// The body that each version stands for.
pub(super) type Bodies = HashMap<Version, String>;

impl Stage {
    /// An event must have happened that was not expected yet. ACKs and NACKs
    /// before it may be passed over.
    pub(super) fn event(&mut self, name: &str, words: &[String]) -> Result<(), String> {
        self.take_edges();
        let wanted = words.join(" ");
        if matches!(words.first().map(String::as_str), Some("first" | "last")) {
            let found = self.edges.iter().position(|edge| *edge == wanted);
            let found = found.ok_or_else(|| format!("there were only {:?}", self.edges))?;
            self.edges.remove(found);
            return Ok(());
        }
        let mut passed = Vec::new();
        loop {
            let (stream, _, labels) = self.parts(name)?;
            let labels = labels.clone();
            let Some(event) = stream.events.pop_front() else {
                return Err(format!("expected  ! {wanted}\ngot       {passed:?}"));
            };
            let shown = describe(&event, &self.bodies);
            if matches(&event, &shown, words, &labels)? {
                return Ok(());
            }
            if must_be_heard(&event) {
                return Err(format!(
                    "expected  ! {wanted}\ngot       ! {}",
                    shown.join(" ")
                ));
            }
            passed.push(shown.join(" "));
        }
    }

    /// Fails if something happened that a scenario may not pass over.
    pub(super) fn no_unheard_event(&mut self, name: &str) -> Result<(), String> {
        let (stream, ..) = self.parts(name)?;
        let unheard = stream
            .events
            .iter()
            .find(|event| must_be_heard(event))
            .cloned();
        match unheard {
            None => Ok(()),
            Some(event) => {
                let shown = describe(&event, &self.bodies).join(" ");
                Err(format!("unexpected  ! {shown}"))
            }
        }
    }
}

fn must_be_heard(event: &Event) -> bool {
    !matches!(event, Event::Acked { .. } | Event::Nacked { .. })
}

/// An event in words: what, which type, and the rest.
fn describe(event: &Event, bodies: &Bodies) -> Vec<String> {
    match event {
        Event::Acked { type_url, .. } => vec!["acked".into(), short(type_url)],
        Event::Nacked {
            type_url, error, ..
        } => vec![
            "nacked".into(),
            short(type_url),
            format!("\"{}\"", error.message),
        ],
        Event::Quarantined {
            type_url,
            name,
            version,
            ..
        } => {
            let body = bodies.get(version).map_or("?", String::as_str);
            vec!["parked".into(), short(type_url), format!("{name}@{body}")]
        }
        Event::Withheld { type_url, name, .. } => {
            vec!["withheld".into(), short(type_url), name.to_string()]
        }
        Event::Stale { type_url, .. } => vec!["stale".into(), short(type_url)],
        Event::Refused {
            type_url,
            reason,
            names,
        } => {
            let count = (*names > 1).then(|| format!("x{names}"));
            let words = [
                "refused".into(),
                short(type_url),
                refusal(reason).to_owned(),
            ];
            words.into_iter().chain(count).collect()
        }
        Event::NodeChanged { .. } => vec!["node".into()],
    }
}

/// Whether a line means this event. The text of a NACK may be left out, and an
/// ACK may be named by the label of its response.
fn matches(
    event: &Event,
    shown: &[String],
    words: &[String],
    labels: &Labels,
) -> Result<bool, String> {
    let nonce = match event {
        Event::Acked { nonce, .. } | Event::Nacked { nonce, .. } | Event::Stale { nonce, .. } => {
            nonce
        }
        _ => return Ok(shown == words),
    };
    if words.len() < 2 || shown[..2] != words[..2] {
        return Ok(false);
    }
    for word in &words[2..] {
        let same = match word.starts_with('"') {
            true => shown.contains(word),
            false => find(labels, word)?.nonce == *nonce,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn refusal(reason: &Refusal) -> &'static str {
    match reason {
        Refusal::Name(_) => "name",
        Refusal::Subscriptions { .. } => "subscriptions",
        Refusal::Memory => "memory",
        Refusal::Hosts { .. } => "hosts",
        Refusal::Globs { .. } => "globs",
        Refusal::Types { .. } => "types",
        Refusal::Params { .. } => "params",
        Refusal::SubscriptionBytes { .. } => "subscription-bytes",
        Refusal::MissingBytes { .. } => "missing-bytes",
        Refusal::AllParams { .. } => "all-params",
        Refusal::AllTypes { .. } => "all-types",
    }
}

pub(super) fn error_kind(error: &ProtocolError) -> &'static str {
    match error {
        ProtocolError::NoType => "no-type",
        ProtocolError::WrongType { .. } => "wrong-type",
        ProtocolError::WrongMode => "wrong-mode",
    }
}
