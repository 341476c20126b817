//! `macro_rules!`, as far as macros that define items need it.
//!
//! The first rule that matches is transcribed, as in the compiler; names are
//! not kept apart by hygiene, for items have none.

mod fragment;
mod nodes;

use std::collections::BTreeMap;

use proc_macro2::{Group, TokenStream, TokenTree};
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};

use nodes::{Node, Repeat, Side};

/// A macro with its rules.
pub(super) struct Macro {
    rules: Vec<(Vec<Node>, Vec<Node>)>,
}

/// The tokens of each variable of a rule.
type Bindings = BTreeMap<String, Bound>;

#[derive(Clone)]
enum Bound {
    One(TokenStream),
    /// Once for each turn of a repetition.
    Many(Vec<Bound>),
}

impl Macro {
    /// Reads `(pattern) => { body };` over and over.
    pub(super) fn parse(definition: TokenStream) -> Self {
        let mut groups = definition.into_iter().filter_map(|token| match token {
            TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        });
        let mut rules = Vec::new();
        while let (Some(pattern), Some(body)) = (groups.next(), groups.next()) {
            rules.push((
                nodes::read(pattern, Side::Pattern),
                nodes::read(body, Side::Body),
            ));
        }
        Self { rules }
    }

    /// The tokens that a call with these arguments stands for.
    pub(super) fn expand(&self, arguments: TokenStream) -> syn::Result<TokenStream> {
        let mut refusal = None;
        for (pattern, body) in &self.rules {
            let parser = |input: ParseStream<'_>| bind(pattern, input);
            match parser.parse2(arguments.clone()) {
                Ok(bindings) => return Ok(transcribe(body, &bindings)),
                Err(error) => refusal = Some(error),
            }
        }
        let none = || syn::Error::new(proc_macro2::Span::call_site(), "no rule");
        Err(refusal.unwrap_or_else(none))
    }
}

fn bind(pattern: &[Node], input: ParseStream<'_>) -> syn::Result<Bindings> {
    let mut bindings = Bindings::new();
    for node in pattern {
        match node {
            Node::Token(wanted) => {
                let found: TokenTree = input.parse()?;
                if found.to_string() != wanted.to_string() {
                    return Err(input.error(format!("expected {wanted}")));
                }
            }
            Node::Group(delimiter, inner) => {
                let group: Group = input.parse()?;
                if group.delimiter() != *delimiter {
                    return Err(input.error("another delimiter"));
                }
                let parser = |input: ParseStream<'_>| bind(inner, input);
                bindings.extend(parser.parse2(group.stream())?);
            }
            Node::Variable(name, kind) => {
                let tokens = fragment::read(kind, input)?;
                bindings.insert(name.clone(), Bound::One(tokens));
            }
            Node::Repeat(repeat) => bindings.extend(bind_repeat(repeat, input)?),
        }
    }
    Ok(bindings)
}

fn bind_repeat(repeat: &Repeat, input: ParseStream<'_>) -> syn::Result<Bindings> {
    let mut turns: Vec<Bindings> = Vec::new();
    while !input.is_empty() {
        let ahead = input.fork();
        if let Some(separator) = repeat.separator.as_ref().filter(|_| !turns.is_empty()) {
            let found: TokenTree = ahead.parse()?;
            if found.to_string() != separator.to_string() {
                break;
            }
        }
        let Ok(turn) = bind(&repeat.inner, &ahead) else {
            break;
        };
        input.advance_to(&ahead);
        turns.push(turn);
        if repeat.at_most_once {
            break;
        }
    }
    let names = nodes::variables(&repeat.inner);
    let of = |name: &String| {
        turns
            .iter()
            .filter_map(|turn| turn.get(name).cloned())
            .collect()
    };
    let bound = names
        .into_iter()
        .map(|name| (name.clone(), Bound::Many(of(&name))));
    Ok(bound.collect())
}

fn transcribe(body: &[Node], bindings: &Bindings) -> TokenStream {
    let mut tokens = TokenStream::new();
    for node in body {
        match node {
            Node::Token(token) => tokens.extend([token.clone()]),
            Node::Group(delimiter, inner) => {
                let group = Group::new(*delimiter, transcribe(inner, bindings));
                tokens.extend([TokenTree::Group(group)]);
            }
            Node::Variable(name, _) => {
                if let Some(Bound::One(found)) = bindings.get(name) {
                    tokens.extend(found.clone());
                }
            }
            Node::Repeat(repeat) => tokens.extend(transcribe_repeat(repeat, bindings)),
        }
    }
    tokens
}

fn transcribe_repeat(repeat: &Repeat, bindings: &Bindings) -> TokenStream {
    let names = nodes::variables(&repeat.inner);
    let turns = names.iter().filter_map(|name| match bindings.get(name) {
        Some(Bound::Many(turns)) => Some(turns.len()),
        _ => None,
    });
    let mut tokens = TokenStream::new();
    for turn in 0..turns.max().unwrap_or(0) {
        let mut inner = bindings.clone();
        for name in &names {
            if let Some(Bound::Many(turns)) = bindings.get(name)
                && let Some(bound) = turns.get(turn)
            {
                inner.insert(name.clone(), bound.clone());
            }
        }
        if turn > 0 {
            tokens.extend(repeat.separator.clone());
        }
        tokens.extend(transcribe(&repeat.inner, &inner));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(definition: &str, call: &str) -> String {
        let definition = Macro::parse(definition.parse().unwrap());
        let tokens = definition.expand(call.parse().unwrap()).unwrap();
        super::super::text::show(tokens)
    }

    #[test]
    fn repetitions_are_unrolled() {
        let definition = "($($name:ident $url:literal = $kind:expr;)*) => {
            $(pub const $name: &str = $url;)*
            pub const ALL: &[&str] = &[$($name),*];
        }";
        assert_eq!(
            expanded(definition, "A \"a\" = f(1); B \"b\" = K { ..g };"),
            "pub const A: &str = \"a\"; pub const B: &str = \"b\"; \
             pub const ALL: &[&str] = &[A, B];"
        );
    }

    #[test]
    fn the_first_rule_that_matches_is_taken() {
        let definition = "
            ($(#[$doc:meta])* $name:ident($ty:ty) $(by $path:path)?) => { [$name, $($path)?] };
            (@ $name:ident $path:path) => { struct $name; };
        ";
        assert_eq!(expanded(definition, "/// Text.\nA(u8)"), "[A,]");
        assert_eq!(expanded(definition, "A(Vec<u8>) by b::c"), "[A, b::c]");
        assert_eq!(expanded(definition, "@ A b"), "struct A;");
    }
}
