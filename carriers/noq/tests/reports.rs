//! Reports of a receiver over loopback: what it measures reaches the control of the sender.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use noq::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Runtime as _, ServerConfig, TokioRuntime,
    TransportConfig,
};
use ranpace_noq::reports::{self, Meter, NumberedReport, ReportRefusal};
use ranpace_noq::{ConnectionControl, Controls, RadioHint, bw_report};
use ranpace_phy::LteBandwidth;
use ranpace_rnis::CellInfo;
use ranpace_units::Time;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::time::{Instant, sleep_until};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A connection: the client's end measures with `meter`, and the server's control is one of `controls`.
struct Rig {
    client: Connection,
    server: Connection,
    _endpoints: [Endpoint; 2],
}

impl Rig {
    async fn new(meter: &Meter, controls: Arc<Controls>) -> Self {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate: CertificateDer<'static> = own.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
        let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key).unwrap();
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(controls)
            .datagram_receive_buffer_size(Some(reports::RECEIVE_BUFFER));
        config.transport_config(Arc::new(transport));
        let server = Endpoint::server(config, LOCAL).unwrap();

        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
        let mut transport = TransportConfig::default();
        transport.datagram_send_buffer_size(reports::SEND_BUFFER);
        config.transport_config(Arc::new(transport));
        let socket = TokioRuntime.wrap_udp_socket(UdpSocket::bind(LOCAL).unwrap()).unwrap();
        let client = Endpoint::new_with_abstract_socket(
            EndpointConfig::default(),
            None,
            meter.socket(socket),
            Arc::new(TokioRuntime),
        )
        .unwrap();
        let connecting = client.connect_with(config, server.local_addr().unwrap(), "localhost").unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (to_server, to_client) = tokio::join!(connecting, accepting);
        Self { client: to_server.unwrap(), server: to_client, _endpoints: [client, server] }
    }

    /// Sends 12.5 kB every 10 ms, 10 Mbit/s, from server to client.
    async fn stream(&self, length: Duration) {
        let begin = Instant::now();
        let sending = async {
            let mut stream = self.server.open_uni().await.unwrap();
            for step in 0..length.as_millis() as u32 / 10 {
                sleep_until(begin + Duration::from_millis(10) * step).await;
                stream.write_all(&[0; 12_500]).await.unwrap();
            }
            stream.finish().unwrap();
        };
        let receiving = async { self.client.accept_uni().await.unwrap().read_to_end(100_000_000).await };
        let ((), received) = tokio::join!(sending, receiving);
        received.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_that_a_receiver_measures_reaches_the_sender() {
    let controls: Arc<Controls> = Arc::new("cdbev2".parse().unwrap());
    let meter = Meter::new(&"cdbev2".parse().unwrap()).unwrap();
    assert_eq!(reports::accepts(&meter.offer(), &controls), Ok(()));
    let rig = Rig::new(&meter, controls.clone()).await;

    let reporting = tokio::spawn({
        let (meter, connection) = (meter.clone(), rig.client.clone());
        async move { meter.report(&connection).await }
    });
    let rates = Arc::new(Mutex::new(Vec::new()));
    let listening = tokio::spawn({
        let (control, rates) = (ConnectionControl::new(rig.server.clone(), controls), rates.clone());
        async move {
            let heard = |report: Result<&NumberedReport, ReportRefusal>| {
                let rate = bw_report::Format::ThesisV2.decode(&report.unwrap().report).unwrap();
                rates.lock().unwrap().push(rate.as_f64() / 1e6);
            };
            reports::listen(&control, heard).await
        }
    });
    let length = Duration::from_secs(1);
    rig.stream(length).await;

    let mut rates: Vec<f64> = rates.lock().unwrap().clone();
    let most = length.as_millis() as usize / 10 + 5;
    assert!((20..=most).contains(&rates.len()), "{} reports in {length:?}", rates.len());
    rates.sort_by(f64::total_cmp);
    let middle = rates[rates.len() / 2];
    assert!((5.0..20.0).contains(&middle), "10 Mbit/s arrive, and half of the reports say up to {middle}");
    assert!(meter.sent().packets >= 1_000_000 / 1_500, "{:?}", meter.sent());

    rig.client.close(0_u32.into(), b"");
    assert_eq!(reporting.await.unwrap(), Ok(()));
    listening.await.unwrap();
}

/// Half of a cell of 10 MHz, at a CQI of 10.
fn grant(measured_at: Time) -> RadioHint {
    RadioHint {
        tbs_bits: Some(11_448),
        granted: 25.0,
        most_granted: 25,
        cell: 50,
        unused: 25.0,
        active_users: 1,
        cqi: Some(10),
        mcs: 16,
        layers: 1,
        ..RadioHint::of(CellInfo::lte(1, LteBandwidth::Mhz10), measured_at)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_each_receiver_reach_its_control() {
    // One that only measures, and those whose modem tells them of grants and qualities.
    for (name, length_ms) in
        [("cdbe", 500), ("cqic-s", 500), ("dcic", 500), ("quic-cqic:tbs=1000/4000/9000", 1_200)]
    {
        let controls: Arc<Controls> = Arc::new(name.parse().unwrap());
        let meter = Meter::new(&name.parse().unwrap()).unwrap();
        let rig = Rig::new(&meter, controls.clone()).await;
        let reporting = tokio::spawn({
            let (meter, connection) = (meter.clone(), rig.client.clone());
            async move { meter.report(&connection).await }
        });
        let control = ConnectionControl::new(rig.server.clone(), controls);
        let heard = Arc::new(Mutex::new(0));
        tokio::spawn({
            let (control, heard) = (control.clone(), heard.clone());
            async move {
                reports::listen(&control, |report| {
                    report.unwrap();
                    *heard.lock().unwrap() += 1;
                })
                .await
            }
        });
        let telling = meter.wants_radio().then(|| {
            let meter = meter.clone();
            tokio::spawn(async move {
                loop {
                    meter.on_radio(&grant(meter.time(std::time::Instant::now())));
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        });
        // QUIC-CQIC reports after windows of 500 ms.
        rig.stream(Duration::from_millis(length_ms)).await;
        let heard = *heard.lock().unwrap();
        assert!(heard >= 5, "{name}: {heard} reports");
        let state = control.sample().unwrap().state;
        assert!(state.contains_key("guard_driven"), "{name}: {state:?}");
        rig.client.close(0_u32.into(), b"");
        reporting.await.unwrap().unwrap();
        telling.inspect(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test]
async fn malformed_and_old_frames_are_refused_and_later_reports_heard() {
    let controls: Arc<Controls> = Arc::new("cdbev2".parse().unwrap());
    let meter = Meter::new(&"cdbev2".parse().unwrap()).unwrap();
    let rig = Rig::new(&meter, controls.clone()).await;
    let numbered = |number| NumberedReport {
        number,
        made_at: ranpace_units::Time::from_secs(1),
        report: bw_report::Format::ThesisV2.encode(ranpace_units::Rate::from_mbit_per_s(20)),
    };
    let frames =
        [b"\x01abc".to_vec(), vec![7; 20], numbered(5).encode(), numbered(4).encode(), numbered(6).encode()];
    let count = frames.len();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let control = ConnectionControl::new(rig.server.clone(), controls);
    tokio::spawn(async move {
        reports::listen(&control, |report| told.send(report.map(|report| report.number)).unwrap()).await
    });
    // One at a time: frames may overtake one another.
    let mut found = Vec::new();
    for frame in frames {
        rig.client.send_datagram(frame.into()).unwrap();
        found.push(heard.recv().await.unwrap());
    }
    assert_eq!(found.len(), count);
    assert_eq!(found[0], Err(ReportRefusal::Length { found: 4 }));
    assert_eq!(found[1], Err(ReportRefusal::Version { found: 7 }));
    assert_eq!(found[2], Ok(5));
    assert_eq!(found[3], Err(ReportRefusal::Overtaken { number: 4, newest: 5 }));
    assert_eq!(found[4], Ok(6));
}

#[test]
fn a_control_without_a_receivers_half_says_which_have_one() {
    let refused = Meter::new(&"cubic".parse().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("cubic") && refused.contains("cdbev2"), "{refused}");
}
