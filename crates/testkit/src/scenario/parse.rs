//! Reading a file: scenarios, their headers and their lines.

use trunkline_core::database::Scope;
use trunkline_core::message::Mode;
use trunkline_core::name::Selector;
use trunkline_core::params::Params;
use trunkline_core::session::Config;

use super::Fault;
use super::contents::{self, Item, type_url};
use super::request::{Request, parameters};
use super::script::{Action, Begins, Expected, Fate, Knowledge, Opening, Part, Script, Step, Talk};
use super::word::{duration, suffix, words};

/// Reads the scenarios of a file.
///
/// # Errors
/// The text that is not understood, and its line.
pub fn parse(text: &str) -> Result<Vec<Script>, Fault> {
    let mut scripts: Vec<Script> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let fault = |what: String| Fault::new(number, what);
        if let Some(title) = line.strip_prefix("title:") {
            scripts.push(Script {
                title: title.trim().to_owned(),
                rules: Vec::new(),
                line: number,
                steps: Vec::new(),
            });
            continue;
        }
        let words = words(line).map_err(fault)?;
        let Some((first, rest)) = words.split_first() else {
            continue;
        };
        let Some(script) = scripts.last_mut() else {
            return Err(fault("a scenario begins with `title:`".to_owned()));
        };
        if first == "rules:" {
            script.rules.extend(rest.iter().cloned());
            continue;
        }
        if script.rules.is_empty() {
            return Err(fault("a scenario names its `rules:` first".to_owned()));
        }
        script.steps.push(step(number, &words).map_err(fault)?);
    }
    if scripts.is_empty() {
        return Err(Fault::new(1, "there is no scenario"));
    }
    Ok(scripts)
}

fn step(line: usize, words: &[String]) -> Result<Step, String> {
    let (stream, words) = match words.split_first() {
        Some((first, rest)) if first.starts_with('@') => (first[1..].to_owned(), rest),
        _ => (String::new(), words),
    };
    let action = action(words)?;
    Ok(Step {
        line,
        stream,
        action,
    })
}

fn action(words: &[String]) -> Result<Action, String> {
    let (verb, rest) = words.split_first().ok_or("a label alone says nothing")?;
    Ok(match verb.as_str() {
        "stream" => Action::Open(Box::new(opening(rest)?)),
        "close" => Action::Close,
        "reconnect" => Action::Reconnect,
        "become" => {
            let pairs = rest.iter().map(|word| word.split_once('='));
            let pairs: Option<Vec<_>> = pairs.collect();
            let pairs = pairs.ok_or("`become` takes KEY=VALUE")?;
            let params = Params::new(pairs.iter().map(|(key, value)| (*key, *value)));
            Action::Become(params.map_err(|error| error.to_string())?)
        }
        "restart" => Action::Restart(begins(rest)?),
        "wait" => Action::Wait(duration(rest.first().map_or("", String::as_str))?),
        "cache" => Action::Knowledge(Knowledge::Cache),
        "loaded" => Action::Knowledge(Knowledge::Loaded),
        "known" | "unknown" | "forget" => Action::Knowledge(knowledge(verb, rest)?),
        "begin" => Action::Begin,
        "commit" => Action::Commit(Fate::Taken),
        "cannot" => return cannot(rest),
        "put" | "remove" | "replace" | "fail" => {
            Action::Change(contents::ops(verb, rest)?, Fate::Taken)
        }
        ">" => Action::Request(Box::new(Request::parse(rest)?)),
        "<" if rest == ["nothing"] => Action::Nothing,
        "<" => Action::Response(expected(rest)?),
        "!" => Action::Event(rest.to_vec()),
        "status" => status(rest)?,
        "error" => Action::Error(rest.join(" ")),
        "talk" => Action::Talk(talk(rest)?),
        "holds" => holds(rest)?,
        _ => return Err(format!("`{verb}` begins no line")),
    })
}

fn begins(words: &[String]) -> Result<Begins, String> {
    match words {
        [] => Ok(Begins::Same),
        [word] if word == "empty" => Ok(Begins::Empty),
        [word] if word == "kept" => Ok(Begins::Kept),
        _ => Err("a process begins with the same contents, `kept` or `empty`".to_owned()),
    }
}

fn status(words: &[String]) -> Result<Action, String> {
    let (short, words) = words.split_first().ok_or("`status` of which type?")?;
    let clauses = words.iter().map(|word| {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("`{word}` is not a clause such as acked=n1"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    let clauses: Result<_, String> = clauses.collect();
    Ok(Action::Status(short.clone(), clauses?))
}

fn talk(words: &[String]) -> Result<Talk, String> {
    let mut talk = Talk::default();
    let mut list = None;
    for word in words {
        match (word.as_str(), list) {
            ("partly", None) => talk.partly = true,
            ("rejecting" | "keeping", _) => list = Some(word == "keeping"),
            (_, Some(true)) => talk.keeping.push(word.clone()),
            (_, Some(false)) => talk.rejecting.push(word.clone()),
            _ => return Err(format!("`{word}` is no way to talk")),
        }
    }
    Ok(talk)
}

fn holds(words: &[String]) -> Result<Action, String> {
    let (short, words) = words.split_first().ok_or("`holds` of which type?")?;
    let mut words: Vec<_> = words.iter().filter(|w| *w != "nothing").cloned().collect();
    words.sort();
    Ok(Action::Holds(type_url(short)?, words))
}

fn knowledge(verb: &str, words: &[String]) -> Result<Knowledge, String> {
    let [short, name] = words else {
        return Err(format!("`{verb}` needs a type, and `*`, a glob or a name"));
    };
    let url = type_url(short)?;
    let scope = match Selector::parse(name, usize::MAX) {
        Ok(Selector::Wildcard) => Scope::All,
        Ok(Selector::Glob(glob)) => Scope::Glob(glob),
        Ok(Selector::Name(name)) if verb == "forget" => return Ok(Knowledge::Forget(url, name)),
        _ => return Err(format!("`{name}`: only `*` and globs are known as a whole")),
    };
    Ok(Knowledge::Scope(url, scope, verb == "known"))
}

fn cannot(rest: &[String]) -> Result<Action, String> {
    let (verb, mut rest) = rest.split_first().ok_or("`cannot` what?")?;
    let mut witness = None;
    if let Some((last, before)) = rest.split_last()
        && let ("both", Some(text)) = suffix(last, '{')
    {
        (witness, rest) = (Some(parameters(text)?), before);
    }
    let fate = Fate::Refused(witness);
    Ok(match verb.as_str() {
        "commit" => Action::Commit(fate),
        verb => Action::Change(contents::ops(verb, rest)?, fate),
    })
}

fn opening(words: &[String]) -> Result<Opening, String> {
    let mode = match words.first().map(String::as_str) {
        Some("sotw") => Mode::Sotw,
        Some("delta") => Mode::Delta,
        _ => return Err("a stream is `sotw` or `delta`".to_owned()),
    };
    let mut opening = Opening {
        config: Config::new(mode),
        program: String::new(),
        features: Vec::new(),
    };
    let mut params = Vec::new();
    let mut words = words[1..].iter();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            None if word == "only" => {
                let short = words.next().ok_or("`only` which type?")?;
                opening.config.single_type = Some(type_url(short)?);
            }
            None if word == "errors" => opening.config.supports_resource_errors = true,
            None if word == "endpoints-once" => opening.config.repeat_endpoints = false,
            None => opening.program.clone_from(word),
            Some((key, value)) => match key.strip_prefix("param.") {
                Some(key) => params.push((key.to_owned(), value.to_owned())),
                None => option(&mut opening, key, value)?,
            },
        }
    }
    opening.config.params = Params::new(params).map_err(|error| error.to_string())?;
    Ok(opening)
}

fn option(opening: &mut Opening, key: &str, value: &str) -> Result<(), String> {
    let Opening {
        config, features, ..
    } = opening;
    let number = || {
        value
            .parse()
            .map_err(|_| format!("`{value}`: not a number"))
    };
    match key {
        "hold" => config.dependency_timeout = duration(value)?,
        "drain" => config.drain_time = duration(value)?,
        "resume" => config.resume_window = duration(value)?,
        "patience" => config.ack_timeout = duration(value)?,
        "names" => config.limits.name_bytes = number()?,
        "subscriptions" => config.limits.subscriptions = number()?,
        "hosts" => config.limits.hosts = number()?,
        "globs" => config.limits.globs = number()?,
        "types" => config.limits.types = number()?,
        "text" => config.limits.error_bytes = number()?,
        "response" => config.limits.response_bytes = number()?,
        "base" => config.base_subscriptions.sets.push(value.into()),
        "base-host" => config.base_subscriptions.hosts.push(value.into()),
        "named" => config.named_only.push(type_url(value)?),
        "feature" => features.push(value.to_owned()),
        _ => return Err(format!("`{key}` is no property of a stream")),
    }
    Ok(())
}

fn expected(words: &[String]) -> Result<Expected, String> {
    let (short, words) = words
        .split_first()
        .ok_or("`<` needs a type, or `nothing`")?;
    let mut expected = Expected {
        type_url: type_url(short)?,
        parts: Vec::new(),
        label: None,
        version: None,
    };
    if words.is_empty() {
        return Err("a response that says nothing is written `empty`".to_owned());
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "as" {
            expected.label = words.next().cloned();
        } else if let Some(label) = word.strip_prefix("version=") {
            expected.version = Some((label.to_owned(), true));
        } else if let Some(label) = word.strip_prefix("version!=") {
            expected.version = Some((label.to_owned(), false));
        } else if word != "empty" {
            expected.parts.push(part(word)?);
        }
    }
    Ok(expected)
}

fn part(word: &str) -> Result<Part, String> {
    let fault = || format!("`{word}` is no part of a response: +a@v1, ~a@v1, -a or !a=NotFound");
    let mut chars = word.chars();
    let sign = chars.next().ok_or_else(fault)?;
    let rest = chars.as_str();
    Ok(match sign {
        '+' => Part::Resource(Item::parse(rest)?),
        '~' => Part::Heartbeat(Item::parse(rest)?),
        '-' => match suffix(rest, '(') {
            (name, None) => Part::Removed(name.to_owned()),
            (name, extras) => Part::RemovedVariant(Item::named(name, extras)?),
        },
        '!' => {
            let (name, code) = rest.split_once('=').ok_or_else(fault)?;
            let (name, code) = (name.to_owned(), code.to_owned());
            Part::Error { name, code }
        }
        _ => return Err(fault()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (usize, String) {
        let fault = parse(text).unwrap_err();
        (fault.line, fault.what)
    }

    #[test]
    fn faults_name_their_line() {
        let head = "title: t\nrules: S1\n";
        assert_eq!(fault("put cds a@b").0, 1);
        assert_eq!(fault("title: t\nput cds a@b").0, 2);
        for bad in [
            "> xyz",
            "< cds",
            "put cds a",
            "jump",
            "wait 5",
            "< cds a@v",
            "stream",
            "restart full",
        ] {
            assert_eq!(fault(&format!("{head}\n{bad}")).0, 4, "{bad}");
        }
    }

    #[test]
    fn a_file_holds_several_scenarios() {
        let text = "# first\ntitle: a\nrules: S1 S2\nwait 1s\n\ntitle: b\nrules: S3\n< nothing\n";
        let scripts = parse(text).unwrap();
        assert_eq!(scripts.len(), 2);
        assert_eq!(scripts[0].title, "a");
        assert_eq!(scripts[0].rules, ["S1", "S2"]);
        assert_eq!((scripts[1].line, scripts[1].steps.len()), (6, 1));
    }
}
