//! The order of findings, which is the same every time: that of their places.

use std::cmp::Ordering;

use super::finding::Finding;

/// Sorts the findings of one document: by line, by column, by field where there
/// are no lines, then by text. What is about the document as a whole comes first.
pub fn sort_findings(findings: &mut [Finding]) {
    findings.sort_by(Finding::compare);
}

impl Finding {
    /// Compares the places of two findings of one document, then their texts.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let line = self.place.line.cmp(&other.place.line);
        line.then_with(|| self.place.column.cmp(&other.place.column))
            .then_with(|| compare_fields(&self.field, &other.field))
            .then_with(|| self.fault.to_string().cmp(&other.fault.to_string()))
    }
}

/// Compares two fields, with their numbers as numbers: `a[9]` is before `a[10]`.
fn compare_fields(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    while !one.is_empty() && !other.is_empty() {
        let (part, rest) = split_part(one);
        let (other_part, other_rest) = split_part(other);
        let order = match (part.parse::<u64>(), other_part.parse::<u64>()) {
            (Ok(number), Ok(other)) => number.cmp(&other),
            _ => part.cmp(other_part),
        };
        if order != Ordering::Equal {
            return order;
        }
        (one, other) = (rest, other_rest);
    }
    one.cmp(other)
}

/// Splits a text after the digits, or after what is none, at its beginning.
fn split_part(text: &str) -> (&str, &str) {
    let begins_with_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != begins_with_digit);
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked::{Fault, Place};

    #[test]
    fn findings_are_in_the_order_of_their_places() {
        let finding = |line, column, field: &str| Finding {
            place: Place {
                line,
                column,
                ..Place::whole("".into())
            },
            field: field.into(),
            fault: Fault::Redacted,
        };
        let ordered = [
            finding(0, 0, ""),
            finding(0, 0, "resources[2]"),
            finding(0, 0, "resources[9].name"),
            finding(0, 0, "resources[10]"),
            finding(1, 3, "resources[1]"),
            finding(1, 12, "resources[0]"),
            finding(2, 1, "resources[0]"),
        ];
        let mut findings = ordered.to_vec();
        findings.reverse();
        sort_findings(&mut findings);
        assert_eq!(findings, ordered);
    }
}
