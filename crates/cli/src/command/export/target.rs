//! Where resources are written: standard output, a file, or a directory with a
//! file for each type. `--config` and `apply` read all of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use prost::Message as _;
use trunkline::TypeUrl;
use trunkline_proto::discovery::{Any, DiscoveryResponse};
use trunkline_proto::text;

use super::folder::{Folder, inner_type, unwrap};
use super::text::to_yaml_item;
use crate::failure::{Failure, Result};
use crate::kinds;
use crate::progress::Progress;

/// The word for standard output.
const OUTPUT: &str = "-";
/// The first line of a text.
pub(super) const HEAD: &str = "resources:\n";
/// A place for resources, which may have secrets in them: its files can be read
/// by their owner only.
pub(in crate::command) enum Target {
    /// Standard output, in YAML.
    Output,
    /// A text of one file.
    Text(PathBuf),
    /// A binary file.
    Binary(PathBuf),
    /// A directory with texts.
    Directory(PathBuf),
}

impl Target {
    /// Reads a target of the command line: by its ending it is a file, else a
    /// directory.
    ///
    /// # Errors
    /// There is such a file, the directory is not empty, or JSON is wanted.
    pub(in crate::command) fn parse(text: &str) -> Result<Self> {
        let path = PathBuf::from(text);
        let taken = |what: &str| {
            Failure::usage(format!(
                "{text}: {what}, and is not overwritten; name another place"
            ))
        };
        let target = match text {
            OUTPUT => Self::Output,
            _ if text::is_binary(text) => Self::Binary(path),
            _ if text.ends_with(".yaml") || text.ends_with(".yml") => Self::Text(path),
            _ if text.ends_with(".json") => {
                return Err(Failure::usage(format!(
                    "{text}: resources are written as YAML (.yaml), binary (.pb), or into a \
                     directory"
                )));
            }
            _ => Self::Directory(path),
        };
        match &target {
            Self::Text(path) | Self::Binary(path) if path.exists() => {
                Err(taken("there is such a file"))
            }
            Self::Directory(path) if path.is_file() => Err(taken("this is a file")),
            Self::Directory(path) if has_entries(path) => Err(taken("this directory has files")),
            _ => Ok(target),
        }
    }

    /// Writes resources, and returns how to speak of what was written; nothing
    /// to say of standard output.
    ///
    /// # Errors
    /// A file cannot be written, or a text would not have all of a resource.
    pub(in crate::command) fn write(&self, resources: &[Any]) -> Result<Option<String>> {
        let mut progress = Progress::new("written", resources.len());
        let shown = match self {
            Self::Output => {
                write_text(&mut io::stdout().lock(), OUTPUT, resources, &mut progress)?;
                None
            }
            Self::Text(path) => {
                let shown = path.display().to_string();
                let mut file = create(path)?;
                write_text(&mut file, &shown, resources, &mut progress)?;
                finish(file).map_err(|error| cannot_write(path, error))?;
                Some(shown)
            }
            Self::Binary(path) => {
                write_binary(path, resources)?;
                Some(path.display().to_string())
            }
            Self::Directory(path) => {
                Folder::create(path)?.write(resources, &mut progress)?;
                Some(path.display().to_string())
            }
        };
        progress.end();
        Ok(shown)
    }
}

fn has_entries(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

/// Writes all resources as one text.
fn write_text(
    out: &mut impl Write,
    shown: &str,
    resources: &[Any],
    progress: &mut Progress,
) -> Result<()> {
    let failed = |error: io::Error| cannot_write(Path::new(shown), error);
    let mut put = |text: &str| match out.write_all(text.as_bytes()) {
        // A reader that stops early has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(failed),
    };
    match resources.is_empty() {
        true => put("resources: []\n")?,
        false => put(HEAD)?,
    }
    for (done, any) in resources.iter().enumerate() {
        let item = to_yaml_item(any).ok_or_else(|| {
            Failure::wrong(format!(
                "{} is of a type, or has fields, for which this release has no words: write it \
                 into a directory or into a file that ends in .pb, or give its type with \
                 --descriptors",
                label(any)
            ))
        })?;
        put(&item)?;
        progress.show(done + 1);
    }
    Ok(())
}

pub(super) fn write_binary(path: &Path, resources: &[Any]) -> Result<()> {
    let document = DiscoveryResponse {
        resources: resources.to_vec(),
        ..DiscoveryResponse::default()
    };
    let mut file = create(path)?;
    let written = file.write_all(&document.encode_to_vec());
    let written = written.and_then(|()| finish(file));
    written.map_err(|error| cannot_write(path, error))
}

/// Returns what a resource is called in messages.
fn label(any: &Any) -> String {
    let type_url = TypeUrl::new(inner_type(any));
    let name = unwrap(any).map(|wrapper| wrapper.name);
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{} {name:?}", kinds::short(&type_url)),
        None => format!("a resource of the type {}", kinds::short(&type_url)),
    }
}

/// Creates a file that only its owner can read.
pub(super) fn create(path: &Path) -> Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(0o600).open(path);
    let created = created.map(BufWriter::new);
    created.map_err(|error| cannot_write(path, error))
}

/// Has a file on the disk.
pub(super) fn finish(file: BufWriter<File>) -> io::Result<()> {
    file.into_inner()?.sync_all()
}

pub(super) fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::wrong(format!("{}: {error}", path.display()))
}
