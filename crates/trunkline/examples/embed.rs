//! A control plane inside another program: resources as Envoy's own messages,
//! events of its streams printed, mounted beside another route on axum.
//!
//! ```text
//! cargo run -p trunkline --example embed          # serves on 127.0.0.1:18000
//! envoy -c crates/trunkline/examples/envoy.yaml   # in another terminal
//! curl localhost:10000                            # in a third: hello
//! ```
#![allow(clippy::print_stdout, reason = "this is what the example shows")]

use std::error::Error;

use axum::{Router, routing::get};
use prost::{Message, Name};
use trunkline::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ConfigSource, DataSource, SocketAddress, address,
    config_source, data_source, socket_address,
};
use trunkline::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use trunkline::envoy::config::route::v3::{
    DirectResponseAction, Route, RouteConfiguration, RouteMatch, VirtualHost, route, route_match,
};
use trunkline::envoy::extensions::filters::http::router::v3 as http_router;
use trunkline::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds, http_connection_manager, http_filter,
};
use trunkline::proto::envoy::google::protobuf::Any;
use trunkline::{ResourceMessage, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .observe(|peer, report| println!("stream {} of {}: {report:?}", peer.stream, peer.node))
        .build();

    let resources = [
        ResourceMessage::of(&listener(10_000)),
        ResourceMessage::of(&routes("hello\n")),
    ];
    let accepted = server.set("example", resources)?;
    for warning in accepted.warnings {
        println!("warning: {warning}");
    }

    let app = Router::new()
        .route("/", get(|| async { "a control plane\n" }))
        .fallback_service(server.service());
    let listener = trunkline::listen::bind("127.0.0.1:18000").await?;
    Ok(axum::serve(listener, app).await?)
}

/// Routes that answer every request with this text.
fn routes(text: &str) -> RouteConfiguration {
    let answer = DirectResponseAction {
        status: 200,
        body: Some(DataSource {
            specifier: Some(data_source::Specifier::InlineString(text.to_owned())),
            ..DataSource::default()
        }),
        ..DirectResponseAction::default()
    };
    let route = Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(route_match::PathSpecifier::Prefix("/".to_owned())),
            ..RouteMatch::default()
        }),
        action: Some(route::Action::DirectResponse(answer)),
        ..Route::default()
    };
    RouteConfiguration {
        name: "hello".to_owned(),
        virtual_hosts: vec![VirtualHost {
            name: "all".to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![route],
            ..VirtualHost::default()
        }],
        ..RouteConfiguration::default()
    }
}

/// A listener on a local port, which asks for its routes.
fn listener(port: u32) -> Listener {
    let router = HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(pack(
            &http_router::Router::default(),
        ))),
        ..HttpFilter::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: "hello".to_owned(),
        route_specifier: Some(http_connection_manager::RouteSpecifier::Rds(Rds {
            route_config_name: "hello".to_owned(),
            config_source: Some(ads()),
        })),
        http_filters: vec![router],
        ..HttpConnectionManager::default()
    };
    let filter = Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: Some(filter::ConfigType::TypedConfig(pack(&manager))),
    };
    Listener {
        name: "hello".to_owned(),
        address: Some(Address {
            address: Some(address::Address::SocketAddress(SocketAddress {
                address: "127.0.0.1".to_owned(),
                port_specifier: Some(socket_address::PortSpecifier::PortValue(port)),
                ..SocketAddress::default()
            })),
        }),
        filter_chains: vec![FilterChain {
            filters: vec![filter],
            ..FilterChain::default()
        }],
        ..Listener::default()
    }
}

/// The stream that the client has already.
fn ads() -> ConfigSource {
    ConfigSource {
        config_source_specifier: Some(config_source::ConfigSourceSpecifier::Ads(
            AggregatedConfigSource {},
        )),
        resource_api_version: 2,
        ..ConfigSource::default()
    }
}

/// Packs a message into one that can hold any.
fn pack<M: Message + Name>(message: &M) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{}", M::full_name()),
        value: message.encode_to_vec(),
    }
}
