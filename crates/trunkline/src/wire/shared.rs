//! Strings that many resources have in common, kept once: type URLs, and the
//! names of references.

use std::collections::{HashMap, HashSet};

use trunkline_core::facts::{Facts, RareFacts, Reference};
use trunkline_core::hosts::Domains;
use trunkline_core::name::Name;
use trunkline_core::resource::{TypeUrl, Version};
use trunkline_proto::descriptor::types;
use trunkline_proto::{descriptor, facts, redact};

/// The maximum of remembered names; where all of them differ there is nothing
/// to share.
const MAX_NAMES: usize = 1 << 16;
/// The maximum of remembered spellings of types.
const MAX_URLS: usize = 1 << 10;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Shared {
    urls: HashMap<String, TypeUrl>,
    names: HashSet<Name>,
}

impl Shared {
    /// Returns a type in the spelling that clients use, as a shared copy. An
    /// unknown type keeps the spelling that it has.
    pub(super) fn canonical_url(&mut self, spelling: &str) -> TypeUrl {
        if let Some(canonical) = self.urls.get(spelling) {
            return canonical.clone();
        }
        let url = match descriptor::message(spelling) {
            Some(message) => TypeUrl::new(format!("type.googleapis.com/{}", message.full_name())),
            None => TypeUrl::new(spelling),
        };

        if self.urls.len() >= MAX_URLS {
            self.urls.clear();
        }
        self.urls.insert(spelling.to_owned(), url.clone());
        url
    }

    /// Returns the shared copy of a name.
    fn intern_name(&mut self, text: &str) -> Name {
        if let Some(shared_name) = self.names.get(text) {
            return shared_name.clone();
        }
        let name = Name::new(text);
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(name.clone());
        name
    }

    /// Converts the facts of a body into the engine's, and adds those of its
    /// wrapper. References are sorted and unique. Returns `None` if there are
    /// no facts, as of most endpoints.
    pub(super) fn convert_facts(
        &mut self,
        body_facts: facts::Facts,
        wrapper: Option<RareFacts>,
    ) -> Option<Box<Facts>> {
        let reference = |(type_url, name): (&str, String)| Reference {
            type_url: self.canonical_url(type_url),
            name: self.intern_name(&name),
        };
        let references = body_facts.references.into_iter().map(reference);
        let mut references: Vec<Reference> = references.collect();
        // Two spellings of one name become equal only by the conversion.
        references.sort();
        references.dedup();

        let mut rare = wrapper.unwrap_or_default();
        rare.base_sets = body_facts.base_sets.into_iter().map(Box::from).collect();
        rare.inline_vhds_routes = body_facts
            .leaves
            .iter()
            .map(|name| Name::new(name))
            .collect();
        rare.vhds_version = body_facts.vhds.map(|vhds| Version::of_body(&vhds));
        rare.ignores_port = body_facts.ignores_port;
        rare.holds_keys = body_facts.holds_keys;
        rare.holds_secrets = body_facts.holds_secrets || has_secret_metadata(&rare);

        let facts = Facts {
            references: references.into(),
            domains: Domains::new(body_facts.domains),
            rare: rare.boxed(),
        };
        (facts != Facts::default()).then(|| Box::new(facts))
    }
}

/// Returns whether the metadata beside a body has something that is never
/// shown.
fn has_secret_metadata(rare: &RareFacts) -> bool {
    let metadata = rare.metadata.clone();
    let values = metadata.and_then(|metadata| redact::values(types::METADATA, metadata));
    values.is_some_and(|values| !values.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::kind;

    fn referring(names: &[&str]) -> facts::Facts {
        let references = names.iter().map(|name| (kind::CDS, (*name).to_owned()));
        facts::Facts {
            references: references.collect(),
            ..facts::Facts::default()
        }
    }

    #[test]
    fn what_two_resources_refer_to_is_kept_once() {
        let mut shared = Shared::default();
        let one = shared.convert_facts(referring(&["a", "b"]), None).unwrap();
        let two = shared.convert_facts(referring(&["b"]), None).unwrap();
        let same = |x: &str, y: &str| std::ptr::eq(x, y);
        let (b, other) = (&one.references[1], &two.references[0]);
        assert!(same(b.name.as_str(), other.name.as_str()));
        assert!(same(b.type_url.as_str(), other.type_url.as_str()));
    }

    #[test]
    fn two_spellings_of_a_name_are_one_reference() {
        let spellings = ["xdstp://a/t/x?b=2&a=1", "xdstp://a/t/x?a=1&b=2"];
        let facts = Shared::default().convert_facts(referring(&spellings), None);
        assert_eq!(facts.unwrap().references.len(), 1);
    }
}
