//! Virtual hosts: their names and domains, and the rule by which a host gets
//! its virtual host.
//!
//! A client requests a host as `<route configuration>/<host>`. It gets the
//! virtual host that the whole route configuration would give it: the one with
//! the host as a domain, else the one with the longest matching `*suffix`, else
//! the longest `prefix*`, else `*`.

mod body;
mod choose;
mod domain;

pub(crate) use body::{put_varint, rewrite_body};
pub use choose::choose;
pub use domain::{Domain, Domains};

/// The two parts of the name of a virtual host or of a requested host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostName<'a> {
    /// The route configuration. Its name may contain slashes; a host has none.
    pub route: &'a str,
    /// The host, with its port if it has one; or the author's name for a
    /// virtual host.
    pub host: &'a str,
}

impl<'a> HostName<'a> {
    /// Splits a name; `None` if it has no route configuration.
    #[must_use]
    pub fn split(name: &'a str) -> Option<Self> {
        let (route, host) = name.rsplit_once('/')?;
        Some(Self { route, host })
    }
}

/// Returns the host without its port. An IPv6 address has a port only after
/// brackets.
#[must_use]
pub(crate) fn strip_port(host: &str) -> &str {
    let Some((address, port)) = host.rsplit_once(':') else {
        return host;
    };
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    // Without brackets, a text with several colons is an IPv6 address without a
    // port.
    let is_bare_address = address.contains(':') && !address.ends_with(']');
    if is_number && !is_bare_address {
        address
    } else {
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_digits_or_nothing_behind_a_colon() {
        let table = [
            ("a.com:80", "a.com"),
            ("a.com", "a.com"),
            ("a.com:", "a.com"),
            ("a.com:http", "a.com:http"),
            ("[::1]:80", "[::1]"),
            ("::1", "::1"),
            ("[::1]", "[::1]"),
        ];
        for (host, bare) in table {
            assert_eq!(strip_port(host), bare);
        }
    }

    #[test]
    fn a_route_may_have_slashes_in_its_name() {
        let name = HostName::split("xdstp://a/t/r/foo.com:80").unwrap();
        assert_eq!((name.route, name.host), ("xdstp://a/t/r", "foo.com:80"));
        assert_eq!(HostName::split("foo.com"), None);
    }
}
