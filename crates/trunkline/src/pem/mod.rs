//! Certificates and keys in PEM, as both ends of TLS have them: files that may
//! change, what is in them, and what is wrong with them.
//!
//! Nothing here prints a key, and no provider of cryptography is installed for
//! the process: a program that embeds this one may have its own.

mod certified;
mod error;
mod file;

pub(crate) use certified::{read_certified_key, read_roots};
pub use error::TlsError;
pub(crate) use file::{Stamps, read_file};
