//! The nearest of some names, for "did you mean".

/// Finds the candidate that is a slip of the fingers away from `name`: the
/// nearest one, if it differs in one character, or in at most a third of them.
pub fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    // Longer names are not compared: the cost grows with the square.
    const LONGEST: usize = 128;
    if name.len() > LONGEST {
        return None;
    }
    let most_slips = (name.chars().count() / 3).max(1);
    let scored = candidates
        .into_iter()
        .filter(|c| c.len() <= LONGEST)
        .map(|c| (distance(name, &c), c));
    let (score, best) = scored.min()?;
    (score <= most_slips).then_some(best)
}

/// Counts the insertions, deletions and substitutions between two texts
/// (Levenshtein). `row` has the distances of the beginning of `a` that was read
/// so far to each beginning of `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[test]
fn a_slip_is_found_and_a_stranger_is_not() {
    let fields = || ["address", "health_check"].map(str::to_owned);
    assert_eq!(nearest("adress", fields()).as_deref(), Some("address"));
    assert_eq!(nearest("bananas", fields()), None);
    assert_eq!(nearest("x", []), None);
}
