//! The table of resource types: what the rules need to know about each.
//!
//! It follows the observed behaviour of real clients. A type that is not in the
//! table is opaque: subscribed to by name, never a whole set, without order.

use NegativeForm::{Bodyless, EmptyBody, Removed, Silence, Unreadable};

use crate::resource::TypeUrl;

/// The properties of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The short name that people use: `cds`.
    pub short: &'static str,
    /// A SotW response is the whole set, and a resource that it leaves out is
    /// deleted (S38); otherwise leaving out a resource means nothing (S39).
    pub whole_set: bool,
    /// An empty first request is a wildcard (S18).
    pub legacy_wildcard: bool,
    /// The type's place in make before break (S52): resources of a lower rank
    /// are sent before resources that refer to them.
    pub rank: u8,
    /// The negative answer that Envoy understands in delta (S35).
    pub(crate) envoy_negative: NegativeForm,
    /// The negative answer that Envoy understands in SotW.
    pub(crate) envoy_negative_in_sotw: NegativeForm,
    /// A wildcard brings nothing by itself; names are subscribed to one by one
    /// (S66).
    pub on_demand: bool,
    /// A replaced resource drains: its references stay in use for a while
    /// (S73).
    pub(crate) drains: bool,
    /// A client that reconnects may still use a resource that the database no
    /// longer has (S82).
    pub(crate) survives_reconnect: bool,
    /// The types that a resource of this type may refer to.
    pub refers_to: &'static [&'static str],
    /// A TTL may be sent on a SotW stream (S59).
    pub(crate) ttl_in_sotw: bool,
}

/// The form of a negative answer: how a client is told that a name does not
/// exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NegativeForm {
    /// The name in `removed_resources`.
    Removed,
    /// A resource that has its name and nothing else.
    EmptyBody,
    /// A resource without a body that has its own name as alias.
    Bodyless,
    /// A body that cannot be decoded, in a response of its own. The client
    /// NACKs it, and that ends its wait; a response that it ACKs would leave it
    /// waiting.
    Unreadable,
    /// No answer: every form does more harm than none.
    Silence,
}

macro_rules! kinds {
    ($($konst:ident $url:literal = $kind:expr;)*) => {
        $(#[doc = concat!("`", $url, "`")]
        pub const $konst: &str = concat!("type.googleapis.com/", $url);)*

        impl Kind {
            /// The properties of a type.
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

/// `negative` has the forms of a negative answer for Envoy, in delta and in
/// SotW.
const fn kind(short: &'static str, rank: u8, negative: (NegativeForm, NegativeForm)) -> Kind {
    Kind {
        short,
        rank,
        envoy_negative: negative.0,
        envoy_negative_in_sotw: negative.1,
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
    /// Whether resources of type `user` may refer to resources of type `used`,
    /// directly or through other types.
    pub(crate) fn reaches(user: &str, used: &str) -> bool {
        let refers_to = Self::of(&user.into()).refers_to.iter();
        let mut others = refers_to.filter(|other| **other != user);
        others.any(|other| *other == used || Self::reaches(other, used))
    }

    /// Whether resources of some type may refer to this type.
    #[must_use]
    pub(crate) fn is_referred_to(type_url: &TypeUrl) -> bool {
        ALL.iter().any(|user| {
            Self::of(&(*user).into())
                .refers_to
                .contains(&type_url.as_str())
        })
    }
}
