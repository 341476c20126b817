//! The figures themselves.

use super::bar::{Limit, Number, bar, cell};
use super::{Column, Figure, Run, Server};

const fn run(server: Server, label: &'static str, seconds: u32, flags: &'static str) -> Run {
    Run {
        server,
        label,
        seconds,
        flags,
    }
}

const TRUNKLINE: Server = Server::Trunkline;
const LINEAR: Server = Server::Go("linear");
const SNAPSHOT: Server = Server::Go("snapshot");

const CPU: Column = Column::CPU_PER_UPDATE;
const MEMORY: Column = Column::memory("changes");
const PER_STREAM: Column = Column::per_stream("changes");
const STORM: &str = "reconnect storm";
const ANSWER: Column = Column::answer("answer p50 / p99 / max", "changes");

const CHANGES: &[Column] = &[
    CPU,
    Column::CONVERGENCE,
    MEMORY,
    Column::CONNECT_PEAK,
    PER_STREAM,
];

const EACH: &str = "a connection each";

pub(in super::super) const FIGURES: &[Figure] = &[
    Figure {
        number: 1,
        title: "One of 5 000 clusters changes, 1 000 delta streams with a wildcard",
        about: "The changed cluster goes to every stream, and nothing else does.",
        flags: "--clients 1000 --resources 5000 --light",
        quick: "--clients 20 --resources 100 --light --changes 10",
        runs: &[
            run(TRUNKLINE, "", 18, "--changes 500"),
            run(Server::Floor, "", 15, "--changes 500"),
            run(LINEAR, "", 50, "--changes 20 --patience 300"),
            run(SNAPSHOT, "", 80, "--changes 10 --patience 300"),
        ],
        columns: CHANGES,
        bars: &[
            bar(
                "CPU for each update at most 1.5 × the floor's",
                Number::Times(cell(1, TRUNKLINE, "", CPU), cell(1, Server::Floor, "", CPU)),
                Limit::AtMost(1.5),
            ),
            bar(
                "CPU for each update at least 10 × less than go-control-plane's",
                Number::Less(
                    cell(1, TRUNKLINE, "", CPU),
                    &[cell(1, LINEAR, "", CPU), cell(1, SNAPSHOT, "", CPU)],
                ),
                Limit::AtLeast(10.0),
            ),
            bar(
                "memory at least 3 × less than go-control-plane's",
                Number::Less(
                    cell(1, TRUNKLINE, "", MEMORY),
                    &[cell(1, LINEAR, "", MEMORY), cell(1, SNAPSHOT, "", MEMORY)],
                ),
                Limit::AtLeast(3.0),
            ),
        ],
    },
    Figure {
        number: 2,
        title: "The same with 50 000 clusters",
        about: "What a stream is sent first is listed and encoded once for all streams. The \
                memory for each stream is what one more costs; the first, and what is made for \
                it, is not divided among the others.",
        flags: "--resources 50000 --light --patience 300",
        quick: "--clients 20 --resources 500 --light --changes 10",
        runs: &[
            run(TRUNKLINE, "", 70, "--clients 1000 --ramp 60 --changes 300"),
            run(
                Server::Floor,
                "",
                65,
                "--clients 1000 --ramp 60 --changes 100",
            ),
        ],
        columns: CHANGES,
        bars: &[
            bar(
                "CPU for each update at most 1.2 × that of figure 1",
                Number::Times(cell(2, TRUNKLINE, "", CPU), cell(1, TRUNKLINE, "", CPU)),
                Limit::AtMost(1.2),
            ),
            bar(
                "memory for each stream that of figure 1, within a tenth",
                Number::Times(
                    cell(2, TRUNKLINE, "", PER_STREAM),
                    cell(1, TRUNKLINE, "", PER_STREAM),
                ),
                Limit::AtMost(1.1),
            ),
        ],
    },
    Figure {
        number: 3,
        title: "State of the world: 1 000 streams, 5 000 clusters",
        about: "Every change sends the whole set to every stream.",
        flags: "--mode sotw --clients 1000 --resources 5000 --light --patience 300",
        quick: "--mode sotw --clients 20 --resources 100 --light --changes 5",
        runs: &[
            run(TRUNKLINE, "", 28, "--changes 10"),
            run(Server::Floor, "", 30, "--changes 10"),
            run(LINEAR, "", 27, "--changes 3"),
            run(SNAPSHOT, "", 112, "--changes 3"),
        ],
        columns: CHANGES,
        bars: &[
            bar(
                "CPU for each update beside the floor's",
                Number::Times(cell(3, TRUNKLINE, "", CPU), cell(3, Server::Floor, "", CPU)),
                Limit::Open,
            ),
            bar(
                "CPU for each update beside go-control-plane's",
                Number::Less(
                    cell(3, TRUNKLINE, "", CPU),
                    &[cell(3, LINEAR, "", CPU), cell(3, SNAPSHOT, "", CPU)],
                ),
                Limit::Open,
            ),
        ],
    },
    Figure {
        number: 4,
        title: "2 000 streams, 1 000 services, an endpoint changes",
        about: "Clusters and endpoints on one stream, as Envoy asks for them. Istio publishes \
                1 vCPU and 1.5 GB for this load.",
        flags: "--types cds,eds --change eds --clients 2000 --resources 1000 --light --patience 300",
        quick: "--types cds,eds --change eds --clients 20 --resources 50 --light --changes 5",
        runs: &[
            run(TRUNKLINE, "", 37, "--changes 200"),
            run(LINEAR, "", 50, "--changes 20"),
        ],
        columns: CHANGES,
        bars: &[
            bar(
                "memory below the 1.5 GB that Istio publishes",
                Number::Itself(cell(4, TRUNKLINE, "", MEMORY)),
                Limit::AtMost(1.5e9),
            ),
            bar(
                "99 of 100 clients have the change after",
                Number::Itself(cell(4, TRUNKLINE, "", Column::CONVERGENCE)),
                Limit::Open,
            ),
        ],
    },
    Figure {
        number: 5,
        title: "2 000 clients reconnect at once, a tenth of 5 000 clusters changed meanwhile",
        about: "Time until every client has what changed. What is received beyond the bytes that \
                changed is what the protocol and the server add.",
        flags: "--clients 2000 --resources 5000 --light --changes 0 --ramp 20 \
                --reconnect-storm 1 --patience 300",
        quick: "--clients 20 --resources 50 --light --changes 0 --reconnect-storm 1",
        runs: &[run(TRUNKLINE, "", 30, ""), run(LINEAR, "", 34, "")],
        columns: &[
            Column::seconds(STORM),
            Column::cpu(STORM),
            Column::peak("peak of memory", STORM),
            Column::received(STORM),
            Column::changed(STORM),
        ],
        bars: &[bar(
            "bytes received beside those that changed",
            Number::Times(
                cell(5, TRUNKLINE, "", Column::received(STORM)),
                cell(5, TRUNKLINE, "", Column::changed(STORM)),
            ),
            Limit::Open,
        )],
    },
    Figure {
        number: 6,
        title: "10 000 idle streams",
        about: "Over 100 clusters, which each has received.",
        flags: "--resources 100 --light --changes 0 --duration 5 --patience 300",
        quick: "--clients 50 --resources 10 --light --changes 0 --duration 0.2",
        runs: &[
            run(TRUNKLINE, EACH, 26, "--clients 10000 --ramp 20"),
            run(
                TRUNKLINE,
                "100 connections",
                26,
                "--clients 10000 --ramp 20 --connections 100",
            ),
            run(Server::Floor, EACH, 26, "--clients 10000 --ramp 20"),
            run(LINEAR, EACH, 26, "--clients 10000 --ramp 20"),
        ],
        columns: &[
            Column::per_stream("idle"),
            Column::memory("idle"),
            Column::cpu("idle"),
        ],
        bars: &[bar(
            "memory for each stream beside the floor's",
            Number::Times(
                cell(6, TRUNKLINE, EACH, Column::per_stream("idle")),
                cell(6, Server::Floor, EACH, Column::per_stream("idle")),
            ),
            Limit::Open,
        )],
    },
    Figure {
        number: 7,
        title: "A reader that never reads and a client that rejects everything, among 1 000",
        about: "What the others notice of them.",
        flags: "--clients 1000 --resources 5000 --light --changes 200",
        quick: "--clients 20 --resources 100 --light --changes 10",
        runs: &[
            run(TRUNKLINE, "without them", 8, ""),
            run(TRUNKLINE, "with them", 8, "--slow-readers 1 --nackers 1"),
        ],
        columns: &[Column::CONVERGENCE, CPU, MEMORY],
        bars: &[bar(
            "p99 of convergence at most 1.1 × that without them",
            Number::Times(
                cell(7, TRUNKLINE, "with them", Column::CONVERGENCE),
                cell(7, TRUNKLINE, "without them", Column::CONVERGENCE),
            ),
            Limit::AtMost(1.1),
        )],
    },
    Figure {
        number: 8,
        title: "Cold start with 100 000 clusters in 1 000 files, and one more change",
        about: "From the start of the program until a client has everything; then one file of \
                100 clusters is written anew, and the time is until the client has the one \
                that changed.",
        flags: "--clients 1 --resources 100000 --light --patience 300",
        quick: "--clients 1 --resources 500 --light --changes 2",
        runs: &[run(Server::Files, "", 10, "--changes 20")],
        columns: &[
            Column::COLD,
            Column::CONNECT_PEAK,
            MEMORY,
            Column::CONVERGENCE,
        ],
        bars: &[],
    },
    Figure {
        number: 9,
        title: "1 000 000 virtual hosts; 2 000 streams ask for 100 of them each, on demand",
        about: "Which hosts follows Zipf's law; 100 virtual hosts change in a second meanwhile. \
                Memory here is that of the million and of the streams. Where clients and server \
                share few cores, times are those of both.",
        flags: "--types vhds --prefix outbound/host --size 300 \
                --clients 2000 --ask demand --names 100 --demand-rate 3 --ramp 20 --light \
                --rate 100 --changes 3000 --patience 300",
        quick: "--types vhds --prefix outbound/host --resources 500 --size 300 --clients 20 \
                --ask demand --names 10 --demand-rate 20 --light --rate 100 --changes 20",
        runs: &[run(TRUNKLINE, "", 72, "--resources 1000000")],
        columns: &[
            ANSWER,
            Column::CONVERGENCE,
            MEMORY,
            Column::CONNECT_PEAK,
            PER_STREAM,
        ],
        bars: &[bar(
            "99 of 100 answers within 10 ms",
            Number::Itself(cell(9, TRUNKLINE, "", ANSWER)),
            Limit::AtMost(10.0),
        )],
    },
];
