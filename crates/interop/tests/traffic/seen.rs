//! What is compared: a response, and the request that a backend saw.

/// What a client sees of a response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    /// Headers that routes or backends add, sorted by name.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

/// The body of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Of the proxy itself.
    Text(String),
    /// Of a backend, which says what it saw.
    Upstream(Upstream),
}

impl Default for Body {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// A request as a backend saw it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Upstream {
    pub(crate) address: String,
    pub(crate) path: String,
    pub(crate) host: String,
    /// Sorted by name; lines of one name are in order.
    pub(crate) headers: Vec<(String, String)>,
}

impl Upstream {
    /// Reads what a backend says, if it is one.
    pub(crate) fn read(body: &str) -> Option<Self> {
        let mut lines = body.lines();
        let address = lines.next()?.to_owned();
        let path = lines.next()?.split(' ').nth(1)?.to_owned();
        let mut seen = Self {
            address,
            path,
            ..Self::default()
        };
        for line in lines {
            let (name, value) = line.split_once(':')?;
            match name {
                "host" => value.trim().clone_into(&mut seen.host),
                name => seen
                    .headers
                    .push((name.to_owned(), value.trim().to_owned())),
            }
        }
        seen.tidy();
        Some(seen)
    }

    /// Leaves out what is drawn at random, and what the time decides.
    pub(crate) fn tidy(&mut self) {
        let is_first = |headers: &[(String, String)]| {
            let mut counts = headers
                .iter()
                .filter(|(name, _)| name == "x-envoy-attempt-count");
            counts.all(|(_, count)| count == "1")
        };
        let keeps_time = is_first(&self.headers);
        self.headers.retain(|(name, _)| {
            name != "x-request-id" && (keeps_time || name != "x-envoy-expected-rq-timeout-ms")
        });
        self.headers.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

impl Seen {
    /// Whether a header of a response is compared.
    pub(crate) fn compares(name: &str) -> bool {
        name.starts_with("x-r-")
            || name.starts_with("x-m-")
            || [
                "grpc-status",
                "x-envoy-attempt-count",
                "x-envoy-ratelimited",
            ]
            .contains(&name)
    }
}
