//! Substitution formats: `%REQ(x)%` and the like, compiled once (facts 2.3).
//!
//! All operators of Envoy's documents are known but those of CEL. What a request
//! and its response say is written here; for the rest [`FormatValues`] is asked.

mod arguments;
mod grpc;
mod operator;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod value;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use self::operator::Operator;
use crate::headers::Headers;
use crate::request::Request;

/// A compiled format.
#[derive(Debug, Clone)]
pub struct Format {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Literal(Box<str>),
    Operator {
        operator: Operator,
        /// The most bytes of the value.
        max: Option<usize>,
    },
}

/// The values that a format may ask for. An empty text is an absent value.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormatContext<'c> {
    /// The request as it is at this time: for a response, as it left.
    pub request: Option<Request<'c>>,
    /// The headers of the response.
    pub response: Option<&'c Headers>,
    /// The trailers of the response.
    pub trailers: Option<&'c Headers>,
    /// `HTTP/1.1`, `HTTP/2`.
    pub protocol: &'c str,
    /// The status of the response; 0 before there is one.
    pub status: u16,
    /// Why the response is what it is.
    pub details: &'c str,
    /// The response flags, such as `UC`.
    pub flags: &'c str,
    /// The address of the endpoint.
    pub upstream_host: &'c str,
    /// The name of the cluster.
    pub upstream_cluster: &'c str,
    /// The name of the route.
    pub route: &'c str,
    /// The name of the virtual host.
    pub virtual_host: &'c str,
    /// The name of the virtual cluster, which is for statistics.
    pub virtual_cluster: &'c str,
    /// The address of the client, with its port.
    pub remote: &'c str,
    /// The address that it connected to, with the port.
    pub local: &'c str,
    /// The address of the other end of the connection, whatever was told of the
    /// client.
    pub direct_remote: &'c str,
    /// The address that the connection was made to, whatever was restored.
    pub direct_local: &'c str,
    /// The address of this end of the connection to the endpoint.
    pub upstream_local: &'c str,
    /// The name that the client asked for by TLS.
    pub server_name: &'c str,
    /// When the request began, since 1970.
    pub start: Option<Duration>,
    /// The time, since 1970.
    pub now: Option<Duration>,
    /// The name of this machine.
    pub hostname: &'c str,
    /// The number of attempts.
    pub attempts: u32,
    /// The body of a reply of the proxy itself.
    pub reply_body: &'c str,
    /// Whoever knows the values of all other operators.
    pub values: Option<&'c dyn FormatValues>,
}

/// Knows values that this crate does not: of certificates, of bytes and times
/// that were counted, of metadata and filter state.
pub trait FormatValues: fmt::Debug {
    /// Returns the value of an operator, such as `DOWNSTREAM_TLS_VERSION`, with
    /// its argument; `None` if there is none.
    fn value(&self, operator: &str, argument: Option<&str>) -> Option<Cow<'_, str>>;
}

impl Format {
    /// Compiles a format.
    ///
    /// # Errors
    /// A part of the format is not an operator. The error is a sentence about
    /// it.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut remainder = text;
        while let Some(percent) = remainder.find('%') {
            literal.push_str(&remainder[..percent]);
            remainder = &remainder[percent + 1..];
            if let Some(tail) = remainder.strip_prefix('%') {
                literal.push('%');
                remainder = tail;
                continue;
            }

            let end = find_operator_end(remainder)
                .ok_or("a `%` begins an operator that does not end; write `%%`")?;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal).into()));
            }
            parts.push(parse_operator(&remainder[..end])?);
            remainder = &remainder[end + 1..];
        }
        literal.push_str(remainder);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into()));
        }
        Ok(Self { parts })
    }

    /// Writes the format with the values of the context. `absent` stands for a
    /// value that the context does not have: nothing in a header, `-` in an
    /// access log.
    #[must_use]
    pub fn write(&self, context: &FormatContext<'_>, absent: &str) -> Vec<u8> {
        let mut output = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => output.extend_from_slice(literal.as_bytes()),
                Part::Operator { operator, max } => {
                    let start = output.len();
                    operator.write(context, &mut output);
                    match output.len() - start {
                        0 => output.extend_from_slice(absent.as_bytes()),
                        length => output.truncate(start + length.min(max.unwrap_or(length))),
                    }
                }
            }
        }
        output
    }
}

/// Returns the position of the `%` that ends an operator, which is not inside
/// parentheses. Returns `None` if the operator has no end.
fn find_operator_end(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == b'%' && depth == 0
    })
}

/// Parses the text between two percent signs: a name, an argument in
/// parentheses and a maximum length, of which the last two are optional.
fn parse_operator(text: &str) -> Result<Part, String> {
    let (name, suffix) = match text.find(['(', ':']) {
        Some(position) => text.split_at(position),
        None => (text, ""),
    };
    let (argument, length_text) = match suffix.strip_prefix('(') {
        Some(inside) => {
            let (argument, after) = inside.rsplit_once(')').ok_or("a `(` is not closed")?;
            (Some(argument), after)
        }
        None => (None, suffix),
    };
    let max = match length_text.strip_prefix(':') {
        Some(number) => Some(
            number
                .parse()
                .map_err(|_| format!("{number:?} is no length"))?,
        ),
        None if length_text.is_empty() => None,
        None => return Err(format!("{length_text:?} follows an operator")),
    };

    let operator = Operator::parse(name, argument)
        .map_err(|problem| format!("the operator %{text}% {problem}"))?;
    Ok(Part::Operator { operator, max })
}
