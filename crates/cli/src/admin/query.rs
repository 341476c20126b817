//! The parameters of a request: strict, because a typo in `dry_run` must not
//! make a change.

use http::Uri;

use super::error::Refusal;

/// The query of a URI.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the parameters of a URI.
    ///
    /// # Errors
    /// A parameter is not in `known_keys`.
    pub(super) fn read(uri: &Uri, known_keys: &[&str]) -> Result<Self, Refusal> {
        let query = uri.query().unwrap_or_default();
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let mut keys = pairs.iter().map(|(key, _)| key);
        match keys.find(|key| !known_keys.contains(&key.as_str())) {
            None => Ok(Self(pairs)),
            Some(key) => Err(Refusal::bad(format!(
                "unknown parameter {key:?}; known are: {}",
                known_keys.join(", ")
            ))),
        }
    }

    /// Returns every value of a parameter, in the order of the query.
    pub(super) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.0.iter().filter(move |(name, _)| name == key);
        pairs.map(|(_, value)| value.as_str())
    }

    /// Returns the value of a parameter; `None` if the request does not have
    /// the parameter.
    ///
    /// # Errors
    /// The request has the parameter more than once.
    pub(super) fn one<'a>(&'a self, key: &'a str) -> Result<Option<&'a str>, Refusal> {
        let mut values = self.all(key);
        let value = values.next();
        match values.next() {
            None => Ok(value),
            Some(_) => Err(Refusal::bad(format!("{key} may be given once only"))),
        }
    }

    /// Returns whether a switch is on: present without a value, or with the
    /// value `true`.
    ///
    /// # Errors
    /// The switch has another value than `true` or `false`, or is present
    /// twice.
    pub(super) fn is_on(&self, key: &str) -> Result<bool, Refusal> {
        match self.one(key)? {
            None | Some("false") => Ok(false),
            Some("true" | "") => Ok(true),
            Some(value) => Err(Refusal::bad(format!(
                "{key}: expected true or false, found {value:?}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Query, Refusal> {
        let uri = format!("/x?{query}").parse().unwrap();
        Query::read(&uri, &["name", "dry_run"])
    }

    #[test]
    fn names_are_decoded_and_may_be_many() {
        let query = read("name=a%2Fb&name=c+d").unwrap();
        assert_eq!(query.all("name").collect::<Vec<_>>(), ["a/b", "c d"]);
        assert!(query.one("name").is_err());
    }

    #[test]
    fn a_slip_is_refused() {
        assert!(read("dryrun=true").is_err());
        assert!(read("dry_run=yes").unwrap().is_on("dry_run").is_err());
        assert!(read("dry_run=true").unwrap().is_on("dry_run").unwrap());
        assert!(!read("").unwrap().is_on("dry_run").unwrap());
    }
}
