//! Certificates in files, as credentials and providers name them (A29, A65).

use std::path::PathBuf;
use std::time::Duration;

use super::super::problem::Problem;
use super::super::resolve::parse_seconds;
use super::super::tree::Part;
use crate::client::{FileWatcher, Pem};

/// The time between two looks at the files, if nothing else is said (C5).
const REFRESH: Duration = Duration::from_secs(600);

/// Reads the paths of a certificate, its key and the certificate authorities. A
/// certificate without its key, or a key without its certificate, is a mistake.
pub(super) fn read(config: &Part<'_, '_>) -> Option<FileWatcher> {
    let chain = config.text_of("certificate_file");
    let key = config.text_of("private_key_file");
    let ca = config.text_of("ca_certificate_file");
    let refresh = read_refresh(config);

    let certificate = match (chain?, key?) {
        (Some(chain), Some(key)) => Some((PathBuf::from(chain), PathBuf::from(key))),
        (None, None) => None,
        _ => {
            let remedy = "a certificate and its key go together";
            let scope = &config.scope;
            return scope.missing("certificate_file or private_key_file", remedy);
        }
    };

    Some(FileWatcher {
        certificate,
        ca: ca?.map(PathBuf::from),
        refresh: refresh?,
    })
}

/// Reads the time between two looks at the files, which is above zero.
fn read_refresh(config: &Part<'_, '_>) -> Option<Duration> {
    let Some(part) = config.get("refresh_interval") else {
        return Some(REFRESH);
    };
    let refresh = parse_seconds(part.text()?).filter(|refresh| !refresh.is_zero());
    let reason = "a duration is a number of seconds above zero; write such as 600s";
    refresh.or_else(|| part.scope.mistake(Problem::Invalid { reason }))
}

/// Returns a file as the place of a PEM.
pub(super) fn pem(path: PathBuf) -> Pem {
    Pem::File(path)
}
