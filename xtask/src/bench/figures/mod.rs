//! The figures: which server is measured with which flags, and what is read
//! from each report.
//!
//! | file | holds |
//! |---|---|
//! | `clusters`, `hosts`, `variants`, `clients` | the figures themselves |
//! | `column` | which number of a report a column shows, and how |
//! | `bar` | what a number should be, and whether it is |

mod bar;
mod clients;
mod clusters;
mod column;
mod hosts;
mod variants;

pub(super) use bar::{Bar, Verdict};
pub(super) use column::Column;

use super::trial::Trial;

/// Who serves in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// The library's own.
    Trunkline,
    /// The program `trunkline`, with contents from files.
    Files,
    /// The program `trunkline`, with contents by `trunkline apply`.
    Apply,
    /// The one that only writes the same bytes.
    Floor,
    /// go-control-plane, with one of its caches.
    Go(&'static str),
    /// What the tool does not measure.
    Trial(Trial),
    /// None is measured but a client, by the tool for clients.
    Client(Watcher),
}

/// Which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watcher {
    /// The library's own, in state of the world.
    Sotw,
    /// The same in delta.
    Delta,
    /// gRPC's in Go.
    GrpcGo,
    /// Armeria's.
    Armeria,
}

impl Watcher {
    fn name(self) -> &'static str {
        match self {
            Self::Sotw => "Trunkline's client, state of the world",
            Self::Delta => "Trunkline's client, delta",
            Self::GrpcGo => "grpc-go's client, state of the world",
            Self::Armeria => "Armeria's client, state of the world",
        }
    }

    fn slug(self) -> &'static str {
        match self {
            Self::Sotw => "client-sotw",
            Self::Delta => "client-delta",
            Self::GrpcGo => "client-grpc-go",
            Self::Armeria => "client-armeria",
        }
    }

    fn is_peer(self) -> bool {
        matches!(self, Self::GrpcGo | Self::Armeria)
    }
}

impl Server {
    pub(super) fn name(self) -> String {
        match self {
            Self::Trunkline => "Trunkline".to_owned(),
            Self::Files => "Trunkline, from files".to_owned(),
            Self::Apply => "Trunkline, by `apply`".to_owned(),
            Self::Floor => "floor".to_owned(),
            Self::Go(cache) => format!("go-control-plane, {cache} cache"),
            Self::Trial(trial) => trial.name().to_owned(),
            Self::Client(watcher) => watcher.name().to_owned(),
        }
    }

    fn slug(self) -> String {
        match self {
            Self::Trunkline => "trunkline".to_owned(),
            Self::Files => "files".to_owned(),
            Self::Floor => "floor".to_owned(),
            Self::Apply => "apply".to_owned(),
            Self::Go(cache) => format!("go-{cache}"),
            Self::Trial(trial) => trial.slug().to_owned(),
            Self::Client(watcher) => watcher.slug().to_owned(),
        }
    }

    pub(super) fn is_peer(self) -> bool {
        match self {
            Self::Go(_) => true,
            Self::Client(watcher) => watcher.is_peer(),
            _ => false,
        }
    }

    /// Whether it shows what Trunkline does.
    pub(super) fn is_ours(self) -> bool {
        match self {
            Self::Trunkline | Self::Files | Self::Apply => true,
            Self::Floor | Self::Go(_) => false,
            Self::Trial(trial) => trial.is_ours(),
            Self::Client(watcher) => !watcher.is_peer(),
        }
    }
}

/// One run of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) server: Server,
    /// What sets it apart from the other runs of its figure.
    pub(super) label: &'static str,
    /// About how many seconds it takes, where nothing better is known.
    pub(super) seconds: u32,
    /// Flags of its own, after those of the figure.
    pub(super) flags: &'static str,
}

impl Run {
    pub(super) fn name(&self) -> String {
        match self.label {
            "" => self.server.name(),
            label => format!("{}, {label}", self.server.name()),
        }
    }
}

/// One question, and the runs that answer it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) number: usize,
    pub(super) title: &'static str,
    /// What the numbers mean. Numbers that were measured have no place here:
    /// they are in columns and bars.
    pub(super) about: &'static str,
    pub(super) flags: &'static str,
    /// Instead of those, for a quick look.
    pub(super) quick: &'static str,
    pub(super) runs: &'static [Run],
    pub(super) columns: &'static [Column],
    /// Whether runs stand side by side, and not one below the other.
    pub(super) sideways: bool,
    /// Of what there are pictures, beside the first column for all runs.
    pub(super) pictures: &'static [Picture],
    pub(super) bars: &'static [Bar],
}

/// Numbers of a figure that make a picture together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picture {
    pub(super) title: &'static str,
    /// What each is called, of which run it is, and in which column.
    pub(super) bars: &'static [(&'static str, Server, Column)],
}

/// All of them.
pub(super) const FIGURES: &[Figure] = &[
    clusters::CHANGE,
    clusters::CHANGE_OF_MANY,
    clusters::WHOLE_SETS,
    clusters::ENDPOINTS,
    clusters::STORM,
    clusters::IDLE,
    clusters::NUISANCES,
    clusters::COLD,
    hosts::STREAMS,
    hosts::ENVOY,
    hosts::LOADING,
    variants::CATEGORIES,
    clients::DELIVERY,
    clients::TREE,
];

const fn run(server: Server, label: &'static str, seconds: u32, flags: &'static str) -> Run {
    Run {
        server,
        label,
        seconds,
        flags,
    }
}

impl Figure {
    /// What most figures do not have.
    const EMPTY: Self = Self {
        number: 0,
        title: "",
        about: "",
        flags: "",
        quick: "",
        runs: &[],
        columns: &[],
        sideways: false,
        pictures: &[],
        bars: &[],
    };

    /// The name of the file with the report of a run, one of so many.
    pub(super) fn file(&self, run: &Run, repeat: usize) -> String {
        format!("{}-{repeat}.json", self.stem(run))
    }

    /// What the names of all reports of a run begin with.
    fn stem(&self, run: &Run) -> String {
        let label = run.label.chars().filter(char::is_ascii_alphanumeric);
        let label: String = label.collect();
        let dash = if label.is_empty() { "" } else { "-" };
        format!("{}-{}{dash}{label}", self.number, run.server.slug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_file_of_its_own() {
        let runs = FIGURES
            .iter()
            .flat_map(|f| f.runs.iter().map(|r| f.file(r, 2)));
        let mut files: Vec<String> = runs.collect();
        let all = files.len();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), all);
        assert!(files.contains(&"6-trunkline-100connections-2.json".to_owned()));
    }

    #[test]
    fn every_bar_is_about_runs_that_there_are() {
        for figure in FIGURES {
            for bar in figure.bars {
                for cell in bar.cells() {
                    let of = FIGURES.iter().find(|f| f.number == cell.figure);
                    let runs = of.map_or(&[][..], |f| f.runs);
                    let found = runs.iter().any(|run| cell.is_of(run));
                    assert!(found, "{}: {}", figure.number, bar.says);
                }
            }
        }
    }
}
