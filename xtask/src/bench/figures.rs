//! The figures: which server is measured with which flags, and what is read
//! from each report.

/// Who serves in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// The library's own.
    Trunkline,
    /// The program `trunkline`, with contents from files.
    Files,
    /// The one that only writes the same bytes.
    Floor,
    /// go-control-plane, with one of its caches.
    Go(&'static str),
}

impl Server {
    pub(super) fn name(self) -> String {
        match self {
            Self::Trunkline => "Trunkline".to_owned(),
            Self::Files => "Trunkline, from files".to_owned(),
            Self::Floor => "floor".to_owned(),
            Self::Go(cache) => format!("go-control-plane, {cache} cache"),
        }
    }

    fn slug(self) -> String {
        match self {
            Self::Trunkline => "trunkline".to_owned(),
            Self::Files => "files".to_owned(),
            Self::Floor => "floor".to_owned(),
            Self::Go(cache) => format!("go-{cache}"),
        }
    }
}

/// One run of the tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) server: Server,
    /// What sets it apart from the other runs of its figure.
    pub(super) label: &'static str,
    /// Flags of its own, after those of the figure.
    pub(super) flags: &'static str,
}

/// What a column of a table shows, and of which phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    CpuPerUpdate,
    Convergence,
    /// From asking for a name to its answer.
    Answer(&'static str),
    Memory(&'static str),
    Peak(&'static str),
    PerStream(&'static str),
    Seconds(&'static str),
    /// From the start of a server to the first configuration of a client.
    Cold,
    ServerCpu(&'static str),
    Received(&'static str),
    Changed(&'static str),
}

/// One question, and the runs that answer it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) number: usize,
    pub(super) title: &'static str,
    /// What the numbers mean, and what they should be.
    pub(super) about: &'static str,
    pub(super) flags: &'static str,
    /// Instead of those, for a quick look.
    pub(super) quick: &'static str,
    pub(super) runs: &'static [Run],
    pub(super) columns: &'static [Column],
}

impl Figure {
    /// The name of the file with the report of a run.
    pub(super) fn file(&self, run: &Run) -> String {
        let label: String = run
            .label
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let label = if label.is_empty() {
            label
        } else {
            format!("-{label}")
        };
        format!("{}-{}{label}.json", self.number, run.server.slug())
    }
}

const fn run(server: Server, label: &'static str, flags: &'static str) -> Run {
    Run {
        server,
        label,
        flags,
    }
}

const CHANGES: &[Column] = &[
    Column::CpuPerUpdate,
    Column::Convergence,
    Column::Memory("changes"),
    Column::Peak("connect"),
    Column::PerStream("changes"),
];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        number: 1,
        title: "One of 5 000 clusters changes, 1 000 delta streams with a wildcard",
        about: "The bar: CPU for each update at most 1.5 × the floor, at least 10 × less than \
                go-control-plane, memory at least 3 × less. The ratio to the floor swings from run \
                to run: three pairs, one after the other on a quiet machine, gave 1.39, 1.07 and \
                1.31 ×.",
        flags: "--clients 1000 --resources 5000 --light",
        quick: "--clients 20 --resources 100 --light --changes 10",
        runs: &[
            run(Server::Trunkline, "", "--changes 500"),
            run(Server::Floor, "", "--changes 500"),
            run(Server::Go("linear"), "", "--changes 20 --patience 300"),
            run(Server::Go("snapshot"), "", "--changes 10 --patience 300"),
        ],
        columns: CHANGES,
    },
    Figure {
        number: 2,
        title: "The same with 50 000 clusters",
        about: "The bar: CPU for each update within 1.2 × of figure 1, memory for each stream the same. \
                What a stream is sent first is listed and encoded once for all streams, and kept \
                while it is asked for: some 35 MB of the memory here is that, and the column \
                divides it among the streams. With 300 streams instead of 1 000 the two figures \
                were 158 kB and 47 kB for each, so one stream more costs about 50 kB here and 41 kB \
                in figure 1.",
        flags: "--clients 1000 --resources 50000 --light --ramp 60 --patience 300",
        quick: "--clients 20 --resources 500 --light --changes 10",
        runs: &[
            run(Server::Trunkline, "", "--changes 300"),
            run(Server::Floor, "", "--changes 100"),
        ],
        columns: CHANGES,
    },
    Figure {
        number: 3,
        title: "State of the world: 1 000 streams, 5 000 clusters",
        about: "Every change sends the whole set to every stream.",
        flags: "--mode sotw --clients 1000 --resources 5000 --light --patience 300",
        quick: "--mode sotw --clients 20 --resources 100 --light --changes 5",
        runs: &[
            run(Server::Trunkline, "", "--changes 10"),
            run(Server::Floor, "", "--changes 10"),
            run(Server::Go("linear"), "", "--changes 3"),
            run(Server::Go("snapshot"), "", "--changes 3"),
        ],
        columns: CHANGES,
    },
    Figure {
        number: 4,
        title: "2 000 streams, 1 000 services, an endpoint changes",
        about: "Clusters and endpoints on one stream, as Envoy asks for them. Istio publishes \
                1 vCPU and 1.5 GB for this load.",
        flags: "--types cds,eds --change eds --clients 2000 --resources 1000 --light --patience 300",
        quick: "--types cds,eds --change eds --clients 20 --resources 50 --light --changes 5",
        runs: &[
            run(Server::Trunkline, "", "--changes 200"),
            run(Server::Go("linear"), "", "--changes 20"),
        ],
        columns: CHANGES,
    },
    Figure {
        number: 5,
        title: "2 000 clients reconnect at once, a tenth of 5 000 clusters changed meanwhile",
        about: "Time until every client has what changed. What is received beyond the bytes that \
                changed is what the protocol and the server add.",
        flags: "--clients 2000 --resources 5000 --light --changes 0 --ramp 20 \
                --reconnect-storm 1 --patience 300",
        quick: "--clients 20 --resources 50 --light --changes 0 --reconnect-storm 1",
        runs: &[
            run(Server::Trunkline, "", ""),
            run(Server::Go("linear"), "", ""),
        ],
        columns: &[
            Column::Seconds("reconnect storm"),
            Column::ServerCpu("reconnect storm"),
            Column::Peak("reconnect storm"),
            Column::Received("reconnect storm"),
            Column::Changed("reconnect storm"),
        ],
    },
    Figure {
        number: 6,
        title: "10 000 idle streams",
        about: "Over 100 clusters, which each has received.",
        flags: "--resources 100 --light --changes 0 --duration 5 --patience 300",
        quick: "--clients 50 --resources 10 --light --changes 0 --duration 0.2",
        runs: &[
            run(
                Server::Trunkline,
                "a connection each",
                "--clients 9000 --ramp 20",
            ),
            run(
                Server::Trunkline,
                "100 connections",
                "--clients 10000 --ramp 20 --connections 100",
            ),
            run(
                Server::Floor,
                "a connection each",
                "--clients 9000 --ramp 20",
            ),
            run(
                Server::Go("linear"),
                "a connection each",
                "--clients 9000 --ramp 20",
            ),
        ],
        columns: &[
            Column::PerStream("idle"),
            Column::Memory("idle"),
            Column::ServerCpu("idle"),
        ],
    },
    Figure {
        number: 7,
        title: "A reader that never reads and a client that rejects everything, among 1 000",
        about: "The bar: convergence of the others within 1.1 × of the run without them.",
        flags: "--clients 1000 --resources 5000 --light --changes 200",
        quick: "--clients 20 --resources 100 --light --changes 10",
        runs: &[
            run(Server::Trunkline, "without them", ""),
            run(
                Server::Trunkline,
                "with them",
                "--slow-readers 1 --nackers 1",
            ),
        ],
        columns: &[
            Column::Convergence,
            Column::CpuPerUpdate,
            Column::Memory("changes"),
        ],
    },
    Figure {
        number: 8,
        title: "Cold start with 100 000 clusters in 1 000 files, and one more change",
        about: "From the start of the program until a client has everything; then one file of \
                100 clusters is written anew, and the time is until the client has the one \
                that changed.",
        flags: "--clients 1 --resources 100000 --light --patience 300",
        quick: "--clients 1 --resources 500 --light --changes 2",
        runs: &[run(Server::Files, "", "--changes 20")],
        columns: &[
            Column::Cold,
            Column::Peak("connect"),
            Column::Memory("changes"),
            Column::Convergence,
        ],
    },
    Figure {
        number: 9,
        title: "1 000 000 virtual hosts; 2 000 streams ask for 100 of them each, on demand",
        about: "Which hosts follows Zipf's law; 100 virtual hosts change in a second meanwhile. \
                The bar: 99 of 100 answers within 10 ms. Memory here is that of the million and of \
                the streams; a server that has only read them from a binary file had 0.99 GB, at \
                most 1.05 GB on the way, 7.0 s after its start if they stood in their route \
                configuration and 7.5 s if each was on its own (the bars: 1 GB, 15 s). `trunkline \
                apply` put a million into a running server in 10.7 s (the bar: 30 s). Where clients \
                and server share few cores, times are those of both.",
        flags: "--types vhds --prefix outbound/host --size 300 \
                --clients 2000 --ask demand --names 100 --demand-rate 3 --ramp 20 --light \
                --rate 100 --changes 3000 --patience 300",
        quick: "--types vhds --prefix outbound/host --resources 500 --size 300 --clients 20 \
                --ask demand --names 10 --demand-rate 20 --light --rate 100 --changes 20",
        runs: &[run(Server::Trunkline, "", "--resources 1000000")],
        columns: &[
            Column::Answer("changes"),
            Column::Convergence,
            Column::Memory("changes"),
            Column::Peak("connect"),
            Column::PerStream("changes"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_file_of_its_own() {
        let runs = FIGURES
            .iter()
            .flat_map(|f| f.runs.iter().map(|r| f.file(r)));
        let mut files: Vec<String> = runs.collect();
        let all = files.len();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), all);
        assert!(files.contains(&"6-trunkline-100connections.json".to_owned()));
    }
}
