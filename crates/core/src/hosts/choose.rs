//! Chooses the virtual host of a host from a list: a route configuration that a
//! client holds, and not the database, which `database::hosts` asks.

use super::domain::Domain;

/// The rank of a match: the greater, the better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    Any,
    Prefix(usize),
    Suffix(usize),
    Exact,
}

/// Returns the virtual host for a host among these, by Envoy's precedence of
/// domains: an exact one, the longest suffix, the longest prefix, `*`. Case
/// does not matter. The first of two that match equally well wins; `None` if no
/// domain matches. The database does the same by its index.
pub fn choose<'a, V, D>(host: &str, virtual_hosts: impl IntoIterator<Item = (V, D)>) -> Option<V>
where
    D: IntoIterator<Item = &'a str>,
{
    let host = host.to_lowercase();
    let mut best: Option<(Match, V)> = None;
    for (virtual_host, domains) in virtual_hosts {
        let matches = domains.into_iter().filter_map(|text| match_of(text, &host));
        let Some(best_match) = matches.max() else {
            continue;
        };

        // Only a better match wins, so that the first of equal ones stays.
        let previous_match = best.as_ref().map(|(previous, _)| previous);
        if previous_match.is_none_or(|previous| best_match > *previous) {
            best = Some((best_match, virtual_host));
        }
    }
    best.map(|(_, virtual_host)| virtual_host)
}

/// Returns the rank of a domain's match with a host, which is in lower case;
/// `None` if it does not match.
fn match_of(text: &str, host: &str) -> Option<Match> {
    let text = text.to_lowercase();
    let domain = Domain::of(&text);
    let kind = match domain {
        Domain::Exact(_) => Match::Exact,
        Domain::Suffix(suffix) => Match::Suffix(suffix.len()),
        Domain::Prefix(prefix) => Match::Prefix(prefix.len()),
        Domain::Any => Match::Any,
    };
    domain.matches(host).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn c52_the_virtual_host_is_the_one_that_matches_best() {
        let all: [(u8, &[&str]); 5] = [
            (0, &["*"]),
            (1, &["*.example.com", "foo.*"]),
            (2, &["*.b.example.com"]),
            (3, &["A.example.com", "other"]),
            (4, &["a.example.com"]),
        ];
        for (host, expected) in [
            ("a.example.com", Some(3)),
            ("c.example.com", Some(1)),
            ("x.b.example.com", Some(2)),
            ("foo.net", Some(1)),
            ("OTHER", Some(3)),
            ("nobody", Some(0)),
        ] {
            let hosts = all.map(|(number, domains)| (number, domains.iter().copied()));
            assert_eq!(choose(host, hosts), expected, "{host}");
        }
        assert_eq!(choose::<u8, Vec<&str>>("a", []), None);
    }
}
