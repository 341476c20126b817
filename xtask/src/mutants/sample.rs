//! A random order that a seed decides.

/// The names in an order that depends on the names and the seed alone.
pub(super) fn shuffled(mut names: Vec<String>, seed: u64) -> Vec<String> {
    names.sort();
    let mut state = seed;
    for last in (1..names.len()).rev() {
        let bound = last as u64 + 1;
        // The remainder is below `last + 1`, so it fits where `last` does.
        let chosen = (next(&mut state) % bound) as usize;
        names.swap(last, chosen);
    }
    names
}

/// SplitMix64: small, and even enough to draw a sample.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        (0..50).map(|n| format!("{n:02}")).collect()
    }

    #[test]
    fn the_seed_decides() {
        let mut reversed = names();
        reversed.reverse();
        assert_eq!(shuffled(names(), 7), shuffled(reversed, 7));
        assert_ne!(shuffled(names(), 7), shuffled(names(), 8));
    }

    #[test]
    fn nothing_is_lost() {
        let mut back = shuffled(names(), 7);
        back.sort();
        assert_eq!(back, names());
    }
}
