//! Radio information of an RNIS server for the controls of connections.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

#[path = "rig/radio_server.rs"]
mod radio_server;
mod rig;

use std::path::Path;
use std::time::{Duration, Instant};

use radio_server::RadioServer;
use ranpace_rnis::LinkReport;
use ranpace_serve::config::Feed;
use ranpace_units::Bytes;
use rig::{PATIENCE, Rig, runtime};

/// A queue of a megabyte.
fn link() -> LinkReport {
    LinkReport { queue: Bytes::new(1_000_000), ..LinkReport::default() }
}

/// Reports until a hint has come to a connection.
async fn report_until_heard(radio: &mut RadioServer, rig: &Rig) {
    let (before, begun) = (rig.metric("serve_hints_total"), Instant::now());
    while rig.metric("serve_hints_total") < before + 5 {
        assert!(begun.elapsed() < PATIENCE, "no hint came to the connection");
        radio.report(link());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn with_radio(table: &Path) -> Rig {
    let origin = format!("table:{}", table.display()).parse().unwrap();
    Rig::start(|config| {
        config.quic_control.add("newreno+meld-me".parse().unwrap());
        config.quic_control.add("/low=cubic".parse().unwrap());
        config.feed = Some(Feed::new(origin));
    })
}

#[test]
fn a_connection_hears_of_its_user_and_goes_on_when_the_feed_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let mut radio = RadioServer::start(&table, "127.0.0.1");
    let rig = with_radio(&table);
    runtime().block_on(async {
        let client = rig.client().await;
        client.get("/file", &[]).await.unwrap();
        report_until_heard(&mut radio, &rig).await;
        // The server of radio information is gone.
        tokio::task::spawn_blocking(move || drop(radio)).await.unwrap();
        assert_eq!(client.get("/bytes/3000000", &[]).await.unwrap().content.len(), 3_000_000);
    });
}

#[test]
fn a_client_that_moves_is_the_user_at_its_new_address() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let mut radio = RadioServer::start(&table, "127.0.0.2");
    let rig = with_radio(&table);
    runtime().block_on(async {
        let endpoint = rig::endpoint(noq::TransportConfig::default());
        let client = rig::Client::new(rig.connect_from(&endpoint).await).await;
        client.get("/low/nothing", &[]).await.unwrap();
        for _ in 0..20 {
            radio.report(link());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(rig.metric("serve_hints_total"), 0);
        endpoint.rebind(std::net::UdpSocket::bind("127.0.0.2:0").unwrap()).unwrap();
        assert_eq!(client.get("/bytes/3000000", &[]).await.unwrap().content.len(), 3_000_000);
        report_until_heard(&mut radio, &rig).await;
    });
    drop(radio);
}
