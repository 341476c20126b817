//! Patterns of texts: Envoy's `StringMatcher`, RE2 expressions, URI templates.

mod regex;
mod template;
mod text;

pub(crate) use regex::{Regex, Substitution};
pub(crate) use template::{Template, TemplateRewrite};
pub(crate) use text::{Case, Part, TextMatcher};
