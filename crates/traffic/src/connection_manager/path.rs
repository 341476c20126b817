//! Normalisation of paths, before they are matched (facts 1.5).
//!
//! The query is never touched. The order is Envoy's: a fragment is refused,
//! escaped slashes come next, then dot segments and needless escapes, and then
//! slashes that follow each other.

use std::borrow::Cow;

use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::PathWithEscapedSlashesAction as Action;

use crate::request::split_query;

/// How paths are normalised.
#[derive(Debug, Clone, Copy)]
pub struct PathPolicy {
    normalises: bool,
    merges_slashes: bool,
    escaped_slashes: EscapedSlashes,
}

/// What is done with `%2F` and `%5C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EscapedSlashes {
    Keep,
    Reject,
    Redirect,
    Forward,
}

/// What becomes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NormalisedPath<'p> {
    /// The request goes on with this path.
    Path(Cow<'p, str>),
    /// The client is redirected to this path, by a 307.
    Redirect(String),
    /// The request is refused, by a 400.
    Refused,
}

impl PathPolicy {
    pub(super) fn compile(message: &HttpConnectionManager) -> Self {
        let action = message.path_with_escaped_slashes_action();
        Self {
            normalises: message.normalize_path.is_some_and(|is_on| is_on.value),
            merges_slashes: message.merge_slashes,
            escaped_slashes: match action {
                Action::ImplementationSpecificDefault | Action::KeepUnchanged => {
                    EscapedSlashes::Keep
                }
                Action::RejectRequest => EscapedSlashes::Reject,
                Action::UnescapeAndRedirect => EscapedSlashes::Redirect,
                Action::UnescapeAndForward => EscapedSlashes::Forward,
            },
        }
    }

    /// Normalises a path with its query.
    #[must_use]
    pub fn apply<'p>(&self, path: &'p str) -> NormalisedPath<'p> {
        if path.contains('#') {
            return NormalisedPath::Refused;
        }
        let (bare, query) = split_query(path);
        let mut new = Cow::Borrowed(bare);
        let mut is_redirect = false;
        if self.escaped_slashes != EscapedSlashes::Keep
            && let Some(unescaped) = unescape_slashes(bare)
        {
            if self.escaped_slashes == EscapedSlashes::Reject {
                return NormalisedPath::Refused;
            }
            is_redirect = self.escaped_slashes == EscapedSlashes::Redirect;
            new = Cow::Owned(unescaped);
        }
        if self.normalises {
            match canonical(&new) {
                Some(canonical) if canonical != *new => new = Cow::Owned(canonical),
                Some(_) => {}
                None => return NormalisedPath::Refused,
            }
        }
        if self.merges_slashes && new.contains("//") {
            new = Cow::Owned(merge_slashes(&new));
        }
        match new {
            Cow::Borrowed(_) => NormalisedPath::Path(Cow::Borrowed(path)),
            Cow::Owned(mut new) => {
                if let Some(query) = query {
                    new.push('?');
                    new.push_str(query);
                }
                match is_redirect {
                    true => NormalisedPath::Redirect(new),
                    false => NormalisedPath::Path(Cow::Owned(new)),
                }
            }
        }
    }
}

/// Decodes escaped slashes; `None` if there is none.
fn unescape_slashes(path: &str) -> Option<String> {
    let mut out = String::with_capacity(path.len());
    let mut remainder = path;
    while let Some(at) = remainder.find('%') {
        out.push_str(&remainder[..at]);
        let slash = match remainder.get(at + 1..at + 3) {
            Some("2F" | "2f") => Some('/'),
            Some("5C" | "5c") => Some('\\'),
            _ => None,
        };
        out.push(slash.unwrap_or('%'));
        remainder = &remainder[at + if slash.is_some() { 3 } else { 1 }..];
    }
    out.push_str(remainder);
    (out.len() != path.len()).then_some(out)
}

/// Resolves dot segments, decodes escapes of unreserved characters, and writes
/// a backslash as a slash. `None` if the path has an escaped NUL.
fn canonical(path: &str) -> Option<String> {
    let mut segments: Vec<String> = Vec::new();
    let mut is_directory = false;
    let parts: Vec<&str> = path.split(['/', '\\']).skip(1).collect();
    for part in parts {
        let segment = unescape_segment(part)?;
        is_directory = matches!(segment.as_str(), "." | "..");
        match segment.as_str() {
            "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    if is_directory {
        segments.push(String::new());
    }
    let mut out = String::with_capacity(path.len());
    for segment in &segments {
        out.push('/');
        out.push_str(segment);
    }
    match out.is_empty() {
        true => Some("/".to_owned()),
        false => Some(out),
    }
}

fn unescape_segment(segment: &str) -> Option<String> {
    let mut out = String::with_capacity(segment.len());
    let mut remainder = segment;
    while let Some(at) = remainder.find('%') {
        push_escaped(&remainder[..at], &mut out);
        let digits = remainder.get(at + 1..at + 3);
        let code = digits.and_then(|digits| match digits.starts_with('+') {
            true => None,
            false => u8::from_str_radix(digits, 16).ok(),
        });
        match code {
            Some(0) => return None,
            Some(code) if is_unreserved(code) => out.push(char::from(code)),
            Some(_) => out.push_str(&remainder[at..at + 3]),
            None => out.push('%'),
        }
        remainder = &remainder[at + if code.is_some() { 3 } else { 1 }..];
    }
    push_escaped(remainder, &mut out);
    Some(out)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Writes a text in which characters that no URL may have are escaped.
fn push_escaped(text: &str, output: &mut String) {
    for byte in text.bytes() {
        match byte {
            0..=b' ' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | 0x7f.. => {
                output.push_str(&format!("%{byte:02X}"));
            }
            _ => output.push(char::from(byte)),
        }
    }
}

/// Makes one slash of several. A path of nothing else keeps two, as in Envoy.
fn merge_slashes(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let start = if path.starts_with('/') { "/" } else { "" };
    let end = if path.ends_with('/') { "/" } else { "" };
    format!("{start}{}{end}", segments.join("/"))
}
