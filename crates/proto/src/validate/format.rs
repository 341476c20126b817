//! Forms that text must have: header names and values, addresses, and others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::rules::Format;

/// Returns whether a text has a form.
pub(super) fn matches(format: Format, text: &str) -> bool {
    match format {
        Format::Ip => text.parse::<IpAddr>().is_ok(),
        Format::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
        Format::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
        Format::Hostname => is_hostname(text),
        Format::Address => is_hostname(text) || text.parse::<IpAddr>().is_ok(),
        Format::Email => is_email(text),
        Format::Uri => has_scheme(text) && is_uri_part(text),
        Format::UriRef => is_uri_part(text),
        Format::Uuid => is_uuid(text),
        Format::HeaderName { strict: true } => {
            let name = text.strip_prefix(':').unwrap_or(text);
            !name.is_empty() && name.bytes().all(is_token)
        }
        Format::HeaderValue { strict: true } => {
            text.chars().all(|c| c == '\t' || !c.is_ascii_control())
        }
        // An empty name is valid here: where one is required, a rule on its
        // length says so.
        Format::HeaderName { strict: false } | Format::HeaderValue { strict: false } => {
            text.chars().all(is_no_break)
        }
    }
}

/// Describes a form in words, for an error after "must".
pub(super) fn describe(format: Format) -> &'static str {
    match format {
        Format::Ip => "be an IP address",
        Format::Ipv4 => "be an IPv4 address",
        Format::Ipv6 => "be an IPv6 address",
        Format::Hostname => "be a host name",
        Format::Address => "be a host name or an IP address",
        Format::Email => "be an e-mail address",
        Format::Uri => "be a URI with a scheme",
        Format::UriRef => "be a URI or a part of one",
        Format::Uuid => "be a UUID",
        Format::HeaderName { strict: true } => "be a valid name of an HTTP header",
        Format::HeaderName { strict: false } => {
            "be a name of an HTTP header: no line break and no NUL"
        }
        Format::HeaderValue { strict: true } => "be a valid value of an HTTP header",
        Format::HeaderValue { strict: false } => {
            "be a value of an HTTP header: no line break and no NUL"
        }
    }
}

/// A character of a token of RFC 9110.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_|~`".contains(&byte)
}

fn is_no_break(c: char) -> bool {
    !matches!(c, '\0' | '\n' | '\r')
}

/// Whether a text is a host name by RFC 1123: labels with dots between them.
fn is_hostname(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    (1..=253).contains(&text.len()) && text.split('.').all(label)
}

/// Whether a text is a local part and a host name. Quoted local parts, which
/// RFC 5322 allows, may have no space here.
fn is_email(text: &str) -> bool {
    text.len() <= 254
        && text.rsplit_once('@').is_some_and(|(local, host)| {
            (1..=64).contains(&local.len())
                && !local.contains(char::is_whitespace)
                && is_hostname(host)
        })
}

/// Whether a text begins with a scheme of RFC 3986 and a colon.
fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

/// Whether a text could be a URI or a part of one: it has no space and no
/// control character.
fn is_uri_part(text: &str) -> bool {
    !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Whether a text is five groups of hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    let lens = [8, 4, 4, 4, 12];
    let parts: Vec<_> = text.split('-').collect();
    parts.len() == lens.len()
        && parts
            .iter()
            .zip(lens)
            .all(|(p, len)| p.len() == len && p.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[test]
fn forms() {
    let strict = true;
    for (format, good, bad) in [
        (Format::Ip, "::1", "1.2.3"),
        (Format::Ipv4, "1.2.3.4", "::1"),
        (Format::Ipv6, "::1", "1.2.3.4"),
        (Format::Hostname, "a-b.example.", "-a.example"),
        (Format::Address, "10.0.0.1", "a b"),
        (Format::Email, "a@b.c", "a@"),
        (Format::Uri, "http://a/b", "/b"),
        (Format::UriRef, "/b", "/b c"),
        (Format::Uuid, "123e4567-e89b-12d3-a456-426614174000", "123"),
        (Format::HeaderName { strict }, ":path", "a b"),
        (Format::HeaderName { strict: false }, "", "a\nb"),
        (Format::HeaderValue { strict }, "a\tb", "a\u{7f}"),
        (Format::HeaderValue { strict: false }, "", "a\r\nb"),
    ] {
        assert!(matches(format, good), "{format:?} {good}");
        assert!(!matches(format, bad), "{format:?} {bad}");
    }
}
