//! Seeds of worlds that failed once, by the kind of world.

/// The seeds of a kind: `relays`, `variants`, `wild`, `trees`, `servers` or
/// `snapshots`.
pub(crate) fn seeds(kind: &str) -> Vec<u64> {
    let lines = include_str!("../seeds.txt").lines();
    let seeds = lines.filter_map(|line| {
        let (first, rest) = line.split_once(' ')?;
        match first.parse() {
            Ok(seed) => (kind == "relays").then_some(seed),
            Err(_) if first == kind => rest.split_whitespace().next()?.parse().ok(),
            Err(_) => None,
        }
    });
    seeds.collect()
}
