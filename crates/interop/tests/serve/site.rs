//! A folder of files that a server reads.

use std::fs;
use std::path::{Path, PathBuf};

use interop::{Serving, folder, of_files};
use trunkline::Options;

pub(crate) struct Site {
    folder: PathBuf,
}

impl Site {
    /// Files, each with its resources.
    pub(crate) fn new(files: &[(&str, &[String])]) -> Self {
        let site = Self {
            folder: folder("site"),
        };
        for (file, resources) in files {
            site.write(file, resources);
        }
        site
    }

    /// Writes a file as careful programs do: a new one takes the name of the
    /// old one.
    pub(crate) fn write(&self, file: &str, resources: &[String]) {
        let text = format!("resources:\n{}\n", resources.join("\n"));
        replace(&self.folder.join(file), &text);
    }

    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.folder.join(file)).expect("a file");
    }

    pub(crate) fn serve(&self) -> Serving {
        Serving::files(&self.folder)
    }

    pub(crate) fn serve_on(&self, port: u16) -> Serving {
        Serving::over(of_files(&self.folder), port, None)
    }

    pub(crate) fn serve_with(&self, port: u16, options: impl FnOnce(&mut Options)) -> Serving {
        Serving::over(of_files(&self.folder).options(options), port, None)
    }

    /// A server that may have to wait for good files.
    pub(crate) fn serve_unready(&self, port: u16, options: impl FnOnce(&mut Options)) -> Serving {
        Serving::unready(of_files(&self.folder).options(options), port)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Writes a file in one step.
pub(crate) fn replace(path: &Path, text: &str) {
    let new = path.with_file_name(".new");
    fs::write(&new, text).expect("a file");
    fs::rename(new, path).expect("another name");
}
