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

/// Adds the entries of merge keys to the written ones. Written entries win, and
/// then those of an earlier mapping. Two written entries with one key are a
/// mistake, and so is a merge key whose value is neither a mapping nor a list
/// of mappings.
pub(super) fn merge_entries(
    mut entries: Vec<Entry>,
    merges: Vec<Node>,
) -> Result<Vec<Entry>, Fault> {
    refuse_duplicates(&entries)?;
    if merges.is_empty() {
        return Ok(entries);
    }
    // One set for all of them: there may be as many mappings as entries.
    let mut known: HashSet<String> = entries.iter().map(|e| e.key.clone()).collect();
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
            let added = merged.into_iter();
            entries.extend(added.filter(|e| known.insert(e.key.clone())));
        }
    }
    Ok(entries)
}
