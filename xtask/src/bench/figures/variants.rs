//! Variants of resources, for clients of several categories (TP2).

use super::bar::{Limit, Number, bar, cell};
use super::{Column, Figure, Server, run};

const TRUNKLINE: Server = Server::Trunkline;
const WILDCARD: &str = "wildcards";
const EIGHT: &str = "10 names each";
const TWO: &str = "10 names each, of 2 variants";

const EVALUATED: Column = Column::evaluated("connect");
const VIEWS: Column = Column::views("connect");

/// Many clients of few categories.
pub(super) const CATEGORIES: Figure = Figure {
    number: 12,
    title: "1 000 clusters in 8 variants, 5 000 clients in 50 categories",
    about: "One variant changes at a time, which an eighth of the clients see. The clients say \
            their category in the metadata of their nodes, or with each name. Every client \
            checks that what it gets is the variant for it. Constraints are evaluated once for \
            each category and cluster while clients connect, and not when contents change.",
    flags: "--clients 5000 --resources 1000 --categories 50 --light --connections 100 \
            --ramp 30 --changes 200 --patience 300",
    quick: "--clients 20 --resources 20 --categories 10 --variants 4 --light --changes 10",
    runs: &[
        run(TRUNKLINE, WILDCARD, 50, "--variants 8"),
        run(TRUNKLINE, EIGHT, 45, "--variants 8 --ask named --names 10"),
        run(TRUNKLINE, TWO, 45, "--variants 2 --ask named --names 10"),
    ],
    columns: &[
        Column::CPU_PER_UPDATE,
        Column::CONVERGENCE,
        Column::per_stream("changes"),
        EVALUATED,
        Column::evaluated_by_changes("changes"),
        VIEWS,
    ],
    bars: &[
        bar(
            "constraints evaluated at most once for each category and variant: 400 000",
            Number::Itself(cell(12, TRUNKLINE, WILDCARD, EVALUATED)),
            Limit::AtMost(400_000.0),
        ),
        bar(
            "one view for each category",
            Number::Itself(cell(12, TRUNKLINE, WILDCARD, VIEWS)),
            Limit::AtMost(50.0),
        ),
        bar(
            "memory for each stream within a tenth of that with 2 variants",
            Number::Times(
                cell(12, TRUNKLINE, EIGHT, Column::per_stream("changes")),
                cell(12, TRUNKLINE, TWO, Column::per_stream("changes")),
            ),
            Limit::AtMost(1.1),
        ),
    ],
    ..Figure::EMPTY
};
