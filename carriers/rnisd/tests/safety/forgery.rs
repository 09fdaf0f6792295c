//! The server asks only addresses that it may ask, however they are written.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::support::bed::{Bed, cell_change};
use crate::support::receiver::{Behaviour, Receiver};
use crate::support::{eventually, namespace};

#[test]
fn callbacks_to_addresses_that_are_not_public_are_refused() {
    let bed = Bed::new("");
    for (status, callback) in [
        (422, "http://127.0.0.1:8080/a"),
        (422, "https://127.0.0.1/a"),
        (422, "http://127.1/a"),
        (422, "http://2130706433/a"),
        (422, "http://0x7f000001/a"),
        (422, "http://0177.0.0.1/a"),
        (422, "http://%31%32%37.0.0.1/a"),
        (422, "http://\u{ff11}27.0.0.1/a"),
        (422, "http://0.0.0.0/a"),
        (422, "http://0/a"),
        (422, "http://[::1]/a"),
        (422, "http://[::]/a"),
        (422, "http://[::ffff:127.0.0.1]/a"),
        (422, "http://[::ffff:7f00:1]/a"),
        (422, "http://[::127.0.0.1]/a"),
        (422, "http://[64:ff9b::7f00:1]/a"),
        (422, "http://[2002:7f00:1::]/a"),
        (422, "http://[fe80::1]/a"),
        (422, "http://[fd00::1]/a"),
        (422, "http://169.254.169.254/latest/meta-data/"),
        (422, "http://[::ffff:169.254.169.254]/latest/meta-data/"),
        (422, "http://10.0.0.1/a"),
        (422, "http://172.16.0.1/a"),
        (422, "http://192.168.0.1/a"),
        (422, "http://100.64.0.1/a"),
        (422, "http://224.0.0.1/a"),
        (422, "http://255.255.255.255/a"),
        (422, "http://localhost:8080/a"),
        (422, "http://LOCALHOST/a"),
        (422, "http://user:password@9.9.9.9/a"),
        (422, "ftp://9.9.9.9/a"),
        (422, "file:///etc/passwd"),
        (422, "unix:/run/docker.sock"),
        (400, "//127.0.0.1/a"),
        (400, "callback"),
        (400, "http://"),
        (400, "http://[::1/a"),
    ] {
        let reply = bed.ask("POST", "/subscriptions", Some(&cell_change(callback)));
        assert_eq!(reply.status, status, "{callback}: {}", String::from_utf8_lossy(&reply.body));
        assert!(
            reply.expect(status).json()["detail"].as_str().unwrap().contains("callbackReference"),
            "{callback}"
        );
    }
    // Datagrams of the feed likewise.
    let records = json!({
        "subscriptionType": "VendorTtiMeasSubscription", "callbackReference": "udp://127.0.0.1:9",
        "transport": "udp-binary", "period_us": 1000,
    });
    let refused = bed.ask("POST", "/subscriptions", Some(&records)).expect(422).json();
    assert!(refused["detail"].as_str().unwrap().contains("neither public"), "{refused}");
    // The address of a web socket is the server's to say.
    let mut body = cell_change("");
    body["websockNotifConfig"] =
        json!({ "requestWebsocketUri": true, "websocketUri": "ws://169.254.169.254/" });
    let made = bed.ask("POST", "/subscriptions", Some(&body)).expect(201).json();
    let own = format!("ws://{}/rni/v2/vendor/notifications/", bed.address());
    assert!(made["websockNotifConfig"]["websocketUri"].as_str().unwrap().starts_with(&own), "{made}");
    body["websockNotifConfig"] = json!({ "websocketUri": "ws://169.254.169.254/" });
    bed.ask("POST", "/subscriptions", Some(&body)).expect(400);
}

#[test]
fn only_the_networks_of_the_configuration_are_allowed() {
    let bed = Bed::new("[callbacks]\nallow = [\"127.0.0.2/32\", \"fd00:1::/32\"]\n");
    for (callback, status) in [
        ("http://127.0.0.2:9/a", 201),
        ("http://[::ffff:127.0.0.2]:9/a", 201),
        ("http://127.0.0.1:9/a", 422),
        ("http://127.0.0.3:9/a", 422),
        ("http://[fd00:1::1]:9/a", 201),
        ("http://[fd00:2::1]:9/a", 422),
    ] {
        let reply = bed.ask("POST", "/subscriptions", Some(&cell_change(callback)));
        assert_eq!(reply.status, status, "{callback}");
    }
    // A change is checked like a new one.
    let path = bed.subscribe("http://127.0.0.2:9/a");
    bed.ask("PUT", &path, Some(&cell_change("http://127.0.0.1:9/a"))).expect(422);
    assert_eq!(bed.get(&path).expect(200).json()["callbackReference"], "http://127.0.0.2:9/a");
}

#[test]
fn redirections_are_not_followed() {
    let mut bed = Bed::new("[callbacks]\nallow = [\"127.0.0.2/32\"]\nretry = \"10ms\"\n");
    let (asked, hidden) = (Receiver::at("127.0.0.2:0".parse().unwrap()), Receiver::new());
    asked.behave(Behaviour::Redirect(hidden.url("hidden")));
    bed.subscribe(&asked.url("a"));
    bed.hand_over(0, 1);
    let first = asked.wait("a", 3);
    assert!(first.iter().all(|arrival| arrival.number() == 1), "it is tried again");
    assert_eq!(hidden.connections(), 0);
    asked.behave(Behaviour::Status(200));
    eventually("it is delivered", || {
        (bed.metric("rnis_deliveries_total") > first.len() as f64).then_some(())
    });
    assert_eq!(hidden.connections(), 0);
}

/// Answers every question for an IPv4 address with these, at the port of DNS in this namespace.
fn name_server(addresses: Arc<Mutex<Vec<Ipv4Addr>>>) {
    let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            let asked = &question[..length];
            // The question is a name, a type and a class; RFC 1035, 4.1.
            let end = 12 + asked[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
            let is_ipv4 = asked[end - 4..end - 2] == [0, 1];
            let answers = if is_ipv4 { addresses.lock().unwrap().clone() } else { Vec::new() };
            let mut answer =
                [&asked[..2], &[0x81, 0x80, 0, 1, 0, answers.len() as u8, 0, 0, 0, 0], &asked[12..end]]
                    .concat();
            for address in answers {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                answer.extend(address.octets());
            }
            socket.send_to(&answer, from).unwrap();
        }
    });
}

/// Runs inside namespaces of its own: see [`names_are_checked_at_each_connection`].
#[test]
#[ignore = "run by names_are_checked_at_each_connection"]
fn inside_with_a_name_server() {
    let local = Ipv4Addr::LOCALHOST;
    let public = Ipv4Addr::new(9, 9, 9, 9);
    let names = Arc::new(Mutex::new(vec![local]));
    name_server(Arc::clone(&names));
    let mut bed = Bed::new("[callbacks]\nretry = \"20ms\"\nretry_at_most = \"20ms\"\n");
    let (wanted, hidden) =
        (Receiver::at("9.9.9.9:8080".parse().unwrap()), Receiver::at("127.0.0.1:8080".parse().unwrap()));
    let callback = "http://callback.example:8080/a";
    let ask = || bed.ask("POST", "/subscriptions", Some(&cell_change(callback)));
    for forbidden in [[127, 0, 0, 1], [169, 254, 169, 254], [10, 0, 0, 1], [0, 0, 0, 0]] {
        *names.lock().unwrap() = vec![forbidden.into()];
        ask().expect(422);
    }
    *names.lock().unwrap() = vec![public];
    ask().expect(201);
    bed.hand_over(0, 1);
    wanted.wait("a", 1);
    // The name now means this host, and the connection that there was ends.
    *names.lock().unwrap() = vec![local];
    wanted.behave(Behaviour::HangUp);
    let before = wanted.connections();
    bed.hand_over(0, 0);
    eventually("the delivery is tried again and again", || {
        (bed.metric("rnis_deliveries_total") >= 5.0).then_some(())
    });
    assert_eq!((hidden.connections(), wanted.connections()), (0, before));
    // Of several addresses, only the permitted are used.
    *names.lock().unwrap() = vec![local, public];
    wanted.behave(Behaviour::Status(204));
    eventually("the notification arrives", || {
        wanted.arrivals("a").iter().any(|one| one.number() == 2).then_some(())
    });
    assert_eq!(hidden.connections(), 0);
}

#[test]
fn names_are_checked_at_each_connection() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let resolver = write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n");
    let switch = write("nsswitch.conf", "hosts: files dns\n");
    let prepare = format!(
        "ip address add 9.9.9.9/32 dev lo
         mount --bind {} /etc/resolv.conf
         touch /etc/nsswitch.conf
         mount --bind {} /etc/nsswitch.conf",
        resolver.display(),
        switch.display()
    );
    namespace::run("forgery::inside_with_a_name_server", &prepare);
}
