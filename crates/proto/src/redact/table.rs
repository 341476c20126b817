//! The table of secrets: which fields hold them, read from the descriptors once.
//!
//! | where | what is secret |
//! |---|---|
//! | a field that Envoy's files mark as sensitive | all of it |
//! | [`UNMARKED`] | all of it |
//! | [`PAIRS`]: a value beside a name, such as a header | the value, if the name or the value says so |
//! | [`MAPS`]: values under keys that people choose | the value, if the key says so |
//! | any text | all of it, if it is a private key or a web token |
//!
//! Names and texts are judged by `words`. Where one of these is a `DataSource`
//! that names a file or a variable, the place is no secret.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::descriptor::pool;

/// Secrets that Envoy's files do not mark.
pub(super) const UNMARKED: &[&str] = &[
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.GoogleIAMCredentials.authorization_token",
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.ServiceAccountJWTAccessCredentials.json_key",
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.access_token",
    "envoy.config.core.v3.GrpcService.GoogleGrpc.CallCredentials.google_refresh_token",
    "envoy.config.trace.v3.LightstepConfig.access_token",
    "envoy.extensions.filters.http.aws_lambda.v3.Credentials.secret_access_key",
    "envoy.extensions.filters.http.aws_lambda.v3.Credentials.session_token",
    // Symmetric keys stand among public ones.
    "envoy.extensions.filters.common.jwks.v3.JwtHandshakeValidator.local_jwks",
    "envoy.extensions.filters.http.jwt_authn.v3.JwtProvider.local_jwks",
    "envoy.extensions.grpc_service.call_credentials.access_token.v3.AccessTokenCredentials.token",
    "envoy.extensions.grpc_service.call_credentials.google_iam.v3.GoogleIamCredentials.authorization_token",
    "envoy.extensions.grpc_service.call_credentials.google_refresh_token.v3.GoogleRefreshTokenCredentials.token",
    "envoy.extensions.grpc_service.call_credentials.service_account_jwt_access.v3.ServiceAccountJwtAccessCredentials.json_key",
];

/// Fields that hold what a `Secret` may hold: private keys, their passwords,
/// session ticket keys. A resource with one of them inline goes only where
/// secrets may go.
pub(super) const KEYS: &[&str] = &[
    "envoy.config.core.v3.GrpcService.GoogleGrpc.SslCredentials.private_key",
    "envoy.extensions.common.aws.v3.IAMRolesAnywhereCredentialProvider.private_key",
    "envoy.extensions.transport_sockets.tls.v3.GenericSecret.secret",
    "envoy.extensions.transport_sockets.tls.v3.GenericSecret.secrets",
    "envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider.typed_config",
    "envoy.extensions.transport_sockets.tls.v3.TlsCertificate.password",
    "envoy.extensions.transport_sockets.tls.v3.TlsCertificate.pkcs12",
    "envoy.extensions.transport_sockets.tls.v3.TlsCertificate.private_key",
    "envoy.extensions.transport_sockets.tls.v3.TlsSessionTicketKeys.keys",
];

/// A message that puts a value beside its name.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) message: &'static str,
    /// The field that has the name.
    pub(super) name: &'static str,
    /// The fields of which one has the value.
    pub(super) values: &'static [&'static str],
}

/// Headers to add, and what is written like them.
pub(super) const PAIRS: &[Pair] = &[
    Pair {
        message: "envoy.config.core.v3.HeaderValue",
        name: "key",
        values: &["value", "raw_value"],
    },
    Pair {
        message: "envoy.config.core.v3.KeyValue",
        name: "key",
        values: &["value"],
    },
    Pair {
        message: "envoy.config.core.v3.KeyValuePair",
        name: "key",
        values: &["value"],
    },
    Pair {
        message: "envoy.config.core.v3.QueryParameter",
        name: "key",
        values: &["value"],
    },
];

/// Maps whose keys are names that people choose. Metadata is shown but for
/// values whose key sounds secret: subsets and routes are understood by it, and
/// `edit` has to give back what it was given.
pub(super) const MAPS: &[&str] = &[
    "envoy.config.core.v3.Metadata.filter_metadata",
    "envoy.config.core.v3.Metadata.typed_filter_metadata",
    "envoy.extensions.wasm.v3.EnvironmentVariables.key_values",
    "google.protobuf.Struct.fields",
];

/// Messages that can hold a secret in their own fields, by full name.
static RULES: LazyLock<HashMap<String, Rules>> = LazyLock::new(|| {
    let rules = pool().all_messages().filter_map(|message| {
        let rules = Rules::new(&message);
        (!rules.is_empty()).then(|| (message.full_name().to_owned(), rules))
    });
    rules.collect()
});

/// The own fields of a message that are secret.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The numbers of fields that are secret as a whole.
    secret: Vec<u32>,
    /// Those of them that hold keys.
    keys: Vec<u32>,
    /// The numbers of maps in which a key tells whether its value is secret.
    maps: Vec<u32>,
    pub(super) pair: Option<&'static Pair>,
}

impl Rules {
    /// Makes the rules of a message from the tables of secret fields, keys,
    /// maps and pairs.
    fn new(message: &MessageDescriptor) -> Self {
        let mut rules = Self {
            pair: PAIRS
                .iter()
                .find(|pair| pair.message == message.full_name()),
            ..Self::default()
        };

        for field in message.fields() {
            let (name, number) = (field.full_name(), field.number());
            if SECRET.contains(name) {
                rules.secret.push(number);
            }
            if KEYS.contains(&name) {
                rules.keys.push(number);
            }
            if MAPS.contains(&name) {
                rules.maps.push(number);
            }
        }
        rules
    }

    /// Returns whether the message can hold no secret in its own fields.
    fn is_empty(&self) -> bool {
        self.secret.is_empty() && self.maps.is_empty() && self.pair.is_none()
    }

    /// Returns whether the message has a map in which a key tells whether its
    /// value is secret.
    pub(super) fn has_maps(&self) -> bool {
        !self.maps.is_empty()
    }

    /// Returns whether the whole value of a field is secret.
    pub(super) fn is_secret(&self, field: &FieldDescriptor) -> bool {
        self.secret.contains(&field.number())
    }

    /// Returns whether a field holds a key.
    pub(super) fn is_key(&self, field: &FieldDescriptor) -> bool {
        self.keys.contains(&field.number())
    }

    /// Returns whether a field is a map in which a key tells whether its value
    /// is secret.
    pub(super) fn is_map(&self, field: &FieldDescriptor) -> bool {
        self.maps.contains(&field.number())
    }
}

/// Returns the rules for the own fields of a message, by its full name; `None`
/// if none of them can be secret.
pub(super) fn rules(message: &str) -> Option<&'static Rules> {
    RULES.get(message)
}

/// The full names of all secret fields, marked or not. The marks are options,
/// which the descriptors keep encoded: reading them for each message costs too
/// much.
static SECRET: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mark = pool().get_extension_by_name("udpa.annotations.sensitive");
    let is_marked = |field: &FieldDescriptor| {
        let options = field.options();
        let mark = mark.as_ref().map(|mark| options.get_extension(mark));
        mark.as_deref().and_then(Value::as_bool) == Some(true)
    };
    let marked = pool().all_messages().flat_map(|message| {
        let fields = message.fields().filter(is_marked);
        let names = fields.map(|field| field.full_name().to_owned());
        names.collect::<Vec<_>>()
    });
    let unmarked = UNMARKED.iter().map(|&name| name.to_owned());
    marked.chain(unmarked).collect()
});

/// Returns whether the value of a field is secret.
pub(super) fn is_secret(field: &FieldDescriptor) -> bool {
    SECRET.contains(field.full_name())
}

/// The names of all secret fields without their messages, as YAML and as JSON
/// have them.
static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let is_secret_field = |field: &FieldDescriptor| is_secret(field);
    let names = pool().all_messages().flat_map(|message| {
        let fields = message.fields().filter(is_secret_field);
        let names =
            fields.flat_map(|field| [field.name().to_owned(), field.json_name().to_owned()]);
        names.collect::<Vec<_>>()
    });
    names.collect()
});

/// Returns the names of all secret fields, without their messages.
pub(super) fn names() -> &'static BTreeSet<String> {
    &NAMES
}

/// The texts before a secret in a dump of a message, as protobuf prints it and
/// as JSON has it.
static SECRET_PREFIXES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let is_secret_text = |field: &FieldDescriptor| {
        is_secret(field) && matches!(field.kind(), Kind::String | Kind::Bytes)
    };
    let secret_texts = |message: MessageDescriptor| {
        let fields = message.fields().filter(is_secret_text);
        let names = fields.map(|field| field.name().to_owned());
        names.collect::<Vec<_>>()
    };
    let mut names: BTreeSet<_> = pool().all_messages().flat_map(secret_texts).collect();
    names.extend(["inline_string", "inline_bytes"].map(str::to_owned));
    let printed = names.iter().map(|name| format!("{name}: \""));
    let json = names.iter().map(|name| format!("\"{name}\":"));
    let pem = ["-----BEGIN ".to_owned()];
    printed.chain(json).chain(pem).collect()
});

/// Finds the offset at which a text begins to quote a secret; `None` if it
/// quotes none.
pub(super) fn find_quote(text: &str) -> Option<usize> {
    SECRET_PREFIXES
        .iter()
        .filter_map(|name| text.find(name))
        .min()
}

/// Returns the number of secret fields, for the tests.
#[cfg(test)]
pub(super) fn count() -> usize {
    SECRET.len()
}
