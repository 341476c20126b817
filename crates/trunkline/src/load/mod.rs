//! Load reports (LRS): clients count their requests to each cluster, and report
//! them at an interval that the server chooses.
//!
//! ```text
//! C>S  node
//! S>C  which clusters, how often                  again when the settings change
//! C>S  counts of the interval, as often as asked ──▶ LoadReports, the latest of each
//! ```
//!
//! ```
//! use trunkline::load::{Load, LoadLimits, LoadSettings};
//!
//! let load = Load::new(LoadSettings::default(), LoadLimits::default(), || {
//!     vec!["backend".to_owned()]
//! });
//! let service = load.service(); // for a tonic server
//! for cluster in load.reports().snapshot() {
//!     println!("{}: {} localities", cluster.cluster, cluster.localities.len());
//! }
//! # drop(service);
//! ```

mod intake;
mod kept;
mod read;
mod report;
mod service;
mod settings;
mod store;
#[cfg(test)]
mod tests;

pub use report::{
    ClusterFigures, ClusterLoad, Drops, EndpointLoad, LocalityLoad, Metric, Place, Requests,
};
pub use service::{Load, LoadServer};
pub use settings::{LoadClusters, LoadSettings};
pub use store::{LoadLimits, LoadReports};
