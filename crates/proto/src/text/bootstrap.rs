//! A bootstrap of Envoy: its `static_resources` are resources like others.
//!
//! The rest of it configures one Envoy. It is read, so that a mistake in it is
//! seen, and not used.

use super::{
    document::Reader,
    error::Problem,
    tree::{Entry, Node, Value},
};
use crate::{
    descriptor::{self, types},
    path::Step,
};

/// The field, under both of its names.
const STATIC: [&str; 2] = ["static_resources", "staticResources"];
/// Its lists, and the types of their items.
const LISTS: [(&str, &str); 3] = [
    ("listeners", types::LISTENER),
    ("clusters", types::CLUSTER),
    ("secrets", types::SECRET),
];

/// Returns whether a document is a bootstrap that has resources.
pub(super) fn has_resources(root: &Node) -> bool {
    STATIC.iter().any(|name| root.get(name).is_some())
}

impl Reader<'_> {
    /// Reads the static resources of a bootstrap, and reports the mistakes in
    /// its other fields. If both spellings of the field are present, reports
    /// that, and reads the first one in the file.
    pub(super) fn read_bootstrap(&mut self, root: Node) {
        if let [Some(_), Some(duplicate)] = STATIC.map(|name| root.get(name)) {
            let problem = Problem::DuplicateField(STATIC[0].to_owned());
            self.walk.report::<()>(duplicate.at, problem);
        }
        if let Some(descriptor) = descriptor::message("envoy.config.bootstrap.v3.Bootstrap") {
            self.walk.read_fields(&descriptor, &root, &STATIC);
        }

        let Some(resources) = take_first(root, &STATIC) else {
            return;
        };
        self.walk.path.push(Step::Name(STATIC[0]));
        self.read_static_resources(resources);
        self.walk.path.pop();
    }

    /// Reads each list of `static_resources` in the order of the file, and
    /// reports the mistakes in the other fields.
    fn read_static_resources(&mut self, node: Node) {
        let message = "envoy.config.bootstrap.v3.Bootstrap.StaticResources";
        if let Some(descriptor) = descriptor::message(message) {
            self.walk
                .read_fields(&descriptor, &node, &LISTS.map(|(name, _)| name));
        }

        let Value::Map(entries) = node.value else {
            return;
        };
        for Entry { key, node, .. } in entries {
            let Some((name, url)) = LISTS.iter().find(|(name, _)| *name == key) else {
                continue;
            };
            let Some(descriptor) = descriptor::message(url) else {
                continue;
            };
            self.walk.path.push(Step::Name(name));
            self.read_list(Some(node), |reader, item| {
                let resource = reader.read_untyped(descriptor.clone(), item)?;
                reader.name_listener(resource)
            });
            self.walk.path.pop();
        }
    }
}

/// Returns the value of the first entry with one of these keys. Returns `None`
/// if there is no such entry.
fn take_first(node: Node, keys: &[&str]) -> Option<Node> {
    let Value::Map(entries) = node.value else {
        return None;
    };
    let has_key = |entry: &Entry| keys.contains(&entry.key.as_str());
    let first_entry = entries.into_iter().find(has_key);
    first_entry.map(|entry| entry.node)
}

#[cfg(test)]
mod tests {
    use super::super::{Options, read};

    const BOOTSTRAP: &str = "\
node: {id: e, cluster: c}
static_resources:
  listeners:
  - name: l
    address: {socket_address: {address: 127.0.0.1, port_value: 1}}
  clusters:
  - name: c
    connect_timeout: 1s
  secrets:
  - name: s
";

    fn errors(text: &str) -> Vec<String> {
        let read = read("b.yaml", text, &Options::default());
        read.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn static_resources_are_resources_at_their_places() {
        let read = read("b.yaml", BOOTSTRAP, &Options::default());
        assert_eq!(read.errors, []);
        let found: Vec<_> = read
            .resources
            .iter()
            .map(|r| {
                let at = r.position(&crate::Path::default());
                (r.path.to_string(), at.to_string(), &*r.type_url)
            })
            .collect();
        let row = |path: &str, at: &str, url| (path.to_owned(), at.to_owned(), url);
        use crate::descriptor::types::{CLUSTER, LISTENER, SECRET};
        assert_eq!(
            found,
            [
                row("static_resources.listeners[0]", "4:5", LISTENER),
                row("static_resources.clusters[0]", "7:5", CLUSTER),
                row("static_resources.secrets[0]", "10:5", SECRET),
            ]
        );
    }

    #[test]
    fn a_slip_anywhere_in_a_bootstrap_is_seen() {
        let slip = BOOTSTRAP.replace("connect_timeout", "conect_timeout");
        assert_eq!(
            errors(&slip),
            [
                "b.yaml:8:5: static_resources.clusters[0]: unknown field \"conect_timeout\" in \
              Cluster, did you mean \"connect_timeout\"?"
            ]
        );
        let slip = BOOTSTRAP.replace("node: {id", "node: {idd");
        assert_eq!(
            errors(&slip),
            ["b.yaml:1:8: node: unknown field \"idd\" in Node, did you mean \"id\"?"]
        );
        let slip = BOOTSTRAP.replace("secrets", "secret");
        assert_eq!(
            errors(&slip),
            [
                "b.yaml:9:3: static_resources: unknown field \"secret\" in StaticResources, \
              did you mean \"secrets\"?"
            ]
        );
        let twice = format!("{BOOTSTRAP}staticResources: {{}}\n");
        assert_eq!(
            errors(&twice),
            [
                "b.yaml:11:1: the field \"static_resources\" is given twice, in two spellings; keep one"
            ]
        );
    }

    #[test]
    fn a_bootstrap_in_json_spelling_is_one() {
        let text = r#"{"staticResources": {"clusters": [{"name": "c"}]}}"#;
        let read = read("b.json", text, &Options::default());
        assert_eq!(read.errors, []);
        assert_eq!(
            read.resources[0].path.to_string(),
            "static_resources.clusters[0]"
        );
    }

    #[test]
    fn what_is_secret_is_not_repeated() {
        let secret = "\
static_resources:
  secrets:
  - name: s
    tls_certificate: {private_key: hunter2}
";
        let [error] = &errors(secret)[..] else {
            panic!("one mistake");
        };
        assert!(error.contains("private_key: expected"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
