//! Tokens as one line of Rust, spaced as rustfmt would.
//!
//! It covers signatures: types, generics, bounds, attributes. The line does not
//! depend on the layout of the source, nor on the compiler.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The tokens with the spaces that a reader expects.
pub(super) fn show(tokens: TokenStream) -> String {
    let mut words = Vec::new();
    collect(tokens, &mut words);
    let mut line = String::new();
    let mut last = String::new();
    for word in words {
        if !line.is_empty() && spaced(&last, &word) {
            line.push(' ');
        }
        line.push_str(&word);
        last = word;
    }
    line
}

/// Puts punctuation together that belongs together: `::`, `->`, `'a`.
fn collect(tokens: TokenStream, words: &mut Vec<String>) {
    let mut joint = String::new();
    for token in tokens {
        match token {
            TokenTree::Punct(punct) => {
                // A layout over several lines leaves a comma behind the last.
                if punct.as_char() == '>' && joint.is_empty() {
                    words.pop_if(|last| last == ",");
                }
                joint.push(punct.as_char());
                let goes_on = punct.spacing() == Spacing::Joint && !alone(&joint);
                if !goes_on {
                    words.push(std::mem::take(&mut joint));
                }
            }
            TokenTree::Ident(ident) => words.push(std::mem::take(&mut joint) + &ident.to_string()),
            TokenTree::Literal(literal) => words.push(literal.to_string()),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                words.push(open.to_owned());
                collect(group.stream(), words);
                words.push(close.to_owned());
                words.retain(|word| !word.is_empty());
            }
        }
    }
}

/// Punctuation that stands for itself even where more follows at once: `>>`
/// ends two lists, `&&` is two references.
fn alone(joint: &str) -> bool {
    matches!(joint, ">" | "<" | "&" | "," | "*" | "?" | "::" | "->") || joint == ".."
}

fn spaced(last: &str, next: &str) -> bool {
    match (last, next) {
        ("(" | "[" | "<" | "&" | "::" | "?" | "!" | "*" | "#", _) => false,
        (_, "," | ";" | ":" | "::" | ")" | "]" | ">" | ".") => false,
        (_, "<") => !is_name(last) && last != ">",
        (_, "(" | "[") => !is_name(last) && last != ">",
        _ => true,
    }
}

/// Whether arguments may follow at once.
fn is_name(word: &str) -> bool {
    let keyword = matches!(word, "dyn" | "mut" | "as" | "where" | "const" | "in");
    let starts = |c: char| c.is_alphanumeric() || c == '_';
    !keyword && word.starts_with(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        show(source.parse().unwrap())
    }

    #[test]
    fn layout_does_not_matter() {
        for line in [
            "fn f<'a, T: Into<String> + ?Sized>(&'a self, x: &mut [u8; 4]) -> Option<Vec<T>>",
            "impl for<'a> Fn(&'a str) -> Box<dyn Send + 'a>",
            "(A, B)",
            "<T as Iterator>::Item",
            "fn(usize, &&str) -> !",
            "*const u8",
            "x: &'static [&'static str]",
            "Result<(), Box<dyn Error>>",
            "cfg(all(unix, feature = \"a\"))",
        ] {
            assert_eq!(shown(line), line);
            let apart = line.parse::<TokenStream>().unwrap().to_string();
            assert_eq!(shown(&apart), line);
        }
    }

    #[test]
    fn a_comma_behind_the_last_argument_goes() {
        assert_eq!(shown("Result<\n    A,\n    B,\n>"), "Result<A, B>");
        assert_eq!(shown("(A,)"), "(A,)");
    }
}
