//! Certificates and authorities of TLS that a control plane sends (SDS), as
//! rustls takes them.
//!
//! ```text
//!   Watch<Secret> ──▶ material ──▶ the newest good one ──▶ each new handshake
//!                        └─ bad: the last good one stays, and why is told
//! ```
//!
//! | module | concern |
//! |---|---|
//! | `follow` | a task that follows the watch, and the newest good material |
//! | `material` | from a secret to a key with its certificates, or to authorities |
//! | `names` | which names of a peer's certificate are accepted |
//! | `certificate`, `verifier` | what rustls asks in a handshake |
//!
//! A secret that changes is used by handshakes from then on. Open connections
//! keep what they began with, so that none is dropped by a rotation.

mod certificate;
mod error;
mod follow;
pub(crate) mod material;
mod names;
mod verifier;

pub use certificate::SecretCertificate;
pub use error::SecretError;
pub use verifier::SecretVerifier;
