//! Errors of names, for a client that understands `resource_errors` (TP3, S61);
//! other clients get a negative answer.

use std::sync::{Arc, LazyLock};

use super::TypeStream;
use crate::message::Mode;
use crate::resource::{ErrorCode, ResourceError};

static NOT_FOUND: LazyLock<Arc<ResourceError>> = LazyLock::new(|| {
    error(
        ErrorCode::NotFound,
        "there is no such resource, or no variant of it is for this client",
    )
});

static DENIED: LazyLock<Arc<ResourceError>> = LazyLock::new(|| {
    error(
        ErrorCode::PermissionDenied,
        "this client may not see resources of this type",
    )
});

static REFUSED: LazyLock<Arc<ResourceError>> = LazyLock::new(|| {
    error(
        ErrorCode::Unavailable,
        "this stream asks for as many names, or with as many parameters, as it may",
    )
});

/// Makes one of the errors that all clients share.
fn error(code: ErrorCode, message: &str) -> Arc<ResourceError> {
    let message = message.into();
    Arc::new(ResourceError { code, message })
}

impl TypeStream {
    /// Returns the error of a name that does not exist, or `None` if the client
    /// gets a negative answer instead, since it reads no errors. In delta only
    /// names that the client does not hold get an error: the others are
    /// removed.
    pub(super) fn absence_as_error(&self, is_held: bool) -> Option<Arc<ResourceError>> {
        let is_not_removed = self.mode == Mode::Sotw || !is_held;
        let error = if self.denied { &DENIED } else { &NOT_FOUND };
        (self.supports_resource_errors && is_not_removed).then(|| Arc::clone(error))
    }

    /// Returns the error of a refused name, if the client gets one (S72).
    pub(super) fn refusal_as_error(&self) -> Option<Arc<ResourceError>> {
        self.supports_resource_errors.then(|| Arc::clone(&REFUSED))
    }
}
