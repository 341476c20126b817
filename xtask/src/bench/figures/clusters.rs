//! Figures of clusters and endpoints: changes, storms, idle streams, a cold
//! start.

use super::bar::{Limit, Number, bar, cell};
use super::{Column, Figure, Server, run};

const TRUNKLINE: Server = Server::Trunkline;
const LINEAR: Server = Server::Go("linear");
const SNAPSHOT: Server = Server::Go("snapshot");

const CPU: Column = Column::CPU_PER_UPDATE;
const MEMORY: Column = Column::memory("changes");
const PER_STREAM: Column = Column::per_stream("changes");
const STORM_PHASE: &str = "reconnect storm";

const CHANGES: &[Column] = &[
    CPU,
    Column::CONVERGENCE,
    MEMORY,
    Column::CONNECT_PEAK,
    PER_STREAM,
];

const EACH: &str = "a connection each";
const FEWER: &str = "100 streams";
const A_TENTH: &str = "5 000 clusters";

/// A change that all streams get.
pub(super) const CHANGE: Figure = Figure {
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
            "CPU for each update at most 1.3 × the floor's",
            Number::Times(cell(1, TRUNKLINE, "", CPU), cell(1, Server::Floor, "", CPU)),
            Limit::AtMost(1.3),
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
    ..Figure::EMPTY
};

/// The same among ten times as many.
pub(super) const CHANGE_OF_MANY: Figure = Figure {
    number: 2,
    title: "The same with 50 000 clusters",
    about: "What a stream is sent first is listed and encoded once for all streams. The \
            memory for each stream is what one more costs; the first, and what is made for \
            it, is not divided among the others. What it is compared with, the clusters of \
            figure 1, takes turns with it: a machine is not as fast at every hour. \
            go-control-plane has a tenth of the streams: with all of them a run would take too \
            long.",
    flags: "--light --patience 300",
    quick: "--clients 20 --resources 500 --light --changes 10",
    runs: &[
        run(
            TRUNKLINE,
            "",
            70,
            "--resources 50000 --clients 1000 --ramp 60 --changes 300",
        ),
        run(
            TRUNKLINE,
            A_TENTH,
            70,
            "--resources 5000 --clients 1000 --ramp 60 --changes 300",
        ),
        run(
            Server::Floor,
            "",
            65,
            "--resources 50000 --clients 1000 --ramp 60 --changes 100",
        ),
        run(
            LINEAR,
            FEWER,
            45,
            "--resources 50000 --clients 100 --ramp 20 --changes 5",
        ),
    ],
    columns: CHANGES,
    bars: &[
        bar(
            "CPU for each update at most 1.2 × that with 5 000 clusters",
            Number::Times(
                cell(2, TRUNKLINE, "", CPU),
                cell(2, TRUNKLINE, A_TENTH, CPU),
            ),
            Limit::AtMost(1.2),
        ),
        bar(
            "memory for each stream that with 5 000 clusters, within a tenth",
            Number::Times(
                cell(2, TRUNKLINE, "", PER_STREAM),
                cell(2, TRUNKLINE, A_TENTH, PER_STREAM),
            ),
            Limit::AtMost(1.1),
        ),
        bar(
            "CPU for each update beside go-control-plane's",
            Number::Less(cell(2, TRUNKLINE, "", CPU), &[cell(2, LINEAR, FEWER, CPU)]),
            Limit::Open,
        ),
    ],
    ..Figure::EMPTY
};

/// The other variant of the protocol.
pub(super) const WHOLE_SETS: Figure = Figure {
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
    ..Figure::EMPTY
};

/// Istio's load.
pub(super) const ENDPOINTS: Figure = Figure {
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
    ..Figure::EMPTY
};

/// All clients reconnect at once.
pub(super) const STORM: Figure = Figure {
    number: 5,
    title: "2 000 clients reconnect at once, a tenth of 5 000 clusters changed meanwhile",
    about: "Time until every client has what changed. What is received beyond the bytes that \
            changed is what the protocol and the server add.",
    flags: "--clients 2000 --resources 5000 --light --changes 0 --ramp 20 \
            --reconnect-storm 1 --patience 300",
    quick: "--clients 20 --resources 50 --light --changes 0 --reconnect-storm 1",
    runs: &[
        run(TRUNKLINE, "", 30, ""),
        run(Server::Floor, "", 30, ""),
        run(LINEAR, "", 34, ""),
    ],
    columns: &[
        Column::seconds("time", STORM_PHASE),
        Column::cpu(STORM_PHASE),
        Column::peak("peak of memory", STORM_PHASE),
        Column::received(STORM_PHASE),
        Column::changed(STORM_PHASE),
    ],
    bars: &[
        bar(
            "CPU at most 2 × the floor's",
            Number::Times(
                cell(5, TRUNKLINE, "", Column::cpu(STORM_PHASE)),
                cell(5, Server::Floor, "", Column::cpu(STORM_PHASE)),
            ),
            Limit::AtMost(2.0),
        ),
        bar(
            "bytes received beside those that changed",
            Number::Times(
                cell(5, TRUNKLINE, "", Column::received(STORM_PHASE)),
                cell(5, TRUNKLINE, "", Column::changed(STORM_PHASE)),
            ),
            Limit::Open,
        ),
    ],
    ..Figure::EMPTY
};

/// Streams that do nothing.
pub(super) const IDLE: Figure = Figure {
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
    ..Figure::EMPTY
};

/// Clients that should not disturb others.
pub(super) const NUISANCES: Figure = Figure {
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
    ..Figure::EMPTY
};

/// From files, from nothing.
pub(super) const COLD: Figure = Figure {
    number: 8,
    title: "Cold start with 100 000 clusters in 1 000 files, and one more change",
    about: "From the start of the program until a client has everything; then one file of \
            100 clusters is written anew, and convergence is the time until the client has the \
            one that changed. In the other run the server has no files: the clusters are put by \
            `trunkline apply`, 1 000 in each call, and each change is a call with one, the start \
            of that program included.",
    flags: "--clients 1 --resources 100000 --light --patience 300",
    quick: "--clients 1 --resources 500 --light --changes 2",
    runs: &[
        run(Server::Files, "", 10, "--changes 20"),
        run(Server::Apply, "", 40, "--changes 20"),
    ],
    columns: &[
        Column::COLD,
        Column::CONNECT_PEAK,
        MEMORY,
        Column::CONVERGENCE,
    ],
    bars: &[],
    ..Figure::EMPTY
};
