//! One operator, compiled.

use super::arguments::{Source, mask, names, operators, pair};
use super::grpc::Style;
use super::table::{Takes, find};
use super::time::TimeFormat;

/// An operator and its argument.
#[derive(Debug, Clone)]
pub(super) enum Operator {
    /// A header, or else another one.
    Header {
        of: Of,
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
pub(super) enum Of {
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
    /// Compiles an operator, or says what is wrong with it.
    pub(super) fn parse(name: &str, argument: Option<&str>) -> Result<Self, String> {
        if let Some(of) = header_source(name) {
            return Ok(Self::Header {
                of,
                names: names(argument)?,
                cuts_query: name == "REQ_WITHOUT_QUERY",
            });
        }
        if let Some(operator) = Self::of_address(name, argument)? {
            return Ok(operator);
        }
        let text = argument.unwrap_or_default();
        match name {
            "START_TIME" => return TimeFormat::new(argument).map(|f| Self::Time(Moment::Start, f)),
            "EMIT_TIME" => return TimeFormat::new(argument).map(|f| Self::Time(Moment::Now, f)),
            "GRPC_STATUS" => return Style::parse(text).map(Self::GrpcStatus),
            "GRPC_STATUS_NUMBER" if argument.is_none() => {
                return Ok(Self::GrpcStatus(Style::Number));
            }
            "QUERY_PARAM" if !text.is_empty() => return Ok(Self::QueryParameter(text.into())),
            "QUERY_PARAMS" => return query(text),
            "PATH" => return path(argument),
            "REQUESTED_SERVER_NAME" => return server_name(argument),
            "RESPONSE_CODE_DETAILS" => return details(text),
            "COALESCE" => return operators(argument).map(Self::Coalesce),
            _ => {}
        }
        let field = FIELDS.iter().find(|(known, _)| *known == name);
        if let (Some((_, field)), None) = (field, argument) {
            return Ok(Self::Field(*field));
        }
        match find(name) {
            Some((name, takes)) if takes.accepts(argument) => {
                Ok(Self::Other(name, argument.map(Into::into)))
            }
            _ => Err("is not supported".to_owned()),
        }
    }

    /// Reads `DOWNSTREAM_REMOTE_PORT` and the like; `None` if it is another one.
    fn of_address(name: &str, argument: Option<&str>) -> Result<Option<Self>, String> {
        let mut ends = ENDS.iter();
        let found = ends.find_map(|(start, end)| Some((end, name.strip_prefix(start)?)));
        let Some((end, remainder)) = found else {
            return Ok(None);
        };
        let shown = match (remainder, argument) {
            ("_ADDRESS", None) => Shown::All,
            ("_PORT", None) => Shown::Port,
            ("_ADDRESS_WITHOUT_PORT", argument) => Shown::Address(mask(argument)?),
            _ => return Ok(None),
        };
        Ok(Some(Self::Address(*end, shown)))
    }
}

impl Takes {
    fn accepts(self, argument: Option<&str>) -> bool {
        match self {
            Self::Nothing => argument.is_none(),
            Self::Optional => true,
            Self::Required => argument.is_some_and(|argument| !argument.is_empty()),
        }
    }
}

fn header_source(name: &str) -> Option<Of> {
    match name {
        "REQ" | "REQUEST_HEADER" | "REQ_WITHOUT_QUERY" => Some(Of::Request),
        "RESP" | "RESPONSE_HEADER" => Some(Of::Response),
        "TRAILER" | "RESPONSE_TRAILER" => Some(Of::Trailers),
        _ => None,
    }
}

fn wrong(text: &str) -> String {
    format!("cannot have {text:?}")
}

fn query(text: &str) -> Result<Operator, String> {
    match text {
        "" | "ORIG" => Ok(Operator::Query { decodes: false }),
        "DECODED" => Ok(Operator::Query { decodes: true }),
        _ => Err(wrong(text)),
    }
}

fn path(argument: Option<&str>) -> Result<Operator, String> {
    let (query, source) = pair(argument);
    let has_query = match query {
        "" | "WQ" => true,
        "NQ" => false,
        _ => return Err(wrong(query)),
    };
    let source = Source::parse(source, "PATH")?;
    Ok(Operator::Path { has_query, source })
}

fn server_name(argument: Option<&str>) -> Result<Operator, String> {
    let (order, source) = pair(argument);
    let first = match order {
        "" | "SNI_ONLY" => NameOrder::TlsOnly,
        "SNI_FIRST" => NameOrder::Tls,
        "HOST_FIRST" => NameOrder::Host,
        _ => return Err(wrong(order)),
    };
    let source = Source::parse(source, "HOST")?;
    Ok(Operator::ServerName { first, source })
}

fn details(text: &str) -> Result<Operator, String> {
    match text {
        "" => Ok(Operator::Details {
            keeps_spaces: false,
        }),
        "ALLOW_WHITESPACES" => Ok(Operator::Details { keeps_spaces: true }),
        _ => Err(wrong(text)),
    }
}
