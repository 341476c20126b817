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
    /// Parses a target of the command line. Its ending says whether it is a
    /// binary file or a text; without a known ending it is a directory.
    ///
    /// # Errors
    /// The file exists already, the directory is not empty, or the ending is
    /// that of JSON.
    pub(in crate::command) fn parse(text: &str) -> Result<Self> {
        let path = PathBuf::from(text);
        let overwrite_failure = |obstacle: &str| {
            Failure::usage(format!(
                "{text}: {obstacle}, and is not overwritten; name another place"
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
                Err(overwrite_failure("there is such a file"))
            }
            Self::Directory(path) if path.is_file() => Err(overwrite_failure("this is a file")),
            Self::Directory(path) if has_entries(path) => {
                Err(overwrite_failure("this directory has files"))
            }
            _ => Ok(target),
        }
    }

    /// Writes resources, and returns the name of the target for a message.
    /// Returns `None` for standard output, where a message would be part of the
    /// text.
    ///
    /// # Errors
    /// A file cannot be written, or a text would not have all of a resource.
    pub(in crate::command) fn write(&self, resources: &[Any]) -> Result<Option<String>> {
        let mut progress = Progress::new("written", resources.len());
        let target_name = match self {
            Self::Output => {
                write_text(&mut io::stdout().lock(), OUTPUT, resources, &mut progress)?;
                None
            }
            Self::Text(path) => {
                let target_name = path.display().to_string();
                let mut file = create(path)?;
                write_text(&mut file, &target_name, resources, &mut progress)?;
                finish(file).map_err(|error| cannot_write(path, error))?;
                Some(target_name)
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
        Ok(target_name)
    }
}

/// Returns whether a path is a directory that can be read and is not empty.
fn has_entries(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

/// Writes all resources as one text. `output_name` is the name of the output in
/// messages.
fn write_text(
    output: &mut impl Write,
    output_name: &str,
    resources: &[Any],
    progress: &mut Progress,
) -> Result<()> {
    let write_failure = |error: io::Error| cannot_write(Path::new(output_name), error);
    let mut write_part = |text: &str| match output.write_all(text.as_bytes()) {
        // A reader such as `head` may close the pipe early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(write_failure),
    };

    match resources.is_empty() {
        true => write_part("resources: []\n")?,
        false => write_part(HEAD)?,
    }
    for (index, any) in resources.iter().enumerate() {
        let item = to_yaml_item(any).ok_or_else(|| {
            Failure::wrong(format!(
                "{} is of a type, or has fields, for which this release has no words: write it \
                 into a directory or into a file that ends in .pb, or give its type with \
                 --descriptors",
                label(any)
            ))
        })?;
        write_part(&item)?;
        progress.show(index + 1);
    }
    Ok(())
}

/// Writes all resources as one binary file.
pub(super) fn write_binary(path: &Path, resources: &[Any]) -> Result<()> {
    let document = DiscoveryResponse {
        resources: resources.to_vec(),
        ..DiscoveryResponse::default()
    };
    let mut file = create(path)?;
    let result = file.write_all(&document.encode_to_vec());
    let result = result.and_then(|()| finish(file));
    result.map_err(|error| cannot_write(path, error))
}

/// Returns the type and the name of a resource, for messages.
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

/// Makes the failure of a file that cannot be written.
pub(super) fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::wrong(format!("{}: {error}", path.display()))
}
