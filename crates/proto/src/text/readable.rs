//! Constraints on dynamic parameters as people write them: a text such as
//! `env=prod AND NOT version=v1` in the place of the message. The meaning of
//! such a text is not known here, so the caller passes a function that reads
//! it.

use std::fmt;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use super::{
    error::Problem,
    read::Walk,
    tree::{Node, Value},
};
use crate::discovery::DynamicParameterConstraints;

/// The message that a text may stand for.
const CONSTRAINTS: &str = "envoy.service.discovery.v3.DynamicParameterConstraints";

/// Reads a text as constraints, or returns its mistake in words.
#[derive(Clone, Copy)]
pub struct Readable(pub fn(&str) -> Result<DynamicParameterConstraints, String>);

impl PartialEq for Readable {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for Readable {}

impl fmt::Debug for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Readable")
    }
}

impl Walk<'_> {
    /// Reads a text as constraints. Returns `None` if the message is of another
    /// type, the value is not a text, or the options have no parser for
    /// constraints. Returns `Some(None)` if a mistake was reported.
    pub(super) fn read_constraints(
        &mut self,
        descriptor: &MessageDescriptor,
        node: &Node,
    ) -> Option<Option<DynamicMessage>> {
        let (Some(Readable(parse)), Value::String(text)) = (self.options.readable, &node.value)
        else {
            return None;
        };
        if descriptor.full_name() != CONSTRAINTS {
            return None;
        }

        // The message of the parser has no descriptor, so it is encoded and decoded.
        let constraints = parse(text).and_then(|message| {
            let bytes = Bytes::from(message.encode_to_vec());
            DynamicMessage::decode(descriptor.clone(), bytes).map_err(|error| error.to_string())
        });
        Some(match constraints {
            Ok(message) => Some(message),
            Err(reason) => self.report(node.at, Problem::Constraints(reason)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, read};
    use super::*;
    use crate::discovery::{Constraint, SingleConstraint, constraint};

    fn exists(key: &str) -> Result<DynamicParameterConstraints, String> {
        let single = SingleConstraint {
            key: key.to_owned(),
            test: Some(constraint::Test::Value("yes".into())),
        };
        match key {
            "bad" => Err("is bad".into()),
            _ => Ok(DynamicParameterConstraints {
                r#type: Some(Constraint::Single(single)),
            }),
        }
    }

    fn variant(constraints: &str) -> String {
        format!(
            "\"@type\": type.googleapis.com/envoy.service.discovery.v3.Resource\n\
             resource_name:\n  name: c\n  dynamic_parameter_constraints: {constraints}\n\
             resource: {{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c}}"
        )
    }

    #[test]
    fn a_text_stands_for_the_message_if_somebody_reads_it() {
        let options = Options {
            readable: Some(Readable(exists)),
            ..Options::default()
        };
        let message = "{constraint: {key: env, value: \"yes\"}}";
        for text in ["env", message] {
            let read = read("f.yaml", &variant(text), &options);
            assert_eq!(read.errors, [], "{text}");
            let name = read.resources[0].wrapper.resource_name.clone().unwrap();
            assert_eq!(name.dynamic_parameter_constraints, exists("env").ok());
        }
        let wrong = read("f.yaml", &variant("bad"), &options);
        assert_eq!(
            wrong.errors[0].to_string(),
            "f.yaml:4:34: resource_name.dynamic_parameter_constraints: is bad; \
             write such as env=prod AND NOT version=v1"
        );
        let nobody = read("f.yaml", &variant("env"), &Options::default());
        assert!(matches!(
            nobody.errors[0].problem,
            Problem::WrongKind { .. }
        ));
    }
}
