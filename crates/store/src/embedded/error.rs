//! Errors of the engine, as those of a store.

use std::io;
use std::path::Path;

use trunkline::StoreError;

/// The reasons why an access to the file failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// The engine says so.
    Engine(redb::Error),
    /// A record says so.
    Store(StoreError),
}

impl Failed {
    /// Makes the error of a part of the file that makes no sense.
    pub(super) fn damaged(subject: &str, reason: &str) -> Self {
        Self::Store(StoreError::Damaged {
            what: subject.to_owned(),
            reason: reason.to_owned(),
        })
    }

    /// Checks whether the file has to be opened again before the next access.
    /// The engine stops working after an error of the system.
    pub(super) fn closes(&self) -> bool {
        matches!(
            self,
            Self::Engine(
                redb::Error::Io(_) | redb::Error::PreviousIo | redb::Error::DatabaseClosed
            )
        )
    }

    /// Returns the error of a store, with the path of its file.
    pub(super) fn of_file(self, path: &Path) -> StoreError {
        let subject = path.display().to_string();
        match self {
            Self::Store(StoreError::Damaged { what: part, reason }) => StoreError::Damaged {
                what: subject,
                reason: format!("{part}: {reason}"),
            },
            Self::Store(error) => error,
            Self::Engine(redb::Error::DatabaseAlreadyOpen) => StoreError::InUse { what: subject },
            Self::Engine(redb::Error::Io(source)) => match source.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => StoreError::Damaged {
                    what: subject,
                    reason: source.to_string(),
                },
                _ => StoreError::Io {
                    what: subject,
                    source,
                },
            },
            Self::Engine(redb::Error::PreviousIo) => StoreError::Io {
                what: subject,
                source: io::Error::other("an earlier write failed"),
            },
            Self::Engine(redb::Error::UpgradeRequired(version)) => StoreError::Newer {
                what: subject,
                found: version.into(),
                known: super::tables::FORMAT,
            },
            Self::Engine(error) => StoreError::Damaged {
                what: subject,
                reason: error.to_string(),
            },
        }
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<prost::DecodeError> for Failed {
    fn from(error: prost::DecodeError) -> Self {
        Self::damaged("a record", &error.to_string())
    }
}

macro_rules! engine_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                Self::Engine(error.into())
            }
        }
    )*};
}

engine_errors!(
    redb::Error,
    redb::CommitError,
    redb::DatabaseError,
    redb::StorageError,
    redb::TableError,
    redb::TransactionError
);
