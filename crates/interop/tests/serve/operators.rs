//! The certificate with which an Envoy is served gives it no right at the admin
//! address.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use interop::{Envoy, Mode, Served, bootstrap, folder};

use crate::certificates::Authority;
use crate::site::replace;

const CONTENTS: &str = r#"resources:
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: backend}
"#;

/// A certificate and its key, in files.
type Pair = (PathBuf, PathBuf);

/// The program, with authorities of a fleet and of operators.
struct Serve {
    served: Served,
    fleet: PathBuf,
    envoy: Pair,
    operator: Pair,
}

impl Serve {
    fn start() -> Self {
        let folder = folder("operators");
        let at = |name: &str| folder.join(name);
        let (fleet, operators) = (Authority::new(), Authority::new());
        replace(&at("fleet.pem"), &fleet.pem());
        replace(&at("operators.pem"), &operators.pem());
        fs::write(at("resources.yaml"), CONTENTS).expect("a file");
        let (cert, key) = fleet.issue().write(&folder, "server");
        let files = [
            ("--config", at("resources.yaml")),
            ("--tls-cert", cert),
            ("--tls-key", key),
            ("--tls-client-ca", at("fleet.pem")),
            ("--admin-tls-client-ca", at("operators.pem")),
        ];
        let flags = files.map(|(flag, file)| [OsString::from(flag), file.into()]);
        Self {
            served: Served::start(flags.as_flattened()),
            fleet: at("fleet.pem"),
            envoy: fleet.issue().write(&folder, "envoy"),
            operator: operators.issue().write(&folder, "operator"),
        }
    }

    /// Runs a command at the admin address with a certificate.
    fn ask(&self, (cert, key): &Pair, args: &[&str]) -> Output {
        let path = |path: &Path| path.display().to_string();
        Command::new(interop::trunkline())
            .args(args)
            .args([
                "--admin",
                &format!("https://localhost:{}", self.served.admin.port()),
            ])
            .args(["--tls-ca", &path(&self.fleet)])
            .args(["--tls-cert", &path(cert), "--tls-key", &path(key)])
            .output()
            .expect("the program starts")
    }
}

#[test]
fn the_certificate_of_an_envoy_is_refused_at_the_admin_address() {
    let serve = Serve::start();
    let (cert, key) = &serve.envoy;
    let own = Some((&**cert, &**key));
    let port = serve.served.listen.port();
    let bootstrap = bootstrap::ads_tls(port, Mode::Delta, "n1", &serve.fleet, own);
    let envoy = Envoy::start(&bootstrap);
    assert_eq!(envoy.stat("control_plane.connected_state"), Some(1));

    let status = serve.ask(&serve.operator, &["status", "-o", "json"]);
    let said = String::from_utf8_lossy(&status.stdout);
    assert!(said.contains("\"n1\""), "{said}");
    for args in [
        &["status"][..],
        &["get", "cds"],
        &["delete", "cds", "backend"],
    ] {
        let refused = serve.ask(&serve.envoy, args);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("certificate"), "{args:?}: {said}");
    }
    let get = serve.ask(&serve.operator, &["get", "cds", "-o", "name"]);
    assert_eq!(String::from_utf8_lossy(&get.stdout), "cds/backend\n");
    assert_eq!(envoy.stat("control_plane.connected_state"), Some(1));
}
