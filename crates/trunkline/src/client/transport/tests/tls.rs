//! TLS and mutual TLS.

use std::fs;

use tokio_rustls::rustls::{CertificateError, Error};

use super::certs::Authority;
use super::peer::{PATH, echo, listen, serve};
use crate::client::transport::{ConnectError, Connector, StreamError, TransportOptions};
use crate::client::{ControlPlane, Pem, Security, TlsOptions};
use crate::pem::TlsError;

fn connector() -> Connector {
    Connector::new(TransportOptions::default())
}

fn secured(plane: &ControlPlane, options: TlsOptions) -> ControlPlane {
    ControlPlane {
        security: Security::Tls(options),
        ..plane.clone()
    }
}

/// Sends a message and receives it.
async fn exchange(connector: &Connector, plane: &ControlPlane) -> Result<(), StreamError> {
    let mut stream = connector.open(plane, PATH).await?;
    stream.ready().await?;
    stream.send("hello".into());
    assert_eq!(stream.next().await?.unwrap(), "hello");
    Ok(())
}

fn fault_of(error: &StreamError) -> &Error {
    match error {
        StreamError::Connect(ConnectError::Handshake { source, .. }) => source,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_server_that_is_trusted_is_spoken_to() {
    let authority = Authority::new();
    let (listener, plane) = listen().await;
    let config = authority.server(&authority.sign("xds.test"), false);
    serve(listener, Some(config), echo);
    let plane = secured(&plane, authority.trusted());
    exchange(&connector(), &plane).await.unwrap();
}

#[tokio::test]
async fn a_server_with_another_name_is_not_trusted() {
    let authority = Authority::new();
    let (listener, plane) = listen().await;
    let config = authority.server(&authority.sign("other.test"), false);
    serve(listener, Some(config), echo);
    let plane = secured(&plane, authority.trusted());
    let error = exchange(&connector(), &plane).await.unwrap_err();
    let fault = fault_of(&error);
    assert!(
        matches!(
            fault,
            Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
        ),
        "{fault:?}"
    );
    assert!(error.to_string().contains("set the server name"), "{error}");
}

#[tokio::test]
async fn a_server_of_an_unknown_authority_is_not_trusted() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (listener, plane) = listen().await;
    let config = authority.server(&authority.sign("xds.test"), false);
    serve(listener, Some(config), echo);
    let mut options = other.trusted();
    for trusted in [options.ca.clone(), None] {
        options.ca = trusted;
        let plane = secured(&plane, options.clone());
        match exchange(&connector(), &plane).await.unwrap_err() {
            // A system may have no authorities.
            StreamError::Connect(ConnectError::NoRoots) => {}
            error => assert_eq!(
                *fault_of(&error),
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
            ),
        }
    }
}

#[tokio::test]
async fn a_server_whose_certificate_expired_is_not_trusted() {
    let authority = Authority::new();
    let (listener, plane) = listen().await;
    let config = authority.server(&authority.sign_expired("xds.test"), false);
    serve(listener, Some(config), echo);
    let plane = secured(&plane, authority.trusted());
    let error = exchange(&connector(), &plane).await.unwrap_err();
    assert!(
        matches!(
            fault_of(&error),
            Error::InvalidCertificate(CertificateError::ExpiredContext { .. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_said_so() {
    let (listener, plane) = listen().await;
    serve(listener, None, echo);
    let plane = secured(&plane, Authority::new().trusted());
    let error = exchange(&connector(), &plane).await.unwrap_err();
    assert!(
        matches!(fault_of(&error), Error::InvalidMessage(_)),
        "{error}"
    );
}

#[tokio::test]
async fn a_client_without_the_certificate_that_a_server_wants_is_refused() {
    let authority = Authority::new();
    let (listener, plane) = listen().await;
    let config = authority.server(&authority.sign("xds.test"), true);
    serve(listener, Some(config), echo);
    let plane = secured(&plane, authority.trusted());
    let error = exchange(&connector(), &plane).await.unwrap_err();
    assert!(
        matches!(fault_of(&error), Error::AlertReceived(_)),
        "{error}"
    );
}

#[tokio::test]
async fn files_that_change_are_used_by_new_connections_as_a_pair() {
    let (old, new) = (Authority::new(), Authority::new());
    let (old_listener, old_plane) = listen().await;
    let (new_listener, new_plane) = listen().await;
    serve(
        old_listener,
        Some(old.server(&old.sign("xds.test"), true)),
        echo,
    );
    serve(
        new_listener,
        Some(new.server(&old.sign("xds.test"), true)),
        echo,
    );

    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let (old_cert, old_key) = old.sign("client.test");
    fs::write(&cert, old_cert).unwrap();
    fs::write(&key, old_key).unwrap();
    let options = TlsOptions {
        certificate: Some((Pem::File(cert.clone()), Pem::File(key.clone()))),
        ..old.trusted()
    };
    let old_plane = secured(&old_plane, options.clone());
    let new_plane = secured(&new_plane, options);
    let connector = connector();
    exchange(&connector, &old_plane).await.unwrap();
    assert!(exchange(&connector, &new_plane).await.is_err());

    // Half of a pair is not used.
    let (new_cert, new_key) = new.sign("client.test");
    fs::write(&cert, new_cert).unwrap();
    exchange(&connector, &old_plane).await.unwrap();
    // The whole is.
    fs::write(&key, new_key).unwrap();
    exchange(&connector, &new_plane).await.unwrap();
    assert!(exchange(&connector, &old_plane).await.is_err());
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let (_listener, plane) = listen().await;
    let with = |ca: Option<Pem>| {
        let options = TlsOptions {
            ca,
            ..authority.trusted()
        };
        secured(&plane, options)
    };
    let missing = with(Some(Pem::File("no/such.pem".into())));
    let error = connector().connect(&missing).await.unwrap_err();
    assert!(
        matches!(&error, ConnectError::Files(fault) if matches!(**fault, TlsError::Read { .. })),
        "{error}"
    );
    let empty = with(Some(Pem::Inline(b"nothing".to_vec())));
    let error = connector().connect(&empty).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "certificates of authorities: no certificate in it; it must have a section CERTIFICATE in PEM"
    );
    let mut nameless = authority.trusted();
    nameless.server_name = Some("not a name".to_owned());
    let nameless = secured(&plane, nameless);
    let error = connector().connect(&nameless).await.unwrap_err();
    assert!(matches!(error, ConnectError::ServerName { .. }), "{error}");
}
