//! Merge keys: `<<` adds the entries of other mappings to the one around it.

use std::collections::HashSet;

use super::{
    super::{
        error::Problem,
        json::refuse_duplicates,
        tree::{Entry, Node, Value},
    },
    Fault,
};

/// Adds the entries of merge keys to the written entries. A written entry takes
/// precedence, and then that of an earlier mapping.
///
/// # Errors
/// Two written entries have the same key, or the value of a merge key is
/// neither a mapping nor a list of mappings.
pub(super) fn merge_entries(
    mut entries: Vec<Entry>,
    merges: Vec<Node>,
) -> Result<Vec<Entry>, Fault> {
    refuse_duplicates(&entries)?;
    if merges.is_empty() {
        return Ok(entries);
    }

    // One set serves all mappings: there may be as many mappings as entries, and
    // a set for each would take quadratic time.
    let mut keys: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for merge in merges {
        let position = merge.at;
        let sources = match merge.value {
            Value::List(list) => list,
            value => vec![Node { value, ..merge }],
        };
        for source in sources {
            let Value::Map(merged) = source.value else {
                return Err((position, Problem::BadMerge));
            };
            let candidates = merged.into_iter();
            entries.extend(candidates.filter(|entry| keys.insert(entry.key.clone())));
        }
    }
    Ok(entries)
}
