//! Mutual TLS whose certificates and authorities come by SDS, and rotate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::rustls::{ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};
use trunkline::client::secrets::{SecretCertificate, SecretError, SecretVerifier};
use trunkline::client::{Client, DataSourcePolicy};
use trunkline::envoy::config::core::v3::DataSource;
use trunkline::envoy::config::core::v3::data_source::Specifier;
use trunkline::envoy::extensions::transport_sockets::tls::v3::subject_alt_name_matcher::SanType;
use trunkline::envoy::extensions::transport_sockets::tls::v3::{
    CertificateValidationContext, Secret, SubjectAltNameMatcher, TlsCertificate, secret,
};
use trunkline::envoy::r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern};
use trunkline::{ResourceMessage, Server};

use super::PATIENCE;
use super::server::Serving;

const NAME: &str = "backend.test";

/// An authority that signs leaves.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let names = &mut params.distinguished_name;
        names.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Self {
            pem: params.self_signed(&key).unwrap().pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A new certificate and its key, in PEM.
    pub(crate) fn pair(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// A new certificate and its key, as a secret.
    pub(crate) fn leaf(&self, name: &str) -> Secret {
        let (certificate, key) = self.pair(name);
        Secret {
            name: "leaf".to_owned(),
            r#type: Some(secret::Type::TlsCertificate(TlsCertificate {
                certificate_chain: Some(inline(certificate)),
                private_key: Some(inline(key)),
                ..TlsCertificate::default()
            })),
        }
    }
}

fn inline(text: String) -> DataSource {
    DataSource {
        specifier: Some(Specifier::InlineString(text)),
        ..DataSource::default()
    }
}

/// Authorities that accept a name, or any.
pub(crate) fn trust(pem: &str, name: Option<&str>) -> Secret {
    let matcher = |name: &str| SubjectAltNameMatcher {
        san_type: SanType::Dns.into(),
        matcher: Some(StringMatcher {
            match_pattern: Some(MatchPattern::Exact(name.to_owned())),
            ..StringMatcher::default()
        }),
        ..SubjectAltNameMatcher::default()
    };
    Secret {
        name: "trust".to_owned(),
        r#type: Some(secret::Type::ValidationContext(
            CertificateValidationContext {
                trusted_ca: Some(inline(pem.to_owned())),
                match_typed_subject_alt_names: name.into_iter().map(matcher).collect(),
                ..CertificateValidationContext::default()
            },
        )),
    }
}

fn serve(server: &Server, secrets: &[Secret]) {
    let messages = secrets.iter().map(ResourceMessage::of);
    server.set("test", messages).unwrap();
}

/// A certificate and a verifier of one client, which both ends of TLS share.
#[derive(Clone)]
struct Secrets {
    client: Client,
    certificate: Arc<SecretCertificate>,
    verifier: Arc<SecretVerifier>,
}

impl Secrets {
    async fn follow(serving: &Serving) -> Self {
        let builder = Client::builder().server(&serving.address.to_string());
        let client = builder.unwrap().node_id("me").build();
        let watch = |name: &str| client.subscribe::<Secret>(name).unwrap().watch();
        let policy = DataSourcePolicy::default;
        let certificate = SecretCertificate::follow(watch("leaf"), policy());
        let verifier = SecretVerifier::follow(watch("trust"), policy());
        Self {
            certificate: Arc::new(certificate),
            verifier: Arc::new(verifier),
            client,
        }
    }

    async fn ready(self) -> Self {
        self.certificate.ready().await.unwrap();
        self.verifier.ready().await.unwrap();
        self
    }

    /// A server that echoes bytes over mutual TLS.
    async fn echo(&self) -> std::net::SocketAddr {
        let verifier = Arc::clone(&self.verifier);
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::clone(&self.certificate) as _);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(socket).await?;
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).await.is_ok() {
                        stream.write_all(&byte).await?;
                        stream.flush().await?;
                    }
                    std::io::Result::Ok(())
                });
            }
        });
        address
    }

    async fn connect(&self, to: std::net::SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.verifier) as _)
            .with_client_cert_resolver(Arc::clone(&self.certificate) as _);
        let connector = TlsConnector::from(Arc::new(config));
        let socket = TcpStream::connect(to).await?;
        connector.connect(NAME.try_into().unwrap(), socket).await
    }
}

pub(crate) fn provider() -> Arc<tokio_rustls::rustls::crypto::CryptoProvider> {
    Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider())
}

async fn call(stream: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    stream.write_all(b"x").await?;
    stream.flush().await?;
    let mut byte = [0];
    stream.read_exact(&mut byte).await.map(|_| ())
}

/// The certificate that the server showed.
fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// Callers that connect and call without a pause, and what went wrong.
struct Load {
    is_over: Arc<AtomicBool>,
    made: Arc<AtomicUsize>,
    callers: JoinSet<Vec<std::io::Error>>,
}

impl Load {
    fn start(secrets: &Secrets, to: std::net::SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let made = Arc::new(AtomicUsize::new(0));
        let mut callers = JoinSet::new();
        for _ in 0..4 {
            let (secrets, is_over) = (secrets.clone(), Arc::clone(&is_over));
            let made = Arc::clone(&made);
            callers.spawn(async move {
                let mut failed = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let called = async { call(&mut secrets.connect(to).await?).await };
                    failed.extend(called.await.err());
                    made.fetch_add(1, Ordering::Relaxed);
                }
                failed
            });
        }
        Self {
            is_over,
            made,
            callers,
        }
    }

    /// Waits until there were so many connections.
    async fn made(&self, count: usize) {
        let wait = async {
            while self.made.load(Ordering::Relaxed) < count {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap();
    }

    /// The connections that failed.
    async fn end(mut self) -> Vec<std::io::Error> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        while let Some(of) = self.callers.join_next().await {
            all.extend(of.unwrap());
        }
        all
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutual_tls_rotates_under_load_and_no_call_fails() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let both = format!("{}{}", old.pem, new.pem);
    let serving = Serving::start();
    serve(&serving.server, &[old.leaf(NAME), trust(&both, Some(NAME))]);
    let secrets = Secrets::follow(&serving).await.ready().await;
    let address = secrets.echo().await;
    let mut kept = secrets.connect(address).await.unwrap();
    call(&mut kept).await.unwrap();
    let load = Load::start(&secrets, address);

    // Leaves rotate; then the leaf moves to the new authority, and the old one
    // is not trusted any more.
    let mut steps: Vec<[Secret; 2]> = (0..5)
        .map(|_| [old.leaf(NAME), trust(&both, Some(NAME))])
        .collect();
    steps.push([new.leaf(NAME), trust(&both, Some(NAME))]);
    steps.push([new.leaf(NAME), trust(&new.pem, Some(NAME))]);
    for step in steps {
        let mut before = secrets.connect(address).await.unwrap();
        let seen = shown(&before);
        serve(&serving.server, &step);
        let rotated = async {
            loop {
                let mut one = secrets.connect(address).await.unwrap();
                call(&mut one).await.unwrap();
                if shown(&one) != seen {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, rotated).await.unwrap();
        call(&mut before).await.unwrap();
        call(&mut kept).await.unwrap();
    }
    load.made(50).await;
    let failed = load.end().await;
    assert!(failed.is_empty(), "{} calls: {:?}", failed.len(), failed[0]);
    assert!(secrets.certificate.problem().is_none());
    drop(secrets.client);
}

#[tokio::test]
async fn a_bad_secret_leaves_the_last_good_one_and_says_why() {
    let authority = Authority::new("one");
    let serving = Serving::start();
    let leaf = authority.leaf(NAME);
    serve(
        &serving.server,
        &[leaf.clone(), trust(&authority.pem, Some(NAME))],
    );
    let secrets = Secrets::follow(&serving).await.ready().await;
    let address = secrets.echo().await;
    let mut regex = trust(&authority.pem, Some(NAME));
    let Some(secret::Type::ValidationContext(context)) = &mut regex.r#type else {
        unreachable!()
    };
    context.match_typed_subject_alt_names[0].san_type = SanType::Email.into();
    serve(&serving.server, &[leaf, regex]);
    let told = async {
        while secrets.verifier.problem().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    let problem = secrets.verifier.problem();
    assert!(
        matches!(problem, Some(SecretError::Unsupported(_))),
        "{problem:?}"
    );
    let mut stream = secrets.connect(address).await.unwrap();
    call(&mut stream).await.unwrap();
}

#[tokio::test]
async fn c60_only_names_that_the_context_accepts_are_trusted() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    let cases = [
        (
            authority.leaf(NAME),
            trust(&authority.pem, Some("else.test")),
            false,
        ),
        (
            authority.leaf("else.test"),
            trust(&authority.pem, Some("else.test")),
            true,
        ),
        // Without a matcher the name that was dialled counts.
        (authority.leaf(NAME), trust(&authority.pem, None), true),
        (
            authority.leaf("else.test"),
            trust(&authority.pem, None),
            false,
        ),
        (other.leaf(NAME), trust(&authority.pem, Some(NAME)), false),
    ];
    for (index, (leaf, trusted, is_good)) in cases.into_iter().enumerate() {
        let serving = Serving::start();
        serve(&serving.server, &[leaf, trusted]);
        let secrets = Secrets::follow(&serving).await.ready().await;
        let address = secrets.echo().await;
        let called = async { call(&mut secrets.connect(address).await?).await };
        let called = called.await;
        assert_eq!(called.is_ok(), is_good, "case {index}: {called:?}");
    }
}

#[tokio::test]
async fn a_file_that_a_control_plane_may_not_name_is_not_read() {
    let serving = Serving::start();
    let file = DataSource {
        specifier: Some(Specifier::Filename("/etc/passwd".into())),
        ..DataSource::default()
    };
    let mut trusted = trust("", None);
    if let Some(secret::Type::ValidationContext(context)) = &mut trusted.r#type {
        context.trusted_ca = Some(file);
    }
    let builder = Client::builder().server(&serving.address.to_string());
    let client = builder.unwrap().build();
    serve(&serving.server, &[trusted]);
    let watch = client.subscribe::<Secret>("trust").unwrap().watch();
    let verifier = SecretVerifier::follow(watch, DataSourcePolicy::default());
    let refused = verifier.ready().await;
    assert!(
        matches!(refused, Err(SecretError::NotAllowed(_))),
        "{refused:?}"
    );
}
