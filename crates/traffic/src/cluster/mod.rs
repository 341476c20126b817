//! Limits of a cluster: circuit breakers (61) and outlier detection (73).

mod breakers;
mod outlier;
mod outlier_config;
#[cfg(test)]
mod tests;

pub use breakers::{Breakers, Limits};
pub use outlier::{Ejection, Outliers};
pub use outlier_config::{OutlierConfig, Percent};
