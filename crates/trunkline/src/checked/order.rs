//! The order of findings, which is the same every time: that of their places.

use std::cmp::Ordering;

use super::finding::Finding;

/// Sorts the findings of one document: by line, by column, by field where there
/// are no lines, then by text. Findings about the document as a whole come
/// first.
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

/// Compares two fields, with their numbers as numbers: `a[9]` is less than
/// `a[10]`.
fn compare_fields(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left, right);
    while !left.is_empty() && !right.is_empty() {
        let (left_part, left_rest) = split_part(left);
        let (right_part, right_rest) = split_part(right);
        let order = match (left_part.parse::<u64>(), right_part.parse::<u64>()) {
            (Ok(left_number), Ok(right_number)) => left_number.cmp(&right_number),
            _ => left_part.cmp(right_part),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
    left.cmp(right)
}

/// Splits a text after its first part, which is either all digits or has none,
/// and is as long as possible.
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
