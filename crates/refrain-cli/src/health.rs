//! Two questions that a machine asks of a process that serves: does it live, and can it work?

use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use refrain::Refrain;
use tokio::net::TcpListener;

use crate::exit::Fault;
use crate::left_out::LeftOut;

/// Where it listens. Only this machine may ask: what is reachable from elsewhere needs more than this.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, Fault> {
    if !address.ip().is_loopback() {
        return Err(Fault::Refused(format!(
            "{address} can be reached from other machines\n  listen on 127.0.0.1, and let a proxy in front of it ask who comes"
        )));
    }
    TcpListener::bind(address).await.map_err(|error| {
        Fault::Refused(format!(
            "{address} cannot be listened on: {error}\n  another port: refrain serve --listen 127.0.0.1:7718"
        ))
    })
}

/// Answers until it is dropped.
pub(crate) async fn answer(listener: TcpListener, refrain: Refrain, left_out: LeftOut) {
    let routes = Router::new()
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .with_state((refrain, left_out));
    if let Err(error) = axum::serve(listener, routes).await {
        tracing::warn!(%error, "health is not answered any more");
    }
}

/// Whether the store answers. A job that is left out does not make the others unready; it is named.
async fn ready(State((refrain, left_out)): State<(Refrain, LeftOut)>) -> (StatusCode, String) {
    let (status, said) = match refrain.open_runs().await {
        Ok(_) => (StatusCode::OK, "ready\n"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n"),
    };
    (status, format!("{said}{left_out}"))
}
