//! Targets of gRPC: `host:port`, `dns:///host:port`, `unix:path` and others, as
//! addresses.

use std::path::PathBuf;

use super::problem::Problem;
use crate::client::Address;

/// The port of a target without one.
const DEFAULT_PORT: u16 = 443;

const EXAMPLE: &str = "xds.example.com:443, dns:///host:port or unix:/run/xds.sock";

/// Parses a target as one or more addresses of a control plane. Only an `ipv4` or
/// `ipv6` target may list several.
pub(super) fn parse(text: &str) -> Result<Vec<Address>, Problem> {
    let address_problem = |reason| Problem::Address {
        text: without_user(text),
        reason,
        example: EXAMPLE,
    };

    let (scheme, endpoint) = split_scheme(text);
    let addresses: Option<Vec<Address>> = match scheme {
        "unix" => {
            let path = endpoint.strip_prefix("//").unwrap_or(endpoint);
            let address = Address::Unix(PathBuf::from(path));
            (!path.is_empty()).then(|| vec![address])
        }
        "ipv4" | "ipv6" => endpoint.split(',').map(host_and_port).collect(),
        // An authority between the slashes is a name server; the system's is
        // used.
        "dns" | "passthrough" | "" => {
            let name = endpoint.strip_prefix("//").map_or(endpoint, |hierarchy| {
                hierarchy.split_once('/').map_or("", |(_, name)| name)
            });
            host_and_port(name).map(|address| vec![address])
        }
        "xds" => return Err(address_problem("it would be found by xDS itself")),
        _ => return Err(address_problem("the scheme is not known")),
    };
    addresses.ok_or_else(|| address_problem("it has no host, or no number as its port"))
}

/// Splits a target into its scheme, which may be empty, and the rest. What stands
/// before the first colon is a scheme if it is a known one, or if two slashes
/// follow; otherwise it is a host.
fn split_scheme(text: &str) -> (&str, &str) {
    match text.split_once(':') {
        Some((scheme, rest)) if SCHEMES.contains(&scheme) => (scheme, rest),
        Some((scheme, rest)) if rest.starts_with("//") => (scheme, rest),
        _ => ("", text),
    }
}

const SCHEMES: [&str; 6] = ["dns", "ipv4", "ipv6", "unix", "passthrough", "xds"];

/// Parses `host:port`, `host`, `[ip]:port` or a bare IPv6 address. Returns
/// `None` for an empty host, or a port that is no number.
fn host_and_port(text: &str) -> Option<Address> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, suffix) = bracketed.split_once(']')?;
            (
                host,
                suffix.strip_prefix(':').or(suffix.is_empty().then_some("")),
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (text, Some("")),
        },
    };

    let port = match port? {
        "" if text.ends_with(':') => return None,
        "" => DEFAULT_PORT,
        port => port.parse().ok()?,
    };

    let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
    is_host.then(|| Address::Tcp {
        host: host.to_owned(),
        port,
    })
}

/// Returns a target as an error may quote it: without what stands before an `@`,
/// which may be a password.
fn without_user(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        let host = host.to_owned();
        Address::Tcp { host, port }
    }

    #[test]
    fn targets_are_addresses() {
        for (text, expected) in [
            ("xds.example.com:443", tcp("xds.example.com", 443)),
            ("localhost", tcp("localhost", 443)),
            ("dns:///a.b:18000", tcp("a.b", 18000)),
            ("dns:a.b:1", tcp("a.b", 1)),
            ("dns://8.8.8.8/a.b:1", tcp("a.b", 1)),
            ("passthrough:///127.0.0.1:1", tcp("127.0.0.1", 1)),
            ("[::1]:50051", tcp("::1", 50051)),
            ("::1", tcp("::1", 443)),
            ("unix:/run/x.sock", Address::Unix("/run/x.sock".into())),
            ("unix:///run/x.sock", Address::Unix("/run/x.sock".into())),
            ("unix:./etc/XDS", Address::Unix("./etc/XDS".into())),
        ] {
            assert_eq!(parse(text), Ok(vec![expected]), "{text}");
        }
        let both = vec![tcp("10.0.0.1", 1), tcp("10.0.0.2", 2)];
        assert_eq!(parse("ipv4:10.0.0.1:1,10.0.0.2:2"), Ok(both));
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "unix:",
            "a:b",
            "a:",
            "https://a:443",
            "xds:///a",
            "[::1",
            "a/b:1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let error = parse("u:hunter2@a:1").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
