//! The table of rules: what each says, which tests prove it, and the page that
//! is made of it.
//!
//! `rules.txt` is the list. A rule is proved by a scenario that names it in its
//! header, by a test whose name begins with it (`s35_…`, `s18_s19_…`), or by a
//! test with a comment `// rule: C11`.

mod evidence;
mod list;
mod page;

pub use evidence::{Evidence, find};
pub use list::{Family, Rule, families};
pub use page::page;

/// Every rule that should be proved by a test and is not, and every rule that
/// is named and does not exist.
#[must_use]
pub fn faults(families: &[Family], evidence: &[Evidence]) -> Vec<String> {
    let rules = || families.iter().flat_map(|family| &family.rules);
    let unshown = rules()
        .filter(|rule| rule.later.is_none())
        .filter(|rule| evidence.iter().all(|e| e.rule != rule.number))
        .map(|rule| format!("{}: no scenario and no test names it", rule.number));
    let unknown = evidence
        .iter()
        .filter(|e| rules().all(|rule| rule.number != e.rule))
        .map(|e| format!("{}: {} names it, but there is no such rule", e.rule, e.file));
    unshown.chain(unknown).collect()
}
