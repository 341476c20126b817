//! Names of types for people: `cds`, a message's name, or a type URL.

use trunkline::TypeUrl;
use trunkline::kind::{ALL, Kind};
use trunkline_proto::descriptor;
use trunkline_proto::text::nearest;

/// The short names in the order in which people list them.
pub(crate) const SHORT: [&str; 10] = [
    "lds", "cds", "rds", "eds", "sds", "srds", "vhds", "rtds", "ecds", "leds",
];

/// Every value of [`label`].
pub(crate) const LABELS: [&str; 11] = [
    "lds", "cds", "rds", "eds", "sds", "srds", "vhds", "rtds", "ecds", "leds", "other",
];

/// Words for the types beside their short names: what people call them, and the
/// names of their messages. Each is in the singular, in lower case and without
/// hyphens.
const WORDS: [(&str, &[&str]); 10] = [
    ("lds", &["listener"]),
    ("cds", &["cluster"]),
    ("rds", &["route", "routeconfig", "routeconfiguration"]),
    ("eds", &["endpoint", "clusterloadassignment"]),
    ("sds", &["secret"]),
    ("srds", &["scopedroute", "scopedrouteconfiguration"]),
    ("vhds", &["virtualhost", "vhost"]),
    ("rtds", &["runtime"]),
    (
        "ecds",
        &["extension", "extensionconfig", "typedextensionconfig"],
    ),
    ("leds", &["lbendpoint", "localityendpoint"]),
];

/// A word that is not a type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown type {text:?}{}; give one of {list}, a word such as cluster or clusters, or a type \
     URL such as type.googleapis.com/envoy.config.cluster.v3.Cluster",
    did_you_mean(.near.as_deref()),
    list = SHORT.join(", ")
)]
pub(crate) struct UnknownType {
    text: String,
    /// The word that was probably meant.
    near: Option<String>,
}

impl UnknownType {
    /// Makes the error of a text that is not a type, with the nearest word for
    /// a type.
    fn new(text: &str) -> Self {
        let words = WORDS.iter().flat_map(|(short, words)| {
            let plurals = words.iter().map(|word| format!("{word}s"));
            let words = words.iter().map(|&word| word.to_owned());
            words.chain(plurals).chain([(*short).to_owned()])
        });
        Self {
            near: nearest(&plain_word(text), words),
            text: text.to_owned(),
        }
    }
}

/// Writes the question whether a word was meant. Returns an empty text without
/// a word.
pub(crate) fn did_you_mean(word: Option<&str>) -> String {
    word.map(|word| format!("; did you mean {word:?}?"))
        .unwrap_or_default()
}

/// Parses a type as people write it: a short name or another usual word in any
/// case, a message's name, or a type URL. A message's name or a type URL may be
/// unknown, but must have a dot or a slash.
///
/// # Errors
/// The text is neither a known word nor has a dot or a slash.
pub(crate) fn parse(text: &str) -> Result<TypeUrl, UnknownType> {
    if let Some(type_url) = parse_word(text) {
        return Ok(type_url);
    }
    match text.contains(['/', '.']) {
        true => Ok(type_url(text)),
        false => Err(UnknownType::new(text)),
    }
}

/// Parses a type, or a type and a name such as `cds/backend`. The name may
/// contain slashes.
///
/// # Errors
/// The part before the first slash is neither a word for a type nor, as in a
/// type URL, a host.
pub(crate) fn parse_with_name(text: &str) -> Result<(TypeUrl, Option<&str>), UnknownType> {
    for url in ALL.iter().copied() {
        for prefix in [url, descriptor::full_name(url)] {
            let suffix = text.strip_prefix(prefix);
            if let Some(name) = suffix.and_then(|suffix| suffix.strip_prefix('/')) {
                return Ok((TypeUrl::new(url), Some(name)));
            }
        }
    }
    match text.split_once('/') {
        Some((kind, _)) if kind.contains('.') => Ok((type_url(text), None)),
        Some((kind, name)) => match parse_word(kind) {
            Some(type_url) => Ok((type_url, Some(name))),
            None => Err(UnknownType::new(kind)),
        },
        None => Ok((parse(text)?, None)),
    }
}

/// Returns the type that a word stands for: a short name, or one of [`WORDS`]
/// in the singular or plural. Returns `None` for other texts.
fn parse_word(text: &str) -> Option<TypeUrl> {
    let word = plain_word(text);
    let singular = word.strip_suffix('s').unwrap_or(&word);
    let matches_word = |(short, words): &&(&str, &[&str])| {
        *short == word || words.contains(&word.as_str()) || words.contains(&singular)
    };
    let (short, _) = WORDS.iter().find(matches_word)?;
    Some(type_url(short))
}

/// Writes a word in lower case, without hyphens and underscores.
fn plain_word(text: &str) -> String {
    text.to_ascii_lowercase().replace(['-', '_'], "")
}

/// Returns the type of a short name, of a message's name, or of a type URL.
/// Does not check the text: a word that is not a short name counts as a
/// message's name.
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
        assert_eq!(WORDS.map(|(short, _)| short), SHORT);
    }

    #[test]
    fn types_are_named_in_any_usual_way() {
        let own = parse("type.example.com/a.B").unwrap();
        assert_eq!((short(&own), label(&own)), ("a.B", "other"));
        for (text, of) in [
            ("cds", kind::CDS),
            ("CDS", kind::CDS),
            ("cluster", kind::CDS),
            ("clusters", kind::CDS),
            ("Cluster", kind::CDS),
            ("envoy.config.cluster.v3.Cluster", kind::CDS),
            (kind::CDS, kind::CDS),
            ("RouteConfiguration", kind::RDS),
            ("routes", kind::RDS),
            ("ClusterLoadAssignment", kind::EDS),
            ("virtual-hosts", kind::VHDS),
        ] {
            assert_eq!(parse(text), Ok(of.into()), "{text}");
        }
    }

    #[test]
    fn every_message_of_a_type_is_a_word() {
        for url in ALL.iter().copied() {
            let name = descriptor::full_name(url).rsplit('.').next().unwrap();
            assert_eq!(parse(name), Ok(url.into()), "{name}");
        }
    }

    #[test]
    fn an_unknown_type_is_answered_with_a_near_one_and_the_list() {
        let error = parse("clutsers").unwrap_err().to_string();
        assert!(error.contains("did you mean \"clusters\"?"), "{error}");
        assert!(error.contains("lds, cds, rds"), "{error}");
        let error = parse("bananas").unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn a_type_may_have_a_name_behind_it() {
        let cds = TypeUrl::from(kind::CDS);
        let url = format!("{}/a", kind::CDS);
        for (text, name) in [
            ("cds/a", Some("a")),
            ("clusters/a/b", Some("a/b")),
            ("envoy.config.cluster.v3.Cluster/a", Some("a")),
            (&url, Some("a")),
            ("cds", None),
            (kind::CDS, None),
        ] {
            assert_eq!(parse_with_name(text), Ok((cds.clone(), name)), "{text}");
        }
        let own = "type.example.com/a.B";
        assert_eq!(parse_with_name(own), Ok((TypeUrl::new(own), None)));
        let error = parse_with_name("cdx/a").unwrap_err().to_string();
        assert!(error.contains("did you mean \"cds\"?"), "{error}");
    }
}
