//! Bodies of changes from any bytes, text or binary: a naive reading agrees
//! where each resource comes alone, and a store gives back what was accepted.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use trunkline::checked::{Decoded, Finding, FirstOfPart, Form, Item, MOST_FINDINGS, decode};
use trunkline::wire::{Intake, KeptResource, text_options};
use trunkline_fuzz::TYPES;
use trunkline_proto::discovery::{Any, DiscoveryResponse, Resource as Wrapper};
use trunkline_proto::text::{Format, Options};

const WRAPPER: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Text {
        is_json: bool,
        /// A resource of a type that is known, so that not every input has to
        /// find one.
        of_type: Option<u8>,
        bytes: &'a [u8],
    },
    Binary(&'a [u8]),
    Resources(Vec<Written<'a>>),
}

/// A resource of a binary body.
#[derive(Arbitrary, Debug)]
struct Written<'a> {
    of_type: u8,
    wrapper: Option<Wrapped<'a>>,
    body: &'a [u8],
}

#[derive(Arbitrary, Debug)]
struct Wrapped<'a> {
    name: &'a str,
    version: &'a str,
    alias: Option<&'a str>,
    ttl: Option<(i64, i32)>,
    /// Any encoded fields of it.
    rest: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut options = text_options();
    options.limits.memory = 16 << 20;
    match input {
        Input::Text {
            is_json,
            of_type,
            bytes,
        } => {
            let text = text(is_json, of_type, bytes);
            let format = match is_json {
                true => Format::Json,
                false => Format::Yaml,
            };
            check(read(Form::Text(format), text.into_bytes(), &options));
        }
        Input::Binary(bytes) => {
            let whole = read(Form::Binary, bytes.to_vec(), &options);
            if let Ok(message) = DiscoveryResponse::decode(bytes) {
                let parts = message.resources.iter().map(|any| any.encode_to_vec());
                compare(&whole, &parts.collect::<Vec<_>>());
            }
            check(whole);
        }
        Input::Resources(all) => {
            let parts: Vec<_> = all.iter().map(Written::any).collect();
            let whole = parts.iter().flat_map(|any| response(any)).collect();
            let whole = read(Form::Binary, whole, &options);
            compare(&whole, &parts);
            check(whole);
        }
    }
});

fn text(is_json: bool, of_type: Option<u8>, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let Some(number) = of_type else { return text };
    let url = TYPES[usize::from(number) % TYPES.len()];
    match is_json {
        true => format!("{{\"@type\":\"{url}\",{text}}}"),
        false => format!("\"@type\": {url}\n{text}"),
    }
}

impl Written<'_> {
    fn any(&self) -> Vec<u8> {
        let url = TYPES[usize::from(self.of_type) % TYPES.len()];
        let own = encoded_any(url, self.body);
        let Some(wrapped) = &self.wrapper else {
            return own;
        };
        let mut wrapper = Wrapper {
            name: wrapped.name.to_owned(),
            version: wrapped.version.to_owned(),
            aliases: wrapped.alias.map(str::to_owned).into_iter().collect(),
            resource: Some(Any::decode(&*own).expect("it was just written")),
            ..Wrapper::default()
        }
        .encode_to_vec();
        if let Some((seconds, nanos)) = wrapped.ttl {
            let ttl = trunkline_proto::mcp::Timestamp { seconds, nanos };
            field(6, &ttl.encode_to_vec(), &mut wrapper);
        }
        wrapper.extend_from_slice(wrapped.rest);
        encoded_any(WRAPPER, &wrapper)
    }
}

fn encoded_any(type_url: &str, value: &[u8]) -> Vec<u8> {
    let any = Any {
        type_url: type_url.to_owned(),
        value: value.to_vec().into(),
    };
    any.encode_to_vec()
}

/// A body with one resource.
fn response(any: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    field(2, any, &mut bytes);
    bytes
}

fn field(number: u8, value: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(number << 3 | 2);
    prost::encoding::encode_varint(value.len() as u64, bytes);
    bytes.extend_from_slice(value);
}

fn read(form: Form, bytes: Vec<u8>, options: &Options) -> Decoded {
    let read = decode(&Arc::default(), form, Cursor::new(bytes), options);
    read.expect("memory can be read")
}

/// Compares a body with the same resources in bodies of their own.
fn compare(whole: &Decoded, parts: &[Vec<u8>]) {
    let (mut items, mut errors, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for (resource, any) in parts.iter().enumerate() {
        let first = FirstOfPart { resource, host: 0 };
        let part = read(Form::Part(first), response(any), &Options::default());
        // No resource after a malformed one is read.
        let is_malformed = |finding: &Finding| finding.field.is_empty();
        let ends = part.errors.iter().any(is_malformed);
        items.extend(part.document.items);
        errors.extend(part.errors);
        warnings.extend(part.warnings);
        if ends {
            break;
        }
    }
    assert_eq!(whole.errors.is_empty(), errors.is_empty());
    if whole.errors.len() < MOST_FINDINGS {
        assert_eq!(whole.errors.len(), errors.len());
        assert_eq!(
            seen(&whole.document.items),
            seen(&items),
            "{:?}",
            whole.errors
        );
    }
    if whole.warnings.len() < MOST_FINDINGS {
        assert_eq!(whole.warnings.len(), warnings.len());
    }
}

/// What is known of resources, in words.
fn seen(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| format!("{item:?}")).collect()
}

fn check(decoded: Decoded) {
    assert!(decoded.warnings.len() <= MOST_FINDINGS.max(Options::default().limits.errors));
    for finding in decoded.errors.iter().chain(&decoded.warnings) {
        assert!(!finding.to_string().is_empty());
    }
    if decoded.errors.is_empty() {
        for item in &decoded.document.items {
            check_kept(item);
            check_alone(item);
        }
    }
    for finding in decoded.into_all_errors() {
        assert!(!finding.to_string().is_empty());
    }
}

/// A store keeps a resource without its facts, and reads them from its body.
fn check_kept(item: &Item) {
    let resource = &item.resource;
    let rare = resource.facts().rare.as_deref();
    let kept = KeptResource {
        name: resource.name.clone(),
        aliases: resource.aliases.to_vec(),
        constraints: resource.constraints.clone(),
        version: resource.version.clone(),
        ttl: resource.ttl,
        body: resource.body.clone().expect("it has one"),
        metadata: rare.and_then(|rare| rare.metadata.clone()),
        do_not_cache: rare.is_some_and(|rare| rare.do_not_cache),
    };
    assert!(kept.ttl.is_none_or(|ttl| ttl < Duration::MAX));
    let restored = Intake::default().restore(&item.type_url, kept);
    assert_eq!(restored.expect("it was accepted"), **resource);
}

/// A body that was accepted is accepted again, and is the same.
fn check_alone(item: &Item) {
    // The body of a virtual host has not the name of its route configuration.
    if item.is_inline_host {
        return;
    }
    let wrapper = Wrapper {
        name: item.resource.name.to_string(),
        resource: Some(Any {
            type_url: item.type_url.to_string(),
            value: item.resource.body.clone().unwrap_or_default(),
        }),
        ..Wrapper::default()
    };
    let any = encoded_any(WRAPPER, &wrapper.encode_to_vec());
    let again = read(Form::Binary, response(&any), &Options::default());
    assert!(again.errors.is_empty(), "{:?}", again.errors);
    let first = again.document.items.first().expect("it has a resource");
    assert_eq!(first.resource.body, item.resource.body);
    assert_eq!(first.resource.name, item.resource.name);
}
