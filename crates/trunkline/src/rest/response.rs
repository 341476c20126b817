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
use trunkline_proto::text::{Loss, loss, to_node};

use crate::wire::sotw_frames;

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

    let expressible = SotwResponse {
        resources: listed.into(),
        // Older clients do not know this field, and refuse unknown ones.
        errors: Vec::new(),
        ..response.clone()
    };

    // One encoder for both, so that JSON and gRPC are the same message.
    let bytes = sotw_frames(&expressible, identifier).to_bytes();
    let message = descriptor::message(RESPONSE)
        .and_then(|descriptor| DynamicMessage::decode(descriptor, bytes).ok());
    let json = message.map(|message| to_node(&message, None).to_json());
    Written {
        body: json.unwrap_or_default(),
        left_out,
    }
}

/// Finds the part of a resource that JSON cannot express; `None` if it can
/// express all, as of a resource without a body.
fn find_loss(type_url: &TypeUrl, sent: &WireResource) -> Option<Loss> {
    let body = sent.resource.body.clone()?;
    let Some(descriptor) = descriptor::message(type_url.as_str()) else {
        return Some(Loss::Type(type_url.to_string()));
    };
    match DynamicMessage::decode(descriptor, body) {
        Ok(message) => loss(&message),
        Err(_) => Some(Loss::Malformed(type_url.to_string())),
    }
}
