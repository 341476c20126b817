//! The resources that the client of a scenario holds: accepted, and not removed
//! since. In the words of the scenario, for nothing else is compared with them.

use std::collections::BTreeMap;

use trunkline_core::kind::Kind;
use trunkline_core::message::{Locator, Mode};
use trunkline_core::resource::TypeUrl;

/// The resources of each type: the texts before and after the `@`.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<TypeUrl, BTreeMap<String, String>>);

impl Held {
    /// Takes the parts of a response, but for the rejected ones. Returns the
    /// names that it drops.
    pub(super) fn take(
        &mut self,
        mode: Mode,
        url: &TypeUrl,
        parts: &[String],
        rejected: &[String],
    ) -> Vec<String> {
        let held = self.0.entry(url.clone()).or_default();
        let before: Vec<String> = held.keys().cloned().collect();
        let whole = mode == Mode::Sotw && Kind::of(url).whole_set;
        if whole {
            let listed = |name: &str| parts.iter().any(|part| name_of(part) == name);
            held.retain(|name, _| listed(name));
        }
        for part in parts {
            let (name, body) = (name_of(part), part.split_once('@'));
            match body {
                _ if rejected.iter().any(|bad| part[1..] == **bad) => {}
                Some((_, body)) if part.starts_with('+') => {
                    held.insert(name.to_owned(), body.to_owned());
                }
                _ if part.starts_with('-') => {
                    held.remove(name);
                }
                _ => {}
            }
        }
        let lost = before.into_iter().filter(|name| !held.contains_key(name));
        lost.collect()
    }

    /// It held this before the stream began.
    pub(super) fn had(&mut self, url: &TypeUrl, name: &str, body: &str) {
        let held = self.0.entry(url.clone()).or_default();
        held.insert(name.to_owned(), body.to_owned());
    }

    /// It has no other subscription of a type any more.
    pub(super) fn keep_only(&mut self, url: &TypeUrl, names: &[Locator]) {
        let all = |locator: &Locator| locator.name.ends_with('*');
        if let Some(held) = self.0.get_mut(url)
            && !names.iter().any(all)
        {
            held.retain(|name, _| names.iter().any(|locator| locator.name == *name));
        }
    }

    /// All of a type, as it is written.
    pub(super) fn of(&self, url: &TypeUrl) -> Vec<String> {
        let held = self.0.get(url).into_iter().flatten();
        held.map(|(name, body)| format!("{name}@{body}")).collect()
    }
}

/// The name in a part of a response.
fn name_of(part: &str) -> &str {
    part[1..].split(['@', '(']).next().unwrap_or_default()
}
