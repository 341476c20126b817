//! A control plane inside another program: resources from a text, events of its
//! streams printed, mounted beside another route on axum.
//!
//! ```text
//! cargo run -p trunkline --example embed          # serves on 127.0.0.1:18000
//! envoy -c crates/trunkline/examples/envoy.yaml   # in another terminal
//! curl localhost:10000                            # in a third: hello
//! ```
#![allow(clippy::print_stdout, reason = "this is what the example shows")]

use std::error::Error;

use axum::{Router, routing::get};
use trunkline::{Server, wire::accept_text};
use trunkline_proto::text;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .observe(|peer, report| println!("stream {} of {}: {report:?}", peer.stream, peer.node))
        .build();

    let file = text::read(
        "hello.yaml",
        include_str!("hello.yaml"),
        &Default::default(),
    );
    let mut changes = Vec::new();
    for resource in &file.resources {
        changes.extend(accept_text(resource)?.changes());
    }
    server.apply(changes)?;

    let app = Router::new()
        .route("/", get(|| async { "a control plane\n" }))
        .fallback_service(server.service());
    let listener = trunkline::listen::bind("127.0.0.1:18000").await?;
    Ok(axum::serve(listener, app).await?)
}
