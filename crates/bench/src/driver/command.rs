//! A program of the user's, run for each change.
//!
//! It gets the resources as YAML on its standard input, and in its environment
//! what to do with them (`BENCH_ACTION`: `put` or `remove`), their number and
//! the name of the first. When it ends well, the change is made.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use trunkline::BoxFuture;

use super::{Driver, Put, yaml};
use crate::error::{Error, Result};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Command(String);

impl Command {
    pub(super) fn new(command: &str) -> Self {
        Self(command.to_owned())
    }

    /// Runs the program with an action and the resources that it is for. An
    /// error if it does not end well.
    async fn run(&self, action: &str, resources: &[Put]) -> Result<()> {
        let text = yaml(resources)?;
        let failed = |error: std::io::Error| Error::Driver(format!("`{}`: {error}", self.0));
        let first = resources.first();
        let mut child = tokio::process::Command::new("sh")
            .args(["-c", &self.0])
            .env("BENCH_ACTION", action)
            .env("BENCH_COUNT", resources.len().to_string())
            .env("BENCH_NAME", first.map_or("", |put| &put.name))
            .env("BENCH_TYPE", first.map_or("", |put| put.place.kind.url()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(failed)?;
        if let Some(mut input) = child.stdin.take() {
            // A program that does not want to know may close it.
            let _ = input.write_all(text.as_bytes()).await;
        }
        let status = child.wait().await.map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(Error::Driver(format!("`{}` ended with {status}", self.0))),
        }
    }
}

impl Driver for Command {
    fn put<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.run("put", resources))
    }

    fn remove<'a>(&'a mut self, resources: &'a [Put]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.run("remove", resources))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::{Kind, Place, Recipe};

    #[tokio::test]
    async fn a_program_gets_the_resources_and_says_whether_it_is_done() {
        let recipe = Recipe {
            kinds: vec![Kind::Clusters],
            prefix: "b".into(),
            ..Recipe::default()
        };
        let puts = [Put::new(&recipe, Place::only(Kind::Clusters, 4), 7)];
        let mut good = Command::new("grep -q rev-7 && test $BENCH_NAME = b-000004");
        good.put(&puts).await.unwrap();
        let mut removing = Command::new("test $BENCH_ACTION = remove");
        removing.remove(&puts).await.unwrap();
        assert!(removing.put(&puts).await.is_err());
        let mut bad = Command::new("grep -q rev-8");
        assert!(bad.put(&puts).await.is_err());
    }
}
