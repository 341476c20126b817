//! The nearest of some names, for "did you mean".

/// Returns the candidate that is nearest to `name`. They may differ in one
/// character, or in at most a third of the characters. A swap of two neighbours
/// counts as one difference; case, and dashes or underscores, count as none. Of
/// equally near candidates, returns the first in alphabetical order. Returns
/// `None` if none is near enough.
pub fn nearest(name: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    // The cost grows with the square of the length, so long names are skipped.
    const LONGEST: usize = 128;
    if name.len() > LONGEST {
        return None;
    }
    let name = comparable(name);
    let max_distance = (name.len() / 3).max(1);
    let compared = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST);
    let scored = compared.map(|candidate| (distance(&name, &comparable(&candidate)), candidate));
    let (distance_to_best, best) = scored.min()?;
    (distance_to_best <= max_distance).then_some(best)
}

/// Returns the characters of a name, without differences that are no slips.
fn comparable(name: &str) -> Vec<char> {
    let lower = name.chars().flat_map(char::to_lowercase);
    lower.map(|c| if c == '-' { '_' } else { c }).collect()
}

/// Returns the least number of insertions, deletions, substitutions and swaps
/// of neighbours that turn `source` into `target` (Levenshtein, with swaps).
fn distance(source: &[char], target: &[char]) -> usize {
    // `row` has the distances from the first characters of `source` to each
    // beginning of `target`. The other two rows are those for one and for two
    // characters less.
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
