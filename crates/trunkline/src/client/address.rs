//! Addresses as texts: `host:port`, `[::1]:port`, `unix:/path`.

use std::fmt;
use std::str::FromStr;

use super::control_plane::Address;

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address: write host:port, [IPv6]:port or unix:PATH")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(error()),
                path => Ok(Self::Unix(path.into())),
            };
        }

        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = port.parse().map_err(|_| error())?;
        let host = match host.strip_prefix('[') {
            Some(host_in_brackets) => host_in_brackets.strip_suffix(']').ok_or_else(error)?,
            // The colons of a bare IPv6 address hide which one precedes the
            // port.
            None if host.contains(':') => return Err(error()),
            None => host,
        };

        if host.is_empty() || host.contains(['/', ' ']) {
            return Err(error());
        }
        Ok(Self::Tcp {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in [
            "a.example:1",
            "127.0.0.1:80",
            "[::1]:443",
            "unix:/run/x.sock",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        for text in [
            "",
            "a",
            "a:b",
            ":80",
            "::1:80",
            "[::1:80",
            "unix:",
            "http://a:80",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
