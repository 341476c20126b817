//! What is known of a server: the metadata of its cluster, or
//! `server_features` of gRPC's bootstrap (C4).

use trunkline_proto::envoy::envoy::config::core::v3::Metadata;
use trunkline_proto::envoy::google::protobuf::value::Kind;

use super::super::report::Scope;
use crate::client::Features;

/// The key of the metadata that is read.
const KEY: &str = "trunkline";

/// Sets a feature by its name. Returns whether a feature has that name.
pub(in super::super) fn set_feature(features: &mut Features, name: &str, is_set: bool) -> bool {
    let feature = match name {
        "fail_on_data_errors" => &mut features.fail_on_data_errors,
        "resource_timer_is_transient_error" => &mut features.resource_timer_is_transient_error,
        "ignore_resource_deletion" => &mut features.ignore_resource_deletion,
        "trusted_xds_server" => &mut features.trusted,
        "dynamic_parameters" => &mut features.locators,
        _ => return false,
    };
    *feature = is_set;
    true
}

/// Reads the features in the metadata of a cluster: a boolean for each, such as
/// `metadata: {filter_metadata: {trunkline: {dynamic_parameters: true}}}` for a
/// server that takes locators (TP2).
pub(super) fn from_metadata(metadata: Option<&Metadata>, scope: &Scope<'_>) -> Features {
    let mut features = Features::default();
    let feature_values = metadata.and_then(|metadata| metadata.filter_metadata.get(KEY));
    let scope = scope.field("metadata.filter_metadata").key(KEY);
    for (name, value) in feature_values.into_iter().flat_map(|values| &values.fields) {
        match value.kind {
            Some(Kind::BoolValue(is_set)) if set_feature(&mut features, name, is_set) => {}
            Some(Kind::BoolValue(_)) => scope.warn_ignored(format!("the feature {name:?}"), KNOWN),
            _ => scope
                .unsupported(format!("a value of {name:?} that is no boolean"), BOOLEAN)
                .unwrap_or_default(),
        }
    }
    features
}

const KNOWN: &str = "there are dynamic_parameters, fail_on_data_errors, \
    ignore_resource_deletion, resource_timer_is_transient_error and trusted_xds_server";
const BOOLEAN: &str = "write true or false";
