//! The tokens of a text, which the scanner may hold all at once.
//!
//! `[a, b]` may turn out to be a key, so the scanner of YAML holds the tokens of
//! a flow collection until it has seen its end. A text can be one such
//! collection, and a token of one byte takes hundreds. They are counted before
//! the scanner runs, by the bytes that make them; whether those are in quotes
//! or in a comment only the scanner knows, so they all count.

use super::super::{Limits, error::Problem, tree::Position};
use super::Fault;

/// Estimates the memory of the tokens of a text, in bytes. Returns zero for a
/// text without a flow collection.
///
/// # Errors
/// The estimate passes the limit, at this position.
pub(super) fn estimate_memory(text: &str, limits: &Limits) -> Result<u64, Fault> {
    if !text.contains(['[', '{']) {
        return Ok(0);
    }
    let mut total = 0;
    let mut position = Position::START;
    for byte in text.bytes() {
        total += bytes_per_token(byte);
        if total > limits.memory {
            let max = limits.memory;
            return Err((position, Problem::TooHeavy { max }));
        }
        if byte == b'\n' {
            position.line += 1;
        }
    }
    Ok(total)
}

/// Returns the memory of the tokens that a byte makes, including that of a
/// scalar beside it. The buffer of tokens is copied when it grows, so each
/// token counts three times.
fn bytes_per_token(byte: u8) -> u64 {
    match byte {
        b',' | b':' | b'?' | b'[' | b']' | b'{' | b'}' => 600,
        b'&' | b'*' | b'!' => 400,
        // Two quotes make one token.
        b'"' | b'\'' => 200,
        _ => 0,
    }
}
