//! What formats write, and which are refused.

mod grammar;
mod operators;
mod requests;

use super::{Format, FormatContext, FormatValues};
use crate::headers::Headers;
use crate::request::Request;

fn write(format: &str, context: &FormatContext<'_>) -> String {
    let compiled = Format::new(format).unwrap_or_else(|problem| panic!("{problem}"));
    String::from_utf8(compiled.write(context, "-")).expect("a text")
}

fn of(lines: &[(&'static str, &'static str)]) -> Headers {
    lines.iter().copied().collect()
}

fn request<'r>(headers: &'r Headers, path: &'r str) -> FormatContext<'r> {
    FormatContext {
        request: Some(Request {
            method: "GET",
            scheme: "http",
            authority: "v.test",
            path,
            headers,
        }),
        ..FormatContext::default()
    }
}
