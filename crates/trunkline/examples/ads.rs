//! A server with two resources: a listener on port 10000, and a route
//! configuration that answers every request with a greeting.
//!
//! ```text
//! cargo run -p trunkline --example ads            # serves on 127.0.0.1:18000
//! ```
//!
//! Any Envoy whose bootstrap names that address as its ADS server gets them,
//! by delta or by state of the world; then `curl localhost:10000` says hello.
//! What happens on the streams is printed. Ctrl-C stops it.
#![allow(clippy::print_stdout, reason = "this is what the example shows")]

use std::error::Error;
use std::sync::Arc;

use prost::{Message, Name};
use tokio::net::TcpListener;
use trunkline::wire::accept;
use trunkline::{Change, Server, TypeUrl};
use trunkline_proto::envoy::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, DataSource, SocketAddress, address,
    config_source::ConfigSourceSpecifier, data_source, socket_address,
};
use trunkline_proto::envoy::envoy::config::listener::v3::{Filter, FilterChain, Listener, filter};
use trunkline_proto::envoy::envoy::config::route::v3::{
    DirectResponseAction, Route, RouteConfiguration, RouteMatch, VirtualHost, route, route_match,
};
use trunkline_proto::envoy::envoy::extensions::filters::http::router::v3::Router;
use trunkline_proto::envoy::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds, http_connection_manager::RouteSpecifier, http_filter,
};
use trunkline_proto::envoy::google::protobuf::Any;

const ADDRESS: &str = "127.0.0.1:18000";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .observe(|peer, report| println!("stream {} of {}: {report:?}", peer.stream, peer.node))
        .build();
    server.apply(vec![upsert(&listener())?, upsert(&routes())?])?;

    let stop = server.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.stop();
        }
    });
    let socket = TcpListener::bind(ADDRESS).await?;
    println!("serving on {ADDRESS}");
    server.serve(socket).await;
    Ok(())
}

fn upsert<M: Message + Name>(message: &M) -> Result<Change, Box<dyn Error>> {
    let Any { type_url, value } = any(message);
    let type_url = TypeUrl::new(type_url);
    let resource = accept(&type_url, value.into())?;
    Ok(Change::Upsert(type_url, Arc::new(resource)))
}

fn listener() -> Listener {
    let port = socket_address::PortSpecifier::PortValue(10000);
    let address = SocketAddress {
        address: "127.0.0.1".into(),
        port_specifier: Some(port),
        ..SocketAddress::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: "hello".into(),
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            config_source: Some(from_ads()),
            route_config_name: "hello".into(),
        })),
        http_filters: vec![HttpFilter {
            name: "router".into(),
            config_type: Some(http_filter::ConfigType::TypedConfig(
                any(&Router::default()),
            )),
            ..HttpFilter::default()
        }],
        ..HttpConnectionManager::default()
    };
    let filter = Filter {
        name: "http".into(),
        config_type: Some(filter::ConfigType::TypedConfig(any(&manager))),
    };
    Listener {
        name: "hello".into(),
        address: Some(Address {
            address: Some(address::Address::SocketAddress(address)),
        }),
        filter_chains: vec![FilterChain {
            filters: vec![filter],
            ..FilterChain::default()
        }],
        ..Listener::default()
    }
}

fn routes() -> RouteConfiguration {
    let greeting = DirectResponseAction {
        status: 200,
        body: Some(DataSource {
            specifier: Some(data_source::Specifier::InlineString("hello\n".into())),
            ..DataSource::default()
        }),
        ..DirectResponseAction::default()
    };
    let everything = RouteMatch {
        path_specifier: Some(route_match::PathSpecifier::Prefix("/".into())),
        ..RouteMatch::default()
    };
    let host = VirtualHost {
        name: "all".into(),
        domains: vec!["*".into()],
        routes: vec![Route {
            r#match: Some(everything),
            action: Some(route::Action::DirectResponse(greeting)),
            ..Route::default()
        }],
        ..VirtualHost::default()
    };
    RouteConfiguration {
        name: "hello".into(),
        virtual_hosts: vec![host],
        ..RouteConfiguration::default()
    }
}

fn from_ads() -> ConfigSource {
    ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..ConfigSource::default()
    }
}

fn any<M: Message + Name>(message: &M) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{}", M::full_name()),
        value: message.encode_to_vec(),
    }
}
