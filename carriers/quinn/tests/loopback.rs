//! Files over loopback, between two quinn endpoints in this process, with our controls at the sender.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use ranpace_cc::{ALL, Transport};
use ranpace_phy::LteBandwidth;
use ranpace_quinn::{ConnectionControl, Controls, RadioHint, bw_report};
use ranpace_rnis::CellInfo;
use ranpace_units::{Bytes, Rate};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::UdpSocket;

/// Some sixty windows of the beginning.
const FILE: usize = 1 << 20;

/// A server that sends [`FILE`] bytes to whoever connects, and a client.
struct Rig {
    server: Endpoint,
    client: Endpoint,
}

impl Rig {
    fn new(transport: TransportConfig) -> Self {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate: CertificateDer<'static> = own.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
        let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key).unwrap();
        config.transport_config(Arc::new(transport));
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Endpoint::server(config, anywhere).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let mut client = Endpoint::client(anywhere).unwrap();
        client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots)).unwrap());
        Self { server, client }
    }

    /// Both ends of a new connection.
    async fn connect(&self) -> (Connection, Connection) {
        self.connect_to(self.server.local_addr().unwrap()).await
    }

    /// The same, over a relay at this address.
    async fn connect_to(&self, address: SocketAddr) -> (Connection, Connection) {
        let connecting = self.client.connect(address, "localhost").unwrap();
        let accepting = async { self.server.accept().await.unwrap().await.unwrap() };
        let (client, server) = tokio::join!(connecting, accepting);
        (client.unwrap(), server)
    }
}

fn with(controls: &Arc<Controls>) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(controls.clone());
    transport
}

/// Sends a file from the server, and checks what arrives.
async fn download(client: &Connection, server: &Connection) {
    let content: Vec<u8> =
        (0..FILE as u32).map(|place| (place.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    let sending = async {
        let mut stream = server.open_uni().await.unwrap();
        stream.write_all(&content).await.unwrap();
        stream.finish().unwrap();
        stream.stopped().await.unwrap();
    };
    let receiving = async { client.accept_uni().await.unwrap().read_to_end(FILE).await.unwrap() };
    let ((), received) = tokio::join!(sending, receiving);
    assert!(received == content, "what arrives is not what was sent");
}

#[tokio::test]
async fn every_listed_control_carries_a_file() {
    for entry in ALL.iter().filter(|entry| entry.transport == Transport::Tcp) {
        let controls: Arc<Controls> = Arc::new(entry.name.parse().unwrap());
        let rig = Rig::new(with(&controls));
        let (client, server) = rig.connect().await;
        download(&client, &server).await;
        let stats = ConnectionControl::new(server.clone(), controls).stats().unwrap();
        let least = (FILE / 1472) as u64;
        assert!(stats.acked >= least, "{}: {stats:?}", entry.name);
        assert!(stats.acked + stats.lost <= stats.sent, "{}: {stats:?}", entry.name);
    }
}

#[tokio::test]
async fn the_window_that_quinn_obeys_is_the_controls() {
    let controls: Arc<Controls> = Arc::new("newreno".parse().unwrap());
    let rig = Rig::new(with(&controls));
    let (client, server) = rig.connect().await;
    let control = ConnectionControl::new(server.clone(), controls);
    let before = control.window().unwrap();
    download(&client, &server).await;
    let after = control.window().unwrap();
    assert!(after > before, "slow start takes the window from {before} to {after}");
    assert_eq!(Bytes::new(server.stats().path.cwnd), after);
}

#[tokio::test]
async fn radio_information_reaches_our_controls_and_no_others() {
    let controls: Arc<Controls> = Arc::new("newreno+meld-me".parse().unwrap());
    let cell = CellInfo::lte(1, LteBandwidth::Mhz20);
    let hint = RadioHint::of(cell, controls.time(Instant::now()));
    for (transport, heard) in [(with(&controls), true), (TransportConfig::default(), false)] {
        let rig = Rig::new(transport);
        let (client, server) = rig.connect().await;
        let control = ConnectionControl::new(server.clone(), controls.clone());
        assert_eq!(control.on_radio(&hint), heard);
        download(&client, &server).await;
        assert_eq!(control.on_radio(&hint), heard);
        assert_eq!(control.stats().is_some(), heard);
    }
}

#[tokio::test]
async fn a_client_driven_control_follows_what_the_receiver_reports() {
    let controls: Arc<Controls> = Arc::new("dcic:guard=off".parse().unwrap());
    let rig = Rig::new(with(&controls));
    let (client, server) = rig.connect().await;
    let control = ConnectionControl::new(server.clone(), controls);
    let mut windows = Vec::new();
    for rate in [Rate::from_mbit_per_s(1), Rate::from_mbit_per_s(4_000)] {
        // The first acknowledgement starts the control, and later ones bring the RTT by which a rate becomes a window.
        download(&client, &server).await;
        assert!(control.on_report(&bw_report::Format::V1.encode(rate)));
        windows.push(control.window().unwrap());
    }
    assert!(windows[0] < windows[1], "{windows:?}");
}

/// Passes on all datagrams between a client and `server`, but for every hundredth of the server's after the first hundred. Returns the
/// address for the client.
async fn lossy_relay(server: SocketAddr) -> SocketAddr {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let [outside, inside] =
        [UdpSocket::bind(anywhere).await.unwrap(), UdpSocket::bind(anywhere).await.unwrap()];
    let address = outside.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down) = (vec![0; 2_000], vec![0; 2_000]);
        let (mut client, mut count) = (anywhere, 0_u64);
        loop {
            tokio::select! {
                received = outside.recv_from(&mut up) => {
                    let (length, from) = received.unwrap();
                    client = from;
                    inside.send_to(&up[..length], server).await.unwrap();
                }
                received = inside.recv_from(&mut down) => {
                    let (length, _) = received.unwrap();
                    count += 1;
                    if count < 100 || count % 100 != 0 {
                        outside.send_to(&down[..length], client).await.unwrap();
                    }
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn losses_are_those_that_quinn_counts_and_the_control_answers_them() {
    let controls: Arc<Controls> = Arc::new("newreno".parse().unwrap());
    let rig = Rig::new(with(&controls));
    let relay = lossy_relay(rig.server.local_addr().unwrap()).await;
    let (client, server) = rig.connect_to(relay).await;
    let control = ConnectionControl::new(server.clone(), controls);
    for _ in 0..4 {
        download(&client, &server).await;
    }
    let (ours, quinns) = (control.stats().unwrap(), server.stats().path);
    assert!(quinns.lost_packets >= 20, "{quinns:?}");
    // A packet that quinn lost before the control started, or that holds only acknowledgements, is in one of the two sums.
    let apart = ours.lost.abs_diff(quinns.lost_packets);
    assert!(apart <= 2 + quinns.lost_packets / 20, "{ours:?}, {quinns:?}");
    let apart = ours.lost_bytes.get().abs_diff(quinns.lost_bytes);
    assert!(apart <= 3_000 + quinns.lost_bytes / 20, "{ours:?}, {quinns:?}");
    assert!(ours.recoveries >= 5 && ours.recoveries <= quinns.congestion_events, "{ours:?}, {quinns:?}");
}

#[test]
fn a_wrong_name_is_refused_with_the_nearest_one() {
    let refused = "cubik".parse::<Controls>().unwrap_err().to_string();
    assert!(refused.contains("cubic"), "{refused}");
}
