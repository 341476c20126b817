//! Why a secret cannot be used.

use std::sync::Arc;

use trunkline_core::sink::WatchError;

use crate::pem::TlsError;

/// Why a secret cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// There is no such secret, or not yet.
    #[error("there is no secret: {0}")]
    Missing(WatchError),
    /// It holds something else.
    #[error("the secret has no {wanted}; is it the right name?")]
    Other {
        /// What it should hold.
        wanted: &'static str,
    },
    /// A field is missing that is needed.
    #[error("the secret lacks {0}")]
    Lacks(&'static str),
    /// It names a file or an environment variable that control planes may not
    /// name.
    #[error("a control plane may not name {0:?}; allow it by a DataSourcePolicy")]
    NotAllowed(String),
    /// It asks for a check that is not made here, so it would be weaker than it
    /// says.
    #[error("the secret asks for {0}, which is not supported")]
    Unsupported(&'static str),
    /// Its certificates or keys are no good.
    #[error("{0}")]
    Pem(Arc<TlsError>),
}

impl From<TlsError> for SecretError {
    fn from(error: TlsError) -> Self {
        Self::Pem(Arc::new(error))
    }
}
