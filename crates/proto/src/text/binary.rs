//! Files by their names: text, or a `DiscoveryResponse` as bytes.
//!
//! Large binary files are better read in [pieces](crate::pieces).

use bytes::Bytes;
use prost::Message;

use super::{
    Document, Format, Options,
    error::{Problem, TextError},
    raw::{Raw, not_binary},
    read_as,
    tree::Position,
};
use crate::discovery;

/// Reads a file in the format of its name: `.json` is JSON, `.pb` a binary
/// `DiscoveryResponse`, any other name YAML. A file in protobuf's text format
/// is a mistake, whose message says what to do.
#[must_use]
pub fn read_bytes(file: &str, bytes: Bytes, options: &Options) -> Document {
    let refuse =
        |position, problem| Document::of_error(TextError::without_path(file, position, problem));
    match extension(file).as_str() {
        BINARY => match decode_response(bytes, options) {
            Ok(response) => read_response(file, response, options),
            Err(problem) => refuse(Position::default(), problem),
        },
        "pb_text" | "pbtxt" | "prototxt" | "textproto" => {
            refuse(Position::START, Problem::TextFormat)
        }
        _ => read_text_as(Format::of(file), file, &bytes, options),
    }
}

/// Reads a text of a known format. A text that is not UTF-8 has one mistake and
/// no resources.
#[must_use]
pub fn read_text_as(format: Format, file: &str, bytes: &[u8], options: &Options) -> Document {
    match std::str::from_utf8(bytes) {
        Ok(text) => read_as(format, file, text, options),
        Err(_) => {
            let error = TextError::without_path(file, Position::START, Problem::NotUtf8);
            Document::of_error(error)
        }
    }
}

/// Returns whether a file is a binary `DiscoveryResponse`, by its name.
#[must_use]
pub fn is_binary(file: &str) -> bool {
    extension(file) == BINARY
}

/// The extension of a binary file.
const BINARY: &str = "pb";

/// Returns the text after the last dot of a file's name, in lower case; empty
/// if there is no dot.
fn extension(file: &str) -> String {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    extension.to_ascii_lowercase()
}

/// Decodes a binary file.
///
/// # Errors
/// The file is longer than the limit, or not a `DiscoveryResponse`.
fn decode_response(
    bytes: Bytes,
    options: &Options,
) -> Result<discovery::DiscoveryResponse, Problem> {
    let (len, max) = (bytes.len(), options.limits.bytes);
    if len > max {
        return Err(Problem::TooLong { len, max });
    }
    let response = discovery::DiscoveryResponse::decode(bytes);
    response.map_err(|error| not_binary("DiscoveryResponse", &error))
}

/// Reads the resources of a response. A resource with a mistake is left out and
/// reported, up to the maximum of reports.
fn read_response(
    file: &str,
    response: discovery::DiscoveryResponse,
    options: &Options,
) -> Document {
    let mut document = Document::default();
    for (index, any) in response.resources.into_iter().enumerate() {
        let resource = Raw::new(file, index, any).and_then(|raw| raw.decode(file));
        match resource {
            Ok(resource) => document.resources.push(resource),
            Err(error) if document.errors.len() < options.limits.errors => {
                document.errors.push(*error);
            }
            Err(_) => {}
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor;

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
