//! The two sides of a rule of `macro_rules!`, as a tree of nodes.

use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

pub(super) enum Node {
    Token(TokenTree),
    Group(Delimiter, Vec<Node>),
    /// The name, and its kind in a pattern.
    Variable(String, String),
    Repeat(Repeat),
}

pub(super) struct Repeat {
    pub(super) inner: Vec<Node>,
    pub(super) separator: Option<TokenTree>,
    /// `?`, not `*` or `+`.
    pub(super) at_most_once: bool,
}

/// Which side is read: only in a pattern does a colon after a variable lead to
/// its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Pattern,
    Body,
}

pub(super) fn read(tokens: TokenStream, side: Side) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        nodes.push(match token {
            TokenTree::Group(group) => Node::Group(group.delimiter(), read(group.stream(), side)),
            TokenTree::Punct(punct) if punct.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Group(group)) => {
                    Node::Repeat(repeat(read(group.stream(), side), &mut tokens))
                }
                Some(TokenTree::Ident(name)) => variable(name, side, &mut tokens),
                _ => continue,
            },
            other => Node::Token(other),
        });
    }
    nodes
}

fn variable(name: Ident, side: Side, tokens: &mut Peekable<IntoIter>) -> Node {
    if name == "crate" {
        return Node::Token(TokenTree::Ident(name));
    }
    let mut kind = String::new();
    if side == Side::Pattern {
        tokens.next();
        kind = tokens
            .next()
            .map(|kind| kind.to_string())
            .unwrap_or_default();
    }
    Node::Variable(name.to_string(), kind)
}

/// Reads the end of `$(...)`: an operator, or a separator and an operator.
fn repeat(inner: Vec<Node>, tokens: &mut Peekable<IntoIter>) -> Repeat {
    let is_operator = |token: &TokenTree| matches!(token.to_string().as_str(), "*" | "+" | "?");
    let separator = tokens.next_if(|token| !is_operator(token));
    let operator = tokens.next();
    Repeat {
        inner,
        separator,
        at_most_once: operator.is_some_and(|operator| operator.to_string() == "?"),
    }
}

/// The names of every variable, at whatever depth.
pub(super) fn variables(nodes: &[Node]) -> Vec<String> {
    let mut names = Vec::new();
    for node in nodes {
        match node {
            Node::Token(_) => {}
            Node::Variable(name, _) => names.push(name.clone()),
            Node::Group(_, inner) => names.extend(variables(inner)),
            Node::Repeat(repeat) => names.extend(variables(&repeat.inner)),
        }
    }
    names
}
