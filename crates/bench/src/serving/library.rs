//! The library's own server, with nothing around it.

use std::sync::Arc;

use tokio::net::TcpListener;
use trunkline::{Change, Server, wire};
use trunkline_proto::discovery::DiscoveryResponse;

use super::control;

pub(super) async fn serve(xds: TcpListener, control: TcpListener) {
    let server = Server::default();
    let putting = server.clone();
    tokio::spawn(control::serve(control, move |put| apply(&putting, put)));
    server.serve(xds).await;
}

fn apply(server: &Server, put: DiscoveryResponse) -> Result<(), String> {
    let type_url = put.type_url.as_str().into();
    let change = |body| {
        let resource = wire::accept(&type_url, body).map_err(|error| error.to_string())?;
        Ok(Change::Upsert(type_url.clone(), Arc::new(resource)))
    };
    let bodies = put.resources.into_iter().map(|any| any.value);
    let changes = bodies.map(change).collect::<Result<Vec<_>, String>>()?;
    server.apply(changes).map_err(|error| error.to_string())?;
    Ok(())
}
