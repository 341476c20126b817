//! The words of leases: how long the resources of an origin stay.

use std::sync::Arc;
use std::time::Duration;

use super::set::Accepted;
use crate::checked::Finding;

/// How long a lease lasts without a renewal.
///
/// ```
/// use std::time::Duration;
/// use trunkline::LeaseTtl;
///
/// assert!(LeaseTtl::new(Duration::from_secs(30)).is_ok());
/// assert!(LeaseTtl::new(Duration::from_millis(10)).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseTtl(Duration);

/// A time that no lease can last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a lease lasts from 1s to 24h, not {0:?}")]
pub struct LeaseTtlError(Duration);

impl LeaseTtl {
    /// The shortest lease: a shorter one would end by chance.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// The longest lease: what outlives it is not bound to a writer's life.
    pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

    /// Makes the time of a lease.
    ///
    /// # Errors
    /// It is shorter than [`Self::SHORTEST`] or longer than [`Self::LONGEST`].
    pub fn new(ttl: Duration) -> Result<Self, LeaseTtlError> {
        match (Self::SHORTEST..=Self::LONGEST).contains(&ttl) {
            true => Ok(Self(ttl)),
            false => Err(LeaseTtlError(ttl)),
        }
    }

    /// Returns the time.
    #[must_use]
    pub fn get(self) -> Duration {
        self.0
    }
}

/// What a change means for the lease of its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// The origin keeps its lease if it has one.
    #[default]
    Kept,
    /// All resources of the origin stay until they are removed: its lease ends.
    Permanent,
    /// All resources of the origin stay as long as its lease is renewed. The
    /// change starts the lease, or renews it with this time.
    Leased(LeaseTtl),
}

/// The lease of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseStatus {
    /// The name of the origin.
    pub origin: Arc<str>,
    /// How long it lasts without a renewal.
    pub ttl: LeaseTtl,
    /// Its state.
    pub state: LeaseState,
}

/// The state of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// It ends after this time, unless it is renewed.
    Active {
        /// The time that is left.
        remaining: Duration,
    },
    /// It has ended, and the resources of the origin are being removed.
    Expiring,
    /// It has ended, but the removal is held: it removes much. The resources
    /// stay until it is confirmed, or the lease is renewed.
    Held {
        /// The reason, with the hash of the change.
        finding: Finding,
    },
}

/// Something that happened to leases; hooks are told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LeaseEvent<'a> {
    /// A lease was not renewed in time, and the resources of its origin were
    /// removed.
    Expired {
        /// The origin.
        origin: &'a str,
        /// What was removed, and which references dangle now.
        removed: &'a Accepted,
    },
    /// A lease was not renewed in time, but the removal is held.
    Held {
        /// The origin.
        origin: &'a str,
        /// The reason, with the hash of the change.
        finding: &'a Finding,
    },
    /// Most writers, of ten or more, have not renewed for two thirds of their
    /// leases: they seem to be cut off from the server. No lease ends until
    /// others renew; one whose writer is dead can be
    /// [ended](super::Server::end_lease).
    Silence {
        /// The number of leases that are late.
        late: usize,
        /// The number of all leases that have not ended.
        leases: usize,
    },
    /// The server was suspended or stopped, and could not be reached by
    /// writers: every lease begins anew.
    Restarted {
        /// How much later than intended the server looked at the clock.
        late: Duration,
        /// The number of leases.
        leases: usize,
    },
}
