//! Messages for people who read a recording: names, versions and sizes.

use prost::Message as _;
use serde_json::{Map, Value, json};
use trunkline_core::message::Mode;
use trunkline_core::sink::{Delivery, Verdict};
use trunkline_proto::discovery::{
    DeltaDiscoveryRequest, DiscoveryRequest, Glance, Node, ResourceLocator, Status,
};

/// Describes a request. Returns `null` if it cannot be decoded.
pub(super) fn describe_request(mode: Mode, bytes: &[u8]) -> Value {
    match mode {
        Mode::Delta => match DeltaDiscoveryRequest::decode(bytes) {
            Ok(request) => describe_delta_request(request),
            Err(_) => Value::Null,
        },
        Mode::Sotw => match DiscoveryRequest::decode(bytes) {
            Ok(request) => describe_sotw_request(request),
            Err(_) => Value::Null,
        },
    }
}

/// Describes a delta request, without empty fields.
fn describe_delta_request(request: DeltaDiscoveryRequest) -> Value {
    let versions = request.initial_resource_versions.into_iter();
    let held_versions: Map<String, Value> = versions
        .map(|entry| (entry.name, json!(entry.version)))
        .collect();
    let subscribe = describe_names(
        request.resource_names_subscribe,
        request.resource_locators_subscribe,
    );
    let unsubscribe = describe_names(
        request.resource_names_unsubscribe,
        request.resource_locators_unsubscribe,
    );

    without_empty(json!({
        "type": request.type_url,
        "node": node_id(request.node.as_deref()),
        "subscribe": subscribe,
        "unsubscribe": unsubscribe,
        "held": held_versions,
        "nonce": request.response_nonce,
        "error": error(request.error_detail),
    }))
}

/// Describes a SotW request, without empty fields.
fn describe_sotw_request(request: DiscoveryRequest) -> Value {
    without_empty(json!({
        "type": request.type_url,
        "node": node_id(request.node.as_deref()),
        "names": describe_names(request.resource_names, request.resource_locators),
        "version": request.version_info,
        "nonce": request.response_nonce,
        "error": error(request.error_detail),
    }))
}

/// Describes a response, with the names, versions and sizes of its resources.
pub(super) fn describe_response(mode: Mode, bytes: &[u8]) -> Value {
    let glance = match mode {
        Mode::Delta => Glance::delta(bytes),
        Mode::Sotw => Glance::sotw(bytes),
    };
    let resources = glance.entries().map(|entry| {
        without_empty(json!({
            "name": entry.name,
            "version": entry.version,
            "size": entry.body.map(<[u8]>::len),
        }))
    });
    let resources: Vec<Value> = resources.collect();
    let removed_names: Vec<&str> = glance.removed().collect();
    without_empty(json!({
        "type": glance.type_url,
        "version": glance.version,
        "nonce": glance.nonce,
        "resources": resources,
        "removed": removed_names,
    }))
}

/// Describes the verdict on a delivery: an ACK, or a NACK with the rejected
/// resources.
pub(super) fn describe_verdict(delivery: &Delivery, verdict: &Verdict) -> Value {
    let rejected = verdict.rejected.iter();
    let rejected = rejected.map(|rejection| {
        let name = rejection.name.as_ref().map(|name| name.as_str());
        json!({"name": name, "reason": rejection.reason})
    });
    let rejected: Vec<Value> = rejected.collect();
    json!({
        "type": delivery.type_url.as_str(),
        "nonce": delivery.nonce.as_str(),
        "answer": if rejected.is_empty() { "ACK" } else { "NACK" },
        "rejected": rejected,
    })
}

/// Describes names, and locators with their parameters.
fn describe_names(names: Vec<String>, locators: Vec<ResourceLocator>) -> Vec<Value> {
    let names = names.into_iter().map(Value::String);
    let locators = locators.into_iter().map(|locator| {
        let params: Map<String, Value> = locator
            .dynamic_parameters
            .into_iter()
            .map(|(key, value)| (key, json!(value)))
            .collect();
        json!({"name": locator.name, "parameters": params})
    });
    names.chain(locators).collect()
}

/// Returns the id of an encoded node; `None` if the message has no node, or it
/// cannot be decoded.
fn node_id(node: Option<&[u8]>) -> Option<String> {
    Some(Node::decode(node?).ok()?.id)
}

/// Returns the message of a status, if there is one.
fn error(status: Option<Status>) -> Option<String> {
    status.map(|status| status.message)
}

/// Removes the keys of an object whose values are null or empty. Returns other
/// values unchanged.
fn without_empty(mut object: Value) -> Value {
    if let Value::Object(map) = &mut object {
        map.retain(|_, value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::Bool(_) | Value::Number(_) => true,
        });
    }
    object
}
