//! Documents that are something else than resources, as people bring them:
//! each is told what it is, and what to do with it.

#[cfg(test)]
mod tests;

use super::{
    document::{ALLOW_REMOVAL, RESOURCES},
    error::Problem,
    guess,
    near::nearest,
    slip::Slip,
    tree::{Entry, Node, Position, Value},
};
use crate::descriptor::{self, types};

/// A document that holds no resources, or not where they belong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// A key that is nearly one of a document.
    #[error("unknown key {name:?}, did you mean {near:?}?")]
    Key {
        /// The key as written.
        name: String,
        /// The key that a document has.
        near: String,
    },
    /// A list of resources in the place of `resources:`.
    #[error(
        "{key:?} cannot be at the top; put {}its items below `resources:`, each with \"@type\": \
         {type_url}", below_static(*.is_static, key)
    )]
    List {
        /// The key.
        key: String,
        /// The type of its items.
        type_url: &'static str,
        /// Whether the static resources of a bootstrap have such a list.
        is_static: bool,
    },
    /// A list without a key.
    #[error("a list without a key; put it below `resources:`")]
    NoKey,
    /// A manifest of Kubernetes.
    #[error(
        "a Kubernetes manifest ({kind}), which is not read here; {}",
        propose_replacement(kind)
    )]
    Kubernetes {
        /// Its kind.
        kind: String,
    },
    /// A bootstrap of Envoy that has no resources.
    #[error(
        "an Envoy bootstrap without `static_resources:`, so there is nothing to serve; give it to \
         Envoy, and the resources here"
    )]
    Bootstrap,
}

/// Lists of resources, as they are called elsewhere, and the types of their
/// items.
const LISTS: [(&str, &str); 16] = [
    ("listeners", types::LISTENER),
    ("listener", types::LISTENER),
    ("clusters", types::CLUSTER),
    ("cluster", types::CLUSTER),
    ("secrets", types::SECRET),
    ("secret", types::SECRET),
    ("routes", types::ROUTE_CONFIGURATION),
    ("route_config", types::ROUTE_CONFIGURATION),
    ("route_configs", types::ROUTE_CONFIGURATION),
    ("route_configurations", types::ROUTE_CONFIGURATION),
    ("scoped_routes", types::SCOPED_ROUTE_CONFIGURATION),
    ("virtual_hosts", types::VIRTUAL_HOST),
    ("endpoints", types::CLUSTER_LOAD_ASSIGNMENT),
    ("load_assignments", types::CLUSTER_LOAD_ASSIGNMENT),
    ("runtimes", types::RUNTIME),
    ("extensions", types::TYPED_EXTENSION_CONFIG),
];

/// Explains a document without resources. Returns the problem and its position.
pub(super) fn explain(root: &Node) -> (Position, Problem) {
    let entries = match &root.value {
        Value::Map(entries) => entries,
        Value::List(_) => return (root.at, Problem::Stranger(Stranger::NoKey)),
        Value::String(text) => return explain_text(root, text),
        _ => return (root.at, Problem::NotADocument(root.describe())),
    };

    if let Some(kind) = kubernetes_kind(root) {
        return (root.at, Problem::Stranger(Stranger::Kubernetes { kind }));
    }
    // A resource may have fields with the name of such a list.
    let has_name = ["name", "cluster_name", "clusterName"]
        .iter()
        .any(|key| root.get(key).is_some());
    if !has_name && let Some((position, list)) = entries.iter().find_map(top_level_list) {
        return (position, Problem::Stranger(list));
    }
    if is_bootstrap(entries) {
        return (root.at, Problem::Stranger(Stranger::Bootstrap));
    }
    if let Some((position, key)) = entries.iter().find_map(misspelt_key) {
        return (position, Problem::Stranger(key));
    }
    match guess::resource(root) {
        Some(message) => (root.at, Problem::MissingType(Some(message))),
        None => (root.at, Problem::NotADocument(root.describe())),
    }
}

/// Explains a document that is a text. The space after the colon of its key may
/// be missing.
fn explain_text(root: &Node, text: &str) -> (Position, Problem) {
    let key = text.split(':').next().unwrap_or_default();
    let is_key = [RESOURCES, "static_resources"].contains(&key);
    if !is_key {
        return (root.at, Problem::NotADocument(root.describe()));
    }
    let colon = Position {
        column: root.at.column + key.len(),
        ..root.at
    };
    (colon, Problem::Slip(Slip::ColonSpace(key.to_owned())))
}

/// Returns the kind of a Kubernetes manifest. Returns `None` if the document is
/// not a manifest.
pub(super) fn kubernetes_kind(root: &Node) -> Option<String> {
    let version = root.get("apiVersion")?;
    let kind = root.get("kind")?;
    match (&version.node.value, &kind.node.value) {
        (Value::String(_), Value::String(kind)) => Some(kind.clone()),
        _ => None,
    }
}

/// Returns what a list at the top of a document should be, with its position.
/// Returns `None` for other keys.
fn top_level_list(entry: &Entry) -> Option<(Position, Stranger)> {
    let (key, type_url) = LISTS.iter().find(|(key, _)| *key == entry.key)?;
    let static_types = [types::LISTENER, types::CLUSTER, types::SECRET];
    let list = Stranger::List {
        key: (*key).to_owned(),
        type_url,
        is_static: static_types.contains(type_url) && key.ends_with('s'),
    };
    Some((entry.at, list))
}

/// Returns the key of a document that is nearest to this key, with the
/// position. Returns `None` if none is near.
fn misspelt_key(entry: &Entry) -> Option<(Position, Stranger)> {
    let keys = [RESOURCES, "static_resources", ALLOW_REMOVAL, "configs"];
    let nearest_name = nearest(&entry.key, keys.map(str::to_owned))?;
    let name = entry.key.clone();
    Some((
        entry.at,
        Stranger::Key {
            name,
            near: nearest_name,
        },
    ))
}

/// Returns whether all keys are fields of a bootstrap.
fn is_bootstrap(entries: &[Entry]) -> bool {
    let bootstrap = descriptor::message("envoy.config.bootstrap.v3.Bootstrap");
    bootstrap.is_some_and(|bootstrap| {
        let is_field = |entry: &Entry| {
            let key = entry.key.as_str();
            bootstrap.get_field_by_name(key).is_some()
                || bootstrap.get_field_by_json_name(key).is_some()
        };
        !entries.is_empty() && entries.iter().all(is_field)
    })
}

/// Proposes to move a list into the static resources of a bootstrap, if those
/// have one of its name.
fn below_static(is_static: bool, key: &str) -> String {
    match is_static {
        true => format!("`{key}:` below `static_resources:`, or "),
        false => String::new(),
    }
}

/// Returns the proposal for what to use in place of a Kubernetes manifest.
fn propose_replacement(kind: &str) -> &'static str {
    match kind {
        "ConfigMap" | "Secret" => {
            "mount it and name the directory, or put the texts of its `data:` into files"
        }
        _ => "write the listeners, routes and clusters of Envoy that it stands for",
    }
}
