//! A `DiscoveryResponse` in JSON.
//!
//! A client takes a field that is not in the JSON for absent, so a resource
//! that JSON cannot express in full is left out as a whole, and the caller is
//! told.

use trunkline_core::message::{SotwResponse, WireResource};
use trunkline_core::name::Name;
use trunkline_core::resource::TypeUrl;
use trunkline_proto::descriptor;
use trunkline_proto::prost_reflect::DynamicMessage;
use trunkline_proto::text::{self, Loss, Value, loss, to_node};

use crate::wire::encode_sotw_frames;

const RESPONSE: &str = "envoy.service.discovery.v3.DiscoveryResponse";

/// A response as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The JSON.
    pub body: String,
    /// Resources that are not in it.
    pub left_out: Vec<LeftOut>,
}

/// A resource that JSON cannot express. Where a response is the whole set
/// (S38), a client that polls takes it for deleted, so someone should hear of
/// it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} cannot be written as JSON: it has {loss}")]
pub struct LeftOut {
    /// Its name.
    pub name: Name,
    /// The part that would be lost.
    pub loss: Loss,
}

/// Writes a response, without the resources that JSON cannot express: these are
/// listed in [`Written::left_out`]. `identifier` names this server in it.
#[must_use]
pub fn write(response: &SotwResponse, identifier: &str) -> Written {
    let (pieces, left_out) = pieces(response, identifier);
    let body = pieces.collect();
    Written { body, left_out }
}

/// Writes a response as [`write()`] does, in pieces. A resource is written when
/// the iterator reaches it. Resources that JSON cannot express are left out and
/// returned.
pub fn pieces(
    response: &SotwResponse,
    identifier: &str,
) -> (impl Iterator<Item = String> + Send + use<>, Vec<LeftOut>) {
    let mut left_out = Vec::new();
    let mut listed = Vec::with_capacity(response.resources.len());
    for sent in response.resources.iter() {
        match find_loss(&response.type_url, sent) {
            None => listed.push(sent.clone()),
            Some(loss) => left_out.push(LeftOut {
                name: sent.resource.name.clone(),
                loss,
            }),
        }
    }

    let writer = Response {
        template: SotwResponse {
            resources: Vec::new().into(),
            // Older clients do not know this field, and refuse unknown ones.
            errors: Vec::new(),
            ..response.clone()
        },
        identifier: identifier.to_owned(),
    };
    let frame = writer.rest();
    let (head, tail) = if listed.is_empty() {
        (frame, String::new())
    } else {
        (LIST.to_owned(), end_of(&frame))
    };
    let mut comma = "";
    let items = listed.into_iter().map(move |sent| {
        let item = writer.write_item(sent);
        format!("{}{item}", std::mem::replace(&mut comma, ","))
    });
    let pieces = std::iter::once(head).chain(items).chain([tail]);
    (pieces, left_out)
}

/// The beginning of a response that has resources.
const LIST: &str = "{\"resources\":[";

/// Returns the end of a response that has resources, after the last of them.
/// The other fields are an object.
fn end_of(rest: &str) -> String {
    match rest.strip_prefix('{') {
        Some("}") | None => "]}".to_owned(),
        Some(fields) => format!("],{fields}"),
    }
}

/// Writes parts of a response. One encoder is for gRPC and for this, so that
/// both are the same message.
struct Response {
    /// The response, without resources.
    template: SotwResponse,
    identifier: String,
}

impl Response {
    /// Writes the fields other than the resources, as a JSON object.
    fn rest(&self) -> String {
        let tree = self.tree(&self.template);
        tree.map_or_else(|| "{}".to_owned(), |tree| tree.to_json())
    }

    /// Writes one resource. A resource that JSON cannot express is written as
    /// `null`; the caller has left those out.
    fn write_item(&self, delivered: WireResource) -> String {
        let response = SotwResponse {
            resources: vec![delivered].into(),
            ..self.template.clone()
        };
        let tree = self.tree(&response).map(|tree| tree.value);
        let Some(Value::Map(entries)) = tree else {
            return "null".to_owned();
        };
        let list = entries.into_iter().find(|entry| entry.key == "resources");
        match list.map(|entry| entry.node.value) {
            Some(Value::List(items)) => items.first().map(text::Node::to_json),
            _ => None,
        }
        .unwrap_or_else(|| "null".to_owned())
    }

    /// Returns a response as the tree of its message; `None` if the message is
    /// not known.
    fn tree(&self, response: &SotwResponse) -> Option<text::Node> {
        let bytes = encode_sotw_frames(response, &self.identifier).to_bytes();
        let of = descriptor::message(RESPONSE)?;
        let message = DynamicMessage::decode(of, bytes).ok()?;
        Some(to_node(&message, None))
    }
}

/// Returns the part of a resource that JSON cannot express. Returns `None` if
/// JSON can express all of it, and for a resource without a body.
fn find_loss(type_url: &TypeUrl, delivered: &WireResource) -> Option<Loss> {
    let body = delivered.resource.body.clone()?;
    let Some(descriptor) = descriptor::message(type_url.as_str()) else {
        return Some(Loss::Type(type_url.to_string()));
    };
    match DynamicMessage::decode(descriptor, body) {
        Ok(message) => loss(&message),
        Err(_) => Some(Loss::Malformed(type_url.to_string())),
    }
}
