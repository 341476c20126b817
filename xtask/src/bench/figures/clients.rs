//! xDS clients, Trunkline's beside gRPC's.

use super::bar::{Limit, Number, bar, cell};
use super::{Column, Figure, Server, Watcher, run};

const SOTW: Server = Server::Client(Watcher::Sotw);
const DELTA: Server = Server::Client(Watcher::Delta);
const GRPC_GO: Server = Server::Client(Watcher::GrpcGo);

const FIRST: Column = Column::cpu_per_resource("CPU for each resource at first", "first");
const UPDATE: Column = Column::cpu_per_resource("and for each update", "updates");
const WHOLE: Column =
    Column::cpu_per_resource("and where the response has all clusters", "whole updates");
const MEMORY: Column = Column::client_memory("memory", "whole updates");

/// They receive, check and deliver.
pub(super) const DELIVERY: Figure = Figure {
    number: 13,
    title: "A client receives 10 000 clusters and their endpoints, then 1 000 updates",
    about: "One server for all, so the bytes are the same; the client is a process of its own, \
            and has a watch for each name. Trunkline's client checks what gRPC checks \
            (`Policy::grpc`); grpc-go's is the one behind `xds:///`, with its own decoding and \
            checks (`bench/peers/grpc-go`), and speaks state of the world only. An update is made \
            when the one before has arrived. Those of endpoints are sent alone; of a cluster, \
            state of the world sends all 10 000 again, of which one is news. The CPU is the \
            client's, user and system, and that of a second of rest after each part.",
    flags: "measure",
    quick: "measure --resources 200 --updates 20 --whole-updates 3",
    runs: &[
        run(SOTW, "", 15, ""),
        run(GRPC_GO, "", 45, ""),
        run(DELTA, "", 10, ""),
    ],
    columns: &[
        FIRST,
        Column::seconds("time", "first"),
        UPDATE,
        WHOLE,
        MEMORY,
        Column::client_peak("peak of memory", "first"),
    ],
    bars: &[
        bar(
            "CPU for each resource at first at most half of grpc-go's",
            Number::Times(cell(13, SOTW, "", FIRST), cell(13, GRPC_GO, "", FIRST)),
            Limit::AtMost(0.5),
        ),
        bar(
            "CPU for each update at most half of grpc-go's",
            Number::Times(cell(13, SOTW, "", UPDATE), cell(13, GRPC_GO, "", UPDATE)),
            Limit::AtMost(0.5),
        ),
        bar(
            "CPU where the response has all clusters, beside grpc-go's",
            Number::Times(cell(13, SOTW, "", WHOLE), cell(13, GRPC_GO, "", WHOLE)),
            Limit::Open,
        ),
        bar(
            "memory beside grpc-go's",
            Number::Times(cell(13, SOTW, "", MEMORY), cell(13, GRPC_GO, "", MEMORY)),
            Limit::Open,
        ),
    ],
    ..Figure::EMPTY
};
