//! The resource types of Envoy's API, and what the rules know of each.
//!
//! To add a resource type, give it a constant and a row here. Beside that, its
//! message is named in `proto` (`descriptor/types.rs`, and `acceptance` if
//! clients check it), its references in `proto` (`facts/references.rs`), and the
//! paths of its discovery service in `trunkline` (`paths.rs`).

use super::NegativeForm::{self, Bodyless, EmptyBody, Removed, Silence, Unreadable};
use super::{Kind, OPAQUE};

/// Runtime: `envoy.service.runtime.v3.Runtime`.
pub const RTDS: &str = "type.googleapis.com/envoy.service.runtime.v3.Runtime";
/// Clusters: `envoy.config.cluster.v3.Cluster`.
pub const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// Endpoints: `envoy.config.endpoint.v3.ClusterLoadAssignment`.
pub const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Endpoints of one locality: `envoy.config.endpoint.v3.LbEndpoint`.
pub const LEDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint";
/// Secrets: `envoy.extensions.transport_sockets.tls.v3.Secret`.
pub const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
/// Extensions: `envoy.config.core.v3.TypedExtensionConfig`.
pub const ECDS: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
/// Listeners: `envoy.config.listener.v3.Listener`.
pub const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
/// Scoped routes: `envoy.config.route.v3.ScopedRouteConfiguration`.
pub const SRDS: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
/// Route configurations: `envoy.config.route.v3.RouteConfiguration`.
pub const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// Virtual hosts: `envoy.config.route.v3.VirtualHost`.
pub const VHDS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

/// Every type in the table.
pub const ALL: &[&str] = &[RTDS, CDS, EDS, LEDS, SDS, ECDS, LDS, SRDS, RDS, VHDS];

/// Makes a type that is subscribed to by name, with its short name and its rank
/// in make before break. `negative` has the forms of a negative answer that
/// Envoy understands, in delta and in SotW.
const fn kind(short: &'static str, rank: u8, negative: (NegativeForm, NegativeForm)) -> Kind {
    Kind {
        short,
        rank,
        envoy_negative: negative.0,
        envoy_negative_in_sotw: negative.1,
        ..OPAQUE
    }
}

/// Makes a type whose SotW responses are whole sets, and for which an empty
/// first request is a wildcard.
const fn whole_set(short: &'static str, rank: u8) -> Kind {
    Kind {
        whole_set: true,
        legacy_wildcard: true,
        ..kind(short, rank, (Removed, Silence))
    }
}

/// The table, by type URL.
pub(super) static TABLE: [(&str, Kind); ALL.len()] = [
    (RTDS, kind("rtds", 0, (Removed, EmptyBody))),
    (
        CDS,
        Kind {
            refers_to: &[EDS, SDS, CDS],
            survives_reconnect: true,
            ..whole_set("cds", 1)
        },
    ),
    (
        EDS,
        Kind {
            refers_to: &[LEDS],
            survives_reconnect: true,
            // Envoy crashes when it runs out.
            ttl_in_sotw: false,
            ..kind("eds", 2, (EmptyBody, EmptyBody))
        },
    ),
    (LEDS, kind("leds", 3, (Removed, Silence))),
    (SDS, kind("sds", 3, (Removed, Unreadable))),
    (ECDS, kind("ecds", 3, (Unreadable, Unreadable))),
    (
        LDS,
        Kind {
            refers_to: &[RDS, SRDS, CDS, SDS, ECDS],
            drains: true,
            ..whole_set("lds", 4)
        },
    ),
    (
        SRDS,
        Kind {
            refers_to: &[RDS],
            ..whole_set("srds", 5)
        },
    ),
    (
        RDS,
        Kind {
            refers_to: &[CDS, VHDS],
            survives_reconnect: true,
            ..kind("rds", 6, (EmptyBody, EmptyBody))
        },
    ),
    (
        VHDS,
        Kind {
            refers_to: &[CDS],
            legacy_wildcard: true,
            on_demand: true,
            ..kind("vhds", 7, (Bodyless, Silence))
        },
    ),
];
