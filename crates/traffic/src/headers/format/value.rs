//! The values of operators.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use super::FormatContext;
use super::arguments::Source;
use super::grpc::long_flags;
use super::operator::{End, Field, HeaderPart, Limited, Moment, NameOrder, Operator, Shown};
use crate::address::Range;
use crate::headers::Headers;
use crate::request::split_query;

/// A value; empty if there is none.
type Bytes<'v> = Cow<'v, [u8]>;

/// Returns the bytes of a text that is made for the value.
fn text(value: impl Into<String>) -> Bytes<'static> {
    Cow::Owned(value.into().into_bytes())
}

impl Operator {
    /// Appends the value of the operator; nothing if the context does not have it.
    pub(super) fn write(&self, context: &FormatContext<'_>, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.value(context));
    }

    /// Returns the value of the operator in a context; empty if the context
    /// does not have it.
    fn value<'v>(&'v self, context: &FormatContext<'v>) -> Bytes<'v> {
        match self {
            Self::Header {
                part,
                names,
                cuts_query,
            } => {
                let mut names = names.iter().flatten();
                let value = names.find_map(|name| header(*part, name, context));
                let value = value.unwrap_or_default();
                let end = value.iter().position(|byte| *byte == b'?' && *cuts_query);
                Cow::Borrowed(&value[..end.unwrap_or(value.len())])
            }

            Self::Address(end, shown) => shown.format_address(end.address(context)),
            Self::Time(moment, format) => {
                let time = match moment {
                    Moment::Start => context.start,
                    Moment::Now => context.now,
                };
                time.map(|time| text(format.write(time)))
                    .unwrap_or_default()
            }
            Self::GrpcStatus(style) => {
                let status_of = |headers: Option<&'v Headers>| headers?.text("grpc-status");
                let status = status_of(context.trailers).or_else(|| status_of(context.response));
                status
                    .map(|status| text(style.write(status)))
                    .unwrap_or_default()
            }

            Self::QueryParameter(name) => {
                let query = context.request.and_then(|request| request.query());
                let value = query.and_then(|query| crate::route::parameter(query, name));
                Cow::Borrowed(value.unwrap_or_default().as_bytes())
            }
            Self::Query { decodes } => query_value(*decodes, context),
            Self::Path { has_query, source } => path_value(*has_query, *source, context),

            Self::ServerName { first, source } => {
                Cow::Borrowed(server_name(*first, *source, context).as_bytes())
            }
            Self::Details { keeps_spaces: true } => Cow::Borrowed(context.details.as_bytes()),
            Self::Details {
                keeps_spaces: false,
            } => {
                let spaces = |c: char| c.is_ascii_whitespace();
                text(context.details.replace(spaces, "_"))
            }

            Self::Coalesce(operators) => first_value(operators, context),
            Self::Field(field) => field.value(context),
            Self::Other(name, argument) => {
                let value = context
                    .values
                    .and_then(|values| values.value(name, argument.as_deref()));
                value
                    .map(|value| text(value.into_owned()))
                    .unwrap_or_default()
            }
        }
    }
}

/// Returns the query of the request, without escapes if it is decoded.
fn query_value<'v>(decodes: bool, context: &FormatContext<'v>) -> Bytes<'v> {
    let query = context.request.and_then(|request| request.query());
    let query = query.unwrap_or_default();
    match decodes {
        true => Cow::Owned(decode_escapes(query)),
        false => Cow::Borrowed(query.as_bytes()),
    }
}

/// Returns the path of the request, before or after its rewrite.
fn path_value<'v>(has_query: bool, source: Source, context: &FormatContext<'v>) -> Bytes<'v> {
    let current = context.request.map(|request| request.path);
    let path = source.choose("x-envoy-original-path", current, context);
    let path = path.unwrap_or_default();
    match has_query {
        true => Cow::Borrowed(path.as_bytes()),
        false => Cow::Borrowed(split_query(path).0.as_bytes()),
    }
}

/// Returns the first value that is not empty, cut to its operator's length;
/// empty if all are.
fn first_value(operators: &[Limited], context: &FormatContext<'_>) -> Bytes<'static> {
    let mut values = operators.iter().map(|(operator, max)| {
        let value = operator.value(context);
        let length = value.len().min(max.unwrap_or(usize::MAX));
        Bytes::Owned(value[..length].to_vec())
    });
    let first = values.find(|value| !value.is_empty());
    first.unwrap_or_default()
}

/// Returns the first value of a header of a request, a response or its trailers.
fn header<'v>(part: HeaderPart, name: &str, context: &FormatContext<'v>) -> Option<&'v [u8]> {
    match part {
        HeaderPart::Request => context.request.and_then(|request| request.header(name)),
        HeaderPart::Response => context.response?.get(name),
        HeaderPart::Trailers => context.trailers?.get(name),
    }
}

impl Source {
    /// Returns the original value, which is in the header `original`, or the
    /// current one, by the source.
    fn choose<'v>(
        self,
        original: &str,
        current: Option<&'v str>,
        context: &FormatContext<'v>,
    ) -> Option<&'v str> {
        let request = context.request;
        let original_value = || request.and_then(|request| request.headers.text(original));
        match self {
            Self::Original => original_value(),
            Self::Current => current,
            Self::Either => original_value().or(current),
        }
    }
}

/// Returns the server name of TLS or the host, in the given order of
/// preference.
fn server_name<'v>(first: NameOrder, source: Source, context: &FormatContext<'v>) -> &'v str {
    let current = context.request.map(|request| request.authority);
    let host = source.choose("x-envoy-original-host", current, context);
    match first {
        NameOrder::Host => host.unwrap_or_default(),
        NameOrder::Tls if context.server_name.is_empty() => host.unwrap_or_default(),
        NameOrder::Tls | NameOrder::TlsOnly => context.server_name,
    }
}

/// Decodes escapes such as `%20`. A `%` that does not begin an escape stays.
fn decode_escapes(query: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(query.len());
    let mut remainder = query.as_bytes();
    while let Some((byte, tail)) = remainder.split_first() {
        let digits = tail.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| *byte == b'%') {
            Some(escaped) => {
                decoded.push(escaped);
                remainder = &tail[2..];
            }
            None => {
                decoded.push(*byte);
                remainder = tail;
            }
        }
    }
    decoded
}

impl End {
    /// Returns the address of this end of a connection.
    fn address<'v>(self, context: &FormatContext<'v>) -> &'v str {
        match self {
            Self::Remote => context.remote,
            Self::Local => context.local,
            Self::DirectRemote => context.direct_remote,
            Self::DirectLocal => context.direct_local,
            Self::UpstreamRemote => context.upstream_host,
            Self::UpstreamLocal => context.upstream_local,
        }
    }
}

impl Shown {
    /// Formats an address, the whole of it or a part. An address that is not of
    /// IP has no port.
    fn format_address(self, address: &str) -> Bytes<'_> {
        let socket: Option<SocketAddr> = address.parse().ok();
        match (self, socket) {
            (Self::All, _) | (Self::Address(_), None) => Cow::Borrowed(address.as_bytes()),
            (Self::Port, Some(socket)) => text(socket.port().to_string()),
            (Self::Port, None) => Cow::default(),
            (Self::Address(None), Some(socket)) => text(socket.ip().to_string()),
            (Self::Address(Some(length)), Some(socket)) => {
                let max_length = if socket.is_ipv4() { 32 } else { 128 };
                let length = length.min(max_length);
                let network: IpAddr = Range::of(socket.ip(), length).first();
                text(format!("{network}/{length}"))
            }
        }
    }
}

impl Field {
    /// Returns the value of the field in a context.
    fn value<'v>(self, context: &FormatContext<'v>) -> Bytes<'v> {
        let value = match self {
            Self::Protocol => context.protocol,
            Self::ResponseCode => return text(context.status.to_string()),
            Self::ResponseFlags | Self::ResponseFlagsLong if context.flags.is_empty() => "-",
            Self::ResponseFlags => context.flags,
            Self::ResponseFlagsLong => return text(long_flags(context.flags)),
            Self::UpstreamHost => context.upstream_host,
            Self::UpstreamCluster => context.upstream_cluster,
            Self::RouteName => context.route,
            Self::VirtualHost => context.virtual_host,
            Self::VirtualCluster => context.virtual_cluster,
            Self::Hostname => context.hostname,
            Self::AttemptCount => return text(context.attempts.to_string()),
            Self::ReplyBody => context.reply_body,
        };
        Cow::Borrowed(value.as_bytes())
    }
}
