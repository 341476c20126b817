//! Why a server is not reached, and what to do about it.

use std::error::Error;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::rustls;
use tokio_rustls::rustls::AlertDescription;

/// How long a server is asked whether it speaks TLS.
const PROBE_TIME: Duration = Duration::from_secs(2);
/// The first byte of an alert of TLS, with which a server turns down what is none.
const TLS_ALERT: u8 = 0x15;

/// The name of the host leads to no address.
#[derive(Debug, thiserror::Error)]
#[error("there is no host {0:?}")]
pub(super) struct NoHost(pub(super) String);

/// Explains why a server is not reached, and what to do. `is_secure` says
/// whether the client used TLS; `address` is the host and the port.
pub(super) async fn explain_failure(
    error: &(dyn Error + 'static),
    is_secure: bool,
    address: &str,
) -> String {
    if let Some(NoHost(host)) = find_error(error) {
        return format!("there is no host {host:?}; correct --admin");
    }
    if let Some(tls_error) = find_tls(error) {
        return explain_tls(tls_error, address);
    }

    if !is_secure && find_error::<hyper::Error>(error).is_some() && speaks_tls(address).await {
        return format!(
            "it speaks TLS; write --admin https://{address}, with --tls-ca if no authority of the \
             system vouches for it"
        );
    }

    // Without TLS in the error, the system says what went wrong.
    match find_error(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "nothing listens there; start it with \
             `trunkline serve`, or name its address with --admin"
            .to_owned(),
        Some(io::ErrorKind::TimedOut) => {
            "no answer; is --admin right, and does a firewall let it through?".to_owned()
        }
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) if is_secure => {
            "it closes the connection; if it wants a certificate, show one with --tls-cert and \
             --tls-key"
                .to_owned()
        }
        _ => format!("{error}; is it running, and is --admin right?"),
    }
}

/// Explains an error of TLS, and what to do.
fn explain_tls(error: &rustls::Error, address: &str) -> String {
    match error {
        // The server answers in another protocol, such as HTTP.
        rustls::Error::InvalidMessage(_) => {
            format!("it does not speak TLS; write --admin http://{address}")
        }
        rustls::Error::InvalidCertificate(reason) => format!(
            "its certificate is not trusted: {reason}; name its authority with --tls-ca, and the \
             host as the certificate has it with --admin"
        ),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            // The certificate is of another authority with the same name.
            | AlertDescription::DecryptError
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown,
        ) => "it wants a certificate that it trusts; show one with --tls-cert and --tls-key"
            .to_owned(),
        error => format!("{error}; see to --tls-ca, --tls-cert and --tls-key"),
    }
}

/// Returns the first error of type `T` among an error and its causes; `None` if
/// none of them has the type.
pub(super) fn find_error<'a, T: Error + 'static>(
    error: &'a (dyn Error + 'static),
) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(typed_error) = error.downcast_ref() {
            return Some(typed_error);
        }
        cause = error.source();
    }
    None
}

/// Finds an error of TLS among an error and its causes, or inside an error of
/// the system among them. Returns `None` if there is no error of TLS.
fn find_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let find_in_system = || {
        let inner_error: &'a (dyn Error + 'static) = find_error::<io::Error>(error)?.get_ref()?;
        inner_error.downcast_ref()
    };
    find_error(error).or_else(find_in_system)
}

/// Returns whether the server at an address responds to plain text with an
/// alert of TLS.
async fn speaks_tls(address: &str) -> bool {
    let probe = async {
        let mut socket = TcpStream::connect(address).await?;
        socket.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
        socket.read_u8().await
    };
    let first_byte = tokio::time::timeout(PROBE_TIME, probe).await;
    matches!(first_byte, Ok(Ok(TLS_ALERT)))
}
