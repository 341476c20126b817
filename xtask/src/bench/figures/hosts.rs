//! Figures of virtual hosts, a million of them.

use super::bar::{Limit, Number, bar, cell};
use super::{Column, Figure, Picture, Server, run};
use crate::bench::trial::{Routes, Trial, Way};

const TRUNKLINE: Server = Server::Trunkline;
const LINEAR: Server = Server::Go("linear");
const FEWER: &str = "400 streams";

const ANSWER: Column = Column::answer("answer", "changes");
const MEMORY: Column = Column::memory("changes");
const CPU: Column = Column::cpu("changes");

/// Many streams subscribe to some of them.
pub(super) const STREAMS: Figure = Figure {
    number: 9,
    title: "1 000 000 virtual hosts; 2 000 streams ask for 100 of them each, on demand",
    about: "Which hosts follows Zipf's law; 100 virtual hosts change in a second meanwhile. \
            Memory is that of the million and of the streams. Where clients and server share few \
            cores, times are those of both. go-control-plane knows neither aliases nor an answer \
            for a host: it is asked for virtual hosts by the exact names of resources, which are \
            the same here, and which Envoy does not know. It has a fifth of the streams: with \
            all of them, it and the tool needed more memory than the machine had.",
    flags: "--types vhds --prefix outbound/host --size 300 \
            --ask demand --names 100 --demand-rate 3 --ramp 20 --light \
            --rate 100 --changes 3000 --patience 300",
    quick: "--types vhds --prefix outbound/host --resources 500 --size 300 --clients 20 \
            --ask demand --names 10 --demand-rate 20 --light --rate 100 --changes 20",
    runs: &[
        run(TRUNKLINE, "", 72, "--resources 1000000 --clients 2000"),
        run(TRUNKLINE, FEWER, 60, "--resources 1000000 --clients 400"),
        run(LINEAR, FEWER, 110, "--resources 1000000 --clients 400"),
    ],
    columns: &[
        ANSWER,
        Column::CONVERGENCE,
        CPU,
        MEMORY,
        Column::CONNECT_PEAK,
        Column::per_stream("changes"),
    ],
    bars: &[
        bar(
            "99 of 100 answers within 10 ms",
            Number::Itself(cell(9, TRUNKLINE, "", ANSWER)),
            Limit::AtMost(10.0),
        ),
        bar(
            "memory beside go-control-plane's",
            Number::Less(
                cell(9, TRUNKLINE, FEWER, MEMORY),
                &[cell(9, LINEAR, FEWER, MEMORY)],
            ),
            Limit::Open,
        ),
        bar(
            "CPU beside go-control-plane's",
            Number::Less(
                cell(9, TRUNKLINE, FEWER, CPU),
                &[cell(9, LINEAR, FEWER, CPU)],
            ),
            Limit::Open,
        ),
    ],
    ..Figure::EMPTY
};

const ON_DEMAND: Server = Server::Trial(Trial::Envoy(Routes::OnDemand));
const IN_FULL: Server = Server::Trial(Trial::Envoy(Routes::Whole));

const NEW: Column = Column::answer("first byte of a new host, up to 200 held,", "new, none");
const NEW_OF_FEW: Column = Column::answer("first byte of a new host, 1 000 held,", "new, few");
const NEW_OF_MANY: Column = Column::answer("first byte of a new host, 10 000 held,", "new, many");
const HELD: Column = Column::answer("first byte of a held host, 200 held,", "held, none");
const HELD_OF_MANY: Column =
    Column::answer("first byte of a held host, 10 000 held,", "held, many");
const HELD_OF_ALL: Column = Column::answer("first byte of a held host, 100 000 held,", "held, all");

const fn envoy_cpu(title: &'static str, phase: &'static str) -> Column {
    Column::cpu_for_each(title, phase, "/cpu/envoy")
}

const fn server_cpu(title: &'static str, phase: &'static str) -> Column {
    Column::cpu_for_each(title, phase, "/cpu/server")
}

const NONE: Column = Column::memory_of("Envoy's memory without hosts", "none");
const FEW: Column = Column::memory_of("Envoy's memory with 1 000 hosts", "few");
const MANY: Column = Column::memory_of("Envoy's memory with 10 000 hosts", "many");
const ALL: Column = Column::memory_of("Envoy's memory with 100 000 hosts", "all");

/// A real proxy subscribes to some of them.
pub(super) const ENVOY: Figure = Figure {
    number: 10,
    title: "A real Envoy with 1 000 000 virtual hosts behind it",
    about: "`trunkline serve` with the hosts from a binary file, Envoy with one worker and the \
            filter `on_demand`, and a backend, all on one machine. The time to the first byte is \
            that of a request on a connection that is open, one after the other, every host a \
            different one, 200 of each kind: for a new host Envoy asks the server meanwhile. \
            Beside it, an Envoy that has a tenth as many hosts, all of them, by RDS. A new host \
            takes longer the more are held: at each answer Envoy makes its table of all hosts \
            that it holds anew, on its main thread. The CPU of both shows whose \
            time it is.",
    runs: &[run(ON_DEMAND, "", 90, ""), run(IN_FULL, "", 30, "")],
    columns: &[
        NEW,
        NEW_OF_FEW,
        NEW_OF_MANY,
        HELD,
        HELD_OF_MANY,
        HELD_OF_ALL,
        envoy_cpu("Envoy's CPU for a new host, up to 200 held", "new, none"),
        envoy_cpu("Envoy's CPU for a new host, 1 000 held", "new, few"),
        envoy_cpu("Envoy's CPU for a new host, 10 000 held", "new, many"),
        server_cpu("Trunkline's CPU for it, up to 200 held", "new, none"),
        server_cpu("Trunkline's CPU for it, 1 000 held", "new, few"),
        server_cpu("Trunkline's CPU for it, 10 000 held", "new, many"),
        NONE,
        FEW,
        MANY,
        ALL,
        Column::seconds("Envoy ready after", "ready"),
        Column::memory_of("Trunkline's memory", "served"),
    ],
    sideways: true,
    pictures: &[
        Picture {
            title: "time to the first byte, p99",
            bars: &[
                ("new, up to 200 held", ON_DEMAND, NEW),
                ("new, 1 000 held", ON_DEMAND, NEW_OF_FEW),
                ("new, 10 000 held", ON_DEMAND, NEW_OF_MANY),
                ("held, 200 held", ON_DEMAND, HELD),
                ("held, 10 000 held", ON_DEMAND, HELD_OF_MANY),
                ("held, all 100 000 by RDS", IN_FULL, HELD_OF_ALL),
            ],
        },
        Picture {
            title: "Envoy's memory",
            bars: &[
                ("on demand, none held", ON_DEMAND, NONE),
                ("on demand, 1 000 held", ON_DEMAND, FEW),
                ("on demand, 10 000 held", ON_DEMAND, MANY),
                ("all 100 000 by RDS", IN_FULL, ALL),
            ],
        },
    ],
    bars: &[
        bar(
            "Envoy's memory with 1 000 of a million, beside that with all of 100 000",
            Number::Less(cell(10, ON_DEMAND, "", FEW), &[cell(10, IN_FULL, "", ALL)]),
            Limit::Open,
        ),
        bar(
            "a new host beside a held one, p99 of the first byte",
            Number::Times(cell(10, ON_DEMAND, "", NEW), cell(10, ON_DEMAND, "", HELD)),
            Limit::Open,
        ),
    ],
    ..Figure::EMPTY
};

const INSIDE: Server = Server::Trial(Trial::Hosts(Way::Inside));
const APART: Server = Server::Trial(Trial::Hosts(Way::Apart));
const APPLIED: Server = Server::Trial(Trial::Hosts(Way::Apply));

const LOADED: Column = Column::seconds("time", "load");
const RESIDENT: Column = Column::memory("load");
const PEAK: Column = Column::peak("peak of memory", "load");

/// They get into a server.
pub(super) const LOADING: Figure = Figure {
    number: 11,
    title: "1 000 000 virtual hosts get into a server",
    about: "Each has two domains and about 300 bytes. From a binary file it is the time from the \
            start of `trunkline serve` until it is ready; by `trunkline apply` it is the time of \
            that command, with a server that runs. Memory is what the system counts as resident \
            then, and the most until then. The server has all cores.",
    runs: &[
        run(INSIDE, "", 12, ""),
        run(APART, "", 12, ""),
        run(APPLIED, "", 18, ""),
    ],
    columns: &[LOADED, RESIDENT, PEAK],
    bars: &[
        bar(
            "ready within 15 s, hosts in their route configuration",
            Number::Itself(cell(11, INSIDE, "", LOADED)),
            Limit::AtMost(15.0),
        ),
        bar(
            "ready within 15 s, each on its own",
            Number::Itself(cell(11, APART, "", LOADED)),
            Limit::AtMost(15.0),
        ),
        bar(
            "applied within 30 s",
            Number::Itself(cell(11, APPLIED, "", LOADED)),
            Limit::AtMost(30.0),
        ),
        bar(
            "memory at most 1 GB when loaded",
            Number::Itself(cell(11, APART, "", RESIDENT)),
            Limit::AtMost(1e9),
        ),
        bar(
            "memory at most 1 GB at the peak",
            Number::Itself(cell(11, APART, "", PEAK)),
            Limit::AtMost(1e9),
        ),
    ],
    ..Figure::EMPTY
};
