//! The nearest of some names, for "did you mean".

/// Finds the candidate that is a slip of the fingers away from `name`: the
/// nearest one, if it differs in one character, or in at most a third of them.
/// Of several that are as near, the first in alphabetical order. `None` if none
/// is near enough.
pub fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    // Longer names are not compared: the cost grows with the square.
    const LONGEST: usize = 128;
    if name.len() > LONGEST {
        return None;
    }
    let most_slips = (name.chars().count() / 3).max(1);
    let compared = candidates.into_iter().filter(|c| c.len() <= LONGEST);
    let scored = compared.map(|candidate| (distance(name, &candidate), candidate));
    let (slips, best) = scored.min()?;
    (slips <= most_slips).then_some(best)
}

/// Counts the insertions, deletions and substitutions that make `to` out of
/// `from`, as few as possible (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // The distances of the part of `from` that was read to each beginning of
    // `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();

    for (i, from_char) in from.chars().enumerate() {
        // The distance before both characters were read.
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to_char) in to.iter().enumerate() {
            let substitute = diagonal + usize::from(from_char != *to_char);
            let delete = row[j + 1] + 1;
            let insert = row[j] + 1;
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(delete).min(insert);
        }
    }
    row[to.len()]
}

#[test]
fn a_slip_is_found_and_a_stranger_is_not() {
    let fields = || ["address", "health_check"].map(str::to_owned);
    assert_eq!(nearest("adress", fields()).as_deref(), Some("address"));
    assert_eq!(nearest("bananas", fields()), None);
    assert_eq!(nearest("x", []), None);
}
