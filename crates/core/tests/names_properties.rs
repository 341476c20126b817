//! Names: what holds for every text a peer could write (C11, S27, S63).

use proptest::prelude::*;
use trunkline_core::name::{Glob, Name, NameError, Selector, XdstpName};

/// Parts with every character that some spelling treats specially.
fn part() -> impl Strategy<Value = String> {
    "[a-c%/?#&=:~*é \\[\\]\u{1}]{0,5}"
}

fn structured() -> impl Strategy<Value = XdstpName> {
    let context = prop::collection::vec(("[ab.%&=]{1,2}", part()), 0..4);
    (part(), "[a-b._-]{1,3}", part(), context)
        .prop_filter_map("an id", |(a, t, i, c)| XdstpName::new(&a, &t, &i, c).ok())
}

/// Texts that are often nearly structured names.
fn nearly() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "xdstp://[a%4f/?#&=*é]{0,20}",
        "xdstp://a/t/[ab%4f?&=/*]{0,12}",
    ]
}

/// Names of a world so small that globs often match.
fn small_name() -> impl Strategy<Value = String> {
    "xdstp://a?/[tu](/[ab*]){1,3}(\\?[kl]=v&[kl]=v)?"
}

fn small_glob() -> impl Strategy<Value = String> {
    "xdstp://a?/[tu](/[ab*]){0,2}/\\*(\\?[kl]=v&[kl]=v)?"
}

fn naive_match(glob: &XdstpName, name: &XdstpName) -> bool {
    let levels: Vec<&str> = glob.id().split('/').collect();
    let its: Vec<&str> = name.id().split('/').collect();
    glob.authority() == name.authority()
        && glob.resource_type() == name.resource_type()
        && glob.context() == name.context()
        && levels.len() == its.len()
        && levels[..levels.len() - 1] == its[..its.len() - 1]
        && its.last() != Some(&"*")
}

proptest! {
    #[test]
    fn no_text_panics_and_canonical_is_final(text in nearly()) {
        let name = Name::new(&text);
        prop_assert_eq!(&Name::new(name.as_str()), &name);
        prop_assert_eq!(name.xdstp().is_some(), XdstpName::parse(&text).is_ok());
        prop_assert!(name.as_str().len() <= 3 * text.len());
        match Selector::parse(&text, 1 << 20) {
            Ok(Selector::Wildcard) => prop_assert_eq!(text, "*"),
            Ok(Selector::Glob(glob)) => {
                prop_assert_eq!(Glob::parse(&text), Ok(glob.clone()));
                prop_assert_eq!(glob.as_str(), name.as_str());
            }
            Ok(Selector::Name(asked)) => prop_assert_eq!(asked, name),
            Err(error) => {
                prop_assert_eq!(error, NameError::Empty);
                prop_assert_eq!(text, "");
            }
        }
    }

    #[test]
    fn structured_names_round_trip(name in structured()) {
        prop_assert_eq!(XdstpName::parse(&name.to_string()), Ok(name.clone()));
        prop_assert_eq!(Name::from(&name).xdstp(), Some(name));
    }

    #[test]
    fn c11_the_order_of_context_parameters_says_nothing(name in structured()) {
        let reversed = name.context().iter().rev().cloned();
        let again = XdstpName::new(name.authority(), name.resource_type(), name.id(), reversed);
        prop_assert_eq!(again, Ok(name));
    }

    #[test]
    fn s63_globs_match_as_defined(text in small_glob(), name in small_name()) {
        let (glob, name) = (Glob::parse(&text).unwrap(), Name::new(&name));
        let naive = naive_match(&XdstpName::parse(&text).unwrap(), &name.xdstp().unwrap());
        prop_assert_eq!(glob.matches(&name), naive);
        prop_assert_eq!(Glob::of(&name) == Some(glob), naive);
    }

    #[test]
    fn s63_a_name_is_in_the_glob_it_is_said_to_be_of(name in small_name()) {
        let name = Name::new(&name);
        match Glob::of(&name) {
            Some(glob) => {
                prop_assert!(glob.matches(&name));
                prop_assert_eq!(Glob::parse(glob.as_str()), Ok(glob));
            }
            None => prop_assert!(Glob::parse(name.as_str()).is_ok()),
        }
    }
}

/// A quarter of a megabyte in every part that a peer controls.
#[test]
fn hostile_names_are_refused_or_read() {
    for unit in ["a", "/", "%", "%41", "?", "&", "a=&", "é", "/*", "#"] {
        let query = format!("xdstp://a/t/x?{}", unit.repeat((1 << 18) / unit.len()));
        let bytes = query.len();
        let too_long = NameError::TooLong { bytes, limit: 4096 };
        assert_eq!(Selector::parse(&query, 4096), Err(too_long));
        for text in [query.replace("x?", "x"), query.replace("/t", ""), query] {
            let name = Name::new(&text);
            assert_eq!(Name::new(name.as_str()), name);
        }
    }
    let megabyte = "a".repeat(1 << 20);
    assert_eq!(Name::new(&megabyte).as_str(), megabyte);
}

#[test]
fn a_hundred_thousand_context_parameters_are_sorted() {
    let text = |numbers: &mut dyn Iterator<Item = u32>| {
        let params: Vec<String> = numbers.map(|nth| format!("k{nth:06}=v")).collect();
        format!("xdstp://a/t/x?{}", params.join("&"))
    };
    let backwards = Name::new(&text(&mut (0..100_000).rev()));
    assert_eq!(backwards.as_str(), text(&mut (0..100_000)));
    let same_key = format!("xdstp://a/t/x?{}k=last", "k=v&".repeat(100_000));
    assert_eq!(Name::new(&same_key).as_str(), "xdstp://a/t/x?k=last");
}
