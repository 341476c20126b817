//! Names of types for people: `cds`, a message's name, or a type URL.

use trunkline::TypeUrl;
use trunkline::kind::{ALL, Kind};
use trunkline_proto::descriptor;

/// The short names in the order in which people list them.
pub(crate) const SHORT: [&str; 10] = [
    "lds", "cds", "rds", "eds", "sds", "srds", "vhds", "rtds", "ecds", "leds",
];

/// Every value of [`label`].
pub(crate) const LABELS: [&str; 11] = [
    "lds", "cds", "rds", "eds", "sds", "srds", "vhds", "rtds", "ecds", "leds", "other",
];

/// A word that is not a type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown type {0:?}; give one of {list}, or a type URL such as \
     type.googleapis.com/envoy.config.cluster.v3.Cluster",
    list = SHORT.join(", ")
)]
pub(crate) struct UnknownType(String);

/// Parses a type as people write it: a short name in any case, a message's
/// name, or a type URL. The latter two need not be known, but have a dot or a
/// slash.
///
/// # Errors
/// The text is none of these.
pub(crate) fn parse(text: &str) -> Result<TypeUrl, UnknownType> {
    let lower = text.to_ascii_lowercase();
    if SHORT.contains(&lower.as_str()) {
        return Ok(type_url(&lower));
    }
    match text.contains(['/', '.']) {
        true => Ok(type_url(text)),
        false => Err(UnknownType(text.to_owned())),
    }
}

/// Returns the type of a short name, of a message's name, or of a type URL. The
/// text is not checked: any word that is not a short name counts as a message's
/// name.
pub(crate) fn type_url(text: &str) -> TypeUrl {
    let mut urls = ALL.iter().map(TypeUrl::new);
    let by_short_name = urls.find(|url| Kind::of(url).short == text);
    if let Some(url) = by_short_name {
        return url;
    }
    match text.contains('/') {
        true => TypeUrl::new(text),
        false => TypeUrl::new(format!("type.googleapis.com/{text}")),
    }
}

/// Returns the short name of a type, or the name of its message if it has none.
pub(crate) fn short(type_url: &TypeUrl) -> &str {
    match Kind::of(type_url).short {
        "" => descriptor::full_name(type_url.as_str()),
        short => short,
    }
}

/// Returns the short name of a type, or `other`: clients choose type URLs, and
/// the values of a label must not grow with them.
pub(crate) fn label(type_url: &TypeUrl) -> &'static str {
    match Kind::of(type_url).short {
        "" => "other",
        short => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline::kind;

    #[test]
    fn every_short_name_is_a_type() {
        for short in SHORT {
            let url = parse(short).unwrap();
            assert_eq!(super::short(&url), short);
            assert_eq!(label(&url), short);
        }
        assert_eq!(SHORT.len(), ALL.len());
        assert_eq!(LABELS[..10], SHORT);
    }

    #[test]
    fn types_are_said_in_three_ways() {
        let url = TypeUrl::from(kind::CDS);
        for text in ["cds", "CDS", "envoy.config.cluster.v3.Cluster", kind::CDS] {
            assert_eq!(parse(text), Ok(url.clone()), "{text}");
        }
        assert!(parse("clusters").is_err());
        let own = parse("type.example.com/a.B").unwrap();
        assert_eq!(short(&own), "a.B");
        assert_eq!(label(&own), "other");
    }
}
