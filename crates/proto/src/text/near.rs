//! The nearest of some names, for "did you mean".

/// Finds the candidate that is a slip of the fingers away from `name`: the
/// nearest one, if it differs in one character, or in at most a third of them.
/// Two characters that changed places are one slip; upper and lower case, and
/// dashes and underscores, are all the same. Of several that are as near, the
/// first in alphabetical order. `None` if none is near enough.
pub fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    // Longer names are not compared: the cost grows with the square.
    const LONGEST: usize = 128;
    if name.len() > LONGEST {
        return None;
    }
    let name = comparable(name);
    let most_slips = (name.len() / 3).max(1);
    let compared = candidates.into_iter().filter(|c| c.len() <= LONGEST);
    let scored = compared.map(|candidate| (distance(&name, &comparable(&candidate)), candidate));
    let (slips, best) = scored.min()?;
    (slips <= most_slips).then_some(best)
}

/// Returns the characters of a name, without differences that are no slips.
fn comparable(name: &str) -> Vec<char> {
    let lower = name.chars().flat_map(char::to_lowercase);
    lower.map(|c| if c == '-' { '_' } else { c }).collect()
}

/// Counts the insertions, deletions, substitutions and swaps of neighbours that
/// make `target` out of `source`, as few as possible (Levenshtein, with swaps).
fn distance(source: &[char], target: &[char]) -> usize {
    // The distances of the part of `source` that was read to each beginning of
    // `target`; those of the part before, and of the one before that.
    let mut row: Vec<usize> = (0..=target.len()).collect();
    let mut previous_row = row.clone();
    let mut row_before = row.clone();

    for (row_index, from_char) in source.iter().enumerate() {
        std::mem::swap(&mut row_before, &mut previous_row);
        std::mem::swap(&mut previous_row, &mut row);
        row[0] = row_index + 1;
        for (column, to_char) in target.iter().enumerate() {
            let substitute = previous_row[column] + usize::from(from_char != to_char);
            let delete = previous_row[column + 1] + 1;
            let insert = row[column] + 1;
            let mut least = substitute.min(delete).min(insert);
            let is_swap = row_index > 0
                && column > 0
                && from_char == &target[column - 1]
                && &source[row_index - 1] == to_char;
            if is_swap {
                least = least.min(row_before[column - 1] + 1);
            }
            row[column + 1] = least;
        }
    }
    row[target.len()]
}

#[test]
fn a_slip_is_found_and_a_stranger_is_not() {
    let fields = || ["address", "health_check"].map(str::to_owned);
    assert_eq!(nearest("adress", fields()).as_deref(), Some("address"));
    assert_eq!(nearest("bananas", fields()), None);
    assert_eq!(nearest("x", []), None);

    let near = |name, known: &str| nearest(name, [known.to_owned()]).is_some();
    assert!(near("nmae", "name"), "two characters changed places");
    assert!(
        near("round-robin", "ROUND_ROBIN"),
        "case and dashes are no slips"
    );
    assert!(!near("ab", "ba_c"));
}
