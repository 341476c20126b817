//! What the rules need to know of a type of resource.
//!
//! One table, from what real clients were seen to do. A type that is not in it
//! passes as opaque: named, incremental in meaning, without order.

use NegativeForm::{Bodyless, EmptyBody, Removed, Silence, Unreadable};

use crate::resource::TypeUrl;

/// Facts of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The short name that people use: `cds`.
    pub short: &'static str,
    /// A state-of-the-world response is the whole set, and what it leaves out
    /// is deleted (S38); otherwise absence means nothing (S39).
    pub whole_set: bool,
    /// An empty first request means all of it (S18).
    pub legacy_wildcard: bool,
    /// Place in the order make-before-break (S52): what stands earlier is
    /// delivered before what refers to it.
    pub rank: u8,
    /// How real Envoy must be told by delta that a name does not exist (S35).
    pub envoy_negative: NegativeForm,
    /// The same in state of the world.
    pub envoy_negative_in_sotw: NegativeForm,
    /// A wildcard brings nothing by itself; names are asked for one by one (S66).
    pub on_demand: bool,
    /// What it refers to stays in use for a while after it was replaced (S73).
    pub drains: bool,
    /// A client that reconnects may still use one that the contents no longer
    /// have (S82).
    pub survives_reconnect: bool,
    /// The types of what it may refer to.
    pub refers_to: &'static [&'static str],
    /// A ttl may be sent on a state-of-the-world stream (S59).
    pub ttl_in_sotw: bool,
}

/// How "this name does not exist" is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegativeForm {
    /// The name in `removed_resources`.
    Removed,
    /// A resource that has its name and nothing else.
    EmptyBody,
    /// A resource without a body that has its own name as alias.
    Bodyless,
    /// A body that nobody can read, in a response of its own. The peer rejects
    /// it, and with that its wait ends, where every answer that it accepts
    /// leaves it waiting.
    Unreadable,
    /// Not at all: every answer does more harm than none.
    Silence,
}

macro_rules! kinds {
    ($($konst:ident $url:literal = $kind:expr;)*) => {
        $(#[doc = concat!("`", $url, "`")]
        pub const $konst: &str = concat!("type.googleapis.com/", $url);)*

        impl Kind {
            /// The facts of a type.
            #[must_use]
            pub fn of(type_url: &TypeUrl) -> Self {
                match type_url.as_str() {
                    $($konst => $kind,)*
                    _ => OPAQUE,
                }
            }
        }

        /// Every type in the table.
        pub const ALL: &[&str] = &[$($konst),*];
    };
}

const OPAQUE: Kind = Kind {
    short: "",
    whole_set: false,
    legacy_wildcard: false,
    rank: u8::MAX,
    envoy_negative: Removed,
    envoy_negative_in_sotw: Silence,
    on_demand: false,
    drains: false,
    survives_reconnect: false,
    refers_to: &[],
    ttl_in_sotw: true,
};

/// `absent` is how Envoy is told by delta, and in state of the world, that a
/// name does not exist.
const fn kind(short: &'static str, rank: u8, absent: (NegativeForm, NegativeForm)) -> Kind {
    Kind {
        short,
        rank,
        envoy_negative: absent.0,
        envoy_negative_in_sotw: absent.1,
        ..OPAQUE
    }
}

const fn whole(short: &'static str, rank: u8) -> Kind {
    Kind {
        whole_set: true,
        legacy_wildcard: true,
        ..kind(short, rank, (Removed, Silence))
    }
}

kinds! {
    RTDS "envoy.service.runtime.v3.Runtime" = kind("rtds", 0, (Removed, EmptyBody));
    CDS "envoy.config.cluster.v3.Cluster" = Kind {
        refers_to: &[EDS, SDS, CDS],
        survives_reconnect: true,
        ..whole("cds", 1)
    };
    EDS "envoy.config.endpoint.v3.ClusterLoadAssignment" = Kind {
        refers_to: &[LEDS],
        survives_reconnect: true,
        // Envoy crashes when it runs out.
        ttl_in_sotw: false,
        ..kind("eds", 2, (EmptyBody, EmptyBody))
    };
    LEDS "envoy.config.endpoint.v3.LbEndpoint" = kind("leds", 3, (Removed, Silence));
    SDS "envoy.extensions.transport_sockets.tls.v3.Secret" = kind("sds", 3, (Removed, Unreadable));
    ECDS "envoy.config.core.v3.TypedExtensionConfig" = kind("ecds", 3, (Unreadable, Unreadable));
    LDS "envoy.config.listener.v3.Listener" = Kind {
        refers_to: &[RDS, SRDS, CDS, SDS, ECDS],
        drains: true,
        ..whole("lds", 4)
    };
    SRDS "envoy.config.route.v3.ScopedRouteConfiguration" = Kind {
        refers_to: &[RDS],
        ..whole("srds", 5)
    };
    RDS "envoy.config.route.v3.RouteConfiguration" = Kind {
        refers_to: &[CDS, VHDS],
        survives_reconnect: true,
        ..kind("rds", 6, (EmptyBody, EmptyBody))
    };
    VHDS "envoy.config.route.v3.VirtualHost" = Kind {
        refers_to: &[CDS],
        legacy_wildcard: true,
        on_demand: true,
        ..kind("vhds", 7, (Bodyless, Silence))
    };
}

impl Kind {
    /// Whether something of the one type may refer to the other, itself or by
    /// way of others.
    pub(crate) fn reaches(user: &str, used: &str) -> bool {
        let refers_to = Self::of(&user.into()).refers_to.iter();
        let mut others = refers_to.filter(|other| **other != user);
        others.any(|other| *other == used || Self::reaches(other, used))
    }

    /// Whether something of any type may refer to this type.
    #[must_use]
    pub fn is_referred_to(type_url: &TypeUrl) -> bool {
        ALL.iter().any(|user| {
            Self::of(&(*user).into())
                .refers_to
                .contains(&type_url.as_str())
        })
    }
}
