//! Descriptors of Envoy's messages: every message, field, enum and option, as
//! data.
//!
//! The typed messages of `envoy-types` carry no names and no rules, so text
//! ([`text`](crate::text)), field validation ([`validate`](crate::validate))
//! and canonical bytes ([`canonical`](crate::canonical)) work from descriptors
//! instead. These are compiled at build time from the `.proto` files that
//! `envoy-types` ships (see `build.rs`), and loaded on first use, which takes
//! some tens of milliseconds: a server touches [`pool`] before it listens.
//! Before that, [`extend`] adds types that are not built in.

mod extend;
#[cfg(test)]
mod tests;
pub mod types;

pub use extend::{DescriptorFile, ExtendError, extend};

use std::collections::HashSet;
use std::sync::{LazyLock, OnceLock};

use prost_reflect::{DescriptorPool, MessageDescriptor};

static ENCODED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/envoy.bin"));

/// The descriptors of this process: the built-in ones, and those that were
/// added before the first use.
static POOL: OnceLock<DescriptorPool> = OnceLock::new();

/// Makes a pool of the built-in descriptors.
fn built_in() -> DescriptorPool {
    #[expect(
        clippy::expect_used,
        reason = "the bytes are a constant of this build, and every test of this crate loads them"
    )]
    DescriptorPool::decode(ENCODED).expect("the descriptor set of the build is valid")
}

/// Returns all descriptors.
#[must_use]
pub fn pool() -> &'static DescriptorPool {
    POOL.get_or_init(built_in)
}

/// Returns the message of a type URL, if it is known here.
///
/// Only the text after the last slash counts, as everywhere in xDS.
///
/// ```
/// let url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// let cluster = trunkline_proto::descriptor::message(url).unwrap();
/// assert_eq!(cluster.name(), "Cluster");
/// ```
#[must_use]
pub fn message(type_url: &str) -> Option<MessageDescriptor> {
    pool().get_message_by_name(full_name(type_url))
}

/// Returns whether any message has a field of this name, in the spelling of
/// YAML or of JSON.
#[must_use]
pub fn is_field_name(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let fields = pool().all_messages().flat_map(|message| {
            let fields = message.fields();
            let names =
                fields.flat_map(|field| [field.name().to_owned(), field.json_name().into()]);
            names.collect::<Vec<String>>()
        });
        fields.collect()
    });
    NAMES.contains(name)
}

/// Returns the full name of the message in a type URL.
#[must_use]
pub fn full_name(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or(type_url)
}
