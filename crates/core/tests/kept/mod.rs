//! Seeds of worlds that failed once, by the kind of world.

/// The seeds of a kind: `relays`, `variants`, `wild` or `trees`.
pub(crate) fn seeds(kind: &str) -> Vec<u64> {
    let lines = include_str!("../seeds.txt").lines();
    let seeds = lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap();
            match first.parse() {
                Ok(seed) => (kind == "relays").then_some(seed),
                Err(_) => (first == kind).then(|| words.next().unwrap().parse().unwrap()),
            }
        });
    seeds.collect()
}
