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

use super::decision::{FIELDS, decide_route};
use super::request::RequestSpec;
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

/// Routes every request of a file, and prints the decisions that differ from
/// the expected ones.
///
/// # Errors
/// A decision differs, or the file cannot be read.
pub(super) fn run(file: &Path, tables: &Tables, args: &cli::Route) -> Result<()> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
    let documents = parse(Format::Yaml, &name, &text, &Limits::default())
        .map_err(|error| Failure::usage(error.to_string()))?;

    let mut expectations = Vec::new();
    for document in &documents {
        let Value::List(items) = &document.value else {
            return Err(place_failure(&name, document, "must be a list of requests"));
        };
        for item in items {
            expectations.push(Expectation::read(&name, item)?);
        }
    }

    let mut differences = String::new();
    let mut failed_count = 0;
    for expectation in &expectations {
        let mismatches = expectation.compare(tables, args)?;
        failed_count += usize::from(!mismatches.is_empty());
        for difference in mismatches {
            let (line, request) = (expectation.line, &expectation.request);
            differences.push_str(&format!("{name}:{line}: {request}: {difference}\n"));
        }
    }

    let total = count_of(expectations.len(), "request");
    match failed_count {
        0 => print(format!("{total} routed as expected\n").as_bytes()),
        _ => {
            let message = format!("{failed_count} of {total} routed otherwise");
            Err(Failure::wrong(message).with_findings(differences))
        }
    }
}

impl Expectation {
    /// Reads the expectation for one request.
    ///
    /// # Errors
    /// The entry is not a mapping, lacks the request, or has an unknown key.
    fn read(file: &str, node: &Node) -> Result<Self> {
        let Value::Map(entries) = &node.value else {
            return Err(place_failure(file, node, "must have the key `request`"));
        };

        let mut expectation = Self {
            line: node.at.line,
            request: String::new(),
            headers: Vec::new(),
            routes: None,
            fields: Vec::new(),
        };

        for Entry { key, node, .. } in entries {
            match key.as_str() {
                "request" => expectation.request = read_scalar(file, node)?,
                "routes" => expectation.routes = Some(read_scalar(file, node)?),
                "headers" => expectation.headers = read_headers(file, node)?,
                field if FIELDS.contains(&field) => {
                    expectation
                        .fields
                        .push((field.to_owned(), read_scalar(file, node)?));
                }
                unknown => {
                    let fields = FIELDS.join(", ");
                    let problem =
                        format!("{unknown:?} is none of request, routes, headers, {fields}");
                    return Err(place_failure(file, node, &problem));
                }
            }
        }

        match expectation.request.is_empty() {
            true => Err(place_failure(file, node, "must have the key `request`")),
            false => Ok(expectation),
        }
    }

    /// Returns a message for each field of the decision that is not as
    /// expected.
    fn compare(&self, tables: &Tables, args: &cli::Route) -> Result<Vec<String>> {
        let (method, url) = self
            .request
            .split_once(' ')
            .ok_or_else(|| Failure::usage(format!("{:?} is not METHOD URL", self.request)))?;
        let request = RequestSpec::parse(method, url.trim(), &self.headers)?;
        let routes = self.routes.as_deref().or(args.routes.as_deref());
        let decision = decide_route(tables.choose(routes)?, &request, args.random);
        let fields = self.fields.iter();
        let mismatches = fields.filter(|(name, expected)| decision.field(name) != expected);
        let mismatches = mismatches.map(|(name, expected)| {
            let value = decision.field(name);
            format!("{name} is {value:?}, expected {expected:?}")
        });
        Ok(mismatches.collect())
    }
}

/// Reads headers from a map, or from a list of texts and maps.
fn read_headers(file: &str, node: &Node) -> Result<Vec<String>> {
    let header_line = |entry: &Entry| {
        Ok(format!(
            "{}: {}",
            entry.key,
            read_scalar(file, &entry.node)?
        ))
    };
    match &node.value {
        Value::Map(entries) => entries.iter().map(header_line).collect(),
        Value::List(items) => {
            let mut lines = Vec::new();
            for item in items {
                match &item.value {
                    Value::Map(_) => lines.extend(read_headers(file, item)?),
                    _ => lines.push(read_scalar(file, item)?),
                }
            }
            Ok(lines)
        }
        _ => Err(place_failure(file, node, "must be a list of headers")),
    }
}

/// Reads a scalar as a text. Null is the empty text.
fn read_scalar(file: &str, node: &Node) -> Result<String> {
    match &node.value {
        Value::String(text) | Value::Number(text) => Ok(text.clone()),
        Value::Bool(is_true) => Ok(is_true.to_string()),
        Value::Null => Ok(String::new()),
        _ => Err(place_failure(file, node, "must be a text")),
    }
}

/// Makes the failure of a file of requests, with the line of the problem.
fn place_failure(file: &str, node: &Node, problem: &str) -> Failure {
    Failure::usage(format!("{file}:{}: {problem}", node.at))
}
