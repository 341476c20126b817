//! One operator, compiled.

use super::arguments::{Source, pair, parse_mask, parse_names, parse_operators};
use super::grpc::Style;
use super::table::{Takes, find_operator};
use super::time::TimeFormat;

/// An operator and its argument.
#[derive(Debug, Clone)]
pub(super) enum Operator {
    /// A header, or else another one.
    Header {
        part: HeaderPart,
        names: [Option<Box<str>>; 2],
        /// Whether a `?` and what follows is left out.
        cuts_query: bool,
    },
    Address(End, Shown),
    Time(Moment, TimeFormat),
    GrpcStatus(Style),
    QueryParameter(Box<str>),
    Query {
        decodes: bool,
    },
    Path {
        has_query: bool,
        source: Source,
    },
    ServerName {
        first: NameOrder,
        source: Source,
    },
    Details {
        keeps_spaces: bool,
    },
    Coalesce(Box<[Limited]>),
    Field(Field),
    /// Something that is asked for by its name.
    Other(&'static str, Option<Box<str>>),
}

/// An operator, and the most characters of its value.
pub(super) type Limited = (Operator, Option<usize>);

/// Whose headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderPart {
    Request,
    Response,
    Trailers,
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Remote,
    Local,
    DirectRemote,
    DirectLocal,
    UpstreamRemote,
    UpstreamLocal,
}

/// What of an address is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    All,
    /// Without the port; of a network, if a length is given.
    Address(Option<u8>),
    Port,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Start,
    Now,
}

/// Which name comes first: that of TLS, or the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameOrder {
    TlsOnly,
    Tls,
    Host,
}

/// A value that the context has as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Protocol,
    ResponseCode,
    ResponseFlags,
    ResponseFlagsLong,
    UpstreamHost,
    UpstreamCluster,
    RouteName,
    VirtualHost,
    VirtualCluster,
    Hostname,
    AttemptCount,
    ReplyBody,
}

const FIELDS: &[(&str, Field)] = &[
    ("PROTOCOL", Field::Protocol),
    ("RESPONSE_CODE", Field::ResponseCode),
    ("RESPONSE_FLAGS", Field::ResponseFlags),
    ("RESPONSE_FLAGS_LONG", Field::ResponseFlagsLong),
    ("UPSTREAM_HOST", Field::UpstreamHost),
    ("UPSTREAM_CLUSTER", Field::UpstreamCluster),
    ("ROUTE_NAME", Field::RouteName),
    ("VIRTUAL_HOST_NAME", Field::VirtualHost),
    ("VIRTUAL_CLUSTER_NAME", Field::VirtualCluster),
    ("HOSTNAME", Field::Hostname),
    ("UPSTREAM_REQUEST_ATTEMPT_COUNT", Field::AttemptCount),
    ("LOCAL_REPLY_BODY", Field::ReplyBody),
];

const ENDS: &[(&str, End)] = &[
    ("DOWNSTREAM_REMOTE", End::Remote),
    ("DOWNSTREAM_LOCAL", End::Local),
    ("DOWNSTREAM_DIRECT_REMOTE", End::DirectRemote),
    ("DOWNSTREAM_DIRECT_LOCAL", End::DirectLocal),
    ("UPSTREAM_REMOTE", End::UpstreamRemote),
    ("UPSTREAM_LOCAL", End::UpstreamLocal),
];

impl Operator {
    /// Compiles an operator.
    ///
    /// # Errors
    /// The operator is unknown or its argument is invalid. The error continues
    /// a sentence about the operator.
    pub(super) fn parse(name: &str, argument: Option<&str>) -> Result<Self, String> {
        if let Some(source) = header_source(name) {
            return Ok(Self::Header {
                part: source,
                names: parse_names(argument)?,
                cuts_query: name == "REQ_WITHOUT_QUERY",
            });
        }
        if let Some(operator) = Self::parse_address(name, argument)? {
            return Ok(operator);
        }

        let text = argument.unwrap_or_default();
        match name {
            "START_TIME" => {
                return TimeFormat::new(argument).map(|format| Self::Time(Moment::Start, format));
            }
            "EMIT_TIME" => {
                return TimeFormat::new(argument).map(|format| Self::Time(Moment::Now, format));
            }
            "GRPC_STATUS" => return Style::parse(text).map(Self::GrpcStatus),
            "GRPC_STATUS_NUMBER" if argument.is_none() => {
                return Ok(Self::GrpcStatus(Style::Number));
            }
            "QUERY_PARAM" if !text.is_empty() => return Ok(Self::QueryParameter(text.into())),
            "QUERY_PARAMS" => return parse_query(text),
            "PATH" => return parse_path(argument),
            "REQUESTED_SERVER_NAME" => return parse_server_name(argument),
            "RESPONSE_CODE_DETAILS" => return parse_details(text),
            "COALESCE" => return parse_operators(argument).map(Self::Coalesce),
            _ => {}
        }

        let field = FIELDS.iter().find(|(field_name, _)| *field_name == name);
        if let (Some((_, field)), None) = (field, argument) {
            return Ok(Self::Field(*field));
        }
        match find_operator(name) {
            Some((name, argument_kind)) if argument_kind.accepts(argument) => {
                Ok(Self::Other(name, argument.map(Into::into)))
            }
            _ => Err("is not supported".to_owned()),
        }
    }

    /// Parses an operator such as `DOWNSTREAM_REMOTE_PORT`. Returns `None` for
    /// an operator that is not about an address.
    fn parse_address(name: &str, argument: Option<&str>) -> Result<Option<Self>, String> {
        let mut ends = ENDS.iter();
        let end_and_name = ends.find_map(|(start, end)| Some((end, name.strip_prefix(start)?)));
        let Some((end, remainder)) = end_and_name else {
            return Ok(None);
        };
        let form = match (remainder, argument) {
            ("_ADDRESS", None) => Shown::All,
            ("_PORT", None) => Shown::Port,
            ("_ADDRESS_WITHOUT_PORT", argument) => Shown::Address(parse_mask(argument)?),
            _ => return Ok(None),
        };
        Ok(Some(Self::Address(*end, form)))
    }
}

impl Takes {
    /// Returns whether an operator of this kind may have the argument.
    fn accepts(self, argument: Option<&str>) -> bool {
        match self {
            Self::Nothing => argument.is_none(),
            Self::Optional => true,
            Self::Required => argument.is_some_and(|argument| !argument.is_empty()),
        }
    }
}

/// Returns whose headers an operator reads. Returns `None` if it does not read
/// headers.
fn header_source(name: &str) -> Option<HeaderPart> {
    match name {
        "REQ" | "REQUEST_HEADER" | "REQ_WITHOUT_QUERY" => Some(HeaderPart::Request),
        "RESP" | "RESPONSE_HEADER" => Some(HeaderPart::Response),
        "TRAILER" | "RESPONSE_TRAILER" => Some(HeaderPart::Trailers),
        _ => None,
    }
}

/// Returns the error of an argument that an operator cannot have.
fn wrong(text: &str) -> String {
    format!("cannot have {text:?}")
}

/// Parses the argument of `QUERY_PARAMS`: whether escapes are decoded.
fn parse_query(text: &str) -> Result<Operator, String> {
    match text {
        "" | "ORIG" => Ok(Operator::Query { decodes: false }),
        "DECODED" => Ok(Operator::Query { decodes: true }),
        _ => Err(wrong(text)),
    }
}

/// Parses the arguments of `PATH`: whether with the query, and from which
/// source.
fn parse_path(argument: Option<&str>) -> Result<Operator, String> {
    let (query, source_text) = pair(argument);
    let has_query = match query {
        "" | "WQ" => true,
        "NQ" => false,
        _ => return Err(wrong(query)),
    };
    let source = Source::parse(source_text, "PATH")?;
    Ok(Operator::Path { has_query, source })
}

/// Parses the arguments of `REQUESTED_SERVER_NAME`: the order of the names, and
/// the source of the host.
fn parse_server_name(argument: Option<&str>) -> Result<Operator, String> {
    let (order, source_text) = pair(argument);
    let first = match order {
        "" | "SNI_ONLY" => NameOrder::TlsOnly,
        "SNI_FIRST" => NameOrder::Tls,
        "HOST_FIRST" => NameOrder::Host,
        _ => return Err(wrong(order)),
    };
    let source = Source::parse(source_text, "HOST")?;
    Ok(Operator::ServerName { first, source })
}

/// Parses the argument of `RESPONSE_CODE_DETAILS`: whether spaces are kept.
fn parse_details(text: &str) -> Result<Operator, String> {
    match text {
        "" => Ok(Operator::Details {
            keeps_spaces: false,
        }),
        "ALLOW_WHITESPACES" => Ok(Operator::Details { keeps_spaces: true }),
        _ => Err(wrong(text)),
    }
}
