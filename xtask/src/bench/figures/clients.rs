//! xDS clients, Trunkline's beside gRPC's and Armeria's.

use super::bar::{Limit, Number, bar, cell};
use super::{Column, Figure, Server, Watcher, run};

const SOTW: Server = Server::Client(Watcher::Sotw);
const DELTA: Server = Server::Client(Watcher::Delta);
const GRPC_GO: Server = Server::Client(Watcher::GrpcGo);
const ARMERIA: Server = Server::Client(Watcher::Armeria);

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

const FIRST_TREE: Column = Column::client_cpu("CPU until the first snapshot", "first");
const TREE_MEMORY: Column = Column::client_memory("memory", "updates");

/// They follow a listener with everything below it.
pub(super) const TREE: Figure = Figure {
    number: 14,
    title: "A listener with 10 000 routes to 1 000 clusters of 10 endpoints, and 1 000 changes of one endpoint",
    about: "Measured as figure 13 is, with one watch: of the listener and everything below it. \
            Each client is told which cluster will change, and says when what it was given shows \
            the change; then the next is made, and leaves the server at once. Trunkline's gives a snapshot for each change, \
            which shares all but four parts with the one before. grpc-go's gives the whole \
            configuration of a channel (gRFC A74: its dependency manager, without the resolver \
            and the balancers above that) for each change, put together anew. Armeria's \
            (`XdsBootstrap`, 1.35.0) gives a snapshot for each change, with a load balancer for \
            each cluster; its first snapshot includes the start of a JVM, as it is set up by \
            itself, and its CPU and memory the JVM's compiler and collector.",
    flags: "measure --routes 10000 --resources 1000 --endpoints 10",
    quick: "measure --routes 100 --resources 20 --endpoints 10 --updates 20",
    runs: &[
        run(SOTW, "", 6, ""),
        run(GRPC_GO, "", 20, ""),
        run(ARMERIA, "", 40, ""),
        run(DELTA, "", 6, ""),
    ],
    columns: &[
        FIRST_TREE,
        Column::seconds("time", "first"),
        UPDATE,
        Column::latency("time of a change", "updates"),
        TREE_MEMORY,
        Column::client_peak("peak of memory", "updates"),
    ],
    bars: &[
        bar(
            "CPU until the first snapshot at most grpc-go's",
            Number::Times(
                cell(14, SOTW, "", FIRST_TREE),
                cell(14, GRPC_GO, "", FIRST_TREE),
            ),
            Limit::AtMost(1.0),
        ),
        bar(
            "and at most Armeria's",
            Number::Times(
                cell(14, SOTW, "", FIRST_TREE),
                cell(14, ARMERIA, "", FIRST_TREE),
            ),
            Limit::AtMost(1.0),
        ),
        bar(
            "CPU for each change at most half of grpc-go's",
            Number::Times(cell(14, SOTW, "", UPDATE), cell(14, GRPC_GO, "", UPDATE)),
            Limit::AtMost(0.5),
        ),
        bar(
            "and at most half of Armeria's",
            Number::Times(cell(14, SOTW, "", UPDATE), cell(14, ARMERIA, "", UPDATE)),
            Limit::AtMost(0.5),
        ),
        bar(
            "memory beside grpc-go's",
            Number::Times(
                cell(14, SOTW, "", TREE_MEMORY),
                cell(14, GRPC_GO, "", TREE_MEMORY),
            ),
            Limit::Open,
        ),
    ],
    ..Figure::EMPTY
};
