//! Lines that may hold a secret, which are not shown.
//!
//! Where the text can be parsed, these are the lines of a secret resource, of
//! the fields that redaction knows, and of what is of an unknown type. Where it
//! cannot, these are all from the first mention of such a field on. A line that
//! is hidden for nothing costs little.

use std::cell::OnceCell;

use trunkline_proto::descriptor;
use trunkline_proto::redact::{is_secret_name, resembles_secret_name, sounds_secret};
use trunkline_proto::text::{Entry, Format, Limits, Node, Position, Value, parse};

/// The key of the type of a message.
const TYPE: &str = "@type";
/// The beginning of a certificate or a key.
const PEM: &str = "-----BEGIN ";

/// The lines of a text that may hold a secret.
pub(super) struct Secrets {
    /// Whether the text mentions a secret anywhere; if not, it is not parsed.
    any: bool,
    format: Format,
    /// The beginnings of all values in their order, if the text can be parsed.
    starts: OnceCell<Option<Vec<Start>>>,
}

/// The beginning of a key or a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    at: Position,
    is_secret: bool,
}

impl Secrets {
    /// Looks for secrets in a text, by the words in it.
    pub(super) fn of(name: &str, text: &str) -> Self {
        Self {
            any: mentions_secret(text),
            format: Format::of(name),
            starts: OnceCell::new(),
        }
    }

    /// Returns whether a line of the text may contain a secret. Lines count
    /// from one.
    pub(super) fn may_show_secret(&self, text: &str, number: usize, line: &str) -> bool {
        if words(line).any(resembles_secret_name) {
            return true;
        }
        if !self.any {
            return false;
        }
        let starts = self.starts.get_or_init(|| parse_starts(self.format, text));
        match starts {
            Some(starts) => is_in_secret(starts, number, line),
            None => text.lines().take(number).any(mentions_secret),
        }
    }
}

/// Parses a text, and returns the positions where values begin. Returns `None`
/// if the text cannot be parsed.
fn parse_starts(format: Format, text: &str) -> Option<Vec<Start>> {
    let documents = parse(format, "", text, &Limits::default()).ok()?;
    let mut starts = Vec::new();
    for document in &documents {
        add_starts(document, false, &mut starts);
    }
    // The values of an alias have the positions of their anchor, so they are
    // out of order.
    starts.sort_unstable();
    Some(starts)
}

/// Adds the positions where a value and all values inside it begin. The inner
/// values are secret if the value is.
fn add_starts(node: &Node, is_secret: bool, starts: &mut Vec<Start>) {
    let at = node.at;
    starts.push(Start { at, is_secret });
    match &node.value {
        Value::List(items) => {
            for item in items {
                add_starts(item, is_secret, starts);
            }
        }
        Value::Map(entries) => {
            let is_hidden = has_hidden_type(node) || is_secret_pair(entries);
            for entry in entries {
                let is_type = entry.key == TYPE;
                let is_secret = is_secret || (is_hidden && !is_type) || is_secret_entry(entry);
                let at = entry.at;
                starts.push(Start { at, is_secret });
                add_starts(&entry.node, is_secret, starts);
            }
        }
        _ => {}
    }
}

/// Returns whether the value of an entry may be secret: its key is the name of a
/// secret field, or sounds secret. One that is the name of another field says
/// nothing of the mapping under it, such as `token_bucket`.
fn is_secret_entry(entry: &Entry) -> bool {
    let is_text = matches!(entry.node.value, Value::String(_));
    let sounds = sounds_secret(&entry.key) && (is_text || !descriptor::is_field_name(&entry.key));
    is_secret_name(&entry.key) || sounds
}

/// Returns whether a mapping is a pair, such as a header, whose name sounds
/// secret.
fn is_secret_pair(entries: &[Entry]) -> bool {
    let mut names = entries.iter().filter(|entry| entry.key == "key");
    names.any(|entry| match &entry.node.value {
        Value::String(name) => sounds_secret(name),
        _ => false,
    })
}

/// Returns whether a mapping is a secret resource, or has a type that is
/// unknown here and so may be secret.
fn has_hidden_type(node: &Node) -> bool {
    let Value::Map(entries) = &node.value else {
        return false;
    };
    let type_urls = entries.iter().filter_map(|entry| match &entry.node.value {
        Value::String(url) if [TYPE, "type_url", "typeUrl"].contains(&entry.key.as_str()) => {
            Some(url)
        }
        _ => None,
    });
    let is_hidden = |url: &String| {
        let is_known = descriptor::message(url).is_some();
        !is_known || descriptor::full_name(url) == descriptor::full_name(descriptor::types::SECRET)
    };
    type_urls.into_iter().any(is_hidden)
}

/// Returns whether a secret value begins in a line, or continues there from a
/// line before.
fn is_in_secret(starts: &[Start], number: usize, line: &str) -> bool {
    let first = starts.partition_point(|start| start.at.line < number);
    let end = starts.partition_point(|start| start.at.line <= number);
    let line_starts = &starts[first..end];
    if line_starts.iter().any(|start| start.is_secret) {
        return true;
    }
    let follows_secret = starts[..first].last().is_some_and(|start| start.is_secret);
    follows_secret
        && !line_starts
            .first()
            .is_some_and(|start| begins_line(start.at, line))
}

/// Returns whether nothing but punctuation stands before a place in its line.
fn begins_line(position: Position, line: &str) -> bool {
    let mut prefix = line.chars().take(position.column.saturating_sub(1));
    prefix.all(|c| c.is_whitespace() || "-{}[],?\"'".contains(c))
}

/// Returns whether a text names a secret field, or has a secret resource or a
/// certificate in it, or something of an unknown type.
fn mentions_secret(text: &str) -> bool {
    words(text).any(is_secret_name)
        || text.lines().any(sounds_secret)
        || text.contains(PEM)
        || text.contains(descriptor::full_name(descriptor::types::SECRET))
        || text.contains("TypedStruct")
}

/// Returns the words of a text that may be the names of fields.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: tls
  tls_certificate:
    private_key:
      inline_string: |
        -----BEGIN PRIVATE KEY-----
        swordfish
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: backend
  connect_timeout: 1s
  pasword: swordfish
"#;

    fn hidden(name: &str, text: &str) -> Vec<usize> {
        let secrets = Secrets::of(name, text);
        let lines = text.lines().zip(1..);
        let hidden = lines.filter(|(line, number)| secrets.may_show_secret(text, *number, line));
        hidden.map(|(_, number)| number).collect()
    }

    #[test]
    fn a_secret_resource_and_a_slip_for_a_secret_field_are_hidden() {
        assert_eq!(hidden("a.yaml", TEXT), [2, 3, 4, 5, 6, 7, 8, 12]);
    }

    #[test]
    fn a_text_that_cannot_be_parsed_is_hidden_from_the_first_mention_on() {
        let broken = TEXT.replace("  name: backend", "  name: [backend");
        assert_eq!(hidden("a.yaml", &broken), Vec::from_iter(2..=12));
        let broken = "a: [\nb: c\npassword: swordfish\nd: e\n";
        assert_eq!(hidden("a.yaml", broken), [3, 4]);
    }

    #[test]
    fn headers_and_metadata_that_sound_secret_are_hidden() {
        let text = r#"request_headers_to_add:
- header:
    key: Authorization
    value: swordfish
- header: {key: x-plain, value: shown}
metadata:
  filter_metadata:
    mine: {shown: 1}
    other:
      apiToken: swordfish
    credentials:
      a: swordfish
token_bucket:
  max_tokens: 1
  fill_interval: 1s
"#;
        assert_eq!(hidden("a.yaml", text), [3, 4, 10, 11, 12]);
    }

    #[test]
    fn a_text_without_secrets_is_shown() {
        let text = TEXT.lines().skip(8).take(3).collect::<Vec<_>>().join("\n");
        assert_eq!(hidden("a.yaml", &format!("resources:\n{text}")), [0; 0]);
    }

    #[test]
    fn json_that_is_not_indented_is_hidden_too() {
        let text = "{\"private_key\":\n{\"inline_string\":\n\"swordfish\"\n},\n\"name\": \"a\"}";
        assert_eq!(hidden("a.json", text), [1, 2, 3, 4]);
    }
}
