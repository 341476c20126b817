//! Events as bytes, which is how a log keeps them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use trunkline_core::message::ErrorDetail;

use super::entry::{ClientStream, LogEvent};
use crate::server::{ChangeCounts, Changed};

/// The first byte of an event: its kind.
const CHANGED: u8 = 0;
const ACKED: u8 = 1;
const NACKED: u8 = 2;
const CONNECTED: u8 = 3;
const DISCONNECTED: u8 = 4;

/// The first byte of an address: its family.
const V4: u8 = 4;
const V6: u8 = 6;

/// The bytes of most events.
const USUAL: usize = 128;

/// Returns an event as bytes; `None` if it has constraints, which are kept as
/// they are.
pub(super) fn encode(event: &LogEvent) -> Option<Vec<u8>> {
    let mut out = Encoder(Vec::with_capacity(USUAL));
    match event {
        LogEvent::Changed {
            revision,
            author,
            listed,
            counts,
        } => {
            out.byte(CHANGED);
            out.number(*revision);
            out.text(author);
            if listed.iter().any(|changed| changed.constraints.is_some()) {
                return None;
            }
            out.list(listed, |out, changed| {
                out.text(changed.type_url.as_str());
                out.text(changed.name.as_str());
                out.option(changed.from.as_ref(), |out, from| out.text(from.as_str()));
                out.option(changed.to.as_ref(), |out, to| out.text(to.as_str()));
            });
            out.list(counts, |out, (type_url, counts)| {
                out.text(type_url.as_str());
                for count in [counts.created, counts.changed, counts.deleted] {
                    out.number(count as u64);
                }
            });
        }
        LogEvent::Acked {
            client,
            type_url,
            nonce,
            revision,
        } => {
            out.byte(ACKED);
            out.client(client);
            out.text(type_url.as_str());
            out.text(nonce.as_str());
            out.option(revision.as_ref(), |out, revision| out.number(*revision));
        }
        LogEvent::Nacked {
            client,
            type_url,
            nonce,
            revision,
            error,
            quarantined,
        } => {
            out.byte(NACKED);
            out.client(client);
            out.text(type_url.as_str());
            out.text(nonce.as_str());
            out.option(revision.as_ref(), |out, revision| out.number(*revision));
            out.0.extend_from_slice(&error.code.to_le_bytes());
            out.text(&error.message);
            out.list(quarantined, |out, (name, version)| {
                out.text(name.as_str());
                out.text(version.as_str());
            });
        }
        LogEvent::Connected {
            client,
            address,
            identity,
        } => {
            out.byte(CONNECTED);
            out.client(client);
            out.option(address.as_ref(), |out, address| out.address(*address));
            out.option(identity.as_ref(), |out, identity| out.text(identity));
        }
        LogEvent::Disconnected { client } => {
            out.byte(DISCONNECTED);
            out.client(client);
        }
    }
    Some(out.0)
}

/// Returns the event of some bytes; `None` if [`encode`] has not made them.
pub(super) fn decode(bytes: &[u8]) -> Option<LogEvent> {
    let mut from = Decoder(bytes);
    Some(match from.byte()? {
        CHANGED => LogEvent::Changed {
            revision: from.number()?,
            author: from.text()?.into(),
            listed: from.list(|from| {
                Some(Changed {
                    type_url: from.text()?.into(),
                    name: from.text()?.into(),
                    constraints: None,
                    from: from.option(|from| Some(from.text()?.into()))?,
                    to: from.option(|from| Some(from.text()?.into()))?,
                })
            })?,
            counts: from.list(|from| {
                let type_url = from.text()?.into();
                let mut count = || usize::try_from(from.number()?).ok();
                let counts = ChangeCounts {
                    created: count()?,
                    changed: count()?,
                    deleted: count()?,
                };
                Some((type_url, counts))
            })?,
        },
        ACKED => LogEvent::Acked {
            client: from.client()?,
            type_url: from.text()?.into(),
            nonce: from.text()?.into(),
            revision: from.option(Decoder::number)?,
        },
        NACKED => LogEvent::Nacked {
            client: from.client()?,
            type_url: from.text()?.into(),
            nonce: from.text()?.into(),
            revision: from.option(Decoder::number)?,
            error: ErrorDetail {
                code: i32::from_le_bytes(from.array()?),
                message: from.text()?.to_owned(),
            },
            quarantined: from.list(|from| Some((from.text()?.into(), from.text()?.into())))?,
        },
        CONNECTED => LogEvent::Connected {
            client: from.client()?,
            address: from.option(Decoder::address)?,
            identity: from.option(|from| Some(from.text()?.into()))?,
        },
        DISCONNECTED => LogEvent::Disconnected {
            client: from.client()?,
        },
        _ => return None,
    })
}

/// The bytes of an event so far.
struct Encoder(Vec<u8>);

impl Encoder {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a length in one byte for the lengths that most texts have.
    fn length(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(short) if short < u8::MAX => self.byte(short),
            _ => {
                self.byte(u8::MAX);
                self.number(length as u64);
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.length(items.len());
        items.iter().for_each(|item| each(self, item));
    }

    fn option<T>(&mut self, value: Option<T>, some: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            some(self, value);
        }
    }

    fn client(&mut self, client: &ClientStream) {
        self.number(client.stream);
        self.text(&client.node);
    }

    fn address(&mut self, address: SocketAddr) {
        match address {
            SocketAddr::V4(address) => {
                self.byte(V4);
                self.0.extend_from_slice(&address.ip().octets());
            }
            SocketAddr::V6(address) => {
                self.byte(V6);
                self.0.extend_from_slice(&address.ip().octets());
                self.0.extend_from_slice(&address.flowinfo().to_le_bytes());
                self.0.extend_from_slice(&address.scope_id().to_le_bytes());
            }
        }
        self.0.extend_from_slice(&address.port().to_le_bytes());
    }
}

/// What is left of the bytes of an event.
struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn length(&mut self) -> Option<usize> {
        match self.byte()? {
            u8::MAX => usize::try_from(self.number()?).ok(),
            short => Some(usize::from(short)),
        }
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.length()?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(head).ok()
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.length()?;
        (0..length).map(|_| each(self)).collect()
    }

    fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            _ => some(self).map(Some),
        }
    }

    fn client(&mut self) -> Option<ClientStream> {
        Some(ClientStream {
            stream: self.number()?,
            node: self.text()?.into(),
        })
    }

    fn address(&mut self) -> Option<SocketAddr> {
        Some(match self.byte()? {
            V4 => {
                let ip = Ipv4Addr::from(self.array::<4>()?);
                SocketAddrV4::new(ip, self.port()?).into()
            }
            _ => {
                let ip = Ipv6Addr::from(self.array::<16>()?);
                let flow = u32::from_le_bytes(self.array()?);
                let scope = u32::from_le_bytes(self.array()?);
                SocketAddrV6::new(ip, self.port()?, flow, scope).into()
            }
        })
    }

    fn port(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;

    fn client() -> ClientStream {
        ClientStream {
            stream: 7,
            node: "node".into(),
        }
    }

    #[test]
    fn every_event_comes_back_as_it_was() {
        let changed = |name: &str, from: Option<&str>| Changed {
            type_url: kind::CDS.into(),
            name: name.into(),
            constraints: None,
            from: from.map(Into::into),
            to: Some("2".into()),
        };
        let counts = ChangeCounts {
            created: 1,
            changed: 300,
            deleted: 0,
        };
        let events = [
            LogEvent::Changed {
                revision: u64::MAX,
                author: "me".into(),
                listed: vec![changed("a", None), changed(&"b".repeat(1000), Some("1"))],
                counts: vec![(kind::CDS.into(), counts)],
            },
            LogEvent::Acked {
                client: client(),
                type_url: kind::LDS.into(),
                nonce: "5".into(),
                revision: Some(3),
            },
            LogEvent::Nacked {
                client: client(),
                type_url: kind::LDS.into(),
                nonce: "".into(),
                revision: None,
                error: ErrorDetail {
                    code: -3,
                    message: "é".repeat(254),
                },
                quarantined: vec![("a".into(), "1".into()); 300],
            },
            LogEvent::Connected {
                client: client(),
                address: "10.0.0.1:80".parse().ok(),
                identity: Some("spiffe://a".into()),
            },
            LogEvent::Connected {
                client: client(),
                address: "[fe80::1%3]:65535".parse().ok(),
                identity: None,
            },
            LogEvent::Disconnected { client: client() },
        ];
        for event in events {
            let bytes = encode(&event).unwrap();
            assert_eq!(decode(&bytes).as_ref(), Some(&event));
            assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(decode(&[9]), None);
    }

    #[test]
    fn an_event_with_constraints_is_kept_as_it_is() {
        let event = LogEvent::Changed {
            revision: 1,
            author: "me".into(),
            listed: vec![Changed {
                type_url: kind::CDS.into(),
                name: "a".into(),
                constraints: "env=prod".parse().ok(),
                from: None,
                to: None,
            }],
            counts: Vec::new(),
        };
        assert_eq!(encode(&event), None);
    }
}
