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
/// make `to` out of `from`, as few as possible (Levenshtein, with swaps).
fn distance(from: &[char], to: &[char]) -> usize {
    // The distances of the part of `from` that was read to each beginning of
    // `to`; those of the part before, and of the one before that.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    let mut above = row.clone();
    let mut second_above = row.clone();

    for (i, from_char) in from.iter().enumerate() {
        std::mem::swap(&mut second_above, &mut above);
        std::mem::swap(&mut above, &mut row);
        row[0] = i + 1;
        for (j, to_char) in to.iter().enumerate() {
            let substitute = above[j] + usize::from(from_char != to_char);
            let delete = above[j + 1] + 1;
            let insert = row[j] + 1;
            let mut least = substitute.min(delete).min(insert);
            let is_swap = i > 0 && j > 0 && from_char == &to[j - 1] && &from[i - 1] == to_char;
            if is_swap {
                least = least.min(second_above[j - 1] + 1);
            }
            row[j + 1] = least;
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

    let near = |name, known: &str| nearest(name, [known.to_owned()]).is_some();
    assert!(near("nmae", "name"), "two characters changed places");
    assert!(
        near("round-robin", "ROUND_ROBIN"),
        "case and dashes are no slips"
    );
    assert!(!near("ab", "ba_c"));
}
