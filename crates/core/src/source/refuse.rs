//! Refused names, which are answered and not remembered (S72).

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use super::TypeStream;
use crate::database::Database;
use crate::name::Name;

/// Refused names that wait to be answered: a proxy that reconnects lists every
/// host that anybody ever sent it.
const MAX_REFUSED: usize = 256 << 10;

/// The same limit for names of more than [`SHORT_NAME`] bytes.
const MAX_LONG_REFUSED: usize = 16 << 10;

/// The most bytes of a name that is not unusually long.
const SHORT_NAME: usize = 256;

impl TypeStream {
    /// Records a name to be answered as refused, so that the client does not
    /// wait (S72). A name that the client has by another subscription is not
    /// recorded, since the answer would take its resource away. Nor are names
    /// beyond [`MAX_REFUSED`], which no client needs.
    pub(crate) fn refuse(&mut self, db: &Database, name: &Name) {
        let limit = match name.as_str().len() <= SHORT_NAME {
            true => MAX_REFUSED,
            false => MAX_LONG_REFUSED,
        };
        if self.refused.len() < limit
            && !self.has_interest(db, name)
            && self.refused.insert(name.clone())
        {
            let hash = BuildHasherDefault::<DefaultHasher>::default();
            self.refusing_hash = self.refusing_hash.wrapping_add(hash.hash_one(name));
        }
    }

    /// Compares the refused names of a list that was read with those of the
    /// list before. Returns whether they differ; if not, they are dropped,
    /// unless `is_unsent` says that the last ones were not sent yet. A client
    /// repeats its list with every ACK, so a refusal that was sent is not
    /// repeated: the client would acknowledge for ever (S9, S72). Called once
    /// for each list.
    pub(crate) fn update_refusals(&mut self, is_unsent: bool) -> bool {
        let hash = self.refusing_hash;
        let is_changed = std::mem::replace(&mut self.refused_hash, hash) != hash;
        if !is_changed && !is_unsent {
            self.refused.clear();
        }
        is_changed
    }
}
