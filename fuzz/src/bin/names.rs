//! Names from any text: one spelling, and one glob for each.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use trunkline_core::name::{Glob, Name, Selector, XdstpName};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    first: Spelling<'a>,
    second: Spelling<'a>,
    authority: &'a str,
    id: &'a str,
    context: Vec<(&'a str, &'a str)>,
}

#[derive(Arbitrary, Debug)]
enum Spelling<'a> {
    Any(&'a str),
    /// Most texts are no structured names; these have a chance.
    Xdstp(&'a str),
}

impl Spelling<'_> {
    fn text(&self) -> String {
        match self {
            Self::Any(text) => (*text).to_owned(),
            Self::Xdstp(rest) => format!("xdstp://a/t/{rest}"),
        }
    }
}

fuzz_target!(|input: Input<'_>| {
    let names = [&input.first, &input.second].map(|spelling| check_text(&spelling.text()));
    for name in &names {
        let Some(glob) = Glob::of(name) else { continue };
        assert!(glob.matches(name));
        assert_eq!(Glob::parse(glob.as_str()).as_ref(), Ok(&glob));
        for other in &names {
            assert_eq!(glob.matches(other), Glob::of(other).as_ref() == Some(&glob));
        }
    }
    if let Ok(parts) = XdstpName::new(input.authority, "t", input.id, input.context) {
        assert_eq!(XdstpName::parse(&parts.to_string()), Ok(parts));
    }
});

fn check_text(text: &str) -> Name {
    let name = Name::new(text);
    assert_eq!(Name::new(name.as_str()), name);
    if let Ok(parts) = XdstpName::parse(text) {
        assert_eq!(XdstpName::parse(&parts.to_string()), Ok(parts));
    }
    if let Ok(glob) = Glob::parse(text) {
        assert_eq!(Glob::parse(glob.as_str()).as_ref(), Ok(&glob));
        assert!(!glob.matches(&name), "a glob is no member");
    }
    if let Ok(ask) = Selector::parse(text, 4096) {
        assert_eq!(Selector::parse(ask.as_str(), usize::MAX).as_ref(), Ok(&ask));
        assert!(ask.as_str().len() <= 3 * text.len());
    }
    name
}
