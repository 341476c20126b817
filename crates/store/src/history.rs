//! What became of the contents of a store between two revisions.

use std::collections::BTreeMap;

use trunkline::checked::{Row, RowChange, RowKey};
use trunkline::{Store, StoreError, TransactionInfo};

/// The reasons why two revisions cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Nothing is known of a revision, or nothing any more.
    #[error("revision {revision} is not known: those from {oldest} to {newest} are kept")]
    Unknown {
        /// The revision.
        revision: u64,
        /// The oldest that is known.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
    /// A revision was listed, and has left the history since.
    #[error("revision {revision} has just left the history: try again, with newer revisions")]
    Forgotten {
        /// The revision.
        revision: u64,
    },
    /// There are no revisions.
    #[error("there are no revisions yet: nothing was applied")]
    Empty,
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Transactions that are listed at once.
const PAGE: usize = 100;

/// Returns the changes that lead from the contents of one revision to those of
/// another, which may be the earlier one.
///
/// # Errors
/// A revision is not known, or not any more, or the store cannot be read.
pub fn changes_between(
    store: &dyn Store,
    start: u64,
    end: u64,
) -> Result<Vec<RowChange>, HistoryError> {
    let (first, last) = (start.min(end), start.max(end));
    let revisions = revisions_between(store, first, last)?;
    let mut net_changes: BTreeMap<RowKey, (Option<Row>, Option<Row>)> = BTreeMap::new();
    for revision in revisions {
        let changes = store.changes(revision)?;
        // A change without it would be of other contents than those of `start`.
        let changes = changes.ok_or(HistoryError::Forgotten { revision })?;
        for change in changes {
            let entry = net_changes.entry(change.key);
            let (_, after) = entry.or_insert((change.before, None));
            *after = change.after;
        }
    }

    let changes = net_changes
        .into_iter()
        .map(|(key, (before, after))| RowChange { key, before, after });
    let changes = changes.filter(|change| change.before != change.after);
    if start <= end {
        return Ok(changes.collect());
    }
    Ok(changes.map(|change| change.inverse()).collect())
}

/// Lists the revisions after `first`, up to `last`, oldest first. A revision
/// that the history does not have is an error.
fn revisions_between(store: &dyn Store, first: u64, last: u64) -> Result<Vec<u64>, HistoryError> {
    let mut transactions: Vec<TransactionInfo> = Vec::new();
    loop {
        let last_revision = transactions.last().map(|info| info.revision);
        let page = store.transactions(last_revision, PAGE)?;
        let is_last = page.len() < PAGE;
        transactions.extend(page);
        let reaches_first = transactions
            .last()
            .is_some_and(|info| info.revision <= first);
        if is_last || reaches_first {
            break;
        }
    }

    let (Some(newest), Some(oldest)) = (transactions.first(), transactions.last()) else {
        return Err(HistoryError::Empty);
    };
    let unknown_error = |revision| HistoryError::Unknown {
        revision,
        oldest: oldest.revision,
        newest: newest.revision,
    };

    if first < oldest.revision {
        return Err(unknown_error(first));
    }
    if last > newest.revision {
        return Err(unknown_error(last));
    }

    let revisions = transactions.iter().rev().map(|info| info.revision);
    Ok(revisions
        .filter(|revision| (first + 1..=last).contains(revision))
        .collect())
}

#[cfg(test)]
mod tests {
    use trunkline::{Kept, Repeatable, StoredTransaction};

    use super::*;
    use crate::MemoryStore;
    use crate::suite::{change, row, step, transaction};

    #[test]
    fn changes_of_several_revisions_are_one() {
        let store = MemoryStore::new(4);
        for revision in 1..=4 {
            store.commit(&[step(revision)]).unwrap();
        }
        let (b, text) = (row("b", "", None), |n: u64| {
            row("a", &format!("text {n}"), None)
        });
        let gone = change(Some(text(4)), None);
        let last = transaction(9, vec![change(None, Some(b.clone())), gone]);
        store.commit(&[last]).unwrap();

        let between = |from, to| changes_between(&store, from, to);
        let expected = vec![change(Some(text(2)), Some(text(4)))];
        assert_eq!(between(2, 4).unwrap(), expected);
        assert_eq!(
            between(2, 8).unwrap(),
            expected,
            "none of the store's between"
        );
        let expected = vec![change(Some(text(4)), Some(text(2)))];
        assert_eq!(between(4, 2).unwrap(), expected);
        let expected = vec![change(None, Some(text(3))), change(Some(b), None)];
        assert_eq!(between(9, 3).unwrap(), expected);
        assert!(between(9, 9).unwrap().is_empty());
        let unknown = between(9, 1).unwrap_err().to_string();
        assert_eq!(
            unknown,
            "revision 1 is not known: those from 2 to 9 are kept"
        );
        assert!(between(2, 10).is_err());
    }

    /// A store that forgets a revision as soon as it is listed.
    struct Forgetful(MemoryStore, u64);

    impl Store for Forgetful {
        fn load(&self) -> Result<Kept, StoreError> {
            self.0.load()
        }

        fn commit(&self, transactions: &[StoredTransaction]) -> Result<(), StoreError> {
            self.0.commit(transactions)
        }

        fn transactions(
            &self,
            before: Option<u64>,
            most: usize,
        ) -> Result<Vec<TransactionInfo>, StoreError> {
            self.0.transactions(before, most)
        }

        fn changes(&self, revision: u64) -> Result<Option<Vec<RowChange>>, StoreError> {
            match revision == self.1 {
                true => Ok(None),
                false => self.0.changes(revision),
            }
        }

        fn find_key(&self, key: &str) -> Result<Option<Repeatable>, StoreError> {
            self.0.find_key(key)
        }

        fn back_up(&self) -> Result<std::fs::File, StoreError> {
            self.0.back_up()
        }
    }

    #[test]
    fn a_revision_that_is_forgotten_meanwhile_is_not_left_out() {
        let store = Forgetful(MemoryStore::new(4), 2);
        for revision in 1..=4 {
            store.commit(&[step(revision)]).unwrap();
        }
        let error = changes_between(&store, 4, 1).unwrap_err();
        assert!(matches!(error, HistoryError::Forgotten { revision: 2 }));
        assert!(changes_between(&store, 4, 2).is_ok());
    }
}
