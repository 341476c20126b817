//! The shapes of the four messages, for the scan: which fields hold text,
//! names, or messages that hold them.

use super::scan::{ENTRY, Shape, constraints, message, name, text};

pub(super) static DISCOVERY_REQUEST: Shape = Shape {
    name: "DiscoveryRequest",
    fields: &[
        text(1, "version_info", |l| l.text_bytes),
        text(2, "node", |l| l.node_bytes),
        name(3, "resource_names"),
        text(4, "type_url", |l| l.text_bytes),
        text(5, "response_nonce", |l| l.text_bytes),
        message(6, "error_detail", &STATUS),
        message(7, "resource_locators", &LOCATOR),
    ],
};

pub(super) static DISCOVERY_RESPONSE: Shape = Shape {
    name: "DiscoveryResponse",
    fields: &[
        text(1, "version_info", |l| l.text_bytes),
        message(2, "resources", &ANY),
        text(4, "type_url", |l| l.text_bytes),
        text(5, "nonce", |l| l.text_bytes),
        message(6, "control_plane", &CONTROL_PLANE),
        message(7, "resource_errors", &RESOURCE_ERROR),
    ],
};

pub(super) static DELTA_REQUEST: Shape = Shape {
    name: "DeltaDiscoveryRequest",
    fields: &[
        text(1, "node", |l| l.node_bytes),
        text(2, "type_url", |l| l.text_bytes),
        name(3, "resource_names_subscribe"),
        name(4, "resource_names_unsubscribe"),
        message(5, "initial_resource_versions", &VERSION),
        text(6, "response_nonce", |l| l.text_bytes),
        message(7, "error_detail", &STATUS),
        message(8, "resource_locators_subscribe", &LOCATOR),
        message(9, "resource_locators_unsubscribe", &LOCATOR),
    ],
};

pub(super) static DELTA_RESPONSE: Shape = Shape {
    name: "DeltaDiscoveryResponse",
    fields: &[
        text(1, "system_version_info", |l| l.text_bytes),
        message(2, "resources", &RESOURCE),
        text(4, "type_url", |l| l.text_bytes),
        text(5, "nonce", |l| l.text_bytes),
        name(6, "removed_resources"),
        message(7, "control_plane", &CONTROL_PLANE),
        message(8, "removed_resource_names", &RESOURCE_NAME),
        message(9, "resource_errors", &RESOURCE_ERROR),
    ],
};

pub(crate) static ANY: Shape = Shape {
    name: "Any",
    fields: &[text(1, "type_url", |l| l.text_bytes)],
};

/// The text of a status is cut, not refused, so it is only counted.
pub(crate) static STATUS: Shape = Shape {
    name: "Status",
    fields: &[name(2, "message"), message(3, "details", &ANY)],
};

static CONTROL_PLANE: Shape = Shape {
    name: "ControlPlane",
    fields: &[text(1, "identifier", |l| l.text_bytes)],
};

static LOCATOR: Shape = Shape {
    name: "ResourceLocator",
    fields: &[name(1, "name"), message(2, "dynamic_parameters", &ENTRY)],
};

pub(crate) static VERSION: Shape = Shape {
    name: "initial_resource_versions entry",
    fields: &[name(1, "key"), text(2, "value", |l| l.text_bytes)],
};

pub(super) static RESOURCE: Shape = Shape {
    name: "Resource",
    fields: &[
        text(1, "version", |l| l.text_bytes),
        message(2, "resource", &ANY),
        name(3, "name"),
        text(4, "aliases", |l| l.text_bytes),
        message(8, "resource_name", &RESOURCE_NAME),
    ],
};

static RESOURCE_ERROR: Shape = Shape {
    name: "ResourceError",
    fields: &[
        message(1, "resource_name", &RESOURCE_NAME),
        message(2, "error_detail", &STATUS),
    ],
};

static RESOURCE_NAME: Shape = Shape {
    name: "ResourceName",
    fields: &[
        text(1, "name", |l| l.text_bytes),
        constraints(2, "dynamic_parameter_constraints", &CONSTRAINTS),
    ],
};

static CONSTRAINTS: Shape = Shape {
    name: "DynamicParameterConstraints",
    fields: &[
        message(1, "constraint", &SINGLE),
        message(2, "or_constraints", &LIST),
        message(3, "and_constraints", &LIST),
        constraints(4, "not_constraints", &CONSTRAINTS),
    ],
};

static LIST: Shape = Shape {
    name: "ConstraintList",
    fields: &[constraints(1, "constraints", &CONSTRAINTS)],
};

static SINGLE: Shape = Shape {
    name: "SingleConstraint",
    fields: &[
        text(1, "key", |l| l.text_bytes),
        text(2, "value", |l| l.text_bytes),
    ],
};
