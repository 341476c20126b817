//! The mistakes that Envoy rejects when it builds something, each a sentence
//! with its remedy.

use super::regex::RegexFault;

/// Something that Envoy cannot build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// A domain of two virtual hosts.
    #[error(
        "the domain {domain:?} is one of {first} too; a route configuration may have it once: \
         remove one"
    )]
    SameDomain {
        /// The domain.
        domain: String,
        /// The place that has it first, such as `virtual_hosts[0]`.
        first: String,
    },
    /// A cluster without a weight among weighted ones.
    #[error("is required and missing; set it, to 0 for a cluster that gets no requests")]
    NoWeight,
    /// Weights of which none is positive.
    #[error("the weights of all clusters are 0; set one to more than 0")]
    ZeroWeights,
    /// Weights that are too large.
    #[error("the weights sum to {sum}, must sum to at most 4294967295; use smaller ones")]
    LargeWeights {
        /// The sum.
        sum: u64,
    },
    /// A bad regular expression.
    #[error("is {found:?}, which is no regular expression: {fault}")]
    Regex {
        /// The expression.
        found: String,
        /// The reason.
        fault: RegexFault,
    },
    /// A bad format. The value is not shown: a header may be a secret.
    #[error(
        "the % at position {position} begins no command such as %PROTOCOL%; \
         write %% for a percent sign"
    )]
    Format {
        /// The position of the percent sign, in bytes from 0.
        position: usize,
    },
    /// A filter without configuration.
    #[error("the filter {name:?} has no configuration; set typed_config")]
    NoConfiguration {
        /// The filter.
        name: String,
    },
    /// The configuration of a filter of another kind.
    #[error(
        "{message} is of another kind than {wanted} filters; \
         move the filter, or use one of this kind"
    )]
    OtherKind {
        /// The type of the configuration.
        message: String,
        /// The kind of the filters of the list.
        wanted: &'static str,
    },
    /// A terminal filter that is not the last one.
    #[error("the filter {name:?} is terminal, and must be the last filter; move it to the end")]
    NotLast {
        /// The filter.
        name: String,
    },
    /// A last filter that is not terminal.
    #[error(
        "the filter {name:?} is not terminal, and cannot be the last filter; add {remedy} after it"
    )]
    NotTerminal {
        /// The filter.
        name: String,
        /// A terminal filter.
        remedy: &'static str,
    },
    /// A terminal filter that is disabled.
    #[error("the last filter cannot be disabled; remove this field")]
    Disabled,
    /// Two filter chains for the same connections.
    #[error(
        "the filter chain matches connections that filter_chains[{first}] matches too; \
         change or remove one"
    )]
    SameMatch {
        /// The index of the first one.
        first: usize,
    },
    /// A name where an address must be.
    #[error("is {found:?}, which is no IP address; {remedy}")]
    NoIp {
        /// The text that is there.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// An EDS cluster without a source of endpoints.
    #[error("a cluster of type EDS needs eds_config; set it, for example to {{ads: {{}}}}")]
    NoEdsConfig,
    /// A `LOGICAL_DNS` cluster with another number of endpoints than one.
    #[error(
        "a cluster of type LOGICAL_DNS has one locality with one endpoint; \
         write it so, or use STRICT_DNS"
    )]
    NotOneEndpoint,
    /// A ring of impossible size.
    #[error(
        "minimum_ring_size is {minimum} and maximum_ring_size is {maximum}; \
         the minimum must be at most the maximum (the defaults are 1024 and 8388608)"
    )]
    RingSizes {
        /// The minimum.
        minimum: u64,
        /// The maximum.
        maximum: u64,
    },
    /// A Maglev table whose size is no prime.
    #[error("the table_size is {found}, must be a prime number such as 65537")]
    NotPrime {
        /// The size.
        found: u64,
    },
}
