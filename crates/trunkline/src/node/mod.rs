//! Rules about nodes: the node of a client decides its parameters, its base
//! subscriptions and the form of errors.
//!
//! ```text
//! node on the wire ── Described: the fields and metadata that rules read
//!                        │
//!            NodeMatch ──┴──▶ does a rule apply?
//!            Template  ──────▶ what does it say for this node?
//! ```
//!
//! A client chooses its node, and nobody verifies it: do not guard secrets with
//! it.
//!
//! ```
//! use trunkline::node::{Described, NodeMatch, Template, Wanted};
//! use trunkline::proto::discovery::{Limits, Node};
//!
//! let rule = NodeMatch::new([("cluster".parse()?, vec!["edge-*".parse()?])]);
//! let set: Template = "{cluster}/{locality.zone}".parse()?;
//! let wanted = Wanted::new(rule.fields().chain(set.fields()));
//!
//! let mut node = Node { cluster: "edge-1".into(), ..Node::default() };
//! let described = Described::new(&node, &wanted);
//! assert!(rule.matches(&described));
//! assert_eq!(set.fill(&described), None, "it does not say in which zone it is");
//!
//! node.locality.get_or_insert_default().zone = "a".into();
//! assert_eq!(set.fill(&Described::new(&node, &wanted)).as_deref(), Some("edge-1/a"));
//! # Ok::<(), trunkline::node::RuleError>(())
//! ```

mod base;
mod described;
mod error;
mod field;
mod matcher;
mod params;
mod pattern;
mod rules;
mod template;

pub use base::{BaseRule, BaseRules};
pub use described::{Described, Wanted};
pub use error::RuleError;
pub use field::{Field, MetadataPath};
pub use matcher::NodeMatch;
pub use params::{NodeParams, ParamRule, ParamRules};
pub use pattern::Pattern;
pub(crate) use rules::NodeRules;
pub use template::Template;
