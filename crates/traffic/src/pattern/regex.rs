//! RE2 expressions, run by the crate `regex`.
//!
//! The two engines share their semantics and most of their syntax. What differs
//! is translated: RE2's `\d`, `\w`, `\s` and `\b` are of ASCII only, a `{` that
//! begins no repetition is a character, a `[` inside a class is one too, and
//! `\Q…\E`, `\C` and octal escapes exist.

use std::borrow::Cow;

use regex::bytes::{NoExpand, Regex as Engine, RegexBuilder, Replacer};
use trunkline_proto::acceptance::{Place, Problem};
use trunkline_proto::envoy::envoy::r#type::matcher::v3::{RegexMatchAndSubstitute, RegexMatcher};

use crate::findings::Findings;

/// A compiled expression.
#[derive(Debug, Clone)]
pub(crate) struct Regex {
    /// Matches a whole text.
    whole: Engine,
    /// Finds parts of a text.
    parts: Engine,
}

impl Regex {
    /// Compiles an expression of RE2.
    ///
    /// # Errors
    /// The expression is not valid. The error is a sentence about it.
    pub(crate) fn new(expression: &str) -> Result<Self, String> {
        let translated = translate(expression);
        let build = |text: &str| {
            RegexBuilder::new(text)
                .build()
                .map_err(|error| format!("the expression {expression:?} is not valid: {error}"))
        };
        Ok(Self {
            whole: build(&format!(r"\A(?:{translated})\z"))?,
            parts: build(&translated)?,
        })
    }

    /// Compiles the expression of a message. Returns `None` if it is not valid.
    pub(crate) fn compile(
        message: &RegexMatcher,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        Self::new(&message.regex)
            .map_err(|problem| findings.add(&place.field("regex"), Problem::Other(problem)))
            .ok()
    }

    /// Returns whether the expression matches the text as a whole.
    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.whole.is_match(text)
    }

    /// Returns the groups of a match of the whole text.
    pub(crate) fn captures<'t>(&self, text: &'t [u8]) -> Option<regex::bytes::Captures<'t>> {
        self.whole.captures(text)
    }
}

/// An expression and the text that replaces each of its matches.
#[derive(Debug, Clone)]
pub(crate) struct Substitution {
    regex: Regex,
    parts: Vec<Part>,
}

/// A part of a replacement.
#[derive(Debug, Clone)]
enum Part {
    Literal(Vec<u8>),
    Group(usize),
}

impl Substitution {
    /// Compiles a substitution. Returns `None` if its expression is missing or not
    /// valid, or its replacement refers to a group that does not exist.
    pub(crate) fn compile(
        message: &RegexMatchAndSubstitute,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(pattern) = &message.pattern else {
            findings.add(&place.field("pattern"), Problem::Missing);
            return None;
        };
        let regex = Regex::compile(pattern, &place.field("pattern"), findings)?;
        let groups = regex.parts.captures_len();
        match parse_substitution(&message.substitution, groups) {
            Ok(parts) => Some(Self { regex, parts }),
            Err(problem) => {
                findings.add(&place.field("substitution"), Problem::Other(problem));
                None
            }
        }
    }

    /// Replaces all matches in a text.
    pub(crate) fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let replaced = match self.parts.as_slice() {
            [] => self.regex.parts.replace_all(text.as_bytes(), NoExpand(b"")),
            [Part::Literal(literal)] => self
                .regex
                .parts
                .replace_all(text.as_bytes(), NoExpand(literal)),
            parts => self.regex.parts.replace_all(text.as_bytes(), Parts(parts)),
        };
        match replaced {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

/// The replacement of a match by literals and groups.
struct Parts<'p>(&'p [Part]);

impl Replacer for Parts<'_> {
    /// Appends the literals, and the groups of one match. A group that took no
    /// part in the match is empty.
    fn replace_append(&mut self, captures: &regex::bytes::Captures<'_>, output: &mut Vec<u8>) {
        for part in self.0 {
            match part {
                Part::Literal(literal) => output.extend_from_slice(literal),
                Part::Group(group) => {
                    let matched = captures.get(*group).map(|matched| matched.as_bytes());
                    output.extend_from_slice(matched.unwrap_or_default());
                }
            }
        }
    }
}

/// Reads `\1`, `\\` and literals.
fn parse_substitution(text: &str, groups: usize) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            literal.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'\\') => literal.push(b'\\'),
            Some(digit @ b'0'..=b'9') => {
                let group = usize::from(digit - b'0');
                if group >= groups {
                    return Err(format!(
                        "the expression has no group {group}; name one of it"
                    ));
                }
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::Group(group));
            }
            _ => return Err("a `\\` stands before neither a digit nor a `\\`".to_owned()),
        }
    }

    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

/// Translates an expression of RE2.
fn translate(expression: &str) -> String {
    let mut translated = String::with_capacity(expression.len() + 8);
    let mut remainder = expression;
    while let Some(character) = remainder.chars().next() {
        remainder = &remainder[character.len_utf8()..];
        match character {
            '\\' => remainder = translate_escape(remainder, &mut translated),
            '[' => remainder = translate_class(remainder, &mut translated),
            '{' if !begins_repetition(remainder) => translated.push_str(r"\{"),
            _ => translated.push(character),
        }
    }
    translated
}

/// Translates an escape, from behind its backslash, and returns what follows it.
fn translate_escape<'e>(remainder: &'e str, output: &mut String) -> &'e str {
    let Some(character) = remainder.chars().next() else {
        output.push('\\');
        return remainder;
    };

    let tail = &remainder[character.len_utf8()..];
    match character {
        'd' => output.push_str("[0-9]"),
        'D' => output.push_str("[^0-9]"),
        'w' => output.push_str("[0-9A-Za-z_]"),
        'W' => output.push_str("[^0-9A-Za-z_]"),
        's' => output.push_str(r"[\t\n\x0C\r ]"),
        'S' => output.push_str(r"[^\t\n\x0C\r ]"),
        'b' => output.push_str(r"(?-u:\b)"),
        'B' => output.push_str(r"(?-u:\B)"),
        'C' => output.push_str("(?s-u:.)"),
        'Q' => {
            let (quoted, tail) = tail.split_once(r"\E").unwrap_or((tail, ""));
            output.push_str(&regex::escape(quoted));
            return tail;
        }
        // One digit that is not 0 is a reference to a group, which RE2 has not.
        '0'..='7' if character == '0' || octal_digits(tail) > 0 => {
            let (digits, tail) = remainder.split_at(1 + octal_digits(tail).min(2));
            let code = u32::from_str_radix(digits, 8).unwrap_or(0);
            output.push_str(&format!("\\x{{{code:x}}}"));
            return tail;
        }
        // The engine has them as the two ends of a word.
        '<' | '>' => output.push(character),
        _ => {
            output.push('\\');
            output.push(character);
        }
    }
    tail
}

/// Returns how many octal digits a text begins with.
fn octal_digits(text: &str) -> usize {
    let digits = text.bytes().take_while(|b| (b'0'..=b'7').contains(b));
    digits.count()
}

/// The escapes that stand for several characters, and begin no range.
const GROUPS: [char; 8] = ['d', 'D', 'w', 'W', 's', 'S', 'p', 'P'];

/// Translates a class, from behind its `[`, and returns what follows it.
fn translate_class<'e>(remainder: &'e str, output: &mut String) -> &'e str {
    output.push('[');
    let mut remainder = remainder;
    if let Some(tail) = remainder.strip_prefix('^') {
        output.push('^');
        remainder = tail;
    }

    // Whether a `-` that follows makes a range. Two of them are an operator of
    // the engine, so that one which is itself a character is escaped.
    let mut begins_range = false;
    if let Some(tail) = remainder.strip_prefix(']') {
        output.push_str(r"\]");
        remainder = tail;
        begins_range = true;
    }

    while let Some(character) = remainder.chars().next() {
        let tail = &remainder[character.len_utf8()..];
        match character {
            ']' => {
                output.push(']');
                return tail;
            }
            '-' if begins_range && !tail.starts_with(']') => {
                output.push('-');
                // Several characters end no range. The engine refuses them as
                // they are.
                remainder = match tail.strip_prefix('\\') {
                    Some(escape) if escape.starts_with(GROUPS) => {
                        output.push('\\');
                        escape
                    }
                    _ => translate_class_item(tail, output),
                };
                begins_range = false;
            }
            '[' if tail.starts_with(':') && tail.contains(":]") => {
                let end = tail.find(":]").map_or(0, |end| end + 2);
                output.push('[');
                output.push_str(&tail[..end]);
                remainder = &tail[end..];
                begins_range = false;
            }
            _ => {
                let escape = remainder.strip_prefix('\\');
                begins_range = !escape.is_some_and(|escape| escape.starts_with(GROUPS));
                remainder = translate_class_item(remainder, output);
            }
        }
    }
    remainder
}

/// Translates one character of a class, or an escape.
fn translate_class_item<'e>(remainder: &'e str, output: &mut String) -> &'e str {
    let Some(character) = remainder.chars().next() else {
        return remainder;
    };
    let tail = &remainder[character.len_utf8()..];
    match character {
        '\\' => return translate_escape(tail, output),
        '[' | '&' | '~' | '-' => {
            output.push('\\');
            output.push(character);
        }
        _ => output.push(character),
    }
    tail
}

/// Returns whether `3}`, `3,}` or `3,5}` follows.
fn begins_repetition(remainder: &str) -> bool {
    let Some((inside, _)) = remainder.split_once('}') else {
        return false;
    };
    let (least, largest) = inside.split_once(',').unwrap_or((inside, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_re2() {
        // expression, text, whether it matches
        let cases: &[(&str, &str, bool)] = &[
            (r"/x|/yy", "/yyz", false),
            (r"\d+", "12", true),
            (r"\d+", "\u{663}", false),
            (r"\w", "é", false),
            (r"[\w-]+", "a-b", true),
            (r"[[]", "[", true),
            (r"[]a]", "]", true),
            (r"[a&&b]", "&", true),
            (r"[[:alpha:]]+", "ab", true),
            (r"[[a:]", "[", true),
            (r"[[:a]", ":", true),
            (r"{x}", "{x}", true),
            (r"a{2}", "aa", true),
            (r"a{2,}", "aaa", true),
            (r"a{,2}", "a{,2}", true),
            (r"\Qa.b\E+", "a.bb", true),
            (r"\Qa.b\E", "axb", false),
            (r"(?i)AB", "ab", true),
            (r"a.c", "aéc", true),
            (r"\012", "\n", true),
            (r"", "", true),
            (r"\D+", "a\u{663}", true),
            (r"\D", "1", false),
            (r"\W+", "é-", true),
            (r"\W", "_", false),
            (r"a\sb", "a\tb", true),
            // A vertical tab is no space.
            (r"a\sb", "a\u{b}b", false),
            (r"\S+", "a\u{b}b", true),
            (r"\S", " ", false),
            (r"a\b.b", "a b", true),
            (r"a\bb", "ab", false),
            (r"a\Bb", "ab", true),
            (r"a\B.b", "a b", false),
            (r"a\Cb", "a\nb", true),
            (r"\C", "é", false),
            (r"\C\C", "é", true),
            (r"\Qa.b", "a.b", true),
            (r"\0", "\0", true),
            (r"\08", "\u{0}8", true),
            (r"\0101", "\u{8}1", true),
            (r"[\0-\012]+", "\n\0", true),
            (r"\101", "A", true),
            (r"\1012", "A2", true),
            (r"\777", "\u{1ff}", true),
            (r"[\101-\103]", "B", true),
            (r"\.", ".", true),
            (r"\.", "a", false),
            (r"[^]a]", "b", true),
            (r"[^]a]", "]", false),
            (r"[^\d]", "1", false),
            (r"[a~~b]+", "~ab", true),
            (r"[+--]+", "+,-", true),
            (r"[+--]", ".", false),
            (r"[+---]+", "+,-", true),
            (r"[--]", "-", true),
            (r"[---]", "-", true),
            (r"[a-]+", "a-", true),
            (r"[a-c-e]+", "abc-e", true),
            (r"[a-c-e]", "d", false),
            (r"[\d-z]+", "1-z", true),
            (r"[\d-z]", "a", false),
            (r"[]-a]+", "]^_`a", true),
            (r"[^]-a]", "_", false),
            (r"[!-&]+", "!%&", true),
            (r"[[:digit:]-z]+", "1-z", true),
            (r"[[:digit:]-z]", "a", false),
            (r"[\t-\r]+", "\t\n\r", true),
            (r"\<a\>", "<a>", true),
            (r"[\<\>]+", "<>", true),
            (r"[--/]+", "-./", true),
            (r"[[:^alpha:]]", "1", true),
            (r"[[:alpha:][:digit:]]+", "a1", true),
            (r"[a[:digit:]]+", "1a", true),
            (r"a{", "a{", true),
            (r"a{}", "a{}", true),
            (r"a{x,2}", "a{x,2}", true),
            (r"a{1,x}", "a{1,x}", true),
            (r"a{1,2}", "aa", true),
            (r"a{1,2}", "aaa", false),
        ];
        for (expression, text, expected) in cases {
            let regex = Regex::new(expression).expect(expression);
            assert_eq!(
                regex.is_match(text.as_bytes()),
                *expected,
                "{expression} {text}"
            );
        }
        assert!(Regex::new(r"(a)\1").is_err());
        assert!(Regex::new(r"(?=a)").is_err());
        assert!(Regex::new(r"(").is_err());
    }

    #[test]
    fn an_expression_that_is_none_is_refused() {
        for expression in [
            "[",
            "[a",
            "[^",
            "[]",
            "\\",
            "a\\",
            "[\\",
            "[[:alpha:]",
            "(?P<a>",
            "\\é",
            "\\1",
            "\\18",
            "[+-\\d]",
        ] {
            assert!(Regex::new(expression).is_err(), "{expression}");
        }
    }

    fn substitution(pattern: &str, text: &str) -> Result<Substitution, Findings> {
        let message = RegexMatchAndSubstitute {
            pattern: Some(RegexMatcher {
                regex: pattern.to_owned(),
                ..RegexMatcher::default()
            }),
            substitution: text.to_owned(),
        };
        let mut findings = Findings::default();
        let substitution = Substitution::compile(&message, &Place::ROOT, &mut findings);
        substitution.ok_or(findings)
    }

    #[test]
    fn all_matches_are_replaced_by_literals_and_groups() {
        for (pattern, text, expected) in [
            ("a+", "", "b-c"),
            ("a+", "x", "xbx-xcx"),
            ("(a)(a)?", r"\2\1", "abaa-aca"),
            ("a(a)?", r"[\0]", "[a]b[aa]-[a]c[a]"),
            ("a+", r"\\", r"\b\-\c\"),
            ("a+", r"x\0y\0", "xayabxaayaa-xayacxaya"),
            ("z", "x", "abaa-aca"),
        ] {
            let substitution = substitution(pattern, text).expect("a substitution");
            let text_of = "abaa-aca";
            assert_eq!(substitution.apply(text_of), expected, "{pattern} {text}");
        }
        // `$` means nothing.
        let plain = substitution("a", "$0").expect("a substitution");
        assert_eq!(plain.apply("ab"), "$0b");
    }

    #[test]
    fn a_substitution_that_cannot_be_is_a_finding() {
        for (pattern, text, path) in [
            ("(", "", "pattern.regex"),
            ("(a)", r"\2", "substitution"),
            ("a", r"\1", "substitution"),
            ("a", r"\a", "substitution"),
            ("a", r"\", "substitution"),
        ] {
            let findings = substitution(pattern, text).expect_err("a finding");
            assert_eq!(findings.list()[0].path, path, "{pattern} {text}");
        }
        let mut findings = Findings::default();
        let message = RegexMatchAndSubstitute::default();
        Substitution::compile(&message, &Place::ROOT, &mut findings);
        assert_eq!(findings.list()[0].path, "pattern");
    }
}
