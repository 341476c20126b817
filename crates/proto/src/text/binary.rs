//! Files by their names: text, or a `DiscoveryResponse` as bytes.
//!
//! Binary resources are decoded and encoded again, so that the same contents
//! have the same bytes however they were written (S71).

use bytes::Bytes;
use prost::Message;
use prost_reflect::DynamicMessage;

use super::{
    Document, Options, Resource,
    document::{BODY, opaque},
    error::{Problem, TextError},
    read,
    tree::{Node, Position, Value},
};
use crate::{
    canonical, descriptor, discovery,
    path::{Path, Step},
};

/// Reads a file as its name says: `.json` is JSON, `.pb` a binary
/// `DiscoveryResponse`, anything else YAML.
#[must_use]
pub fn read_bytes(file: &str, bytes: Bytes, options: &Options) -> Document {
    let whole = |line, problem| Document {
        errors: vec![TextError {
            file: file.to_owned(),
            at: Position { line, column: line },
            path: String::new(),
            problem,
        }],
        ..Document::default()
    };
    let end = file.rsplit_once('.').map_or("", |(_, end)| end);
    match end.to_ascii_lowercase().as_str() {
        "pb" if bytes.len() > options.limits.bytes => {
            let (len, max) = (bytes.len(), options.limits.bytes);
            whole(0, Problem::TooLong { len, max })
        }
        "pb" => match discovery::DiscoveryResponse::decode(bytes) {
            Ok(response) => binary(file, response, options),
            Err(error) => whole(0, not_binary("DiscoveryResponse", &error)),
        },
        "pb_text" | "pbtxt" | "prototxt" | "textproto" => whole(1, Problem::TextFormat),
        _ => match std::str::from_utf8(&bytes) {
            Ok(text) => read(file, text, options),
            Err(_) => whole(1, Problem::NotUtf8),
        },
    }
}

fn not_binary(message: &'static str, error: &prost::DecodeError) -> Problem {
    let reason = error.to_string();
    Problem::NotBinary { message, reason }
}

fn binary(file: &str, response: discovery::DiscoveryResponse, options: &Options) -> Document {
    let mut document = Document::default();
    for (index, any) in response.resources.into_iter().enumerate() {
        let mut path = Path::default();
        path.push(Step::Name("resources"));
        path.push(Step::Index(index));
        match resource(file, any, &mut path) {
            Ok(resource) => document.resources.push(resource),
            Err(problem) if document.errors.len() < options.limits.errors => {
                document.errors.push(TextError {
                    file: file.to_owned(),
                    at: Position::default(),
                    path: path.to_string(),
                    problem,
                });
            }
            Err(_) => {}
        }
    }
    document
}

fn resource(file: &str, any: discovery::Any, path: &mut Path) -> Result<Resource, Problem> {
    let (any, wrapper) = unwrap(any)?;
    if wrapper != discovery::Resource::default() {
        path.push(Step::Name(BODY));
    }
    if any.type_url.is_empty() {
        return Err(Problem::MissingType);
    }
    let (message, body) = match descriptor::message(&any.type_url) {
        None => (opaque(), any.value),
        Some(of) => {
            let message = DynamicMessage::decode(of, any.value)
                .map_err(|error| not_binary("resource of its type", &error))?;
            let body = canonical::encode(&message);
            let body = body.map_err(|error| Problem::Encoding(error.to_string()))?;
            (message, body.into())
        }
    };
    Ok(Resource {
        type_url: any.type_url,
        message,
        body,
        wrapper,
        path: path.clone(),
        file: file.to_owned(),
        node: Node::new(Value::Null),
    })
}

/// What is in a wrapper, and what the wrapper says of it.
fn unwrap(any: discovery::Any) -> Result<(discovery::Any, discovery::Resource), Problem> {
    let wrapper = descriptor::full_name(descriptor::types::RESOURCE);
    if descriptor::full_name(&any.type_url) != wrapper {
        return Ok((any, discovery::Resource::default()));
    }
    let mut wrapper = discovery::Resource::decode(any.value)
        .map_err(|error| not_binary("envoy.service.discovery.v3.Resource", &error))?;
    let body = wrapper.resource.take().ok_or(Problem::MissingBody)?;
    if let Some(metadata) = &mut wrapper.metadata {
        *metadata = canonical::canonicalize("envoy.config.core.v3.Metadata", metadata)
            .map_err(|error| Problem::Encoding(error.to_string()))?;
    }
    Ok((body, wrapper))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

    fn any(type_url: &str, value: impl Into<Bytes>) -> discovery::Any {
        discovery::Any {
            type_url: type_url.to_owned(),
            value: value.into(),
        }
    }

    fn file(resources: Vec<discovery::Any>) -> Document {
        let response = discovery::DiscoveryResponse {
            resources,
            ..Default::default()
        };
        let bytes = response.encode_to_vec().into();
        read_bytes("f.pb", bytes, &Options::default())
    }

    fn only_error(name: &str, bytes: &'static [u8]) -> String {
        let read = read_bytes(name, Bytes::from_static(bytes), &Options::default());
        assert!(read.resources.is_empty());
        let [error] = read.errors.as_slice() else {
            panic!("one mistake expected: {:#?}", read.errors);
        };
        error.to_string()
    }

    /// Two fields in the wrong order: `alt_stat_name`, then `name`.
    const ODD: &[u8] = b"\xe2\x01\x01a\x0a\x01c";

    #[test]
    fn binary_resources_are_brought_into_their_one_form() {
        let wrapper = discovery::Resource {
            name: "c".into(),
            aliases: vec!["d".into()],
            resource: Some(any(CLUSTER, ODD)),
            ..Default::default()
        };
        let wrapped = any(descriptor::types::RESOURCE, wrapper.encode_to_vec());
        let read = file(vec![any(CLUSTER, ODD), wrapped]);
        assert_eq!(read.errors, []);
        let [plain, wrapped] = &read.resources[..] else {
            panic!("two resources");
        };
        assert_eq!(plain.body, &b"\x0a\x01c\xe2\x01\x01a"[..]);
        assert_eq!(wrapped.body, plain.body);
        assert_eq!(wrapped.wrapper.aliases, ["d"]);
        assert_eq!(wrapped.wrapper.resource, None);
        assert_eq!(plain.path.to_string(), "resources[0]");
        assert_eq!(wrapped.path.to_string(), "resources[1].resource");
    }

    #[test]
    fn a_type_that_is_not_known_passes_as_it_came() {
        let read = file(vec![any("t/no.such.Type", &b"\xff\x00"[..])]);
        assert_eq!(read.errors, []);
        assert_eq!(read.resources[0].body, &b"\xff\x00"[..]);
        let text = "{\"@type\": t/no.such.Type, value: /wA=}";
        let text = super::super::read("f.yaml", text, &Options::default());
        assert_eq!(text.errors, []);
        assert_eq!(text.resources[0].body, read.resources[0].body);
    }

    #[test]
    fn mistakes_say_which_resource() {
        let read = file(vec![any(CLUSTER, &b"\xff"[..]), any("", Bytes::new())]);
        let errors: Vec<_> = read.errors.iter().map(ToString::to_string).collect();
        assert!(errors[0].starts_with("f.pb: resources[0]: is not a binary resource"));
        assert!(errors[1].starts_with("f.pb: resources[1]: the key \"@type\" is missing"));
    }

    #[test]
    fn a_name_says_the_format() {
        assert!(only_error("f.pb", b"resources: []").starts_with("f.pb: is not a binary Disc"));
        assert!(only_error("f.pb_text", b"").starts_with("f.pb_text:1:1: protobuf's text format"));
        assert!(only_error("f.yaml", b"a: \xff").starts_with("f.yaml:1:1: the text is not UTF-8"));
        let json = read_bytes("f.JSON", Bytes::from_static(b"{'a'"), &Options::default());
        assert!(matches!(json.errors[0].problem, Problem::Syntax(_)));
    }
}
