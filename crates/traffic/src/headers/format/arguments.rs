//! The arguments of operators.

use trunkline_proto::text::{self, Limits, Node, Value};

use super::operator::{Limited, Operator};

/// Where the path of a request is taken from, or its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// As the client sent it, if it was rewritten.
    Original,
    /// As it is.
    Current,
    /// As the client sent it, or else as it is.
    Either,
}

impl Source {
    /// Parses a source. `current` is the word for the present value of the
    /// request.
    pub(super) fn parse(text: &str, current: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::Either),
            "ORIG" => Ok(Self::Original),
            text if text == current => Ok(Self::Current),
            text if text.strip_prefix("ORIG_OR_") == Some(current) => Ok(Self::Either),
            _ => Err(format!("cannot have {text:?}")),
        }
    }
}

/// Splits `X:Y`.
pub(super) fn pair(argument: Option<&str>) -> (&str, &str) {
    let text = argument.unwrap_or_default();
    text.split_once(':').unwrap_or((text, ""))
}

/// Parses the name of a header, and that of an alternative after a `?`, and
/// converts both to lower case.
pub(super) fn parse_names(argument: Option<&str>) -> Result<[Option<Box<str>>; 2], String> {
    let argument_text = argument.ok_or("needs the name of a header")?;
    let lower = |name: &str| Some(name.to_ascii_lowercase().into());
    Ok(match argument_text.split_once('?') {
        Some((name, alternative)) => [lower(name), lower(alternative)],
        None => [lower(argument_text), None],
    })
}

/// Parses the prefix length of the network to which an address is masked.
pub(super) fn parse_mask(argument: Option<&str>) -> Result<Option<u8>, String> {
    let Some(text) = argument else {
        return Ok(None);
    };
    let length = text.parse().ok().filter(|length| *length <= 128);
    length
        .map(Some)
        .ok_or_else(|| format!("cannot have {text:?}, which is no length of a network"))
}

/// Parses the operators of `COALESCE`, each with the maximum length of its
/// value.
pub(super) fn parse_operators(argument: Option<&str>) -> Result<Box<[Limited]>, String> {
    const SHAPE: &str = "needs a JSON object with `operators`";
    let json = argument.ok_or(SHAPE)?;
    let documents = text::parse(text::Format::Json, "COALESCE", json, &Limits::default())
        .map_err(|error| error.to_string())?;
    let root = documents.first().ok_or(SHAPE)?;
    let Some(Value::List(items)) = entry_value(root, "operators") else {
        return Err(SHAPE.to_owned());
    };
    items.iter().map(parse_operator).collect()
}

/// Parses an operator of `COALESCE`: its name, or an object with `command`,
/// `param` and `max_length`.
fn parse_operator(node: &Node) -> Result<Limited, String> {
    if let Value::String(name) = &node.value {
        return Ok((Operator::parse(name, None)?, None));
    }
    let text = |key| match entry_value(node, key) {
        Some(Value::String(value)) => Some(value.as_str()),
        _ => None,
    };

    let name = text("command").ok_or("needs `command` in each operator")?;
    let max = match entry_value(node, "max_length") {
        Some(Value::Number(number)) => {
            let invalid_length = |_| format!("cannot have the length {number}");
            Some(number.parse().map_err(invalid_length)?)
        }
        _ => None,
    };
    Ok((Operator::parse(name, text("param"))?, max))
}

/// Returns the value at a key of a JSON object. Returns `None` if the node is
/// not an object, or does not have the key.
fn entry_value<'n>(node: &'n Node, key: &str) -> Option<&'n Value> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let mut entries = entries.iter();
    let entry = entries.find(|entry| entry.key == key)?;
    Some(&entry.node.value)
}
