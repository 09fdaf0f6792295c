//! Tokens and certificates: who may ask, and what they see.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};

use crate::support::bed::{Bed, cell_change};
use crate::support::eventually;
use crate::support::http::Connection;
use crate::support::receiver::Receiver;

const RSA: &str = include_str!("../data/rsa.pem");
const RSA_PUBLIC: &str = include_str!("../data/rsa-public.pem");
const ALL: &str = "rnis.queries rnis.subscriptions rnis.vendor";

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// Claims of a good token, with these in the place of its own; null removes one.
fn claims(other: Value) -> Value {
    let mut claims = json!({
        "iss": "https://issuer.example", "aud": "rnis", "sub": "app-1", "scope": ALL, "exp": now() + 60,
    });
    for (name, value) in other.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn rsa_key() -> EncodingKey {
    EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap()
}

pub fn rsa_token(other: Value) -> String {
    encode(&Header::new(Algorithm::RS256), &claims(other), &rsa_key()).unwrap()
}

/// A key of Ed25519, and its entry in a key set.
fn ed_key(id: &str) -> (EncodingKey, Value) {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let x = base64(Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap().public_key());
    (EncodingKey::from_ed_der(der.as_ref()), json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": x }))
}

fn ed_token(key: &EncodingKey, id: Option<&str>, other: Value) -> String {
    let head = Header { kid: id.map(str::to_owned), ..Header::new(Algorithm::EdDSA) };
    encode(&head, &claims(other), key).unwrap()
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

const WITH_RSA: &str = "[auth]\nkeys = \"FOLDER/public.pem\"\nissuer = \"https://issuer.example\"\naudience = \"rnis\"\n[callbacks]\nallow = [\"127.0.0.0/8\"]\n";

fn put_public_key(folder: &Path) {
    std::fs::write(folder.join("public.pem"), RSA_PUBLIC).unwrap();
}

#[test]
fn requests_need_a_valid_token() {
    let mut bed = Bed::with(WITH_RSA, put_public_key);
    let good = rsa_token(json!({}));
    let (head, rest) = good.split_once('.').unwrap();
    let (payload, signature) = rest.split_once('.').unwrap();
    let none = base64(br#"{"alg":"none","typ":"JWT"}"#);
    let hmac = |secret: &[u8]| {
        encode(&Header::new(Algorithm::HS256), &claims(json!({})), &EncodingKey::from_secret(secret)).unwrap()
    };
    let other_payload = base64(claims(json!({ "sub": "app-2" })).to_string());
    let critical = base64(br#"{"alg":"RS256","crit":["exp"]}"#);
    let (stranger, _) = ed_key("stranger");
    for (case, token, is_good) in [
        ("good", good.clone(), true),
        ("a list of audiences", rsa_token(json!({ "aud": ["a", "rnis"] })), true),
        ("scopes as a list", rsa_token(json!({ "scope": null, "scp": ["rnis.queries"] })), true),
        ("a fraction in its end", rsa_token(json!({ "exp": now() as f64 + 60.5 })), true),
        ("none at all", String::new(), false),
        ("no token", "rnis".to_owned(), false),
        ("expired", rsa_token(json!({ "exp": now() - 60 })), false),
        ("without an end", rsa_token(json!({ "exp": null })), false),
        ("not valid yet", rsa_token(json!({ "nbf": now() + 60 })), false),
        ("another issuer", rsa_token(json!({ "iss": "https://other.example" })), false),
        ("without an issuer", rsa_token(json!({ "iss": null })), false),
        ("another audience", rsa_token(json!({ "aud": "other" })), false),
        ("without an audience", rsa_token(json!({ "aud": null })), false),
        ("without a subject", rsa_token(json!({ "sub": null })), false),
        ("networks that are none", rsa_token(json!({ "rni_users": ["everybody"] })), false),
        ("algorithm none", format!("{none}.{payload}."), false),
        ("algorithm none with a signature", format!("{none}.{payload}.{signature}"), false),
        ("no signature", format!("{head}.{payload}."), false),
        ("another payload", format!("{head}.{other_payload}.{signature}"), false),
        ("the public key as a secret", hmac(RSA_PUBLIC.as_bytes()), false),
        ("the public key as a secret, trimmed", hmac(RSA_PUBLIC.trim_end().as_bytes()), false),
        ("an empty secret", hmac(b""), false),
        ("another key", ed_token(&stranger, None, json!({})), false),
        ("an extension that must be understood", format!("{critical}.{payload}.{signature}"), false),
        ("very long", "a".repeat(20_000), false),
    ] {
        bed.token = Some(token).filter(|token| !token.is_empty());
        let reply = bed.get("/queries/rab_info");
        assert_eq!(reply.status, if is_good { 200 } else { 401 }, "{case}");
        if !is_good {
            let reply = reply.expect(401);
            assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer"), "{case}");
        }
    }
    for scheme in ["Basic YTpi", "Bearer", "Bearer ", "bearer\tx"] {
        let reply = bed.connect().ask("GET", "/rni/v2/queries/rab_info", &[("Authorization", scheme)], None);
        assert_eq!(reply.expect(401).header("www-authenticate").map(|text| &text[..6]), Some("Bearer"));
    }
    // A token in the address is a header field's work everywhere but for events.
    bed.token = None;
    bed.get(&format!("/queries/rab_info?access_token={good}")).expect(401);
    // Operators' addresses name nobody.
    assert_eq!(bed.connect().ask("GET", "/health", &[], None).status, 200);
}

#[test]
fn each_part_of_the_interface_needs_its_scope() {
    let mut bed = Bed::with(WITH_RSA, put_public_key);
    for (scope, allowed) in [
        ("rnis.queries", [200, 403, 403]),
        ("rnis.subscriptions", [403, 200, 403]),
        ("rnis.vendor", [403, 403, 200]),
        ("rnis.queries rnis.vendor", [200, 403, 200]),
        ("rnis", [403, 403, 403]),
        ("", [403, 403, 403]),
    ] {
        bed.token = Some(rsa_token(json!({ "scope": scope })));
        for (path, status) in ["/queries/rab_info", "/subscriptions", "/vendor/users"].iter().zip(allowed) {
            let reply = bed.get(path).expect(status);
            if status == 403 {
                assert!(reply.header("www-authenticate").unwrap().contains("insufficient_scope"), "{path}");
            }
        }
    }
}

#[test]
fn clients_see_neither_subscriptions_of_others_nor_whether_there_are_any() {
    let mut bed = Bed::with(WITH_RSA, put_public_key);
    let receiver = Receiver::new();
    bed.token = Some(rsa_token(json!({ "sub": "app-1" })));
    let path = bed.subscribe(&receiver.url("a"));
    let etag = bed.get(&path).expect(200).header("etag").unwrap().to_owned();
    bed.token = Some(rsa_token(json!({ "sub": "app-2" })));
    let unknown = |path: &str, text: Vec<u8>| {
        String::from_utf8(text).unwrap().replace(path.rsplit('/').next().unwrap(), "N")
    };
    let nothing = "/subscriptions/999";
    for (method, body) in [("GET", None), ("PUT", Some(cell_change(&receiver.url("b")))), ("DELETE", None)] {
        let theirs = bed.ask(method, &path, body.as_ref()).expect(404);
        let none = bed.ask(method, nothing, body.as_ref()).expect(404);
        assert_eq!(unknown(&path, theirs.body), unknown(nothing, none.body), "{method}");
    }
    let token = format!("Bearer {}", bed.token.clone().unwrap());
    let headers = [("Authorization", token.as_str()), ("If-Match", etag.as_str())];
    bed.connect().ask("DELETE", &format!("/rni/v2{path}"), &headers, None).expect(404);
    bed.get(&format!("/vendor{path}/delivery")).expect(404);
    assert_eq!(bed.get("/subscriptions").expect(200).json()["_links"].get("subscription"), None);
    bed.token = Some(rsa_token(json!({ "sub": "app-1" })));
    bed.get(&path).expect(200);
}

/// All texts in a value that look like identifiers of users.
fn identifiers(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let known =
        ["10.77.0.2", "10.77.0.3", "fd00::2", "fd00::3", "192.0.2.2", "192.0.2.3", "\"100\"", "\"101\""];
    known.iter().filter(|id| text.contains(**id)).map(|id| id.trim_matches('"').to_owned()).collect()
}

#[test]
fn users_appear_under_permitted_identifiers_only() {
    let clients = "[[client]]\nid = \"by-config\"\nusers = [\"10.77.0.2/32\"]\nidentifiers = [\"ue-ipv4\"]\n";
    let mut bed = Bed::with(&format!("{WITH_RSA}{clients}"), put_public_key);
    let receiver = Receiver::new();
    let restricted = json!({ "sub": "by-token", "rni_users": ["10.77.0.2/32"], "rni_identifiers": [1] });
    // What the configuration says of a client prevails over its token.
    for claims in [
        restricted,
        json!({ "sub": "by-config", "rni_users": ["0.0.0.0/0"], "rni_identifiers": [1, 2, 3, 4] }),
    ] {
        let name = claims["sub"].as_str().unwrap().to_owned();
        bed.token = Some(rsa_token(claims));
        for path in ["/queries/rab_info", "/vendor/users", "/vendor/tti_meas", "/queries/layer2_meas"] {
            let seen = identifiers(&bed.get(path).expect(200).json());
            assert!(seen.iter().all(|id| id == "10.77.0.2"), "{name} {path}: {seen:?}");
        }
        assert_eq!(identifiers(&bed.get("/queries/rab_info").expect(200).json()), ["10.77.0.2"]);
        // A filter by a hidden identifier finds nothing, although the user is there; the answer is that about a user who is not.
        for (hidden, nobody) in [
            ("ue_ipv4_address=10.77.0.3", "ue_ipv4_address=10.99.0.3"),
            ("ue_ipv6_address=fd00::2", "ue_ipv6_address=fd00::99"),
            ("nated_ip_address=192.0.2.2", "nated_ip_address=192.0.2.99"),
            ("gtp_teid=100", "gtp_teid=999"),
        ] {
            for query in ["/queries/rab_info", "/vendor/tti_meas", "/queries/layer2_meas"] {
                let [hidden, nobody] = [hidden, nobody].map(|filter| {
                    let mut answer = bed.get(&format!("{query}?{filter}")).expect(200).json();
                    if let Some(answer) = answer.as_object_mut() {
                        answer.remove("requestId");
                        answer.remove("timeStamp");
                    }
                    answer
                });
                assert_eq!(hidden, nobody, "{name} {query}");
            }
            let s1 = |filter: &str| bed.get(&format!("/queries/s1_bearer_info?{filter}")).expect(404).body;
            assert_eq!(s1(hidden), s1(nobody));
        }
        // Notifications: of a user who may be seen, under the identifier that may be; selected by hidden ones, none.
        let all = format!("all-{name}");
        bed.subscribe(&receiver.url(&all));
        for (filter, id) in [(2, "fd00::2"), (3, "192.0.2.2"), (4, "100"), (1, "10.77.0.3")] {
            let mut body = cell_change(&receiver.url(&format!("hidden-{name}")));
            body["filterCriteriaAssocHo"]["associateId"] = json!([{ "type": filter, "value": id }]);
            bed.ask("POST", "/subscriptions", Some(&body)).expect(201);
        }
        // The first subscription is notified last of all, because its user is the last to move.
        bed.hand_over(1, 1);
        bed.hand_over(0, 1);
        let arrived = receiver.wait(&all, 1);
        assert_eq!(arrived.len(), 1);
        assert_eq!(arrived[0].body["associateId"], json!([{ "type": 1, "value": "10.77.0.2" }]));
        bed.hand_over(1, 0);
        bed.hand_over(0, 0);
        receiver.wait(&all, 2);
        assert_eq!(receiver.arrivals(&format!("hidden-{name}")).len(), 0);
    }
}

#[test]
fn tunnels_are_hidden_from_those_who_may_not_see_tunnel_identifiers() {
    let mut bed = Bed::with(WITH_RSA, put_public_key);
    let receiver = Receiver::new();
    let subscription = json!({
        "subscriptionType": "S1BearerSubscription", "eventType": [1], "S1BearerSubscriptionCriteria": {},
    });
    for (sub, kinds) in [("may", json!([1, 4])), ("may-not", json!([1]))] {
        bed.token = Some(rsa_token(json!({ "sub": sub, "rni_identifiers": kinds })));
        let mut body = subscription.clone();
        body["callbackReference"] = json!(receiver.url(sub));
        bed.ask("POST", "/subscriptions", Some(&body)).expect(201);
    }
    let mut publish = |teid: &str| {
        let end = json!({ "ipAddress": "198.51.100.1", "tunnelId": teid });
        let happened = json!({
            "notificationType": "S1BearerNotification", "s1Event": 1,
            "s1UeInfo": {
                "associateId": [{ "type": 1, "value": "10.77.0.2" }],
                "ecgi": [crate::support::bed::ecgi(0)],
                "s1BearerInfo": [{ "erabId": 5, "enbInfo": end, "sGwInfo": end }],
            },
        });
        bed.say(json!({ "notification": happened }));
    };
    publish("7001");
    publish("7002");
    let arrived = receiver.wait("may", 2);
    assert!(arrived[0].body.to_string().contains("7001"), "{}", arrived[0].body);
    assert_eq!(receiver.arrivals("may-not").len(), 0);
    bed.get("/queries/s1_bearer_info").expect(404);
    bed.token = Some(rsa_token(json!({ "sub": "may", "rni_identifiers": [1, 4] })));
    assert!(bed.get("/queries/s1_bearer_info").expect(200).json().to_string().contains("7002"));
}

/// A server of a key set, which can be changed.
fn key_server() -> (String, Arc<Mutex<(Value, usize)>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let set = Arc::new(Mutex::new((json!({ "keys": [] }), 0)));
    let own = Arc::clone(&set);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut connection = Connection::of(stream.unwrap());
            if connection.head().is_some() {
                let mut set = own.lock().unwrap();
                set.1 += 1;
                let body = set.0.to_string();
                connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
            }
        }
    });
    (url, set)
}

#[test]
fn a_key_set_is_fetched_when_a_token_names_a_new_key_and_not_for_every_bad_one() {
    let (url, set) = key_server();
    let ((old, old_entry), (new, mut new_entry)) = (ed_key("old"), ed_key("new"));
    set.lock().unwrap().0 = json!({ "keys": [old_entry] });
    let mut bed = Bed::new(&format!("[auth]\njwks = \"{url}\"\n"));
    // Many at once wait for one request.
    bed.token = Some(ed_token(&old, Some("old"), json!({})));
    std::thread::scope(|scope| {
        let ask = || bed.get("/queries/rab_info").expect(200);
        let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        all.into_iter().for_each(|one| drop(one.join().unwrap()));
    });
    assert_eq!(set.lock().unwrap().1, 1);
    // Tokens of unknown keys do not make the server ask again and again.
    let (stranger, _) = ed_key("stranger");
    for id in 0..20 {
        bed.token = Some(ed_token(&stranger, Some(&format!("stranger {id}")), json!({})));
        bed.get("/queries/rab_info").expect(401);
    }
    assert_eq!(set.lock().unwrap().1, 1);
    // A withdrawn key is forgotten with the next set, which comes within the ten seconds that are between two requests.
    new_entry["use"] = json!("sig");
    new_entry["alg"] = json!("EdDSA");
    set.lock().unwrap().0 =
        json!({ "keys": [new_entry, { "kty": "oct", "kid": "shared", "k": base64(b"secret") }] });
    bed.token = Some(ed_token(&new, Some("new"), json!({})));
    eventually("the new key is known", || (bed.get("/queries/rab_info").status == 200).then_some(()));
    assert_eq!(set.lock().unwrap().1, 2);
    bed.token = Some(ed_token(&old, Some("old"), json!({})));
    bed.get("/queries/rab_info").expect(401);
    let head = Header { kid: Some("shared".to_owned()), ..Header::new(Algorithm::HS256) };
    bed.token = Some(encode(&head, &claims(json!({})), &EncodingKey::from_secret(b"secret")).unwrap());
    bed.get("/queries/rab_info").expect(401);
}

#[test]
fn keys_are_read_from_a_file_and_unusable_files_are_refused() {
    let (key, entry) = ed_key("file");
    let (hidden, mut encryption) = ed_key("encryption");
    encryption["use"] = json!("enc");
    let put = |folder: &Path| {
        std::fs::write(folder.join("keys.json"), json!({ "keys": [entry, encryption] }).to_string()).unwrap();
    };
    let mut bed = Bed::with("[auth]\nkeys = \"FOLDER/keys.json\"\n", put);
    for (key, id, status) in [
        (&key, Some("file"), 200),
        (&key, None, 200),
        (&key, Some("other"), 401),
        (&hidden, Some("encryption"), 401),
        (&hidden, None, 401),
    ] {
        bed.token = Some(ed_token(key, id, json!({})));
        assert_eq!(bed.get("/queries/rab_info").status, status, "{id:?}");
    }
    for (content, expected) in [
        ("", "PEM"),
        ("{\"keys\":[]}", "found none"),
        ("{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}", "found none"),
        ("{", "EOF"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, content).unwrap();
        let config = format!("[auth]\nkeys = {file:?}\n");
        let config = crate::support::bed::configuration(folder.path(), &config);
        let error = ranpace_rnisd::server::Server::start(config, Vec::new(), None).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("keys"), "{content:?}: {error}");
    }
}

#[test]
fn events_end_with_the_token_that_opened_them() {
    let bed = Bed::with(WITH_RSA, put_public_key);
    let token = rsa_token(json!({ "exp": now() + 2 }));
    let mut connection = bed.connect();
    connection.send(format!("GET /rni/v2/vendor/events?access_token={token} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let (line, headers) = connection.head().unwrap();
    assert!(line.contains("200"), "{line}");
    assert!(headers.iter().any(|(_, value)| value == "text/event-stream"));
    let begun = std::time::Instant::now();
    // The end of a body of chunks.
    assert!(connection.body(&headers).is_some());
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// A file of the tests' data.
fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

/// Asks over TLS; the status, or why there is none.
fn ask_encrypted(address: SocketAddr, client: Option<&str>, path: &str) -> Result<(u16, String), String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("ca.pem")).unwrap()).unwrap();
    let builder =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let certificate = CertificateDer::from_pem_file(data(&format!("{client}.pem"))).unwrap();
            let key = PrivateKeyDer::from_pem_file(data(&format!("{client}.key"))).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    write!(stream, "GET /rni/v2{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    // Servers may close without an alert; what came before counts.
    let read = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.map(|status| (status, text)).ok_or_else(|| format!("{read:?}"))
}

#[test]
fn client_certificates_name_their_clients() {
    let put = |folder: &Path| {
        for file in ["ca.pem", "server.pem", "server.key"] {
            std::fs::copy(data(file), folder.join(file)).unwrap();
        }
    };
    let config = "[tls]\ncertificate = \"FOLDER/server.pem\"\nkey = \"FOLDER/server.key\"\nclient_ca = \"FOLDER/ca.pem\"\nrequire_client_certificate = true\n\
                  [[client]]\nid = \"app.example\"\nusers = [\"10.77.0.3/32\"]\nidentifiers = [\"ue-ipv4\"]\n";
    let bed = Bed::with(config, put);
    let ask = |client: Option<&str>| ask_encrypted(bed.address(), client, "/queries/rab_info");
    let (status, text) = ask(Some("client")).unwrap();
    assert_eq!(status, 200);
    assert_eq!(identifiers(&json!(text)), ["10.77.0.3"]);
    assert!(ask(None).is_err(), "a certificate is required");
    assert!(ask(Some("forged")).is_err(), "it is signed by somebody else");
    // Who speaks no TLS gets nothing, and the server goes on.
    let mut plain = bed.connect();
    plain.send("GET /rni/v2/queries/rab_info HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut answer = Vec::new();
    // A reset is an end, too.
    let _ = plain.stream().read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    ask(Some("client")).unwrap();
}
