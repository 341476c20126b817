//! The profiles that go by descriptors: the rules on fields, and what Envoy
//! could not build.
//!
//! Most bodies have nothing to say of, and [`quick`] finds that without a
//! descriptor.

use bytes::Bytes;

use super::findings::Findings;
use super::place::Place;
use super::policy::Profile;
use super::problem::Problem;
use crate::descriptor::full_name;
use crate::quick;
use crate::validate::{self, Broken, ValidateError, Violation};

/// Checks a body against the rules of the descriptors, unless the profile is
/// gRPC's. A type without a descriptor has no rules.
pub(super) fn check_rules(type_url: &str, body: &Bytes, findings: &mut Findings<'_>) {
    let reports_construction = match findings.policy().profile {
        Profile::Grpc => return,
        Profile::Generic => false,
        Profile::Envoy => true,
    };

    // A quick pass that finds no violation saves the full one.
    if quick::look(type_url, body).is_some() {
        return;
    }
    match validate::validate_bytes(type_url, body) {
        Ok(violations) => {
            for Violation { path, broken } in violations {
                let is_construction = matches!(broken, Broken::Rejected(_));
                if reports_construction || !is_construction {
                    findings.reject_once(path.to_string(), Problem::Rule(broken));
                }
            }
        }
        Err(ValidateError::UnknownType(_)) => {}
        Err(ValidateError::Malformed { source, .. }) => {
            let message = full_name(type_url).to_owned();
            findings.reject(&Place::ROOT, Problem::Malformed { message, source });
        }
    }
}
