//! Messages for people who read a recording: names, versions and sizes.

use prost::Message as _;
use serde_json::{Map, Value, json};
use trunkline_core::message::Mode;
use trunkline_core::sink::{Delivery, Verdict};
use trunkline_proto::discovery::{
    DeltaDiscoveryRequest, DiscoveryRequest, Glance, Node, ResourceLocator, Status,
};

/// Describes a request; one that cannot be read has no description.
pub(super) fn request(mode: Mode, bytes: &[u8]) -> Value {
    match mode {
        Mode::Delta => match DeltaDiscoveryRequest::decode(bytes) {
            Ok(request) => delta_request(request),
            Err(_) => Value::Null,
        },
        Mode::Sotw => match DiscoveryRequest::decode(bytes) {
            Ok(request) => sotw_request(request),
            Err(_) => Value::Null,
        },
    }
}

fn delta_request(request: DeltaDiscoveryRequest) -> Value {
    let held = request.initial_resource_versions.into_iter();
    let held: Map<String, Value> = held.map(|held| (held.name, json!(held.version))).collect();
    let subscribe = names(
        request.resource_names_subscribe,
        request.resource_locators_subscribe,
    );
    let unsubscribe = names(
        request.resource_names_unsubscribe,
        request.resource_locators_unsubscribe,
    );
    without_empty(json!({
        "type": request.type_url,
        "node": node_id(request.node.as_deref()),
        "subscribe": subscribe,
        "unsubscribe": unsubscribe,
        "held": held,
        "nonce": request.response_nonce,
        "error": error(request.error_detail),
    }))
}

fn sotw_request(request: DiscoveryRequest) -> Value {
    without_empty(json!({
        "type": request.type_url,
        "node": node_id(request.node.as_deref()),
        "names": names(request.resource_names, request.resource_locators),
        "version": request.version_info,
        "nonce": request.response_nonce,
        "error": error(request.error_detail),
    }))
}

/// Describes a response.
pub(super) fn response(mode: Mode, bytes: &[u8]) -> Value {
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
    let removed: Vec<&str> = glance.removed().collect();
    without_empty(json!({
        "type": glance.type_url,
        "version": glance.version,
        "nonce": glance.nonce,
        "resources": resources,
        "removed": removed,
    }))
}

/// Describes a verdict.
pub(super) fn verdict(delivery: &Delivery, verdict: &Verdict) -> Value {
    let rejected = verdict.rejected.iter();
    let rejected = rejected.map(|one| {
        let name = one.name.as_ref().map(|name| name.as_str());
        json!({"name": name, "reason": one.reason})
    });
    let rejected: Vec<Value> = rejected.collect();
    json!({
        "type": delivery.type_url.as_str(),
        "nonce": delivery.nonce.as_str(),
        "answer": if rejected.is_empty() { "ACK" } else { "NACK" },
        "rejected": rejected,
    })
}

/// Names, and locators with their parameters.
fn names(names: Vec<String>, locators: Vec<ResourceLocator>) -> Vec<Value> {
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

fn node_id(node: Option<&[u8]>) -> Option<String> {
    Some(Node::decode(node?).ok()?.id)
}

fn error(status: Option<Status>) -> Option<String> {
    status.map(|status| status.message)
}

/// Leaves out keys that say nothing.
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
