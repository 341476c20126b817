//! The few words of random configurations and requests, so that they often meet.

use fastrand::Rng;

const LABELS: &[&str] = &["a", "b", "c", "Up"];
const SEGMENTS: &[&str] = &[
    "a", "b", "ab", "A", "x.y", "7", "..", ".", "", "%41", "a%2Fb", "a;p=1",
];

/// Names of headers that requests have and routes look at.
pub(crate) const NAMES: &[&str] = &["x-a", "x-b", "x-n"];

/// One of some words.
pub(crate) fn one<'w>(random: &mut Rng, words: &[&'w str]) -> &'w str {
    words[random.usize(..words.len())]
}

/// Whether something is so, once in so many times.
pub(crate) fn once_in(random: &mut Rng, times: u8) -> bool {
    random.u8(..times) == 0
}

/// A host.
pub(crate) fn host(random: &mut Rng) -> String {
    let labels = 1 + random.usize(..3);
    let labels: Vec<&str> = (0..labels).map(|_| one(random, LABELS)).collect();
    labels.join(".")
}

/// A path of some segments.
pub(crate) fn path(random: &mut Rng, most: usize) -> String {
    let count = random.usize(..=most);
    let segments: Vec<&str> = (0..count).map(|_| one(random, SEGMENTS)).collect();
    format!("/{}", segments.join("/"))
}
