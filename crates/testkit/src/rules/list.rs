//! Reads the list of rules.

use std::collections::BTreeMap;

const LIST: &str = include_str!("rules.txt");

/// Rules of one kind.
#[derive(Debug)]
pub struct Family {
    /// Whom they bind.
    pub title: String,
    /// In order.
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// `S12`.
    pub number: String,
    /// What it says, in short.
    pub summary: String,
    /// Why no test has to prove it yet.
    pub later: Option<String>,
}

/// Every rule.
///
/// # Errors
/// The line of the list that is not understood.
pub fn families() -> Result<Vec<Family>, String> {
    let mut reasons = BTreeMap::new();
    let mut families: Vec<Family> = Vec::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        if line.is_empty() {
            continue;
        }
        let fault = || format!("rules.txt: `{line}` is not understood");
        let (first, rest) = line.split_once(' ').ok_or_else(fault)?;
        match first {
            "later" => {
                let (name, reason) = rest.split_once(" = ").ok_or_else(fault)?;
                reasons.insert(name, reason);
            }
            "family" => {
                let (_, title) = rest.split_once(' ').ok_or_else(fault)?;
                families.push(Family {
                    title: title.to_owned(),
                    rules: Vec::new(),
                });
            }
            number => {
                let (later, summary) = match rest.strip_prefix('[') {
                    None => (None, rest),
                    Some(marked) => {
                        let (name, summary) = marked.split_once("] ").ok_or_else(fault)?;
                        let reason = reasons.get(name).ok_or_else(fault)?;
                        (Some((*reason).to_owned()), summary)
                    }
                };
                families.last_mut().ok_or_else(fault)?.rules.push(Rule {
                    number: number.to_owned(),
                    summary: summary.to_owned(),
                    later,
                });
            }
        }
    }
    Ok(families)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_complete_and_in_order() {
        let families = families().unwrap();
        for (family, letter, last) in [(0, 'S', 85), (1, 'C', 66), (2, 'E', 20), (3, 'M', 14)] {
            let numbers: Vec<_> = families[family].rules.iter().map(|r| &r.number).collect();
            let expected: Vec<_> = (1..=last).map(|n| format!("{letter}{n}")).collect();
            assert_eq!(numbers, expected.iter().collect::<Vec<_>>());
        }
    }
}
