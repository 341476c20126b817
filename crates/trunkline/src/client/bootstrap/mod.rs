//! The bootstrap of a client: who it is, and which control planes it asks.
//!
//! ```text
//! text ── read_message, tree ──▶ messages with places ── envoy, grpc ──▶ Bootstrap
//!                                 config sources ── resolve ──▶ ConfigSource, ControlPlane
//! ```
//!
//! Envoy's form and gRPC's are read into one value, which is valid: every
//! cluster that a source names is there, every certificate has its key. All
//! mistakes of a text are reported at once, each with line, field and remedy.
//!
//! What a bootstrap cannot say by itself, it says in these places:
//!
//! | | Envoy's | gRPC's |
//! |---|---|---|
//! | dynamic parameters (TP2) | `node.metadata.trunkline.dynamic_parameters: {env: prod}` | `dynamic_parameters` |
//! | those of an authority | `node.metadata.trunkline.authorities.NAME.dynamic_parameters` | `authorities.NAME.dynamic_parameters` |
//! | those of a type | `node.dynamic_parameters` | `node.dynamic_parameters` |
//! | from node metadata | `node.metadata.trunkline.dynamic_parameters_from_metadata: [KEY]` | `dynamic_parameters_from_metadata` |
//! | a server takes locators | cluster `metadata: {filter_metadata: {trunkline: {dynamic_parameters: true}}}` | `server_features: [dynamic_parameters]` |

mod authority;
mod envoy;
mod error;
mod grpc;
mod listener_name;
mod node;
mod params;
mod policy;
mod problem;
mod provider;
mod report;
mod resolve;
mod statics;
mod target;
mod tree;
mod value;

pub use authority::{Authority, AuthoritySource};
pub use error::{ConfigError, Mistake, Place};
pub use listener_name::{ListenerTemplates, TargetError};
pub(super) use node::envoy_node;
pub use params::DynamicParameters;
pub use policy::DataSourcePolicy;
pub use problem::Problem;
pub use provider::FileWatcher;
pub use statics::StaticResource;
pub use value::{Bootstrap, RuntimeLayer};

use std::path::Path;

use trunkline_proto::text::{self, Format, Limits, Value};

/// Reads a file as text.
fn read_file(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|error| {
        let file = path.display().to_string();
        let reason = error.to_string();
        Mistake::about_file(&file, Problem::Unreadable { reason }).into()
    })
}

/// Returns the format of a text: JSON begins with a brace and a quote, whatever
/// its file is called.
fn format_of(file: &str, text: &str) -> Format {
    match text.trim_start().strip_prefix('{') {
        Some(rest) if rest.trim_start().starts_with(['"', '}']) => Format::Json,
        _ => Format::of(file),
    }
}

/// Returns whether a text is a bootstrap of gRPC rather than of Envoy: only
/// gRPC's has `xds_servers`. A text that cannot be parsed counts as Envoy's.
fn is_grpc(format: Format, file: &str, text: &str) -> bool {
    let documents = text::parse(format, file, text, &Limits::default());
    let root = documents
        .ok()
        .and_then(|documents| documents.into_iter().next());
    match root.map(|root| root.value) {
        Some(Value::Map(entries)) => entries.iter().any(|entry| entry.key == grpc::SERVERS),
        _ => false,
    }
}
