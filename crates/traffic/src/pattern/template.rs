//! URI templates of paths, such as `/v1/{bucket}/{object=**}`, and rewrites by
//! them.
//!
//! `*` and `{x}` stand for one segment that is not empty, `**` for any number of
//! segments, and only at the end. A template is matched as an expression, which
//! is how Envoy defines it.

use std::fmt::Write as _;

use super::Regex;

/// The characters of a segment: those of RFC 3986 but `*`.
const SEGMENT: &str = r"a-zA-Z0-9\-._~%!$&'()+,;:@=";

/// The most variables of a template, and the most bytes of a name.
const MAX_VARIABLES: usize = 5;
const MAX_NAME: usize = 16;

/// A template that paths are matched with.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    regex: Regex,
    variables: Vec<String>,
}

impl Template {
    /// Reads a template, or says what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!("the template {text:?} must begin with `/`"));
        }
        let mut reader = Reader {
            unread: text,
            expression: String::new(),
            variables: Vec::new(),
            is_closed: false,
        };
        reader.read()?;
        Ok(Self {
            regex: Regex::new(&reader.expression)?,
            variables: reader.variables,
        })
    }

    /// Returns whether a path, without its query, matches.
    pub(crate) fn is_match(&self, path: &str) -> bool {
        self.regex.is_match(path.as_bytes())
    }
}

/// Reads a template from left to right, and writes the expression that matches
/// its paths.
struct Reader<'t> {
    unread: &'t str,
    expression: String,
    variables: Vec<String>,
    /// Whether a `**` was read, after which no operator may follow.
    is_closed: bool,
}

impl Reader<'_> {
    /// Reads the whole template.
    ///
    /// # Errors
    /// It is not valid. The error is a sentence about it, as in the methods below.
    fn read(&mut self) -> Result<(), String> {
        while let Some(character) = self.unread.chars().next() {
            if let Some(tail) = self.unread.strip_prefix("**") {
                self.unread = tail;
                self.glob("**")?;
            } else if let Some(tail) = self.unread.strip_prefix('*') {
                self.unread = tail;
                self.glob("*")?;
            } else if let Some(tail) = self.unread.strip_prefix('{') {
                let (inside, tail) = tail.split_once('}').ok_or("a `{` is not closed")?;
                self.unread = tail;
                self.variable(inside)?;
            } else {
                self.unread = &self.unread[character.len_utf8()..];
                self.literal(character)?;
            }
        }
        Ok(())
    }

    /// Reads `*`, one segment, or `**`, all that follows.
    fn glob(&mut self, operator: &str) -> Result<(), String> {
        if self.is_closed {
            return Err("no operator may follow `**`".to_owned());
        }
        self.is_closed = operator == "**";
        // Writing to a string does not fail.
        let _ = match self.is_closed {
            true => write!(self.expression, "[{SEGMENT}/]*"),
            false => write!(self.expression, "[{SEGMENT}]+"),
        };
        Ok(())
    }

    /// Reads what stands between braces: a name, and the pattern of its value,
    /// which is one segment if it is not said.
    fn variable(&mut self, inside: &str) -> Result<(), String> {
        let (name, pattern) = inside.split_once('=').unwrap_or((inside, "*"));
        let mut letters = name.bytes();
        let is_name = letters.next().is_some_and(|b| b.is_ascii_alphabetic())
            && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && name.len() <= MAX_NAME;
        if !is_name {
            return Err(format!("{name:?} is no name of a variable"));
        }

        if self.variables.iter().any(|other| other == name) {
            return Err(format!("the variable {name:?} is there twice"));
        }

        if self.variables.len() == MAX_VARIABLES {
            return Err(format!("has more than {MAX_VARIABLES} variables"));
        }

        if pattern.is_empty() {
            return Err(format!("the variable {name:?} has an empty pattern"));
        }

        self.variables.push(name.to_owned());
        self.expression.push('(');
        for (index, segment) in pattern.split('/').enumerate() {
            if index > 0 {
                self.expression.push('/');
            }
            match segment {
                "*" | "**" => self.glob(segment)?,
                literal => literal.chars().try_for_each(|c| self.literal(c))?,
            }
        }

        self.expression.push(')');
        Ok(())
    }

    /// Reads a character that stands for itself.
    fn literal(&mut self, character: char) -> Result<(), String> {
        let is_known =
            character.is_ascii_alphanumeric() || "-._~%!$&'()+,;:@=/".contains(character);
        if !is_known {
            return Err(format!("{character:?} may not stand in a template"));
        }
        let mut buffer = [0; 4];
        self.expression
            .push_str(&regex::escape(character.encode_utf8(&mut buffer)));
        Ok(())
    }
}

/// A path that is made of the variables of a template.
#[derive(Debug, Clone)]
pub(crate) struct TemplateRewrite {
    template: Template,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Literal(String),
    Variable(usize),
}

impl TemplateRewrite {
    /// Reads a rewrite of paths that the template matches.
    pub(crate) fn new(template: &Template, text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!("the rewrite {text:?} must begin with `/`"));
        }

        let mut parts = Vec::new();
        let mut remainder = text;
        while let Some((literal, tail)) = remainder.split_once('{') {
            let (name, tail) = tail.split_once('}').ok_or("a `{` is not closed")?;
            let variable = template
                .variables
                .iter()
                .position(|existing| existing == name);
            let variable =
                variable.ok_or_else(|| format!("{name:?} is no variable of the template"))?;
            parts.push(Part::Literal(literal.to_owned()));
            parts.push(Part::Variable(variable));
            remainder = tail;
        }

        parts.push(Part::Literal(remainder.to_owned()));
        Ok(Self {
            template: template.clone(),
            parts,
        })
    }

    /// Rewrites a path without its query; one that the template does not match
    /// stays.
    pub(crate) fn apply(&self, path: &str) -> Option<String> {
        let captures = self.template.regex.captures(path.as_bytes())?;
        let mut output = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => output.push_str(literal),
                Part::Variable(variable) => {
                    let matched = captures.get(variable + 1)?;
                    output.push_str(path.get(matched.range())?);
                }
            }
        }
        Some(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_matches_segments() {
        for (template, path, expected) in [
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("/a", "/b", false),
            ("/*", "/a", true),
            ("/*", "/", false),
            ("/*", "/a/b", false),
            ("/a*b", "/axb", true),
            ("/*/*", "/a/b", true),
            ("/**", "/", true),
            ("/**", "/a/b/", true),
            ("/a/**", "/a", false),
            ("/**.m3u8", "/a/b.m3u8", true),
            ("/{x}", "/a", true),
            ("/{x}", "/a/b", false),
            ("/{x}/b", "/a/b", true),
            ("/{x=a}", "/a", true),
            ("/{x=a}", "/b", false),
            ("/{x=a/*}/c", "/a/b/c", true),
            ("/{x=a/*}/c", "/a/c", false),
            ("/{x=a/**}", "/a/b/c", true),
            ("/{x=**}", "/a/b", true),
            // Only what may stand in a segment is matched.
            ("/*", "/a~%!$&'()+,;:@=._-9", true),
            ("/*", "/a*", false),
            ("/a.b", "/axb", false),
        ] {
            let compiled = Template::new(template).expect(template);
            assert_eq!(compiled.is_match(path), expected, "{template} {path}");
        }
    }

    #[test]
    fn a_template_that_cannot_be_is_refused() {
        for (template, is_valid) in [
            ("", false),
            ("a", false),
            ("/{", false),
            ("/{x", false),
            ("/{}", false),
            ("/{1x}", false),
            ("/{_x}", false),
            ("/{x_1}", true),
            ("/{x-y}", false),
            ("/{abcdefghijklmnop}", true),
            ("/{abcdefghijklmnopq}", false),
            ("/{x}/{x}", false),
            ("/{x}/{y}", true),
            ("/{a}/{b}/{c}/{d}/{e}", true),
            ("/{a}/{b}/{c}/{d}/{e}/{f}", false),
            ("/{x=}", false),
            ("/{x=**}/{y}", false),
            ("/**/*", false),
            ("/**/**", false),
            ("/*/**", true),
            ("/**/a", true),
            ("/{x=a?}", false),
            ("/a?", false),
            ("/é", false),
            ("/a}", false),
        ] {
            assert_eq!(Template::new(template).is_ok(), is_valid, "{template}");
        }
    }

    #[test]
    fn a_rewrite_puts_variables_in_other_places() {
        let template = Template::new("/{x}/{y=b/*}/**").expect("a template");
        for (rewrite, path, expected) in [
            ("/c", "/a/b/c/d", Some("/c")),
            ("/{y}-{x}", "/a/b/c/d", Some("/b/c-a")),
            ("/{x}/{x}!", "/a/b/c/", Some("/a/a!")),
            ("/{x}", "/a", None),
        ] {
            let compiled = TemplateRewrite::new(&template, rewrite).expect(rewrite);
            assert_eq!(
                compiled.apply(path).as_deref(),
                expected,
                "{rewrite} {path}"
            );
        }
        for wrong in ["", "c", "/{z}", "/{x", "/{}"] {
            assert!(TemplateRewrite::new(&template, wrong).is_err(), "{wrong}");
        }
    }
}
