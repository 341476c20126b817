//! Bodies of requests, as they arrive: bounded in length, in time, and all of
//! them together. The guard has admitted a request before its body is read.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trunkline::Limit;
use trunkline::bounds;
use trunkline::memory::Memory;
use trunkline::questions::{ArriveError, BodyLimits, read_body};

use super::Admin;
use super::error::Refusal;

/// Bytes of all bodies that are arriving or being read, or one body of the most
/// that one may have.
pub(crate) const ALL_BODIES: usize = 256 << 20;

/// The unit in which room is given.
const UNIT: usize = 4 << 10;

/// The room for bodies.
pub(crate) struct Bodies(Arc<Semaphore>);

impl Bodies {
    /// Makes the room for all bodies: a share of the memory of the process, but
    /// enough for one body of `body_limit` bytes.
    pub(crate) fn new(body_limit: usize, memory: &Memory) -> Self {
        let share = memory.share(ALL_BODIES, bounds::BODIES_PART);
        let bytes = share.max(body_limit.saturating_add(UNIT));
        let units = (bytes / UNIT).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(units)))
    }
}

/// The room of one body.
struct Room {
    /// The room of all bodies together.
    all_bodies: Arc<Semaphore>,
    /// The units that the body has; `None` before its first bytes.
    permit: Option<OwnedSemaphorePermit>,
    /// The bytes that have arrived.
    bytes: usize,
}

impl Room {
    /// Makes room for more bytes. Returns `false` if the bound for all bodies
    /// together leaves no room: the caller refuses the body then, and its room
    /// is freed when it is dropped.
    fn grow(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        let held_units = self
            .permit
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let missing_units = self.bytes.div_ceil(UNIT).saturating_sub(held_units);

        // The bound is less than `u32::MAX` units, so this number is refused too.
        let missing_units = u32::try_from(missing_units).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.all_bodies).try_acquire_many_owned(missing_units) else {
            return false;
        };
        match &mut self.permit {
            Some(old_permit) => old_permit.merge(permit),
            slot => *slot = Some(permit),
        }
        true
    }
}

/// A body that has arrived. Its room is given back when it is dropped.
pub(super) struct Arrived {
    pub(super) bytes: Bytes,
    _room: Room,
}

/// Reads the body of a request, of at most `max_bytes` bytes.
///
/// # Errors
/// The body is too long or too slow, it broke off, or there is no room for it.
pub(super) async fn read(
    admin: &Admin,
    body: axum::body::Body,
    max_bytes: usize,
) -> Result<Arrived, Refusal> {
    let mut room = Room {
        all_bodies: Arc::clone(&admin.bodies.0),
        permit: None,
        bytes: 0,
    };
    let result = read_body(body, BodyLimits::of(max_bytes), |bytes| room.grow(bytes)).await;
    match result {
        Ok(bytes) => Ok(Arrived { bytes, _room: room }),
        Err(error) => Err(refuse(admin, error)),
    }
}

/// Makes the error for a body that cannot be read, and counts the limit that it
/// hit.
fn refuse(admin: &Admin, error: ArriveError) -> Refusal {
    match error {
        ArriveError::TooLong { max } => {
            let remedy = match max == admin.body_limit {
                true => "split it, or raise --max-admin-body",
                false => "send less",
            };
            let message = format!("{error}; {remedy}");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        }
        ArriveError::TooSlow => {
            admin.server.limited(Limit::SlowBodies);
            Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
        }
        ArriveError::NoRoom => {
            admin.server.limited(Limit::Bodies);
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)
        }
        ArriveError::Broken => Refusal::bad(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bodies_have_so_much_room_and_give_it_back() {
        let Bodies(all_bodies) = Bodies::new(1 << 20, &Memory::new(None));
        let room = || Room {
            all_bodies: Arc::clone(&all_bodies),
            permit: None,
            bytes: 0,
        };
        let mut first = room();
        assert!(first.grow(1) && first.grow(ALL_BODIES - UNIT));
        let mut second = room();
        assert!(!second.grow(2 * UNIT), "no room is left");
        drop(first);
        assert!(second.grow(2 * UNIT));
        assert!(!room().grow(ALL_BODIES));
    }
}
