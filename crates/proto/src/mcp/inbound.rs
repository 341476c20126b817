//! Received messages: scanned for limits before they are decoded.

use super::message::{RequestResources, Resource, Resources};
use crate::discovery::inbound::{Bounded, NameLimit};
use crate::discovery::scan::{ENTRY, Shape, message, name, text};
use crate::discovery::shape::{ANY, STATUS, VERSION};

static SINK_NODE: Shape = Shape {
    name: "SinkNode",
    fields: &[
        text(1, "id", |l| l.text_bytes),
        message(2, "annotations", &ENTRY),
    ],
};

static REQUEST_RESOURCES: Shape = Shape {
    name: "RequestResources",
    fields: &[
        message(1, "sink_node", &SINK_NODE),
        text(2, "collection", |l| l.text_bytes),
        message(3, "initial_resource_versions", &VERSION),
        text(4, "response_nonce", |l| l.text_bytes),
        message(5, "error_detail", &STATUS),
    ],
};

static RESOURCES: Shape = Shape {
    name: "Resources",
    fields: &[
        text(1, "system_version_info", |l| l.text_bytes),
        text(2, "collection", |l| l.text_bytes),
        message(3, "resources", &RESOURCE),
        name(4, "removed_resources"),
        text(5, "nonce", |l| l.text_bytes),
    ],
};

static RESOURCE: Shape = Shape {
    name: "Resource",
    fields: &[message(1, "metadata", &METADATA), message(2, "body", &ANY)],
};

/// A name that is too long is an error here, and not refused alone: a full
/// state without it would delete the resource at the sink (M8).
static METADATA: Shape = Shape {
    name: "Metadata",
    fields: &[
        text(1, "name", |l| l.name_bytes),
        text(3, "version", |l| l.text_bytes),
        message(4, "labels", &ENTRY),
        message(5, "annotations", &LONG_ENTRY),
    ],
};

/// An entry of annotations, which hold whole documents in practice: their text
/// is bounded by the message alone.
static LONG_ENTRY: Shape = Shape {
    name: "map entry",
    fields: &[name(1, "key"), name(2, "value")],
};

impl Bounded for RequestResources {
    const SHAPE: &'static Shape = &REQUEST_RESOURCES;

    /// Shortens the error of a NACK.
    fn enforce(&mut self, names: &mut NameLimit<'_>) {
        names.shorten_error(self.error_detail.as_mut());
    }
}

impl Bounded for Resources {
    const SHAPE: &'static Shape = &RESOURCES;

    fn enforce(&mut self, _: &mut NameLimit<'_>) {}
}

impl Bounded for Resource {
    const SHAPE: &'static Shape = &RESOURCE;

    fn enforce(&mut self, _: &mut NameLimit<'_>) {}
}
