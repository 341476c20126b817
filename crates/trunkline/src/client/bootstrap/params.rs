//! Dynamic parameters of a client (TP2): for all names, for those of a type, and
//! for those of an authority.
//!
//! ```text
//! gRPC's bootstrap                         Envoy's: node.metadata.trunkline
//! dynamic_parameters: {env: prod}          the same keys
//! dynamic_parameters_from_metadata: [ZONE]
//! authorities: {a: {dynamic_parameters: {env: test}}}
//! ```
//!
//! Envoy's `node.dynamic_parameters` has parameters for each type.

use std::collections::BTreeMap;

use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_proto::envoy::envoy::config::core::v3::Node;
use trunkline_proto::envoy::google::protobuf::value::Kind;

use super::authority::Authority;
use super::problem::Problem;
use super::report::Scope;
use super::tree::Part;

/// The parameters of a client, except those of authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicParameters {
    /// For all names.
    pub all: Params,
    /// For the names of a type, beside those for all names. Of two with one key
    /// the one of the type counts.
    pub by_type: BTreeMap<String, Params>,
}

impl DynamicParameters {
    /// Returns the parameters for a name of a type: those of its authority, or
    /// those for all names if the authority has no set of its own, with those
    /// of the type.
    pub(super) fn params_for_name(
        &self,
        type_url: &str,
        name: &Name,
        authorities: &BTreeMap<String, Authority>,
    ) -> Params {
        let xdstp = name.xdstp();
        let authority = xdstp.and_then(|name| authorities.get(name.authority()));
        let authority_params = authority.and_then(|authority| authority.parameters.as_ref());
        let base = authority_params.unwrap_or(&self.all);
        let Some(type_params) = self.by_type.get(type_url) else {
            return base.clone();
        };
        let params = Params::new(base.iter().chain(type_params.iter()));
        // The sets are within the limits; together they may not be.
        params.unwrap_or_else(|_| base.clone())
    }
}

/// Reads the settings of a text: the parameters for all names, of which those
/// that are written out count before those from metadata.
pub(super) fn read_all(settings: &Part<'_, '_>, node: &Node) -> Params {
    let mut pairs = from_metadata(settings, node);
    pairs.extend(pairs_of(settings));
    make_set(pairs, &settings.scope.field(KEY))
}

/// Reads the parameters in the settings of an authority; `None` if there are
/// none.
pub(super) fn read_authority_params(authority: &Part<'_, '_>) -> Option<Params> {
    authority.get(KEY)?;
    let pairs = pairs_of(authority);
    Some(make_set(pairs, &authority.scope.field(KEY)))
}

/// Reads the parameters of a node for each type.
pub(super) fn read_by_type(node: &Node, scope: &Scope<'_>) -> BTreeMap<String, Params> {
    let scope = scope.field("node.dynamic_parameters");
    let types = node.dynamic_parameters.iter().map(|(url, context)| {
        let pairs = context.params.iter();
        let pairs = pairs.map(|(key, value)| (key.clone(), value.clone()));
        (url.clone(), make_set(pairs.collect(), &scope.key(url)))
    });
    types.collect()
}

const KEY: &str = "dynamic_parameters";
const FROM_METADATA: &str = "dynamic_parameters_from_metadata";

type Pairs = Vec<(String, String)>;

/// Reads the parameters that are written out. A value that is no text is reported
/// and left out.
fn pairs_of(settings: &Part<'_, '_>) -> Pairs {
    let entries = settings.entries(KEY).into_iter();
    let pairs = entries.filter_map(|(key, value)| Some((key.to_owned(), value.text()?.to_owned())));
    pairs.collect()
}

/// Translates the metadata of these keys (TP2, "Migrating From Node Metadata").
/// A key that the node lacks gives no parameter.
fn from_metadata(settings: &Part<'_, '_>, node: &Node) -> Pairs {
    let keys = settings.items(FROM_METADATA).into_iter();
    let keys = keys.filter_map(|key| key.text());
    let fields = node.metadata.as_ref().map(|metadata| &metadata.fields);
    let pairs = keys.filter_map(|key| {
        let value = match fields?.get(key)?.kind.as_ref()? {
            Kind::StringValue(text) => text.clone(),
            Kind::NumberValue(number) => number.to_string(),
            Kind::BoolValue(value) => value.to_string(),
            _ => return None,
        };
        Some((key.to_owned(), value))
    });
    pairs.collect()
}

/// Makes a set of parameters. A set beyond the limits is reported as a mistake,
/// and empty.
fn make_set(pairs: Pairs, scope: &Scope<'_>) -> Params {
    let params = Params::new(pairs);
    params.unwrap_or_else(|error| scope.mistake(Problem::Params(error)).unwrap_or_default())
}
