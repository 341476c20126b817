//! Mistakes in a text, in words that name the file, the line, the field and the
//! fix.

use std::fmt;

use super::{slip::Slip, stranger::Stranger, tree::Position};
use crate::redact::REDACTED;
use crate::validate::Broken;

/// One mistake at one place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TextError {
    /// The file, as the caller named it.
    pub file: String,
    /// Its place; line zero in a file that has no lines.
    pub at: Position,
    /// The field, such as `resources[2].load_assignment.endpoints[0]`; empty
    /// when the text is not even a document.
    pub path: String,
    /// The mistake.
    pub problem: Problem,
}

impl TextError {
    /// Makes the mistake of a text that could not be parsed, with a position
    /// but without a field.
    pub(super) fn without_path(file: &str, position: Position, problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            at: position,
            path: String::new(),
            problem,
        }
    }
}

impl fmt::Display for TextError {
    /// Writes `file:line:column: path: problem`, without the place in a file
    /// that has no lines, and without a path that is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            at,
            path,
            problem,
        } = self;
        let colon = if path.is_empty() { "" } else { ": " };
        match at.line {
            0 => write!(f, "{file}: {path}{colon}{problem}"),
            _ => write!(f, "{file}:{at}: {path}{colon}{problem}"),
        }
    }
}

/// The kinds of mistakes. The author of the file is at fault in every case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not YAML or not JSON.
    #[error("cannot be read: {0}")]
    Syntax(String),
    /// Not YAML or not JSON, by one of the usual slips.
    #[error(transparent)]
    Slip(Slip),
    /// The text is longer than [`Limits::bytes`](super::Limits).
    #[error("the text has {len} bytes, the limit is {max}; split it into several files")]
    TooLong {
        /// Its bytes.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// Nested deeper than [`Limits::depth`](super::Limits).
    #[error("nested deeper than {max} levels")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// More memory than [`Limits::memory`](super::Limits).
    #[error("so far the text takes more than {max} bytes of memory; split it into several")]
    TooHeavy {
        /// The limit.
        max: u64,
    },
    /// Aliases expand to more than [`Limits::expanded`](super::Limits).
    #[error("the aliases expand to more than {max} values; write the content out or use fewer")]
    TooManyAliases {
        /// The limit.
        max: usize,
    },
    /// Aliases copy more than [`Limits::bytes`](super::Limits).
    #[error("the aliases copy more than {max} bytes; write the content out or use fewer")]
    LongAliases {
        /// The limit.
        max: usize,
    },
    /// An alias without an anchor before it.
    #[error("the alias refers to an anchor that is not complete before it")]
    UnknownAnchor,
    /// `<<` with something other than mappings.
    #[error("a merge key `<<` needs a mapping or a list of mappings")]
    BadMerge,
    /// A tag without a meaning here.
    #[error("the tag {0} has no meaning here; remove it")]
    UnknownTag(String),
    /// A key that is not text.
    #[error("a key must be text, found {0}")]
    BadKey(String),
    /// A key twice in one mapping.
    #[error("the key {key:?} occurs twice, first at {first}; keep one")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The place of the first one.
        first: Position,
    },
    /// Protobuf's own text format.
    #[error(
        "protobuf's text format is not read here; \
         write it as .yaml, .json or a binary DiscoveryResponse (.pb)"
    )]
    TextFormat,
    /// A text that is not in UTF-8.
    #[error(
        "the text is not UTF-8; save it as such, or say that it is binary: by the extension .pb, \
         or the content type application/x-protobuf"
    )]
    NotUtf8,
    /// A binary file that cannot be decoded.
    #[error(
        "is not a binary {message}: {reason}; write it again, or give it the name of its format"
    )]
    NotBinary {
        /// The message that it should be.
        message: &'static str,
        /// The decoder's error.
        reason: String,
    },
    /// Neither a list of resources nor a resource.
    #[error(
        "expected a mapping with `resources:`, with `\"@type\":`, \
         or with a bootstrap's `static_resources:`, found {0}"
    )]
    NotADocument(String),
    /// A mapping that lacks its type.
    #[error("the key \"@type\" is missing; {}", propose_type(.0.as_deref()))]
    MissingType(
        /// The message that it is by its fields, if only one has them.
        Option<String>,
    ),
    /// A manifest that lacks a key.
    #[error("the key {0:?} is missing")]
    MissingKey(&'static str),
    /// A wrapper without a resource in it.
    #[error("the field `resource` is missing: the wrapper holds nothing")]
    MissingBody,
    /// A document that holds no resources, or not where they belong.
    #[error(transparent)]
    Stranger(Stranger),
    /// A text that holds nothing. A warning, except in JSON.
    #[error("holds no resources: {}", .0)]
    Empty(
        /// What it is instead.
        &'static str,
    ),
    /// A listener without a name, as bootstraps have it. A warning: it is
    /// served under another one.
    #[error("the listener has no name, and is served as {0:?}; add `name: {0}` to it, or another")]
    NamedListener(String),
    /// A secret of a dump that is not in it. A warning: it is left out.
    #[error("the secret is left out, because the dump does not show it; write it in another file")]
    RedactedInDump,
    /// A type URL that has no slash.
    #[error("a type has a slash before its name; write type.googleapis.com/{0}")]
    NoSlash(String),
    /// An unknown type.
    #[error("unknown type {name:?}{}", propose_other_type(.near.as_deref()))]
    UnknownType {
        /// The type as written.
        name: String,
        /// The nearest known one.
        near: Option<String>,
    },
    /// A field that the message does not have.
    #[error("unknown field {name:?} in {message}{}", did_you_mean(.near.as_deref()))]
    UnknownField {
        /// The field as written.
        name: String,
        /// The message.
        message: String,
        /// The nearest field.
        near: Option<String>,
    },
    /// A field of the message above it, which has nothing below it.
    #[error("{name:?} is a field of {above:?}, which has none; indent it deeper than that")]
    NotIndented {
        /// The field as written.
        name: String,
        /// The field above it.
        above: String,
    },
    /// One field under both of its names.
    #[error("the field {0:?} is given twice, in two spellings; keep one")]
    DuplicateField(String),
    /// Two fields of which only one may be set.
    #[error("only one of {first:?} and {second:?} may be set (both belong to {oneof:?})")]
    Oneof {
        /// The group.
        oneof: String,
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// A value of the wrong kind.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// The kind that the field takes, with an example where that helps.
        expected: String,
        /// The value that is there.
        found: String,
    },
    /// A number that does not fit.
    #[error("{value} is not a valid {kind}")]
    OutOfRange {
        /// The number as written.
        value: String,
        /// The type of the field.
        kind: &'static str,
    },
    /// A number whose leading zero makes it octal. A warning: it is read so.
    #[error(
        "{text} is octal for Envoy and read as {value}; \
         write {value}, or leave out the zeros if another number is meant"
    )]
    Octal {
        /// The number as written.
        text: String,
        /// The number that it is.
        value: String,
    },
    /// A name that the enum does not have.
    #[error("unknown value {name:?} of {of}{}{}", did_you_mean(.near.as_deref()), one_of(.all))]
    UnknownEnumValue {
        /// The name as written.
        name: String,
        /// The enum.
        of: String,
        /// The nearest name.
        near: Option<String>,
        /// All names, if none is near and they are few.
        all: Vec<String>,
    },
    /// A text that should be constraints and is not.
    #[error("{0}; write such as env=prod AND NOT version=v1")]
    Constraints(String),
    /// A field breaks a rule of its message.
    #[error("{0}")]
    Rule(Broken),
    /// The message nests too deep to be encoded.
    #[error("cannot be encoded: {0}")]
    Encoding(String),
}

impl Problem {
    /// Returns the problem without quotations of the text, for a mistake in a
    /// secret. The name of a field that is nearly right stays.
    pub(super) fn without_quotes(mut self) -> Self {
        let quoted = match &mut self {
            Self::UnknownField {
                name, near: None, ..
            }
            | Self::UnknownType { name, .. }
            | Self::UnknownEnumValue { name, .. } => Some(name),
            Self::OutOfRange { value, .. } => Some(value),
            _ => None,
        };
        if let Some(quoted) = quoted {
            REDACTED.clone_into(quoted);
        }
        self
    }

    /// Makes the problem of a text that holds nothing but comments.
    pub(super) fn of_empty(text: &str) -> Self {
        Self::Empty(match text.contains('#') {
            true => "all of it is comments",
            false => "it is empty",
        })
    }
}

/// Returns the proposal to add a type.
fn propose_type(name: Option<&str>) -> String {
    match name {
        Some(name) => {
            let short_name = name.rsplit('.').next().unwrap_or(name);
            format!("by its fields it is a {short_name}: add \"@type\": type.googleapis.com/{name}")
        }
        None => "add \"@type\": type.googleapis.com/<message>".to_owned(),
    }
}

/// Returns the proposal of another type, or of what to do if no type is near.
fn propose_other_type(near: Option<&str>) -> String {
    match near {
        Some(_) => did_you_mean(near),
        None => "; give its descriptors by --descriptors FILE, or its bytes in base64 as `value:`"
            .to_owned(),
    }
}

/// Lists the values that there are.
fn one_of(all: &[String]) -> String {
    match all {
        [] => String::new(),
        _ => format!("; there are {}", all.join(", ")),
    }
}

/// Returns the end of a sentence that proposes the nearest name, if there is one.
fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!(", did you mean {near:?}?"))
        .unwrap_or_default()
}
