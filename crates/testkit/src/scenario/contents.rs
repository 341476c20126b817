//! Resources as scenarios write them, and the operator's changes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use trunkline_core::change::Change;
use trunkline_core::facts::{Facts, RareFacts, Reference};
use trunkline_core::hosts::Domains;
use trunkline_core::kind;
use trunkline_core::name::Name;
use trunkline_core::params::{Constraints, Expr};
use trunkline_core::resource::{ErrorCode, Resource, ResourceError, TypeUrl, Version};

use super::word::{duration, parts, suffix, unquoted, words};

/// A body as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// These bytes.
    Text(String),
    /// The resource's name in its first field and nothing else.
    Empty,
    /// The same, and then bytes that no client can read.
    Unreadable,
    /// An invalid cluster: Envoy rejects it, and keeps the one that it has
    /// (S82).
    InvalidCluster,
    /// No body.
    None,
}

impl Body {
    fn parse(text: &str) -> Self {
        match text {
            "empty" => Self::Empty,
            "unreadable" => Self::Unreadable,
            "standin" => Self::InvalidCluster,
            "none" => Self::None,
            text => Self::Text(unquoted(text).unwrap_or(text).to_owned()),
        }
    }

    fn bytes(&self, name: &str) -> Option<Bytes> {
        match self {
            Self::Text(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
            Self::Empty => Some(empty(name)),
            Self::Unreadable => Some(unreadable(name)),
            Self::InvalidCluster => Some(invalid_cluster(name)),
            Self::None => None,
        }
    }
}

/// A message with this text in its first field.
pub(super) fn empty(name: &str) -> Bytes {
    let mut body = BytesMut::with_capacity(name.len() + 6);
    put_field(&mut body, 1, name);
    body.freeze()
}

/// A virtual host: name and domains where Envoy has them, and a text.
fn virtual_host(name: &str, domains: &[String], text: &str) -> Bytes {
    let mut body = BytesMut::new();
    put_field(&mut body, 1, name);
    domains
        .iter()
        .for_each(|domain| put_field(&mut body, 2, domain));
    put_field(&mut body, 3, text);
    body.freeze()
}

fn put_field(body: &mut BytesMut, number: u8, text: &str) {
    body.put_u8(number << 3 | 2);
    let mut length = text.len();
    while length >= 0x80 {
        body.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    body.put_u8(length as u8);
    body.put_slice(text.as_bytes());
}

/// The same with a field after it that cannot be.
pub(super) fn unreadable(name: &str) -> Bytes {
    [&empty(name)[..], b"\x07"].concat().into()
}

/// A cluster with a name and the type EDS, and no source for its endpoints.
pub(super) fn invalid_cluster(name: &str) -> Bytes {
    [&empty(name)[..], b"\x10\x03"].concat().into()
}

/// The text of a virtual host, if its name is this and its domains are these.
pub(super) fn text_of(bytes: &[u8], name: &str, domains: &[String]) -> Option<String> {
    let before = virtual_host(name, domains, "");
    let text = bytes.strip_prefix(&before[..before.len() - 1])?.get(1..)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// One resource: `c1@v1(aka x, ttl 5s, for env=prod, domains a.com *.b, vhds 1, wrapped)`.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) body: Body,
    pub(super) aliases: Vec<String>,
    pub(super) ttl: Option<Duration>,
    pub(super) constraints: Option<Constraints>,
    pub(super) wrapped: bool,
    pub(super) domains: Vec<String>,
    base: Vec<String>,
    leaves: Vec<String>,
    vhds: Option<Version>,
    portless: bool,
    references: Vec<Reference>,
}

impl Item {
    /// # Errors
    /// If it is not a resource.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        let (head, extras) = suffix(word, '(');
        let (name, body) = head
            .rsplit_once('@')
            .ok_or_else(|| format!("`{word}` is not a resource such as c1@v1"))?;
        let mut item = Self::named(name, extras)?;
        item.body = Body::parse(body);
        Ok(item)
    }

    /// A name with what stands in parentheses, without a body.
    ///
    /// # Errors
    /// If what stands in parentheses is not understood.
    pub(super) fn named(name: &str, extras: Option<&str>) -> Result<Self, String> {
        let mut item = Self {
            name: unquoted(name).unwrap_or(name).to_owned(),
            body: Body::None,
            aliases: Vec::new(),
            ttl: None,
            constraints: None,
            wrapped: false,
            domains: Vec::new(),
            base: Vec::new(),
            leaves: Vec::new(),
            vhds: None,
            portless: false,
            references: Vec::new(),
        };
        for part in parts(extras.unwrap_or_default())? {
            item.extra(&part)?;
        }
        Ok(item)
    }

    fn extra(&mut self, part: &str) -> Result<(), String> {
        let (what, value) = part.split_once(' ').unwrap_or((part, ""));
        match what {
            "aka" => self.aliases = words(value)?,
            "ttl" => self.ttl = Some(duration(value)?),
            "for" if value == "all" => self.constraints = None,
            "for" => self.constraints = Some(constraints(value)?),
            "wrapped" => self.wrapped = true,
            "domains" => self.domains = words(value)?,
            "base" => self.base = words(value)?,
            "leaves" => self.leaves = words(value)?,
            "portless" => self.portless = true,
            "vhds" => self.vhds = Some(value.into()),
            _ => return Err(format!("`{part}` says nothing about a resource")),
        }
        Ok(())
    }

    /// The body as it is on the wire.
    pub(super) fn bytes(&self) -> Option<Bytes> {
        match &self.body {
            Body::Text(text) if !self.domains.is_empty() => {
                Some(virtual_host(&self.name, &self.domains, text))
            }
            body => body.bytes(&self.name),
        }
    }

    /// The version that is made from it.
    pub(super) fn version(&self) -> Version {
        match self.bytes() {
            Some(bytes) => Version::of_body(&bytes),
            None => Version::new(""),
        }
    }

    fn resource(&self) -> Arc<Resource> {
        let mut references = self.references.clone();
        references.sort();
        references.dedup();
        let rare = RareFacts {
            base_sets: self.base.iter().map(|set| set.as_str().into()).collect(),
            inline_vhds_routes: self.leaves.iter().map(|route| Name::new(route)).collect(),
            vhds_version: self.vhds.clone(),
            ignores_port: self.portless,
            ..RareFacts::default()
        };
        let facts = Facts {
            rare: rare.boxed(),
            references: references.into(),
            domains: Domains::new(&self.domains),
        };
        Arc::new(Resource {
            name: Name::new(&self.name),
            aliases: self.aliases.iter().map(|alias| Name::new(alias)).collect(),
            constraints: self.constraints.clone(),
            version: self.version(),
            ttl: self.ttl,
            body: self.bytes(),
            facts: (facts != Facts::default()).then(|| Box::new(facts)),
        })
    }
}

fn constraints(text: &str) -> Result<Constraints, String> {
    let expr: Expr = text.parse().map_err(|error| format!("`{text}`: {error}"))?;
    Constraints::new(&expr).map_err(|error| format!("`{text}`: {error}"))
}

/// One line of the operator's.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Put(TypeUrl, Item),
    Remove(TypeUrl, Item),
    Replace(TypeUrl, Vec<Item>),
    Fail(TypeUrl, String, ErrorCode),
}

impl Op {
    pub(super) fn change(&self) -> Change {
        match self {
            Self::Put(url, item) => Change::Upsert(url.clone(), item.resource()),
            Self::Remove(url, item) => match &item.constraints {
                None => Change::Remove(url.clone(), Name::new(&item.name)),
                only => Change::RemoveVariant(url.clone(), Name::new(&item.name), only.clone()),
            },
            Self::Replace(url, items) => {
                Change::ReplaceAll(url.clone(), items.iter().map(Item::resource).collect())
            }
            Self::Fail(url, name, code) => {
                let (code, message) = (*code, "because".into());
                let error = Arc::new(ResourceError { code, message });
                Change::Fail(url.clone(), Name::new(name), error)
            }
        }
    }
}

/// Reads `put`, `remove`, `replace` or `fail`.
///
/// # Errors
/// If it is none of them, or not well written.
pub(super) fn ops(verb: &str, rest: &[String]) -> Result<Vec<Op>, String> {
    let (short, rest) = rest
        .split_first()
        .ok_or_else(|| format!("`{verb}` needs a type"))?;
    let url = type_url(short)?;
    match verb {
        "put" => {
            let put = |item| Op::Put(url.clone(), item);
            Ok(items(rest)?.into_iter().map(put).collect())
        }
        "replace" => Ok(vec![Op::Replace(url, items(rest)?)]),
        "remove" => rest
            .iter()
            .map(|word| {
                let (name, extras) = suffix(word, '(');
                Ok(Op::Remove(url.clone(), Item::named(name, extras)?))
            })
            .collect(),
        "fail" => rest
            .iter()
            .map(|word| {
                let (name, code) = word
                    .split_once('=')
                    .ok_or_else(|| format!("`{word}` is not an error such as c1=NotFound"))?;
                Ok(Op::Fail(url.clone(), name.to_owned(), error_code(code)?))
            })
            .collect(),
        _ => Err(format!("`{verb}` is nothing that can be done")),
    }
}

/// Resources, each perhaps followed by `->` and its references.
fn items(list: &[String]) -> Result<Vec<Item>, String> {
    let mut items: Vec<Item> = Vec::new();
    for word in list.iter().filter(|word| *word != "->") {
        match items.last_mut() {
            Some(item) if !word.contains('@') => item.references.push(reference(word)?),
            _ => items.push(Item::parse(word)?),
        }
    }
    Ok(items)
}

fn reference(word: &str) -> Result<Reference, String> {
    let (short, name) = word
        .split_once('/')
        .ok_or_else(|| format!("`{word}` is not a reference such as eds/c1"))?;
    Ok(Reference {
        type_url: type_url(short)?,
        name: Name::new(name),
    })
}

fn error_code(text: &str) -> Result<ErrorCode, String> {
    Ok(match text {
        "NotFound" => ErrorCode::NotFound,
        "PermissionDenied" => ErrorCode::PermissionDenied,
        "Unavailable" => ErrorCode::Unavailable,
        "Internal" => ErrorCode::Other(13),
        _ => return Err(format!("`{text}` is not an error code")),
    })
}

/// A type by its short name, or by its URL if it has a dot.
///
/// # Errors
/// If it is neither.
pub(super) fn type_url(word: &str) -> Result<TypeUrl, String> {
    if word.contains('.') {
        return Ok(TypeUrl::new(word));
    }
    let of = |url: &&&str| kind::Kind::of(&TypeUrl::from(**url)).short == word;
    let known = kind::ALL.iter().find(of);
    known
        .map(|url| TypeUrl::from(*url))
        .ok_or_else(|| format!("`{word}` is not a type such as cds or example.org/x.Thing"))
}

/// The short name of a type, or its URL.
pub(super) fn short(url: &TypeUrl) -> String {
    match kind::Kind::of(url).short {
        "" => url.to_string(),
        short => short.to_owned(),
    }
}
