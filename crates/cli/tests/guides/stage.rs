//! Where a guide is played: a copy of the examples, on ports of their own, in
//! which the commands of the guides find what they name.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ports::Ports;

/// The program, whose default addresses are those of this run.
const PROGRAM: &str = r#"#!/bin/sh
export TRUNKLINE_ADMIN="${TRUNKLINE_ADMIN:-127.0.0.1:18001}"
case "$1" in
serve) shift; exec "$TESTED" serve --listen 127.0.0.1:18000 --admin 127.0.0.1:18001 "$@" ;;
esac
case "$1 $2" in
"mcp source") shift 2; exec "$TESTED" mcp source --listen 127.0.0.1:18010 --admin 127.0.0.1:18011 "$@" ;;
esac
exec "$TESTED" "$@"
"#;

/// Builds and installs nothing: what is tested is built, and `cargo xtask setup`
/// was run.
const CARGO: &str = r#"#!/bin/sh
case "$*" in
"build --release" | "xtask setup") ;;
"run --release -- "*) shift 3; exec trunkline "$@" ;;
*) echo "the stage has no cargo $*" >&2; exit 1 ;;
esac
"#;

/// Envoy without the socket by which one on the same machine would be taken for
/// its predecessor. One that only validates has none.
const ENVOY: &str = r#"#!/bin/sh
case " $* " in
*" --mode validate "*) exec "$ENVOY" "$@" ;;
esac
exec "$ENVOY" --disable-hot-restart --concurrency 1 "$@"
"#;

/// A folder in which a guide is played.
#[derive(Debug)]
pub(crate) struct Stage {
    folder: PathBuf,
    pub(crate) ports: Ports,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let stage = Self {
            folder: interop::folder("stage"),
            ports: Ports::new(),
        };
        stage.copy(&root().join("examples"), Path::new("examples"));
        stage.write_program("target/release/trunkline", PROGRAM);
        stage.write_program("bin/cargo", CARGO);
        // curl tells of its progress where its output is no terminal.
        stage.write(".curlrc", "silent\nshow-error\n");
        stage.write_program("target/venv/bin/envoy", ENVOY);
        for name in ["pyvenv.cfg", "lib", "bin/python"] {
            let link = stage.folder.join("target/venv").join(name);
            symlink(interop::venv().join(name), link).unwrap();
        }
        stage.write_certificates();
        let git = "git init -q . && git add examples && \
            git -c user.name=guide -c user.email=guide@localhost commit -q -m examples";
        assert!(stage.command(git).status().unwrap().success());
        stage
    }

    /// A command of the shell that will run in the stage.
    pub(crate) fn command(&self, script: &str) -> Command {
        let folder = self.folder.display();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.current_dir(&self.folder).arg("-c").arg(script);
        command.env(
            "PATH",
            format!("{folder}/bin:{folder}/target/release:{path}"),
        );
        command.env("HOME", &self.folder);
        command.env("TESTED", env!("CARGO_BIN_EXE_trunkline"));
        command.env("ENVOY", interop::envoy());
        // Lines are seen when they are printed.
        command.env("PYTHONUNBUFFERED", "1");
        command
    }

    /// Writes a file, with the ports of this run.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, self.ports.replace(text)).unwrap();
    }

    fn write_program(&self, name: &str, text: &str) {
        self.write(name, text);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.folder.join(name), executable).unwrap();
    }

    /// Writes a certificate of its own authority, under the names that the
    /// guides have for it.
    fn write_certificates(&self) {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        for name in [
            "cert.pem",
            "clients.pem",
            "operators.pem",
            "certs/tls.crt",
            "certs/ca.crt",
        ] {
            self.write(name, &chain);
        }
        for name in ["key.pem", "certs/tls.key"] {
            self.write(name, &key);
        }
    }

    fn copy(&self, from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => self.copy(&entry.path(), &to),
                false => {
                    let text = fs::read_to_string(entry.path()).unwrap();
                    self.write(to.to_str().unwrap(), &text);
                }
            }
        }
    }
}

/// The root of the tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
