//! Reading the client's requests.

use trunkline_core::message::Locator;
use trunkline_core::name::Name;
use trunkline_core::params::Params;
use trunkline_core::resource::{TypeUrl, Version};

use super::contents::{Item, type_url};
use super::word::{suffix, unquoted, words};

/// A request as it is written; the client fills in the fields that it leaves
/// out.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// `None` if it says no type.
    pub(super) type_url: Option<TypeUrl>,
    /// State of the world: all names.
    pub(super) names: Option<Vec<Locator>>,
    pub(super) subscribe: Vec<Locator>,
    pub(super) unsubscribe: Vec<Locator>,
    pub(super) initial: Vec<(Name, Version)>,
    /// The same as it is written.
    pub(super) had: Vec<String>,
    pub(super) answer: Answer,
    pub(super) nonce: Given,
    pub(super) version: Given,
    pub(super) node: NodeSaid,
}

/// The acknowledgement in it.
#[derive(Debug, Default)]
pub(super) enum Answer {
    #[default]
    None,
    /// An ACK of the newest response, or of a labelled one.
    Ack(Option<String>),
    /// A NACK, and why.
    Nack(Option<String>, String),
}

/// A field that can be left to the client.
#[derive(Debug, Default)]
pub(super) enum Given {
    /// As a real client writes it.
    #[default]
    Usual,
    /// Left out.
    None,
    /// That of a labelled response.
    Label(String),
    /// This text.
    Text(String),
}

impl Given {
    fn parse(text: &str) -> Self {
        match (text, unquoted(text)) {
            ("none", _) => Self::None,
            (_, Some(text)) => Self::Text(text.to_owned()),
            (label, None) => Self::Label(label.to_owned()),
        }
    }
}

/// Which node the request carries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum NodeSaid {
    /// The first request of a stream carries it, later ones do not (S1).
    #[default]
    Usual,
    None,
    Same,
    /// Another one: the program that it names, or `other`.
    Other(String),
}

impl Request {
    /// Reads what follows `>`.
    ///
    /// # Errors
    /// If it is not a request.
    pub(super) fn parse(rest: &[String]) -> Result<Self, String> {
        let (first, rest) = rest.split_first().ok_or("`>` needs a type, or `?`")?;
        let mut request = Self::default();
        if first != "?" {
            request.type_url = Some(type_url(first)?);
        }
        let mut clause = "";
        for word in rest {
            if let Some(next) = request.keyword(word)? {
                clause = next;
                continue;
            }
            request.operand(clause, word)?;
        }
        Ok(request)
    }

    /// Whether it is a NACK.
    pub(super) fn is_nack(&self) -> bool {
        matches!(self.answer, Answer::Nack(..))
    }

    /// A word that begins a clause; returns the clause.
    fn keyword(&mut self, word: &str) -> Result<Option<&'static str>, String> {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let label = (!value.is_empty()).then(|| value.to_owned());
        match key {
            "sub" => return Ok(Some("sub")),
            "unsub" => return Ok(Some("unsub")),
            "have" => return Ok(Some("have")),
            "ack" => self.answer = Answer::Ack(label),
            "nack" => {
                self.answer = Answer::Nack(label, "?".to_owned());
                return Ok(Some("nack"));
            }
            "nonce" => self.nonce = Given::parse(value),
            "version" => self.version = Given::parse(value),
            "node" => {
                self.node = match value {
                    "none" => NodeSaid::None,
                    "same" => NodeSaid::Same,
                    other => NodeSaid::Other(other.to_owned()),
                }
            }
            _ => {
                let Some(list) = word.strip_prefix('[') else {
                    return Ok(None);
                };
                let list = list.strip_suffix(']').unwrap_or(list);
                let names: Result<Vec<_>, String> =
                    words(list)?.iter().map(|name| locator(name)).collect();
                self.names = Some(names?);
            }
        }
        Ok(Some(""))
    }

    fn operand(&mut self, clause: &str, word: &str) -> Result<(), String> {
        match clause {
            "sub" => self.subscribe.push(locator(word)?),
            "unsub" => self.unsubscribe.push(locator(word)?),
            "have" => {
                let item = Item::parse(word)?;
                let version = item.version();
                self.initial.push((Name::new(&item.name), version));
                self.had.push(word.to_owned());
            }
            "nack" => match (unquoted(word), &mut self.answer) {
                (Some(given), Answer::Nack(_, text)) => *text = given.to_owned(),
                _ => return Err(format!("`{word}`: what a nack says stands in quotes")),
            },
            _ => return Err(format!("`{word}` is not understood in a request")),
        }
        Ok(())
    }
}

/// A name, perhaps with parameters: `a{env=prod az=1}`.
fn locator(word: &str) -> Result<Locator, String> {
    let (name, params) = suffix(word, '{');
    Ok(Locator {
        name: unquoted(name).unwrap_or(name).to_owned(),
        params: params.map(parameters).transpose()?,
    })
}

/// The text in braces: `env=prod az=1`.
///
/// # Errors
/// If it is not a list of parameters, or more than a client may have.
pub(super) fn parameters(text: &str) -> Result<Params, String> {
    let pairs: Vec<_> = words(text)?;
    let pairs = pairs
        .iter()
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    Params::new(pairs).map_err(|error| format!("`{text}`: {error}"))
}
