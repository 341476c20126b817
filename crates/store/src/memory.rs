//! A store in memory: it outlives nothing, and has the history of a server that
//! keeps no files.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline::checked::{Row, RowChange, RowKey};
use trunkline::{
    Kept, LeaseChange, LeaseTtl, Repeatable, Store, StoreError, StoredTransaction, TransactionInfo,
};

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    /// The number of transactions that are kept.
    history: u64,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    rows: BTreeMap<RowKey, Row>,
    transactions: VecDeque<StoredTransaction>,
    leases: BTreeMap<Arc<str>, LeaseTtl>,
    keys: HashMap<String, Repeatable>,
}

impl MemoryStore {
    /// Makes an empty store, in which so many transactions are kept.
    #[must_use]
    pub fn new(history: u64) -> Self {
        Self {
            state: Mutex::default(),
            history,
        }
    }

    /// Locks the state. A panic of another thread does not keep this one from
    /// it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds a transaction to the history, and applies its rows, its lease and
    /// its idempotency key.
    fn add(&mut self, transaction: &StoredTransaction) {
        let info = &transaction.info;
        for change in &transaction.changes {
            match &change.after {
                Some(row) => self.rows.insert(change.key.clone(), row.clone()),
                None => self.rows.remove(&change.key),
            };
        }

        match transaction.lease {
            LeaseChange::Kept => {}
            LeaseChange::Starts(ttl) => _ = self.leases.insert(info.origin.as_str().into(), ttl),
            LeaseChange::Ends => _ = self.leases.remove(info.origin.as_str()),
        }
        if let Some((key, request)) = &transaction.repeatable {
            let repeatable = Repeatable {
                revision: info.revision,
                request: *request,
            };
            self.keys.insert(key.clone(), repeatable);
        }

        self.revision = info.revision;
        self.transactions.push_back(transaction.clone());
    }

    /// Forgets the oldest transaction, and its idempotency key.
    fn forget_oldest(&mut self) {
        let oldest = self.transactions.pop_front();
        if let Some((key, _)) = oldest.and_then(|oldest| oldest.repeatable) {
            self.keys.remove(&key);
        }
    }
}

impl Store for MemoryStore {
    fn load(&self) -> Result<Kept, StoreError> {
        let state = self.lock();
        let rows = state.rows.iter();
        let leases = state.leases.iter();
        Ok(Kept {
            revision: state.revision,
            rows: rows.map(|(key, row)| (key.clone(), row.clone())).collect(),
            leases: leases
                .map(|(origin, ttl)| (Arc::clone(origin), *ttl))
                .collect(),
            recent: Vec::new(),
        })
    }

    /// Applies the transactions in their order, and forgets the oldest ones
    /// beyond the history.
    fn commit(&self, transactions: &[StoredTransaction]) -> Result<(), StoreError> {
        let mut state = self.lock();
        for transaction in transactions {
            state.add(transaction);
            while state.transactions.len() as u64 > self.history.max(1) {
                state.forget_oldest();
            }
        }
        Ok(())
    }

    /// Returns the newest transactions before a revision, the newest first.
    fn transactions(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TransactionInfo>, StoreError> {
        let state = self.lock();
        let newest_first = state.transactions.iter().rev();
        let infos = newest_first.map(|transaction| &transaction.info);
        let infos = infos.filter(|info| before.is_none_or(|end| info.revision < end));
        Ok(infos.take(limit).cloned().collect())
    }

    /// Returns the changes of a revision; `None` if it is forgotten, or there was
    /// none.
    fn changes(&self, revision: u64) -> Result<Option<Vec<RowChange>>, StoreError> {
        let state = self.lock();
        let mut transactions = state.transactions.iter();
        let transaction = transactions.find(|transaction| transaction.info.revision == revision);
        Ok(transaction.map(|transaction| transaction.changes.clone()))
    }

    fn find_key(&self, key: &str) -> Result<Option<Repeatable>, StoreError> {
        Ok(self.lock().keys.get(key).copied())
    }

    /// Fails always: there is no file to copy.
    fn back_up(&self) -> Result<std::fs::File, StoreError> {
        Err(StoreError::Unsupported(
            "contents are kept in memory; a server with --data DIR can be backed up",
        ))
    }
}
