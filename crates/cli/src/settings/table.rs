//! The table of settings, in the order in which the example file has them.

use super::Settings;
use super::value::Field;

/// One setting: a key of the file, a flag of `serve`, a field.
pub(crate) struct Setting {
    /// The key in the file; the flag is the same with dashes.
    pub(crate) key: &'static str,
    /// The placeholder of a value in help.
    pub(crate) value: &'static str,
    /// Its meaning, in a line.
    pub(crate) about: &'static str,
    /// Its field.
    pub(crate) field: fn(&mut Settings) -> &mut dyn Field,
}

/// Settings that belong together.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) settings: &'static [Setting],
}

macro_rules! sections {
    ($($title:literal { $($key:literal $value:literal $about:literal $($path:ident).+;)* })*) => {
        /// Every section.
        pub(crate) const SECTIONS: &[Section] = &[$(Section {
            title: $title,
            settings: &[$(Setting {
                key: $key,
                value: $value,
                about: $about,
                field: |settings| &mut settings.$($path).+,
            },)*],
        },)*];
    };
}

sections! {
    "Addresses" {
        "listen" "ADDR" "Where xDS is served, over HTTP/2 and HTTP/1.1; port 0 takes a free one" listen;
        "also_listen" "ADDR" "One more address at which xDS is served; rules of `parameters` can tell clients apart by it" also_listen;
        "admin" "ADDR" "Where the admin API, /ready and /metrics are served" admin;
        "health" "ADDR" "Where /ready and /metrics are served as well, to everybody and over plain HTTP: for probes, where the admin address is not for them" health;
    }
    "Contents" {
        "config" "PATH" "A file or a directory of resources, watched; without any, contents come by `apply`" config;
        "data" "DIR" "Where contents that come by `apply` are kept, or `memory`; without it in $STATE_DIRECTORY, or else below $XDG_STATE_HOME or ~/.local/state in trunkline/PORT; with --config, or port 0, in memory" data;
        "history" "N" "How many revisions of these contents are kept, to be shown and to go back to" history;
        "allow_empty" "BOOL" "Whether clients are served before there are any contents; if not, they wait for files with resources, or for the first `apply`" allow_empty;
        "await_origins" "NAME" "An origin whose first `apply` clients wait for, where several writers bring contents; without any, they wait for the first of all" await_origins;
        "hold_removals" "BOOL" "Whether a change is held until it is confirmed if it empties a file, or removes most resources of a type" hold_removals;
        "dangling" "HOW" "What a reference to a resource that is not there means: `warn` says so, `error` refuses the change" dangling;
        "config_quiet" "TIME" "How long files must be left alone before they are read" config_quiet;
        "config_rescan" "TIME" "How often files are looked at where the system does not tell of changes" config_rescan;
        "descriptors" "FILE" "A FileDescriptorSet, as `protoc --include_imports --descriptor_set_out` writes it, of types that are not built in" descriptors;
    }
    "Contents by MCP" {
        "mcp_from" "ADDR" "A source of the Mesh Configuration Protocol that contents come from: host:port, or with https:// before it" mcp.from;
        "mcp_listen" "ADDR" "Where such a source may connect, and bring contents; beyond loopback it needs --tls-client-ca" mcp.listen;
        "collections" "LIST" "The collections that are asked for, with commas between them; words such as `cds` are those of Envoy's types; without any, all of these but secrets" mcp.collections;
        "mcp_label" "KEY" "A label of resources whose value is a constraint: with `env`, one labelled `env: prod` is for clients with the parameter env=prod" mcp.labels;
        "mcp_annotation" "KEY=VALUE" "An annotation by which the source can tell this server from others, such as env=canary" mcp.annotations;
        "mcp_over_xds" "HOW" "Whether the source of --mcp-from is asked over xDS, with collections as type URLs of ADS: `no`, `sotw` as Istio speaks it, or `delta`" mcp.over_xds;
        "mcp_tls_ca" "FILE" "The authorities of the source of --mcp-from, in PEM, instead of those of the system; --tls-cert is shown to it" mcp.tls_ca;
    }
    "Security" {
        "tls_cert" "FILE" "The certificate chain of the addresses of xDS and of the admin API, in PEM; taken anew when the file changes" tls_cert;
        "tls_key" "FILE" "Its private key, in PEM" tls_key;
        "tls_client_ca" "FILE" "The authorities of xDS clients, in PEM: these must show a certificate from one of them. It gives no right at the admin address" tls_client_ca;
        "admin_tls_client_ca" "FILE" "The authorities of operators, in PEM: whoever connects to the admin address must show a certificate from one of them" admin_tls_client_ca;
        "admin_allow" "NAME" "An operator who may write: the name in the certificate as spiffe://..., dns:NAME or cn:NAME, a star for any text; without any, all that --admin-tls-client-ca vouches for" admin_allow;
        "admin_token_file" "FILE" "A file with a token: whoever writes over the admin API must show it, with a certificate or without" admin_token_file;
        "admin_auth_reads" "BOOL" "Whether reading over the admin API needs what writing needs; /ready and /metrics do not" admin_auth_reads;
        "allow_plaintext_secrets" "BOOL" "Whether secrets (SDS), and resources with a private key in them, are given to clients that are neither local nor behind TLS with a client certificate" allow_plaintext_secrets;
        "audit_log" "FILE" "A file that gets one JSON line for each change, and for each write that is refused; without it the lines go to the log" audit_log;
        "audit_required" "BOOL" "Whether a change that cannot be written to --audit-log is refused; each is on the disk before it is made" audit_required;
    }
    "Sending" {
        "identifier" "NAME" "What the server calls itself in its responses" sending.identifier;
        "debounce" "TIME" "How long a change waits for others, so that a burst is one response" sending.debounce;
        "repeat_endpoints" "BOOL" "Whether a changed cluster gets its endpoints again, which Envoy needs" sending.repeat_endpoints;
        "named_only" "TYPE" "A type of which an empty first request asks for nothing, instead of for all" sending.named_only;
    }
    "Limits: what is beyond them is refused or waits, and is counted in trunkline_limits_total or trunkline_refused_names_total" {
        "max_streams" "N" "Streams at once; one more is refused" limits.streams;
        "max_streams_per_peer" "N" "Streams at once of one address, and of one identity; 0 is half of all" limits.streams_per_peer;
        "max_connections" "N" "Connections at once; one more is closed, or one without a request of the address that has the most" limits.connections;
        "max_connections_per_address" "N" "Connections at once of one address, behind which there may be a fleet; one more is closed; 0 is half of all" limits.connections_per_address;
        "memory_limit" "SIZE" "Memory of the process: near it, new streams, large answers and names that do not exist are refused, and contents stay; `cgroup` is the limit that the system sets, 0 is none" limits.memory;
        "max_subscriptions" "N" "Names and globs that one stream may subscribe to" limits.subscriptions;
        "max_hosts" "N" "Hosts of one stream that no virtual host names: junk, and those that get a copy of a wildcard; more are told not to exist" limits.hosts;
        "max_globs" "N" "Globs among them" limits.globs;
        "max_types" "N" "Types that one stream may ask for" limits.types;
        "max_params" "N" "Sets of dynamic parameters that one stream may bring" limits.params;
        "max_all_params" "N" "Sets of dynamic parameters from all streams together" limits.all_params;
        "max_name_bytes" "SIZE" "Bytes in a resource name" limits.name;
        "max_error_bytes" "SIZE" "Bytes of the text of a NACK that are kept" limits.error;
        "max_request_bytes" "SIZE" "Bytes in a request; an Envoy that reconnects names all that it holds" limits.request;
        "max_response_bytes" "SIZE" "Bytes of bodies in a response that can be split, unless one body is larger; gRPC clients take 4 MiB by default" limits.response;
        "max_requests_per_second" "N" "Requests of one stream in a second; what is more waits" limits.requests_per_second;
        "max_admin_body" "SIZE" "Bytes in the body of a request to the admin API" limits.admin_body;
    }
    "Times" {
        "drain_time" "TIME" "After SIGTERM, over how long streams are ended one by one while the server goes on serving" times.drain;
        "ready_patience" "TIME" "How long a stream waits for the first contents before it is told UNAVAILABLE" times.ready_patience;
        "refusal_delay" "TIME" "How long a stream that is refused is held, so that its client does not come back at once" times.refusal_delay;
        "send_timeout" "TIME" "How long a client may take nothing of a response that waits for it before it counts as broken and its connection is closed; 0s is for ever" times.send_timeout;
        "keep_alive" "TIME" "How often a silent connection is asked whether it is still there" times.keep_alive;
        "keep_alive_timeout" "TIME" "How long it may take to answer" times.keep_alive_timeout;
        "max_connection_age" "TIME" "How old a connection may become, give or take a tenth, so that a fleet spreads over replicas; 0s is for ever" times.max_connection_age;
    }
    "Load reports (LRS)" {
        "load_clusters" "NAME" "A cluster on which clients report; without any, they report on all" load.clusters;
        "load_interval" "TIME" "How often they report" load.interval;
        "load_endpoints" "BOOL" "Whether they report on each endpoint" load.endpoints;
        "load_memory" "SIZE" "Memory for the reports of all clients, of which one client may have a third; a report that does not fit is refused and counted" load.memory;
    }
    "Log" {
        "log_format" "FORMAT" "How lines of the log look" log_format;
        "log_level" "LEVEL" "How much is logged" log_level;
    }
}

/// Returns every setting, in the order of the sections.
pub(crate) fn all() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|section| section.settings)
}
