//! A directory of resources, with files for each type.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use prost::Message as _;
use trunkline::TypeUrl;
use trunkline_proto::descriptor::types;
use trunkline_proto::discovery::{Any, Resource};

use super::target::{HEAD, cannot_write, create, finish, write_binary};
use super::text::to_yaml_item;
use crate::failure::Result;
use crate::kinds;
use crate::progress::Progress;

/// Resources in one file of a directory: people open them.
const IN_ONE_FILE: usize = 10_000;
/// The file of resources that a text would not have all of.
const BINARY_FILE: &str = "other.pb";

/// The files of types in a directory, without their endings.
const FILES: [(&str, &str); 10] = [
    ("lds", "listeners"),
    ("cds", "clusters"),
    ("rds", "routes"),
    ("eds", "endpoints"),
    ("sds", "secrets"),
    ("srds", "scoped-routes"),
    ("vhds", "virtual-hosts"),
    ("rtds", "runtimes"),
    ("ecds", "extensions"),
    ("leds", "lb-endpoints"),
];

/// A directory that is being filled.
pub(super) struct Folder<'a> {
    path: &'a Path,
    /// The open files of types, each with the number of its resources.
    open: BTreeMap<String, (BufWriter<File>, usize)>,
    /// The number of files that each type has.
    files: BTreeMap<String, usize>,
    /// Resources that a text would not have all of.
    other: Vec<Any>,
}

impl<'a> Folder<'a> {
    /// Creates the directory, with permissions for its owner only: the
    /// resources contain secrets.
    pub(super) fn create(path: &'a Path) -> Result<Self> {
        let result = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        result.map_err(|error| cannot_write(path, error))?;
        Ok(Self {
            path,
            open: BTreeMap::new(),
            files: BTreeMap::new(),
            other: Vec::new(),
        })
    }

    /// Writes all resources, each into the file of its type. A resource that
    /// YAML cannot express goes into one binary file.
    pub(super) fn write(mut self, resources: &[Any], progress: &mut Progress) -> Result<()> {
        for (index, any) in resources.iter().enumerate() {
            match to_yaml_item(any) {
                Some(item) => self.append_item(&file_of(any), &item)?,
                None => self.other.push(any.clone()),
            }
            progress.show(index + 1);
        }

        for (name, (file, _)) in self.open {
            finish(file).map_err(|error| cannot_write(&self.path.join(name), error))?;
        }

        match self.other.is_empty() {
            true => Ok(()),
            false => write_binary(&self.path.join(BINARY_FILE), &self.other),
        }
    }

    /// Appends an item to the file of its type. Starts the next file if that
    /// one is full.
    fn append_item(&mut self, name: &str, item: &str) -> Result<()> {
        let open_file = self.open.get(name);
        if open_file.is_some_and(|(_, count)| *count >= IN_ONE_FILE)
            && let Some((file, _)) = self.open.remove(name)
        {
            finish(file).map_err(|error| cannot_write(self.path, error))?;
        }

        let (file, count) = match self.open.get_mut(name) {
            Some(open_file) => open_file,
            None => {
                let number = self.files.entry(name.to_owned()).or_default();
                *number += 1;
                let path = match number {
                    1 => self.path.join(format!("{name}.yaml")),
                    _ => self.path.join(format!("{name}-{number}.yaml")),
                };
                let mut file = create(&path)?;
                let result = file.write_all(HEAD.as_bytes());
                result.map_err(|error| cannot_write(&path, error))?;
                self.open.entry(name.to_owned()).or_insert((file, 0))
            }
        };

        *count += 1;
        let result = file.write_all(item.as_bytes());
        result.map_err(|error| cannot_write(self.path, error))
    }
}

/// Returns the name of the file of a resource in a directory, without its
/// ending.
fn file_of(any: &Any) -> String {
    let type_url = TypeUrl::new(inner_type(any));
    let short = kinds::short(&type_url);
    let file = FILES.iter().find(|(of, _)| *of == short);
    file.map_or("other", |(_, file)| file).to_owned()
}

/// Returns the type of a resource; if it has a wrapper, the type inside the
/// wrapper.
pub(super) fn inner_type(any: &Any) -> String {
    match unwrap(any) {
        Some(Resource {
            resource: Some(inner),
            ..
        }) => inner.type_url,
        _ => any.type_url.clone(),
    }
}

/// Returns the wrapper of a resource, if it has one.
pub(super) fn unwrap(any: &Any) -> Option<Resource> {
    let is_wrapped = any.type_url == types::RESOURCE;
    is_wrapped.then(|| Resource::decode(any.value.clone()).ok())?
}
