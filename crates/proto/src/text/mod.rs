//! YAML and JSON, both ways.
//!
//! A file holds `resources:` with a list (the form in which Envoy reads a
//! directory), or one resource with its `"@type"`; each may stand in an
//! `envoy.service.discovery.v3.Resource`, which gives it a name, a version, a
//! TTL or aliases. Or it is a bootstrap of Envoy, of which `static_resources`
//! are taken, or a `/config_dump`. Several YAML documents may stand in one file.
//!
//! Scalars are read as Envoy 1.40 reads them: the same spellings, the same
//! values. YAML first makes a null, a boolean, a number or a text of each
//! (`schema`), and then the field decides which of those it takes (`read`), as
//! in JSON.
//!
//! A resource of an unknown type is written as `"@type"` and `value`, its bytes
//! in base64.
//!
//! ```text
//! text ── yaml / json ── tree with positions ── read (descriptor walk) ── DynamicMessage
//! text ── write/{yaml,json} ── tree ── write (descriptor walk) ── DynamicMessage
//! ```
//!
//! The walk is written here, and not taken from a JSON library, because every
//! mistake must say where it is: file, line, column and field.
//!
//! ```
//! use trunkline_proto::text;
//!
//! let read = text::read("c.yaml", r#"
//! resources:
//! - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
//!   name: a
//!   conect_timeout: 1s
//! "#, &text::Options::default());
//! assert_eq!(
//!     read.errors[0].to_string(),
//!     "c.yaml:5:3: resources[0]: unknown field \"conect_timeout\" in Cluster, \
//!      did you mean \"connect_timeout\"?",
//! );
//! ```

mod binary;
mod bootstrap;
mod budget;
mod document;
mod dump;
mod error;
mod guess;
mod json;
mod listener_name;
mod locate;
mod loss;
mod manifest;
mod message;
mod near;
mod node;
mod plain;
mod raw;
mod read;
mod readable;
mod resource;
mod schema;
mod slip;
mod stranger;
#[cfg(test)]
mod tests;
mod time;
mod tree;
mod write;
mod yaml;

pub use binary::{is_binary, read_bytes, read_text_as};
pub use document::{Document, read, read_as};
pub use error::{Problem, TextError};
pub use locate::find_text;
pub use loss::{Loss, loss};
pub use message::{Written, read_message};
pub use near::nearest;
pub use node::read_node;
pub use plain::parse;
pub use raw::{Raw, Spot};
pub use readable::Readable;
pub use resource::Resource;
pub use slip::Slip;
pub use stranger::Stranger;
pub use time::print_timestamp;
pub(crate) use time::{MAX_SECONDS, print_duration};
pub use tree::{Entry, Node, Position, Value};
pub use write::{to_json, to_node, to_yaml};

/// Options of reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The treatment of unknown fields.
    pub unknown: Unknown,
    /// Reads constraints that are written as a text; without it, they have to
    /// be messages.
    pub readable: Option<Readable>,
    /// Reads manifests of Kubernetes as resources of collections; without it,
    /// they are a mistake.
    pub manifests: bool,
    /// Limits of reading.
    pub limits: Limits,
}

/// The treatment of unknown fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unknown {
    /// A mistake: the resource is refused.
    #[default]
    Refuse,
    /// A warning: the field is left out.
    Warn,
}

/// Bounds on a text. All of them are typed errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text.
    pub bytes: usize,
    /// Bytes of a binary file that is read in [pieces](crate::pieces).
    pub binary: u64,
    /// Mappings and lists inside each other.
    pub depth: usize,
    /// Bytes of memory that reading takes, by the estimate of what each value
    /// and each message costs: a value of two bytes may take a thousand.
    pub memory: u64,
    /// Values that anchors and aliases may copy, together. Their bytes count as
    /// if they were written out, against those of a text.
    pub expanded: usize,
    /// Mistakes and warnings that are reported, each.
    pub errors: usize,
}

impl Default for Limits {
    /// Makes limits that the files of large installations stay below.
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            binary: 4 << 30,
            depth: 100,
            memory: 32 << 30,
            expanded: 1 << 18,
            errors: 100,
        }
    }
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// JSON.
    Json,
}

impl Format {
    /// Returns the format of a text by the name of its file: JSON if that ends
    /// in `.json`, in upper or lower case, and YAML otherwise.
    #[must_use]
    pub fn of(file: &str) -> Self {
        match file.rsplit_once('.') {
            Some((_, end)) if end.eq_ignore_ascii_case("json") => Self::Json,
            _ => Self::Yaml,
        }
    }
}
