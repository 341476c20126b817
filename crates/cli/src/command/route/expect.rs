//! A table of requests and what is expected of each.
//!
//! ```yaml
//! - request: GET https://shop.example.com/cart
//!   headers: [x-canary: 1]
//!   virtual host: shop
//!   cluster: cart-canary
//! ```

use std::path::Path;

use trunkline_proto::text::{Entry, Format, Limits, Node, Value, parse};

use super::decision::{FIELDS, decide};
use super::request::Given;
use super::tables::Tables;
use crate::cli;
use crate::command::print;
use crate::failure::{Failure, Result};
use crate::output::count_of;

/// One request and what is expected of it.
struct Expectation {
    line: usize,
    request: String,
    headers: Vec<String>,
    routes: Option<String>,
    fields: Vec<(String, String)>,
}

/// Routes every request of a file, and prints those that differ.
///
/// # Errors
/// One differs, or the file cannot be read.
pub(super) fn run(file: &Path, tables: &Tables, args: &cli::Route) -> Result<()> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
    let documents = parse(Format::Yaml, &name, &text, &Limits::default())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut expectations = Vec::new();
    for document in &documents {
        let Value::List(items) = &document.value else {
            return Err(wrong(&name, document, "must be a list of requests"));
        };
        for item in items {
            expectations.push(Expectation::read(&name, item)?);
        }
    }
    let mut differences = String::new();
    let mut failed = 0;
    for expectation in &expectations {
        let found = expectation.compare(tables, args)?;
        failed += usize::from(!found.is_empty());
        for difference in found {
            let (line, request) = (expectation.line, &expectation.request);
            differences.push_str(&format!("{name}:{line}: {request}: {difference}\n"));
        }
    }
    let all = count_of(expectations.len(), "request");
    match failed {
        0 => print(format!("{all} routed as expected\n").as_bytes()),
        failed => {
            let message = format!("{failed} of {all} routed otherwise");
            Err(Failure::wrong(message).with_findings(differences))
        }
    }
}

impl Expectation {
    fn read(file: &str, node: &Node) -> Result<Self> {
        let Value::Map(entries) = &node.value else {
            return Err(wrong(file, node, "must have the key `request`"));
        };
        let mut read = Self {
            line: node.at.line,
            request: String::new(),
            headers: Vec::new(),
            routes: None,
            fields: Vec::new(),
        };
        for Entry { key, node, .. } in entries {
            match key.as_str() {
                "request" => read.request = scalar(file, node)?,
                "routes" => read.routes = Some(scalar(file, node)?),
                "headers" => read.headers = headers(file, node)?,
                field if FIELDS.contains(&field) => {
                    read.fields.push((field.to_owned(), scalar(file, node)?));
                }
                other => {
                    let known = FIELDS.join(", ");
                    let problem = format!("{other:?} is none of request, routes, headers, {known}");
                    return Err(wrong(file, node, &problem));
                }
            }
        }
        match read.request.is_empty() {
            true => Err(wrong(file, node, "must have the key `request`")),
            false => Ok(read),
        }
    }

    /// Returns what is not as expected.
    fn compare(&self, tables: &Tables, args: &cli::Route) -> Result<Vec<String>> {
        let (method, url) = self
            .request
            .split_once(' ')
            .ok_or_else(|| Failure::usage(format!("{:?} is not METHOD URL", self.request)))?;
        let given = Given::parse(method, url.trim(), &self.headers)?;
        let routes = self.routes.as_deref().or(args.routes.as_deref());
        let decision = decide(tables.choose(routes)?, &given, args.random);
        let fields = self.fields.iter();
        let wrong = fields.filter(|(name, expected)| decision.field(name) != expected);
        let wrong = wrong.map(|(name, expected)| {
            let found = decision.field(name);
            format!("{name} is {found:?}, expected {expected:?}")
        });
        Ok(wrong.collect())
    }
}

/// Reads a list of headers, each a text or a pair.
fn headers(file: &str, node: &Node) -> Result<Vec<String>> {
    let pair = |entry: &Entry| Ok(format!("{}: {}", entry.key, scalar(file, &entry.node)?));
    match &node.value {
        Value::Map(entries) => entries.iter().map(pair).collect(),
        Value::List(items) => {
            let mut lines = Vec::new();
            for item in items {
                match &item.value {
                    Value::Map(_) => lines.extend(headers(file, item)?),
                    _ => lines.push(scalar(file, item)?),
                }
            }
            Ok(lines)
        }
        _ => Err(wrong(file, node, "must be a list of headers")),
    }
}

fn scalar(file: &str, node: &Node) -> Result<String> {
    match &node.value {
        Value::String(text) | Value::Number(text) => Ok(text.clone()),
        Value::Bool(is_true) => Ok(is_true.to_string()),
        Value::Null => Ok(String::new()),
        _ => Err(wrong(file, node, "must be a text")),
    }
}

fn wrong(file: &str, node: &Node, problem: &str) -> Failure {
    Failure::usage(format!("{file}:{}: {problem}", node.at))
}
