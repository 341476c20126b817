//! The tokens of a text, which the scanner may hold all at once.
//!
//! `[a, b]` may turn out to be a key, so the scanner of YAML holds the tokens of
//! a flow collection until it has seen its end. A text can be one such
//! collection, and a token of one byte takes hundreds. They are counted before
//! the scanner runs, by the bytes that make them; whether those are in quotes
//! or in a comment only the scanner knows, so they all count.

use super::super::{Limits, error::Problem, tree::Position};
use super::Fault;

/// Estimates the memory of the tokens of a text, in bytes; nothing, if it has no
/// flow collection.
///
/// # Errors
/// It is more than the limit, from this place on.
pub(super) fn cost(text: &str, limits: &Limits) -> Result<u64, Fault> {
    if !text.contains(['[', '{']) {
        return Ok(0);
    }
    let mut total = 0;
    let mut position = Position::START;
    for byte in text.bytes() {
        total += cost_of(byte);
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

/// The memory of the tokens that a byte makes, that of a scalar beside it
/// included. The buffer of tokens is copied when it grows, so each counts three
/// times its size.
fn cost_of(byte: u8) -> u64 {
    match byte {
        b',' | b':' | b'?' | b'[' | b']' | b'{' | b'}' => 600,
        b'&' | b'*' | b'!' => 400,
        // Two of them are one token.
        b'"' | b'\'' => 200,
        _ => 0,
    }
}
