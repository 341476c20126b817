//! Forms that text must have: header names and values, addresses, and others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::rules::Format;

/// Returns whether a text has the form that a rule asks for.
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
        Format::HeaderValue { strict: true } => text
            .chars()
            .all(|character| character == '\t' || !character.is_ascii_control()),
        // An empty name is valid here: a rule on the length forbids it if necessary.
        Format::HeaderName { strict: false } | Format::HeaderValue { strict: false } => {
            text.chars().all(is_no_break)
        }
    }
}

/// Describes a form for an error, after "must", such as "be a UUID".
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

/// Returns whether a character may stand in a token of RFC 9110.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_|~`".contains(&byte)
}

fn is_no_break(character: char) -> bool {
    !matches!(character, '\0' | '\n' | '\r')
}

/// Returns whether a text is a host name by RFC 1123: labels with dots between
/// them, and maybe one at the end.
fn is_hostname(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    (1..=253).contains(&text.len()) && text.split('.').all(is_label)
}

/// Returns whether a text is a label of a host name: letters, digits and
/// hyphens, with no hyphen at either end.
fn is_label(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let has_end_hyphen = text.starts_with('-') || text.ends_with('-');
    (1..=63).contains(&text.len()) && !has_end_hyphen && text.bytes().all(is_allowed)
}

/// Returns whether a text is an e-mail address: a local part, `@` and a host
/// name. Quoted local parts, which RFC 5322 allows, may have no space here.
fn is_email(text: &str) -> bool {
    let Some((local, host)) = text.rsplit_once('@') else {
        return false;
    };
    let is_local = (1..=64).contains(&local.len()) && !local.contains(char::is_whitespace);
    text.len() <= 254 && is_local && is_hostname(host)
}

/// Returns whether a text begins with a scheme of RFC 3986 and a colon.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else {
        return false;
    };
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(is_allowed)
}

/// Returns whether a text could be a URI or a part of one: it has no space and
/// no control character.
fn is_uri_part(text: &str) -> bool {
    !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Returns whether a text has the form of a UUID: five groups of hexadecimal
/// digits with hyphens between them.
fn is_uuid(text: &str) -> bool {
    let lens = [8, 4, 4, 4, 12];
    let groups: Vec<_> = text.split('-').collect();
    let is_group = |(group, len): (&&str, usize)| {
        group.len() == len && group.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    groups.len() == lens.len() && groups.iter().zip(lens).all(is_group)
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
