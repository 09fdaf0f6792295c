//! Requests over loopback, between h3's client and server in this process.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use h3::error::Code;
use http::{Request, Response, StatusCode};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Endpoint, ServerConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// More than the windows of flow control of a stream, so that bodies wait for their readers.
const BODY: usize = 5 << 20;

type Client = h3::client::SendRequest<h3_noq::Opener, Bytes>;

fn body() -> Bytes {
    (0..BODY as u32).map(|place| (place.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect()
}

fn endpoints() -> (Endpoint, Endpoint) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = own.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Endpoint::server(config, anywhere).unwrap();

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let client = Endpoint::client(anywhere).unwrap();
    client.set_default_client_config(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap())));
    (server, client)
}

/// Answers `/echo` with the request's body, `/file` with [`body`], gives `/half` up halfway, and resets everything else.
async fn serve(server: Endpoint) {
    let connection = server.accept().await.unwrap().await.unwrap();
    let connection =
        h3_noq::Connection::new(connection).receive_at_most(2 * BODY as u64).finish_when_acknowledged();
    let mut http = h3::server::Connection::<_, Bytes>::new(connection).await.unwrap();
    while let Ok(Some(resolver)) = http.accept().await {
        tokio::spawn(async move {
            let (request, mut stream) = resolver.resolve_request().await.unwrap();
            let content = match request.uri().path() {
                "/echo" => {
                    let mut content = BytesMut::new();
                    while let Some(piece) = stream.recv_data().await.unwrap() {
                        content.extend_from_slice(piece.chunk());
                    }
                    content.freeze()
                }
                "/file" => body(),
                "/half" => {
                    let response = Response::builder().status(StatusCode::OK).body(()).unwrap();
                    stream.send_response(response).await.unwrap();
                    stream.send_data(body().slice(..1_000)).await.unwrap();
                    return;
                }
                "/take" => {
                    while let Ok(Some(_)) = stream.recv_data().await {}
                    return;
                }
                _ => {
                    stream.stop_stream(Code::H3_REQUEST_REJECTED);
                    return;
                }
            };
            let response = Response::builder().status(StatusCode::OK).body(()).unwrap();
            stream.send_response(response).await.unwrap();
            stream.send_data(content).await.unwrap();
            stream.finish().await.unwrap();
        });
    }
}

/// A client of [`serve`]; both run until the test ends.
async fn client() -> Client {
    let (server, client) = endpoints();
    let address = server.local_addr().unwrap();
    tokio::spawn(serve(server));
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    let (mut driver, requests) = h3::client::new(h3_noq::Connection::new(connection)).await.unwrap();
    tokio::spawn(async move {
        // It also keeps the endpoint.
        let _endpoint = client;
        poll_fn(|cx| driver.poll_close(cx)).await
    });
    requests
}

async fn fetch(
    requests: &mut Client,
    path: &str,
    sent: Option<Bytes>,
) -> Result<Bytes, h3::error::StreamError> {
    let request = Request::post(format!("https://localhost{path}")).body(()).unwrap();
    let (mut sending, mut receiving) = requests.send_request(request).await?.split();
    let send = async {
        if let Some(content) = sent {
            sending.send_data(content).await.unwrap();
        }
        sending.finish().await.unwrap();
    };
    let receive = async {
        let response = receiving.recv_response().await?;
        assert_eq!(response.status(), StatusCode::OK);
        let mut content = BytesMut::new();
        while let Some(piece) = receiving.recv_data().await? {
            content.extend_from_slice(piece.chunk());
        }
        Ok(content.freeze())
    };
    let ((), received) = tokio::join!(send, receive);
    received
}

#[tokio::test]
async fn bodies_arrive_as_they_were_sent_both_ways() {
    let mut requests = client().await;
    assert!(fetch(&mut requests, "/file", None).await.unwrap() == body());
    assert!(fetch(&mut requests, "/echo", Some(body())).await.unwrap() == body());
}

#[tokio::test]
async fn requests_share_a_connection() {
    let requests = client().await;
    let fetches: Vec<_> = (0..20)
        .map(|_| {
            let mut requests = requests.clone();
            tokio::spawn(async move { fetch(&mut requests, "/file", None).await })
        })
        .collect();
    for fetched in fetches {
        assert_eq!(fetched.await.unwrap().unwrap().len(), BODY);
    }
}

#[tokio::test]
async fn a_reset_is_an_error_of_its_request_alone() {
    let mut requests = client().await;
    let error = fetch(&mut requests, "/no", None).await.unwrap_err();
    assert!(error.to_string().contains("H3_REQUEST_REJECTED"), "{error}");
    assert_eq!(fetch(&mut requests, "/file", None).await.unwrap().len(), BODY);
}

#[tokio::test]
async fn a_body_that_is_given_up_halfway_is_not_taken_for_whole() {
    let mut requests = client().await;
    let error = fetch(&mut requests, "/half", None).await.unwrap_err();
    assert!(error.to_string().contains("H3_REQUEST_CANCELLED"), "{error}");
    assert_eq!(fetch(&mut requests, "/file", None).await.unwrap().len(), BODY);
}

#[tokio::test]
async fn a_stream_on_which_too_much_comes_is_stopped() {
    let mut requests = client().await;
    let request = Request::post("https://localhost/take").body(()).unwrap();
    let mut stream = requests.send_request(request).await.unwrap();
    let mut sent = 0;
    let error = loop {
        match stream.send_data(body()).await {
            Ok(()) => sent += BODY,
            Err(error) => break error,
        }
        assert!(sent < 10 * BODY, "the server takes it");
    };
    assert!(error.to_string().contains("H3_EXCESSIVE_LOAD"), "{error}");
    assert_eq!(fetch(&mut requests, "/file", None).await.unwrap().len(), BODY);
}
