//! The ports that guides name, and free ones in their place: two runs of one
//! guide, or a server that somebody runs, do not disturb each other.

use std::collections::BTreeMap;

/// Free ports by the ports of the guides.
#[derive(Debug)]
pub(crate) struct Ports(BTreeMap<u16, u16>);

/// Every port that a guide or an example names.
const NAMED: [u16; 12] = [
    18_000, 18_001, 18_002, 18_010, 18_011, 10_000, 10_001, 10_002, 9_901, 8_080, 50_051, 50_052,
];

impl Ports {
    pub(crate) fn new() -> Self {
        Self(NAMED.map(|port| (port, interop::free_port())).into())
    }

    /// The text with free ports in place of those that the guides name.
    pub(crate) fn replace(&self, text: &str) -> String {
        replace_numbers(text, &self.0)
    }

    /// The text with the ports of the guides in place of the free ones.
    pub(crate) fn restore(&self, text: &str) -> String {
        let back = self.0.iter().map(|(named, free)| (*free, *named));
        replace_numbers(text, &back.collect())
    }
}

/// Replaces numbers that stand for themselves, not within a longer word.
fn replace_numbers(text: &str, replacements: &BTreeMap<u16, u16>) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let word = &rest[start..];
        let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
        result.push_str(&rest[..start]);
        let number = word[..end].parse::<u16>().ok();
        match number.and_then(|number| replacements.get(&number)) {
            Some(replacement) => result.push_str(&replacement.to_string()),
            None => result.push_str(&word[..end]),
        }
        rest = &word[end..];
    }
    result + rest
}

#[test]
fn only_whole_numbers_are_replaced() {
    let replacements = BTreeMap::from([(8080, 20_001)]);
    assert_eq!(
        replace_numbers("a:8080, s/8080/ 18080 8080a", &replacements),
        "a:20001, s/20001/ 18080 8080a"
    );
}
