//! Secrets whose contents are in files of their own.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use prost::Message as _;
use rcgen::{CertificateParams, KeyPair};
use trunkline::{kind, proto};
use trunkline_proto::envoy::envoy::config::core::v3::{DataSource, data_source::Specifier};
use trunkline_proto::envoy::envoy::extensions::transport_sockets::tls::v3::{Secret, secret};

use crate::place::{Place, Watched, clusters, errors, options, said};

/// A certificate and its key, in PEM.
struct Pair {
    chain: String,
    key: String,
}

impl Pair {
    fn new() -> Self {
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        Self {
            chain: params.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    fn write(&self, place: &Place) {
        place.write("tls.crt", &self.chain);
        place.write("tls.key", &self.key);
    }
}

/// A file with a secret of these two files.
fn secret(chain: &str, key: &str) -> String {
    format!(
        "resources:\n- \"@type\": {}\n  name: tls\n  tls_certificate:\n    \
         certificate_chain: {{filename: {chain}}}\n    private_key: {{filename: {key}}}\n",
        kind::SDS
    )
}

/// A directory with a secret, its pair, and a cluster beside them.
fn place_with(pair: &Pair) -> Place {
    let place = Place::new();
    place.write("a.yaml", secret("tls.crt", "tls.key"));
    place.write("b.yaml", clusters([("b", 1)]));
    pair.write(&place);
    place
}

/// The certificate chain and the key that are served.
fn served(watched: &Watched) -> (String, String) {
    let body = watched.server.read(|db| {
        let found = db.find_type(&kind::SDS.into()).unwrap();
        let secret = db.resources(found).next().unwrap();
        secret.body.clone().unwrap()
    });
    let Some(secret::Type::TlsCertificate(served)) = Secret::decode(body).unwrap().r#type else {
        panic!("a certificate");
    };
    let inline = |source: Option<DataSource>| match source.unwrap().specifier.unwrap() {
        Specifier::InlineBytes(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("not inline: {other:?}"),
    };
    (inline(served.certificate_chain), inline(served.private_key))
}

fn assert_served(watched: &Watched, pair: &Pair) {
    assert_eq!(served(watched), (pair.chain.clone(), pair.key.clone()));
}

#[tokio::test]
async fn a_pair_is_rotated_one_file_after_the_other() {
    let (first, second) = (Pair::new(), Pair::new());
    let place = place_with(&first);
    let long = Duration::from_secs(3600);
    let options = trunkline_store::Options {
        pair: long,
        ..options()
    };
    let mut watched = Watched::new([place.0.path()], options);
    assert_eq!(said(&watched.next().await), ["+b", "+tls"]);
    assert_served(&watched, &first);

    place.replace("tls.crt", &second.chain);
    // Once this is served, the certificate was seen as well.
    place.write("b.yaml", clusters([("b", 2)]));
    assert_eq!(said(&watched.next().await), ["+b"]);
    assert_served(&watched, &first);
    let status = watched.good().await;
    assert_eq!(errors(&status, &place), [""; 0]);

    place.replace("tls.key", &second.key);
    assert_eq!(said(&watched.next().await), ["+tls"]);
    assert_served(&watched, &second);
}

#[tokio::test]
async fn a_pair_that_never_matches_is_a_mistake_and_the_last_one_stays() {
    let (first, second) = (Pair::new(), Pair::new());
    let place = place_with(&first);
    let mut watched = place.watch();
    watched.next().await;
    place.write("tls.key", &second.key);
    let status = watched.bad().await;
    assert_eq!(
        errors(&status, &place),
        [
            "a.yaml:6:5: resources[0].tls_certificate.private_key: is not the private key of the \
             first certificate in certificate_chain; give the two that were made together"
        ]
    );
    assert_served(&watched, &first);
    place.write("tls.crt", &second.chain);
    assert_eq!(said(&watched.next().await), ["+tls"]);
    assert_served(&watched, &second);
    watched.good().await;
}

/// The layout that a kubelet makes of a Secret.
fn mount(place: &Place, directory: &str, edition: usize, pair: &Pair) {
    let data = format!("..2024_{edition}");
    let at = |name: &str| place.path(&format!("{directory}/{name}"));
    fs::create_dir(at(&data)).unwrap();
    fs::write(at(&format!("{data}/tls.crt")), &pair.chain).unwrap();
    fs::write(at(&format!("{data}/tls.key")), &pair.key).unwrap();
    symlink(&data, at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    for name in ["tls.crt", "tls.key"] {
        if fs::symlink_metadata(at(name)).is_err() {
            symlink(format!("..data/{name}"), at(name)).unwrap();
        }
    }
}

/// The mount is beside the directory of the file, through a link of its own.
#[tokio::test]
async fn a_mounted_secret_is_swapped_as_one() {
    let place = Place::new();
    let pairs = [Pair::new(), Pair::new(), Pair::new()];
    fs::create_dir(place.path("mount")).unwrap();
    mount(&place, "mount", 1, &pairs[0]);
    fs::create_dir(place.path("config")).unwrap();
    symlink("mount", place.path("certs")).unwrap();
    let text = secret("../certs/tls.crt", "../certs/tls.key");
    place.write("config/a.yaml", text);

    let mut watched = Watched::new([place.path("config")], options());
    watched.next().await;
    assert_served(&watched, &pairs[0]);
    mount(&place, "mount", 2, &pairs[1]);
    assert_eq!(said(&watched.next().await), ["+tls"]);
    assert_served(&watched, &pairs[1]);
    fs::remove_dir_all(place.path("mount/..2024_1")).unwrap();

    // The link to the mount leads elsewhere.
    fs::create_dir(place.path("other")).unwrap();
    mount(&place, "other", 1, &pairs[2]);
    symlink("other", place.path("next")).unwrap();
    fs::rename(place.path("next"), place.path("certs")).unwrap();
    assert_eq!(said(&watched.next().await), ["+tls"]);
    assert_served(&watched, &pairs[2]);
    mount(&place, "other", 2, &pairs[0]);
    watched.next().await;
    assert_served(&watched, &pairs[0]);
}

/// The file of configuration is named by a link, above which nothing but the
/// path itself would matter.
#[tokio::test]
async fn files_are_watched_by_whatever_path_leads_to_them() {
    let (first, second) = (Pair::new(), Pair::new());
    let place = Place::new();
    fs::create_dir_all(place.path("real/config")).unwrap();
    symlink("real", place.path("link")).unwrap();
    let text = secret("../tls.crt", "../tls.key");
    place.write("real/config/a.yaml", text);
    let write = |pair: &Pair| {
        place.write("real/tls.crt", &pair.chain);
        place.write("real/tls.key", &pair.key);
    };
    write(&first);
    let mut watched = Watched::new([place.path("link/config")], options());
    watched.next().await;
    assert_served(&watched, &first);
    write(&second);
    assert_eq!(said(&watched.next().await), ["+tls"]);
    assert_served(&watched, &second);
}

#[tokio::test]
async fn a_file_that_appears_makes_its_secret_good() {
    let pair = Pair::new();
    let place = Place::new();
    fs::create_dir(place.path("config")).unwrap();
    let text = secret("../certs/new/tls.crt", "../certs/new/tls.key");
    place.write("config/a.yaml", text);
    let mut watched = Watched::new([place.path("config")], options());
    let status = watched.bad().await;
    let found = errors(&status, &place);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("does not exist; create it"), "{found:?}");

    fs::create_dir_all(place.path("certs/new")).unwrap();
    place.write("certs/new/tls.crt", &pair.chain);
    place.write("certs/new/tls.key", &pair.key);
    assert_eq!(said(&watched.next().await), ["+tls"]);
    assert_served(&watched, &pair);
    watched.good().await;

    // One that is gone again changes nothing.
    place.remove("certs/new/tls.key");
    watched.bad().await;
    assert_served(&watched, &pair);
    place.write("certs/new/tls.key", &pair.key);
    watched.good().await;
}

#[test]
fn validation_reads_the_files_too() {
    let place = place_with(&Pair::new());
    let loaded = place.load();
    assert_eq!(loaded.errors, []);
    assert_eq!(loaded.resources.len(), 2);
    place.write("tls.key", &Pair::new().key);
    assert_eq!(place.load().errors.len(), 1);
    place.write("tls.key", "");
    let error = place.load().errors[0].to_string();
    assert!(error.contains("tls.key is empty"), "{error}");
}

/// `filename` in a binary file is the same as in a text.
#[tokio::test]
async fn a_binary_file_names_files_too() {
    let (first, second) = (Pair::new(), Pair::new());
    let place = Place::new();
    first.write(&place);
    let text = secret("tls.crt", "tls.key");
    let read = proto::text::read("a.yaml", &text, &Default::default());
    let response = proto::discovery::DiscoveryResponse {
        resources: vec![proto::discovery::Any {
            type_url: kind::SDS.to_owned(),
            value: read.resources[0].body.clone(),
        }],
        ..Default::default()
    };
    place.write("a.pb", response.encode_to_vec());
    let mut watched = place.watch();
    watched.next().await;
    assert_served(&watched, &first);
    second.write(&place);
    assert_eq!(said(&watched.next().await), ["+tls"]);
    assert_served(&watched, &second);
}
