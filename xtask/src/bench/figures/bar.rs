//! What a number should be, and whether it is: worked out from the reports,
//! never written down by hand.

use serde_json::Value;

use super::{Column, FIGURES, Figure, Run, Server};

/// One number on the page: the middle of all reports of a run.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Cell {
    pub(super) figure: usize,
    server: Server,
    label: &'static str,
    column: Column,
}

impl Cell {
    pub(super) fn is_of(&self, run: &Run) -> bool {
        run.server == self.server && run.label == self.label
    }

    /// The reports of its run, from where all are.
    pub(in super::super) fn reports(&self, of: impl Fn(&Figure, &Run) -> Vec<Value>) -> Vec<Value> {
        let figure = FIGURES.iter().find(|figure| figure.number == self.figure);
        let run = |figure: &'static Figure| figure.runs.iter().find(|run| self.is_of(run));
        let found = figure.and_then(|figure| Some((figure, run(figure)?)));
        found.map_or_else(Vec::new, |(figure, run)| of(figure, run))
    }
}

pub(super) const fn cell(
    figure: usize,
    server: Server,
    label: &'static str,
    column: Column,
) -> Cell {
    Cell {
        figure,
        server,
        label,
        column,
    }
}

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// A number itself.
    Itself(Cell),
    /// How many times another one it is.
    Times(Cell, Cell),
    /// How many times less than the least of others it is.
    Less(Cell, &'static [Cell]),
}

/// What it should be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    AtMost(f64),
    AtLeast(f64),
    /// Nobody said; it is shown beside the others.
    Open,
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bar {
    /// In words.
    pub(in super::super) says: &'static str,
    pub(super) number: Number,
    pub(super) limit: Limit,
}

pub(super) const fn bar(says: &'static str, number: Number, limit: Limit) -> Bar {
    Bar {
        says,
        number,
        limit,
    }
}

/// What came out.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Verdict {
    /// The number.
    pub(in super::super) measured: String,
    /// Whether it is as it should be; none if nobody said or nothing is known.
    pub(in super::super) kept: Option<bool>,
}

impl Bar {
    #[cfg(test)]
    pub(super) fn cells(&self) -> Vec<Cell> {
        match self.number {
            Number::Itself(cell) => vec![cell],
            Number::Times(cell, other) => vec![cell, other],
            Number::Less(cell, others) => [&[cell], others].concat(),
        }
    }

    /// `reports` gives those of the run that a cell is about.
    pub(in super::super) fn verdict(&self, reports: impl Fn(&Cell) -> Vec<Value>) -> Verdict {
        let of = |cell: &Cell| cell.column.median(&reports(cell));
        let found = match self.number {
            Number::Itself(cell) => of(&cell).map(|n| (n, cell.column.shown(n))),
            Number::Times(cell, other) => of(&cell)
                .zip(of(&other))
                .map(|(n, other)| n / other)
                .map(|ratio| (ratio, format!("{ratio:.2} ×"))),
            Number::Less(cell, others) => of(&cell)
                .zip(others.iter().filter_map(of).min_by(f64::total_cmp))
                .map(|(n, least)| least / n)
                .map(|ratio| (ratio, format!("{ratio:.1} × less"))),
        };
        let Some((number, measured)) = found else {
            return Verdict {
                measured: "not measured".to_owned(),
                kept: None,
            };
        };
        let kept = match self.limit {
            Limit::AtMost(most) => Some(number <= most),
            Limit::AtLeast(least) => Some(number >= least),
            Limit::Open => None,
        };
        Verdict { measured, kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CPU: Column = Column::CPU_PER_UPDATE;
    const OURS: Cell = cell(1, Server::Trunkline, "", CPU);
    const FLOOR: Cell = cell(1, Server::Floor, "", CPU);
    const PEERS: &[Cell] = &[
        cell(1, Server::Go("linear"), "", CPU),
        cell(1, Server::Go("snapshot"), "", CPU),
    ];

    fn reports(cell: &Cell) -> Vec<Value> {
        let cpu = |n: f64| json!({"phases": [{"name": "changes", "cpu_per_update": n}]});
        match cell.server {
            Server::Trunkline => vec![cpu(99.0), cpu(15.0), cpu(14.0)],
            Server::Floor => vec![cpu(10.0)],
            Server::Go("linear") => vec![cpu(300.0)],
            Server::Go(_) => vec![cpu(600.0)],
            _ => Vec::new(),
        }
    }

    fn verdict(number: Number, limit: Limit) -> (String, Option<bool>) {
        let found = bar("", number, limit).verdict(reports);
        (found.measured, found.kept)
    }

    #[test]
    fn a_bar_is_about_the_middle() {
        let floor = Number::Times(OURS, FLOOR);
        let measured = "1.50 ×".to_owned();
        assert_eq!(
            verdict(floor, Limit::AtMost(1.5)),
            (measured.clone(), Some(true))
        );
        assert_eq!(
            verdict(floor, Limit::AtMost(1.4)),
            (measured.clone(), Some(false))
        );
        assert_eq!(verdict(floor, Limit::Open), (measured, None));
    }

    #[test]
    fn of_several_peers_the_best_is_what_counts() {
        let less = Number::Less(OURS, PEERS);
        let (measured, kept) = verdict(less, Limit::AtLeast(20.0));
        assert_eq!((measured.as_str(), kept), ("20.0 × less", Some(true)));
        assert_eq!(verdict(less, Limit::AtLeast(20.1)).1, Some(false));
    }

    #[test]
    fn what_was_not_measured_is_neither_kept_nor_missed() {
        let files = Number::Itself(cell(8, Server::Files, "", CPU));
        assert_eq!(
            verdict(files, Limit::AtMost(1.0)),
            ("not measured".to_owned(), None)
        );
    }
}
