//! Names of listeners, made from what a program dials or listens on (C6-C9).
//!
//! They are texts, spelled as gRPC spells them. A [`Name`] of the engine is what
//! a name means: Envoy's spelling of it encodes more.
//!
//! [`Name`]: trunkline_core::name::Name

use std::collections::BTreeMap;

use super::authority::Authority;

/// The templates of listeners' names, in which `%s` stands for the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTemplates {
    /// For targets without an authority (C7).
    pub client: String,
    /// For the addresses of servers; without it, a server cannot be set up
    /// (C6).
    pub server: Option<String>,
}

impl Default for ListenerTemplates {
    /// Makes the templates of a bootstrap that has none: the target itself is
    /// the name, and servers cannot be set up (C6, C7).
    fn default() -> Self {
        Self {
            client: PLACEHOLDER.to_owned(),
            server: None,
        }
    }
}

/// Why a target has no listener.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The bootstrap does not know the authority (C8).
    #[error("the bootstrap has no authority {0:?}; add it to authorities, or dial xds:///host")]
    UnknownAuthority(String),
    /// There is no host.
    #[error("the target names no host; write such as xds:///backend:8080")]
    Empty,
    /// There is no template for servers (C6).
    #[error("the bootstrap has no server_listener_resource_name_template; add it")]
    NoServerTemplate,
}

const PLACEHOLDER: &str = "%s";

/// Returns the name of the listener of a target: `xds:///host:port`,
/// `xds://authority/host`, or a host. The template is that of the authority, or
/// the client's own for a target without one.
pub(super) fn client_listener_name(
    target: &str,
    templates: &ListenerTemplates,
    authorities: &BTreeMap<String, Authority>,
) -> Result<String, TargetError> {
    let (authority, host) = split_target(target);
    let template = match &*authority {
        // C7.
        "" => templates.client.clone(),
        name => {
            let Some(authority) = authorities.get(name) else {
                return Err(TargetError::UnknownAuthority(authority));
            };
            let listener_template = authority.listener_template.clone();
            listener_template.unwrap_or_else(|| default_template(name))
        }
    };

    if host.is_empty() {
        return Err(TargetError::Empty);
    }
    Ok(fill(&template, &host))
}

/// Returns the name of the listener of a server, made from the address that the
/// server listens on (C6).
pub(super) fn server_listener_name(
    address: &str,
    templates: &ListenerTemplates,
) -> Result<String, TargetError> {
    let template = templates.server.as_deref();
    let template = template.ok_or(TargetError::NoServerTemplate)?;
    Ok(fill(template, address))
}

/// Returns the text with which every template of an authority has to start (C8).
pub(super) fn needed_start(authority: &str) -> String {
    format!("xdstp://{}/", percent_encode_path(authority))
}

/// Returns the template of an authority that has none (C8).
fn default_template(authority: &str) -> String {
    let start = needed_start(authority);
    format!("{start}envoy.config.listener.v3.Listener/{PLACEHOLDER}")
}

/// Splits a target into its authority, which may be empty, and its host.
fn split_target(target: &str) -> (String, String) {
    let Some(uri) = target.strip_prefix("xds:") else {
        return (String::new(), target.to_owned());
    };
    let (authority, path) = match uri.strip_prefix("//") {
        Some(hierarchy) => hierarchy.split_once('/').unwrap_or((hierarchy, "")),
        None => ("", uri.strip_prefix('/').unwrap_or(uri)),
    };
    (decode(authority), decode(path))
}

/// Puts a target into a template: percent-encoded if the name is structured,
/// and as it is otherwise (C9).
fn fill(template: &str, target: &str) -> String {
    let target = if template.starts_with("xdstp:") {
        percent_encode_path(target)
    } else {
        target.to_owned()
    };
    template.replace(PLACEHOLDER, &target)
}

/// Percent-encodes the characters that may not stand in the path of a URI (RFC
/// 3986). Slashes may, and stay (C9).
fn percent_encode_path(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => encoded.push(char::from(byte)),
            _ if b"-._~!$&'()*+,;=:@/".contains(&byte) => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Replaces percent-encoded bytes. Returns the text unchanged if the result
/// would not be UTF-8.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut remaining = text.as_bytes();
    while let [first, tail @ ..] = remaining {
        let code = tail.first_chunk::<2>().and_then(|hex| {
            let hex = std::str::from_utf8(hex).ok()?;
            let is_hex = hex.chars().all(|char| char.is_ascii_hexdigit());
            u8::from_str_radix(hex, 16).ok().filter(|_| is_hex)
        });

        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                remaining = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                remaining = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(target: &str, template: &str) -> String {
        let templates = ListenerTemplates {
            client: template.to_owned(),
            server: None,
        };
        let own = Authority {
            listener_template: Some("xdstp://b/envoy.config.listener.v3.Listener/x/%s?n=%s".into()),
            ..Authority::default()
        };
        let authorities = [("a".into(), Authority::default()), ("b".into(), own)];
        match client_listener_name(target, &templates, &authorities.into()) {
            Ok(name) => name,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn c7_a_target_without_authority_has_the_default_template() {
        assert_eq!(named("xds:///host:80", "%s"), "host:80");
        assert_eq!(named("host:80", "%s"), "host:80");
        assert_eq!(named("xds:host", "x/%s"), "x/host");
        assert_eq!(named("xds:///", "%s"), TargetError::Empty.to_string());
    }

    #[test]
    fn c8_an_authority_must_be_known_and_has_a_template() {
        let own = "xdstp://a/envoy.config.listener.v3.Listener/host:80";
        assert_eq!(named("xds://a/host:80", "%s"), own);
        let own = "xdstp://b/envoy.config.listener.v3.Listener/x/h?n=h";
        assert_eq!(named("xds://b/h", "%s"), own);
        let unknown = TargetError::UnknownAuthority("c".into()).to_string();
        assert_eq!(named("xds://c/h", "%s"), unknown);
    }

    #[test]
    fn c9_a_target_is_encoded_in_structured_names_only() {
        let template = "xdstp://x/envoy.config.listener.v3.Listener/%s";
        let start = "xdstp://x/envoy.config.listener.v3.Listener/";
        assert_eq!(
            named("[::1]:80/a b", template),
            format!("{start}%5B::1%5D:80/a%20b")
        );
        assert_eq!(named("xds:///a%20b", template), format!("{start}a%20b"));
        assert_eq!(named("[::1]:80/a b", "%s"), "[::1]:80/a b");
    }

    #[test]
    fn c6_a_server_needs_a_template() {
        let mut templates = ListenerTemplates::default();
        let error = server_listener_name("127.0.0.1:80", &templates).unwrap_err();
        assert_eq!(error, TargetError::NoServerTemplate);
        templates.server = Some("grpc/server?xds.resource.listening_address=%s".into());
        let name = server_listener_name("[::1]:80", &templates).unwrap();
        assert_eq!(name, "grpc/server?xds.resource.listening_address=[::1]:80");
    }
}
