//! Substitution formats: `%REQ(x)%` and the like, compiled once (facts 2.3).
//!
//! An operator that is not known here is refused, with those that Envoy knows
//! and that need something which is not at hand in this crate.

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
        /// The most characters of the value.
        max: Option<usize>,
    },
}

#[derive(Debug, Clone)]
enum Operator {
    /// A header of the request, or else another one.
    Request(Box<str>, Option<Box<str>>),
    /// A header of the response, or else another one.
    Response(Box<str>, Option<Box<str>>),
    Field(Field),
}

/// Values beside headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Protocol,
    ResponseCode,
    ResponseCodeDetails,
    ResponseFlags,
    UpstreamHost,
    UpstreamCluster,
    RouteName,
    VirtualHost,
    VirtualCluster,
    Remote,
    RemoteAddress,
    Local,
    LocalAddress,
    LocalPort,
    Hostname,
    AttemptCount,
    ReplyBody,
}

/// The operators without arguments.
const FIELDS: &[(&str, Field)] = &[
    ("PROTOCOL", Field::Protocol),
    ("RESPONSE_CODE", Field::ResponseCode),
    ("RESPONSE_CODE_DETAILS", Field::ResponseCodeDetails),
    ("RESPONSE_FLAGS", Field::ResponseFlags),
    ("UPSTREAM_HOST", Field::UpstreamHost),
    ("UPSTREAM_CLUSTER", Field::UpstreamCluster),
    ("ROUTE_NAME", Field::RouteName),
    ("VIRTUAL_HOST_NAME", Field::VirtualHost),
    ("VIRTUAL_CLUSTER_NAME", Field::VirtualCluster),
    ("DOWNSTREAM_REMOTE_ADDRESS", Field::Remote),
    (
        "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
        Field::RemoteAddress,
    ),
    ("DOWNSTREAM_LOCAL_ADDRESS", Field::Local),
    ("DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT", Field::LocalAddress),
    ("DOWNSTREAM_LOCAL_PORT", Field::LocalPort),
    ("HOSTNAME", Field::Hostname),
    ("UPSTREAM_REQUEST_ATTEMPT_COUNT", Field::AttemptCount),
    ("LOCAL_REPLY_BODY", Field::ReplyBody),
];

/// The values that a format may ask for. An empty text is an absent value.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormatContext<'c> {
    /// The request as it is at this time: for a response, as it left.
    pub request: Option<Request<'c>>,
    /// The headers of the response.
    pub response: Option<&'c Headers>,
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
    /// The name of this machine.
    pub hostname: &'c str,
    /// The number of attempts.
    pub attempts: u32,
    /// The body of a reply of the proxy itself.
    pub reply_body: &'c str,
}

impl Format {
    /// Compiles a format, or says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            literal.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                literal.push('%');
                rest = after;
                continue;
            }
            let end =
                end_of(rest).ok_or("a `%` begins an operator that does not end; write `%%`")?;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal).into()));
            }
            parts.push(parse(&rest[..end])?);
            rest = &rest[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into()));
        }
        Ok(Self { parts })
    }

    /// Writes the values into a text. An absent value is `absent`: a header
    /// takes nothing for it, an access log `-`.
    #[must_use]
    pub fn write(&self, context: &FormatContext<'_>, absent: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => out.extend_from_slice(literal.as_bytes()),
                Part::Operator { operator, max } => {
                    let start = out.len();
                    operator.write(context, &mut out);
                    match out.len() - start {
                        0 => out.extend_from_slice(absent.as_bytes()),
                        length => out.truncate(start + length.min(max.unwrap_or(length))),
                    }
                }
            }
        }
        out
    }
}

/// Finds the `%` that ends an operator: not one in parentheses.
fn end_of(text: &str) -> Option<usize> {
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

fn parse(text: &str) -> Result<Part, String> {
    let (name, rest) = match text.find(['(', ':']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let (argument, rest) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (argument, rest) = rest.rsplit_once(')').ok_or("a `(` is not closed")?;
            (Some(argument), rest)
        }
        None => (None, rest),
    };
    let max = match rest.strip_prefix(':') {
        Some(number) => Some(
            number
                .parse()
                .map_err(|_| format!("{number:?} is no length"))?,
        ),
        None if rest.is_empty() => None,
        None => return Err(format!("{rest:?} follows an operator")),
    };
    let field = FIELDS.iter().find(|(known, _)| *known == name);
    let operator = match (name, argument, field) {
        ("REQ", Some(names), _) => {
            let (name, other) = names_of(names);
            Operator::Request(name, other)
        }
        ("RESP", Some(names), _) => {
            let (name, other) = names_of(names);
            Operator::Response(name, other)
        }
        (_, None, Some((_, field))) => Operator::Field(*field),
        _ => return Err(format!("the operator %{text}% is not supported")),
    };
    Ok(Part::Operator { operator, max })
}

fn names_of(names: &str) -> (Box<str>, Option<Box<str>>) {
    let (name, other) = match names.split_once('?') {
        Some((name, other)) => (name, Some(other)),
        None => (names, None),
    };
    let lower = |name: &str| name.to_ascii_lowercase().into();
    (lower(name), other.map(lower))
}

impl Operator {
    fn write(&self, context: &FormatContext<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Request(name, other) => {
                let get = |name: &str| context.request.as_ref().and_then(|r| r.header(name));
                let value = get(name).or_else(|| other.as_deref().and_then(get));
                out.extend_from_slice(value.unwrap_or_default());
            }
            Self::Response(name, other) => {
                let get = |name: &str| context.response.and_then(|headers| headers.get(name));
                let value = get(name).or_else(|| other.as_deref().and_then(get));
                out.extend_from_slice(value.unwrap_or_default());
            }
            Self::Field(field) => out.extend_from_slice(field.value(context).as_bytes()),
        }
    }
}

impl Field {
    fn value(self, context: &FormatContext<'_>) -> String {
        let address = |text: &str| {
            text.rsplit_once(':')
                .map_or(text, |(host, _)| host)
                .to_owned()
        };
        let port = |text: &str| {
            text.rsplit_once(':')
                .map_or("", |(_, port)| port)
                .to_owned()
        };
        match self {
            Self::Protocol => context.protocol.to_owned(),
            Self::ResponseCode => context.status.to_string(),
            Self::ResponseCodeDetails => context.details.to_owned(),
            Self::ResponseFlags if context.flags.is_empty() => "-".to_owned(),
            Self::ResponseFlags => context.flags.to_owned(),
            Self::UpstreamHost => context.upstream_host.to_owned(),
            Self::UpstreamCluster => context.upstream_cluster.to_owned(),
            Self::RouteName => context.route.to_owned(),
            Self::VirtualHost => context.virtual_host.to_owned(),
            Self::VirtualCluster => context.virtual_cluster.to_owned(),
            Self::Remote => context.remote.to_owned(),
            Self::RemoteAddress => address(context.remote),
            Self::Local => context.local.to_owned(),
            Self::LocalAddress => address(context.local),
            Self::LocalPort => port(context.local),
            Self::Hostname => context.hostname.to_owned(),
            Self::AttemptCount => context.attempts.to_string(),
            Self::ReplyBody => context.reply_body.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_and_absent_ones_are_marked() {
        let headers: Headers = [("x-in", "value")].into_iter().collect();
        let context = FormatContext {
            request: Some(Request {
                method: "GET",
                scheme: "http",
                authority: "v.test",
                path: "/a?b",
                headers: &headers,
            }),
            remote: "10.0.0.1:5000",
            status: 200,
            ..FormatContext::default()
        };
        let cases = [
            ("%REQ(x-in)%", "value"),
            ("%REQ(X-None?x-in)%", "value"),
            ("%REQ(x-in):3%", "val"),
            ("%REQ(x-none)%", "-"),
            ("a%%b", "a%b"),
            ("[%REQ(:METHOD)% %REQ(:PATH)%]", "[GET /a?b]"),
            ("%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "10.0.0.1"),
            ("%RESPONSE_CODE% %RESPONSE_FLAGS%", "200 -"),
            ("%RESP(x)%", "-"),
        ];
        for (format, expected) in cases {
            let format = Format::new(format).expect(format);
            assert_eq!(
                String::from_utf8_lossy(&format.write(&context, "-")),
                expected
            );
        }
    }

    #[test]
    fn an_operator_that_is_not_known_is_refused() {
        for wrong in [
            "%",
            "a%REQ(x)",
            "%NO_SUCH%",
            "%REQ(x):a%",
            "%REQ(x%",
            "%REQ%",
            "%PROTOCOL(x)%",
        ] {
            assert!(Format::new(wrong).is_err(), "{wrong}");
        }
    }
}
