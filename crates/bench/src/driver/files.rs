//! Files in a directory that the server watches: many resources in one at the
//! beginning, one for each that changes.
//!
//! A resource stays in the file in which it began, so a change writes that file
//! anew, beside it first and then in its place: no reader sees half of one.

use std::collections::HashMap;
use std::path::PathBuf;

use trunkline::BoxFuture;

use super::{Driver, Put, yaml};
use crate::contents::Place;
use crate::error::{Error, Result};

/// Resources of one file, so that a change rewrites little.
const EACH: usize = 100;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    /// The file of each resource.
    file_of: HashMap<Place, usize>,
    /// What is in each file.
    files: Vec<Vec<Put>>,
}

impl Files {
    /// Creates the directory if it is missing. Files that are in it already
    /// stay.
    pub(super) fn create_in(directory: &str) -> Result<Self> {
        let directory = PathBuf::from(directory);
        std::fs::create_dir_all(&directory).map_err(|source| Error::File {
            path: directory.clone(),
            source,
        })?;
        Ok(Self {
            directory,
            file_of: HashMap::new(),
            files: Vec::new(),
        })
    }

    /// Puts a resource into its file, and returns the number of the file.
    fn put_in_file(&mut self, put: &Put) -> usize {
        if let Some(file) = self.file_of.get(&put.place).copied() {
            let same = |other: &&mut Put| other.place == put.place;
            match self.files[file].iter_mut().find(same) {
                Some(old) => *old = put.clone(),
                // It was removed.
                None => self.files[file].push(put.clone()),
            }
            return file;
        }
        if self.files.last().is_none_or(|last| last.len() >= EACH) {
            self.files.push(Vec::new());
        }
        let file = self.files.len() - 1;
        self.files[file].push(put.clone());
        self.file_of.insert(put.place, file);
        file
    }

    /// Takes a resource out of its file, and returns the number of the file;
    /// `None` if no file had it.
    fn take(&mut self, put: &Put) -> Option<usize> {
        let file = self.file_of.get(&put.place).copied()?;
        self.files[file].retain(|other| other.place != put.place);
        Some(file)
    }

    /// Writes these files anew, each once.
    async fn write_all(&self, mut changed: Vec<usize>) -> Result<()> {
        changed.sort_unstable();
        changed.dedup();
        for file in changed {
            self.write(file).await?;
        }
        Ok(())
    }

    /// Writes a file anew: beside it first, and then in its place.
    async fn write(&self, file: usize) -> Result<()> {
        let path = self.directory.join(format!("bench-{file:05}.yaml"));
        let beside = self.directory.join(format!(".bench-{file:05}.tmp"));
        let text = yaml(&self.files[file])?;
        let written = async {
            tokio::fs::write(&beside, text).await?;
            tokio::fs::rename(&beside, &path).await
        };
        written.await.map_err(|source| Error::File { path, source })
    }
}

impl Driver for Files {
    fn needs_no_server(&self) -> bool {
        true
    }

    fn put<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let changed = resources.iter().map(|put| self.put_in_file(put)).collect();
            self.write_all(changed).await
        })
    }

    fn remove<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let changed = resources.iter().filter_map(|put| self.take(put)).collect();
            self.write_all(changed).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::{Kind, Recipe};

    #[tokio::test]
    async fn a_change_rewrites_the_file_it_began_in() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Files::create_in(directory.path().to_str().unwrap()).unwrap();
        let recipe = Recipe {
            kinds: vec![Kind::Clusters],
            prefix: "b".into(),
            ..Recipe::default()
        };
        let put = |index: usize, revision: u32| {
            Put::new(&recipe, Place::only(Kind::Clusters, index), revision)
        };
        let all: Vec<Put> = (0..EACH + 1).map(|index| put(index, 1)).collect();
        files.put(&all).await.unwrap();
        files.put(&[put(EACH, 2)]).await.unwrap();
        let read = |file: &str| std::fs::read_to_string(directory.path().join(file)).unwrap();
        assert_eq!(read("bench-00000.yaml").matches("rev-1").count(), EACH);
        let second = read("bench-00001.yaml");
        assert_eq!(
            (
                second.matches("rev-2").count(),
                second.matches("rev-1").count()
            ),
            (1, 0)
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
        files.remove(&[put(7, 3)]).await.unwrap();
        let name = "b-000007";
        assert!(!read("bench-00000.yaml").contains(name));
        files.put(&[put(7, 4)]).await.unwrap();
        assert!(read("bench-00000.yaml").contains(name));
    }
}
