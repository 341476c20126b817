//! A control plane of go-control-plane, as a process: `peers/go/plane`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use prost::Message as _;
use trunkline::proto::discovery::{Any, DiscoveryResponse};

use super::contents::Content;
use crate::{Script, free_port, http};

const PATIENCE: Duration = Duration::from_secs(10);

/// Which cache a control plane has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// One snapshot.
    Snapshot,
    /// One snapshot, for aggregated streams: a set with a name that was not
    /// asked for is not sent.
    SnapshotAds,
    /// A linear cache for each type.
    Linear,
}

impl Cache {
    fn flag(self) -> &'static str {
        match self {
            Self::Snapshot => "-cache=snapshot",
            Self::SnapshotAds => "-cache=snapshot-ads",
            Self::Linear => "-cache=linear",
        }
    }
}

/// A control plane that runs, at an address that it keeps when it is restarted.
#[derive(Debug)]
pub(super) struct Plane {
    program: PathBuf,
    cache: Cache,
    pub(super) port: u16,
    control: SocketAddr,
    running: Option<Script>,
    version: usize,
}

impl Plane {
    /// Starts one without contents.
    pub(super) fn start(program: &Path, cache: Cache) -> Self {
        let mut plane = Self {
            program: program.to_owned(),
            cache,
            port: free_port(),
            control: SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())),
            running: None,
            version: 0,
        };
        plane.run();
        plane
    }

    fn run(&mut self) {
        let mut program = Command::new(&self.program);
        program.arg(format!("-listen=127.0.0.1:{}", self.port));
        program.arg(format!("-control={}", self.control));
        program.arg(self.cache.flag());
        let mut running = Script::run("plane", &mut program);
        running.wait_for_line("ready", PATIENCE);
        self.running = Some(running);
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        drop(self.running.take());
    }

    /// Starts it again, without contents.
    pub(super) fn start_again(&mut self) {
        self.run();
    }

    /// Replaces all contents.
    pub(super) fn put(&mut self, contents: &[Content]) {
        self.version += 1;
        let resources = contents.iter().map(|content| Any {
            type_url: content.type_url.to_owned(),
            value: content.body.clone().into(),
        });
        let message = DiscoveryResponse {
            version_info: format!("v{}", self.version),
            resources: resources.collect(),
            ..DiscoveryResponse::default()
        };
        let answer = http::put(self.control, "/contents", &message.encode_to_vec());
        let answer = answer.unwrap_or_else(|error| panic!("the control plane is gone: {error}"));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}
