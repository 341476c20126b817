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
    /// Reads how the connection manager normalises paths.
    pub(super) fn compile(message: &HttpConnectionManager) -> Self {
        let action = message.path_with_escaped_slashes_action();
        Self {
            normalises: message.normalize_path.is_some_and(|flag| flag.value),
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

    /// Normalises a path and keeps its query. The result says whether to refuse
    /// the request, to redirect it, or to use the path.
    #[must_use]
    pub fn apply<'p>(&self, path: &'p str) -> NormalisedPath<'p> {
        if path.contains('#') {
            return NormalisedPath::Refused;
        }
        let (plain_path, query) = split_query(path);
        let mut new_path = Cow::Borrowed(plain_path);

        let mut is_redirect = false;
        if self.escaped_slashes != EscapedSlashes::Keep
            && let Some(unescaped) = unescape_slashes(plain_path)
        {
            if self.escaped_slashes == EscapedSlashes::Reject {
                return NormalisedPath::Refused;
            }
            is_redirect = self.escaped_slashes == EscapedSlashes::Redirect;
            new_path = Cow::Owned(unescaped);
        }

        if self.normalises {
            match canonicalise(&new_path) {
                Some(canonical) if canonical != *new_path => new_path = Cow::Owned(canonical),
                Some(_) => {}
                None => return NormalisedPath::Refused,
            }
        }
        if self.merges_slashes && new_path.contains("//") {
            new_path = Cow::Owned(merge_slashes(&new_path));
        }

        match new_path {
            Cow::Borrowed(_) => NormalisedPath::Path(Cow::Borrowed(path)),
            Cow::Owned(mut changed_path) => {
                if let Some(query) = query {
                    changed_path.push('?');
                    changed_path.push_str(query);
                }
                match is_redirect {
                    true => NormalisedPath::Redirect(changed_path),
                    false => NormalisedPath::Path(Cow::Owned(changed_path)),
                }
            }
        }
    }
}

/// Decodes escaped slashes and backslashes. Returns `None` if the path has
/// none.
fn unescape_slashes(path: &str) -> Option<String> {
    let mut unescaped = String::with_capacity(path.len());
    let mut remainder = path;
    while let Some(percent) = remainder.find('%') {
        unescaped.push_str(&remainder[..percent]);
        let slash = match remainder.get(percent + 1..percent + 3) {
            Some("2F" | "2f") => Some('/'),
            Some("5C" | "5c") => Some('\\'),
            _ => None,
        };
        unescaped.push(slash.unwrap_or('%'));
        remainder = &remainder[percent + if slash.is_some() { 3 } else { 1 }..];
    }
    unescaped.push_str(remainder);
    (unescaped.len() != path.len()).then_some(unescaped)
}

/// Resolves dot segments, decodes escapes of unreserved characters, and
/// replaces backslashes by slashes. Returns `None` if the path has an escaped
/// NUL.
fn canonicalise(path: &str) -> Option<String> {
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

    let mut canonical = String::with_capacity(path.len());
    for segment in &segments {
        canonical.push('/');
        canonical.push_str(segment);
    }
    match canonical.is_empty() {
        true => Some("/".to_owned()),
        false => Some(canonical),
    }
}

/// Decodes the escapes of unreserved characters in a segment, and escapes
/// characters that no URL may have. Returns `None` for an escaped NUL.
fn unescape_segment(segment: &str) -> Option<String> {
    let mut unescaped = String::with_capacity(segment.len());
    let mut remainder = segment;
    while let Some(percent) = remainder.find('%') {
        push_escaped(&remainder[..percent], &mut unescaped);
        let digits = remainder.get(percent + 1..percent + 3);
        let code = digits.and_then(|digits| match digits.starts_with('+') {
            true => None,
            false => u8::from_str_radix(digits, 16).ok(),
        });
        match code {
            Some(0) => return None,
            Some(code) if is_unreserved(code) => unescaped.push(char::from(code)),
            Some(_) => unescaped.push_str(&remainder[percent..percent + 3]),
            None => unescaped.push('%'),
        }
        remainder = &remainder[percent + if code.is_some() { 3 } else { 1 }..];
    }

    push_escaped(remainder, &mut unescaped);
    Some(unescaped)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Appends a text, and escapes the characters that no URL may have.
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

/// Makes one slash of several in a row. A path of nothing but slashes becomes two,
/// as in Envoy.
fn merge_slashes(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let start = if path.starts_with('/') { "/" } else { "" };
    let end = if path.ends_with('/') { "/" } else { "" };
    format!("{start}{}{end}", segments.join("/"))
}
