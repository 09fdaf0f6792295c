//! Notifications: what happens in the cells, as callbacks and over web sockets.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Message, WebSocket};

use crate::subscriptions::in_seconds;
use crate::support::bed::{Bed, cell_change, ecgi, ids};
use crate::support::receiver::Receiver;

/// Callbacks to this host.
const LOCAL: &str = "[callbacks]\nallow = [\"127.0.0.0/8\"]\n";

fn subscribe(bed: &Bed, receiver: &Receiver, path: &str, kind: &str, member: &str, filter: Value) -> Value {
    let mut body =
        json!({ "subscriptionType": kind, "callbackReference": receiver.url(path), member: filter });
    if kind == "S1BearerSubscription" {
        body["eventType"] = json!([1, 2, 3]);
    }
    bed.ask("POST", "/subscriptions", Some(&body)).expect(201).json()
}

/// The notifications at a path, without the members that differ from run to run.
fn bodies(receiver: &Receiver, path: &str, count: usize) -> Vec<Value> {
    let strip = |mut body: Value| {
        let object = body.as_object_mut().unwrap();
        assert!(object["_links"]["subscription"]["href"].is_string(), "{object:?}");
        object.remove("_links");
        if let Some(stamp) = object.remove("timeStamp") {
            assert!(stamp["seconds"].is_u64() && stamp["nanoSeconds"].is_u64(), "{stamp}");
        }
        body
    };
    receiver.wait(path, count).into_iter().map(|arrival| strip(arrival.body)).collect()
}

fn event(cell: u32, user: u32, kind: &str) -> Value {
    json!({ "event": { "cell": cell, "user": user, "kind": kind } })
}

#[test]
fn an_identifier_of_the_reserved_type_is_allowed_and_nobodys() {
    let (mut bed, receiver) = (Bed::new(LOCAL), Receiver::new());
    let kind = "CellChangeSubscription";
    let reserved = json!({ "associateId": [{ "type": 0, "value": "10.77.0.2" }] });
    subscribe(&bed, &receiver, "reserved", kind, "filterCriteriaAssocHo", reserved);
    subscribe(&bed, &receiver, "all", kind, "filterCriteriaAssocHo", json!({}));
    bed.hand_over(0, 1);
    receiver.wait("all", 1);
    assert_eq!(receiver.arrivals("reserved").len(), 0);
}

#[test]
fn stages_of_a_handover_are_notified_as_the_filter_says() {
    let (mut bed, receiver) = (Bed::new(LOCAL), Receiver::new());
    let kind = "CellChangeSubscription";
    let all = subscribe(
        &bed,
        &receiver,
        "all",
        kind,
        "filterCriteriaAssocHo",
        json!({ "hoStatus": [1, 2, 3, 4, 5] }),
    );
    subscribe(&bed, &receiver, "done", kind, "filterCriteriaAssocHo", json!({}));
    subscribe(&bed, &receiver, "other", kind, "filterCriteriaAssocHo", json!({ "associateId": [ids(1)[0]] }));
    subscribe(&bed, &receiver, "elsewhere", kind, "filterCriteriaAssocHo", json!({ "ecgi": [ecgi(7)] }));
    let change = |status: u8| {
        json!({ "notificationType": "CellChangeNotification", "associateId": ids(0), "hoStatus": status,
            "srcEcgi": ecgi(0), "trgEcgi": [ecgi(1)] })
    };
    // What no event says comes as a notification.
    bed.say(json!({ "notification": change(1) }));
    bed.say(event(0, 0, "detached"));
    bed.say(json!({ "event": { "cell": 0, "user": 0, "kind": "handover_begun", "to": 1 } }));
    bed.say(event(1, 0, "attached"));
    bed.say(json!({ "event": { "cell": 1, "user": 0, "kind": "handover_completed", "from": 0 } }));
    bed.hand_over(1, 1);
    assert_eq!(bodies(&receiver, "all", 4)[..3], [1, 2, 3].map(change));
    assert_eq!(bodies(&receiver, "done", 2)[0], change(3));
    assert_eq!(bodies(&receiver, "other", 1)[0]["associateId"], ids(1));
    assert_eq!(receiver.arrivals("elsewhere").len(), 0);
    let arrived = receiver.arrivals("all");
    assert_eq!(arrived.iter().map(|one| one.number()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(arrived[0].body["_links"]["subscription"]["href"], all["_links"]["self"]["href"]);
    assert_eq!(arrived[0].header("content-type"), Some("application/json"));
}

#[test]
fn bearers_are_set_up_changed_and_released_and_a_handover_keeps_them() {
    let (mut bed, receiver) = (Bed::new(LOCAL), Receiver::new());
    let filter = "filterCriteriaQci";
    subscribe(&bed, &receiver, "est", "RabEstSubscription", filter, json!({ "qci": 1 }));
    subscribe(&bed, &receiver, "mod", "RabModSubscription", filter, json!({ "qci": 1, "erabId": 6 }));
    subscribe(&bed, &receiver, "rel", "RabRelSubscription", filter, json!({ "qci": 1, "erabId": 6 }));
    subscribe(&bed, &receiver, "rel-default", "RabRelSubscription", filter, json!({ "qci": 9, "erabId": 5 }));
    let bearer = |cell: u32, rate: u64| json!({ "bearer": { "cell": cell, "user": 0, "bearer": 1, "qci": 1, "guaranteed": [rate, 1], "maximum": [rate, 2] } });
    let qos = |rate: u64| json!({ "qci": 1, "qosInformation": { "erabGbrDl": rate, "erabGbrUl": 1, "erabMbrDl": rate, "erabMbrUl": 2 } });
    bed.say(bearer(0, 10));
    bed.say(bearer(0, 20));
    // Of a handover it is told after the user has left.
    bed.say(event(0, 0, "detached"));
    bed.say(json!({ "event": { "cell": 0, "user": 0, "kind": "handover_begun", "to": 1 } }));
    std::thread::sleep(Duration::from_millis(200));
    bed.say(event(1, 0, "attached"));
    bed.say(json!({ "event": { "cell": 1, "user": 0, "kind": "bearer_set_up", "bearer": 0 } }));
    bed.say(json!({ "event": { "cell": 1, "user": 0, "kind": "handover_completed", "from": 0 } }));
    bed.say(bearer(1, 30));
    let expected = |kind: &str, cell: u32, rate: u64| json!({ "notificationType": kind, "associateId": ids(0), "ecgi": ecgi(cell), "erabId": 6, "erabQosParameters": qos(rate) });
    assert_eq!(bodies(&receiver, "est", 1), [expected("RabEstNotification", 0, 10)]);
    let modified = [expected("RabModNotification", 0, 20), expected("RabModNotification", 1, 30)];
    assert_eq!(bodies(&receiver, "mod", 2), modified);
    assert_eq!(receiver.arrivals("rel-default").len(), 0, "the handover released nothing");
    // One is released by itself, the other with its user.
    bed.say(json!({ "bearer": { "cell": 1, "user": 0, "bearer": 1, "qci": 1, "present": false } }));
    bed.say(event(1, 0, "detached"));
    let released = |erab: u32| json!({ "notificationType": "RabRelNotification", "associateId": ids(0), "ecgi": ecgi(1), "erabReleaseInfo": { "erabId": erab } });
    assert_eq!(bodies(&receiver, "rel", 1), [released(6)]);
    assert_eq!(bodies(&receiver, "rel-default", 1), [released(5)]);
}

#[test]
fn measurement_reports_of_lte_and_nr_and_timing_advance_are_notified() {
    let (mut bed, receiver) = (Bed::new(LOCAL), Receiver::new());
    for cell in [2, 3] {
        bed.say(json!({ "cell": { "cell": cell, "ecgi": ecgi(cell), "technology": "nr", "prbs": 106, "spacing_hz": 30000 } }));
    }
    bed.say(event(2, 1, "attached"));
    subscribe(
        &bed,
        &receiver,
        "lte",
        "MeasRepUeSubscription",
        "filterCriteriaAssocTri",
        json!({ "trigger": [1] }),
    );
    let network = json!({ "mcc": "001", "mnc": "01" });
    let nr = json!({ "nrcgi": [{ "nrcellId": "0000003", "plmn": network }] });
    let kind = "NrMeasRepUeSubscription";
    subscribe(&bed, &receiver, "nr", kind, "filterCriteriaNrMrs", nr.clone());
    let old = json!({ "subscriptionType": kind, "callbackReference": receiver.url("nr-2.1.1"), "filterCriteriaNrMrs": nr });
    let body = old.to_string();
    let headers = [("Content-Type", "application/json"), ("Version", "2.1.1")];
    bed.connect().ask("POST", "/rni/v2/subscriptions", &headers, Some(body.as_bytes())).expect(201);
    subscribe(
        &bed,
        &receiver,
        "ta",
        "MeasTaSubscription",
        "filterCriteriaAssoc",
        json!({ "ecgi": [ecgi(0)] }),
    );
    let signal = |cell: u32, user: u32| {
        json!({ "signal": { "cell": cell, "user": user, "rsrp_dbm": -90.5, "rsrq_db": -10.0, "sinr_db": 12.0,
            "neighbours": [{ "ecgi": ecgi(1), "rsrp_dbm": -99.0, "rsrq_db": -12.0 },
                { "ecgi": ecgi(3), "rsrp_dbm": -101.0, "rsrq_db": -13.0 }] } })
    };
    bed.say(signal(0, 0));
    bed.say(signal(2, 1));
    // 2000 ns there and back.
    bed.say(json!({ "timing_advance": { "cell": 0, "user": 0, "round_trip_ns": 2000 } }));
    // TS 36.133, 9.1.4 and 9.1.7: RSRP of -140 dBm is 1, RSRQ of -19.5 dB is 1, in steps of 1 and 0.5 dB. RS-SINR, 9.1.17: -23 dB is 1.
    let report = &bodies(&receiver, "lte", 1)[0];
    assert_eq!(
        (&report["rsrp"], &report["rsrq"], &report["sinr"]),
        (&json!(50), &json!(20), &json!(71)),
        "{report}"
    );
    assert_eq!((&report["trigger"], &report["ecgi"]), (&json!(1), &ecgi(0)));
    let neighbour = &report["eutranNeighbourCellMeasInfo"][0];
    assert_eq!(
        (&neighbour["ecgi"], &neighbour["rsrp"], &neighbour["rsrq"]),
        (&ecgi(1), &json!(42), &json!(16)),
        "{report}"
    );
    let in_nr = json!([{ "nrNCellInfo": [{ "nrNCellGId": "0000004", "nrNCellPlmn": [network] }], "nrNCellRsrp": 56, "nrNCellRsrq": 61 }]);
    assert_eq!(report["newRadioMeasNeiInfo"], in_nr);
    // TS 38.133, 10.1.6 and 10.1.11: -156 dBm is 1, -43 dB is 1.
    let report = &bodies(&receiver, "nr", 1)[0];
    let serving = &report["servCellMeasInfo"][0];
    assert_eq!(serving["nrcgi"]["nrcellId"], "0000003");
    let measured = &serving["sCell"]["measQuantityResultsSsbCell"];
    assert_eq!((&measured["rsrp"], &measured["rsrq"]), (&json!(66), &json!(67)), "{report}");
    assert_eq!(report["triggerNr"], 1);
    assert_eq!(report["associateId"], ids(1));
    let neighbour =
        |name: Value| json!([{ "nrcgi": name, "measQuantityResultsSsbCell": { "rsrp": 56, "rsrq": 61 } }]);
    let global = json!({ "nrcellId": "0000004", "plmn": network });
    assert_eq!(report["nrNeighCellMeasInfo"], neighbour(global));
    assert!(
        report.get("eutraNeighCellMeasInfo").is_none(),
        "the standard allows neighbours of one kind: {report}"
    );
    // V2.1.1 names neighbours by their identity alone, and its notifications have no links.
    assert_eq!(receiver.wait("nr-2.1.1", 1)[0].body["nrNeighCellMeasInfo"], neighbour(json!("0000004")));
    // TS 36.133, 9.1.10: in steps of 2 Ts; Ts is 32.6 ns.
    let advance = &bodies(&receiver, "ta", 1)[0];
    assert_eq!((&advance["timingAdvance"], &advance["ecgi"]), (&json!(30), &ecgi(0)), "{advance}");
}

#[test]
fn changes_of_carriers_and_bearers_on_s1_are_notified() {
    let (mut bed, receiver) = (Bed::new(LOCAL), Receiver::new());
    subscribe(
        &bed,
        &receiver,
        "ca",
        "CaReConfSubscription",
        "filterCriteriaAssoc",
        json!({ "associateId": [ids(0)[1]] }),
    );
    subscribe(
        &bed,
        &receiver,
        "s1",
        "S1BearerSubscription",
        "S1BearerSubscriptionCriteria",
        json!({ "erabId": [5] }),
    );
    let one = json!([ids(0)[0]]);
    bed.say(json!({ "notification": { "notificationType": "CaReConfNotification", "associateId": one, "ecgi": ecgi(0),
        "secondaryCellAdd": [{ "ecgi": ecgi(1) }] } }));
    let end = json!({ "ipAddress": "198.51.100.1", "tunnelId": "7" });
    for (number, which) in [(1, 5), (1, 6), (3, 5)] {
        bed.say(json!({ "notification": { "notificationType": "S1BearerNotification", "s1Event": number,
            "s1UeInfo": { "associateId": one, "ecgi": [ecgi(0)],
                "s1BearerInfo": [{ "erabId": which, "enbInfo": end, "sGwInfo": end }] } } }));
    }
    // Of nobody known, of nobody, and of what is not about a user: left out, and the stream goes on.
    for wrong in [
        json!({ "notificationType": "CaReconfNotification", "associateId": [{ "type": 1, "value": "192.0.2.99" }], "ecgi": ecgi(0) }),
        json!({ "notificationType": "CaReconfNotification", "ecgi": ecgi(0) }),
        json!({ "notificationType": "TestNotification" }),
    ] {
        bed.say(json!({ "notification": wrong }));
    }
    // All identifiers of the user are in it, whichever the source named.
    let change = json!({ "notificationType": "CaReconfNotification", "associateId": ids(0), "ecgi": ecgi(0),
        "secondaryCellAdd": [{ "ecgi": ecgi(1) }] });
    assert_eq!(bodies(&receiver, "ca", 1), [change]);
    let s1 = bodies(&receiver, "s1", 2);
    assert_eq!((&s1[0]["s1Event"], &s1[1]["s1Event"]), (&json!(1), &json!(3)));
    assert_eq!(s1[0]["s1UeInfo"]["s1BearerInfo"][0]["enbInfo"], end);
    bed.hand_over(0, 1);
    assert!(bed.metric("rnis_updates_total") > 10.0);
    assert_eq!(receiver.arrivals("ca").len(), 1);
}

#[test]
fn a_subscription_is_told_of_its_end_and_ends() {
    let (mut bed, receiver) =
        (Bed::new(&format!("{LOCAL}[subscriptions]\nexpiry_notice = \"30s\"\n")), Receiver::new());
    let mut body = cell_change(&receiver.url("one"));
    let deadline = in_seconds(3);
    body["expiryDeadline"] = deadline.clone();
    let made = bed.ask("POST", "/subscriptions", Some(&body)).expect(201);
    let path = bed.path_of(&made);
    let notice = &receiver.wait("one", 1)[0].body;
    assert_eq!(
        (&notice["notificationType"], &notice["expiryDeadline"]),
        (&json!("ExpiryNotification"), &deadline)
    );
    assert_eq!(notice["_links"]["subscription"]["href"], made.json()["_links"]["self"]["href"]);
    // It is notified until then.
    bed.hand_over(0, 1);
    assert_eq!(receiver.wait("one", 2)[1].kind(), "CellChangeNotification");
    let begun = Instant::now();
    while bed.get(&path).status != 404 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it did not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    bed.hand_over(0, 0);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(receiver.arrivals("one").len(), 2, "nothing after its end, and one notice only");
}

#[test]
fn a_later_deadline_is_announced_again() {
    let (bed, receiver) = (Bed::new(LOCAL), Receiver::new());
    let mut body = cell_change(&receiver.url("one"));
    body["expiryDeadline"] = in_seconds(20);
    let path = bed.path_of(&bed.ask("POST", "/subscriptions", Some(&body)).expect(201));
    receiver.wait("one", 1);
    body["expiryDeadline"] = in_seconds(25);
    bed.ask("PUT", &path, Some(&body)).expect(200);
    let arrived = receiver.wait("one", 2);
    assert_eq!(
        (arrived[1].kind(), &arrived[1].body["expiryDeadline"]),
        ("ExpiryNotification", &body["expiryDeadline"])
    );
}

#[test]
fn a_test_notification_is_sent_on_request() {
    let (bed, receiver) = (Bed::new(LOCAL), Receiver::new());
    let mut body = cell_change(&receiver.url("test"));
    body["requestTestNotification"] = json!(true);
    let made = bed.ask("POST", "/subscriptions", Some(&body)).expect(201).json();
    let arrived = &receiver.wait("test", 1)[0].body;
    let link = json!({ "subscription": { "href": made["_links"]["self"]["href"] } });
    assert_eq!(arrived, &json!({ "notificationType": "TestNotification", "_links": link }));
}

#[test]
fn notifications_of_the_older_version_have_no_links_but_that_of_an_expiry() {
    let (mut bed, receiver) = (Bed::new(&format!("version = \"2.1.1\"\n{LOCAL}")), Receiver::new());
    let mut body = cell_change(&receiver.url("old"));
    body["expiryDeadline"] = in_seconds(20);
    let made = bed.ask("POST", "/subscriptions", Some(&body)).expect(201).json();
    let expiry = &receiver.wait("old", 1)[0].body;
    assert_eq!(expiry["_links"], json!({ "self": made["_links"]["self"]["href"] }));
    bed.hand_over(0, 1);
    let change = receiver.wait("old", 2);
    assert!(change[1].body.get("_links").is_none(), "{}", change[1].body);
    assert_eq!(change[1].header("version"), Some("2.1.1"));
}

/// Opens the web socket of a subscription to handovers.
fn socket(bed: &Bed, protocol: Option<&str>) -> (String, WebSocket<TcpStream>) {
    let mut body = cell_change("");
    body.as_object_mut().unwrap().remove("callbackReference");
    body["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    let reply = bed.ask("POST", "/subscriptions", Some(&body)).expect(201);
    let url = reply.json()["websockNotifConfig"]["websocketUri"].as_str().unwrap().to_owned();
    assert!(url.starts_with("ws://"), "{url}");
    (bed.path_of(&reply), connect(bed, &url, protocol))
}

fn connect(bed: &Bed, url: &str, protocol: Option<&str>) -> WebSocket<TcpStream> {
    let mut request = url.into_client_request().unwrap();
    if let Some(protocol) = protocol {
        request.headers_mut().insert("Sec-WebSocket-Protocol", protocol.parse().unwrap());
    }
    let stream = TcpStream::connect(bed.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    tungstenite::client(request, stream).unwrap().0
}

fn next(socket: &mut WebSocket<TcpStream>) -> Value {
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn notifications_come_over_a_web_socket_until_the_subscription_ends() {
    let mut bed = Bed::new("");
    let (path, mut socket) = socket(&bed, None);
    for to in [1, 0] {
        bed.hand_over(0, to);
        let change = next(&mut socket);
        assert_eq!((&change["hoStatus"], &change["trgEcgi"][0]), (&json!(3), &ecgi(to)));
    }
    // A change of the subscription keeps the connection.
    let mut body = cell_change("");
    body.as_object_mut().unwrap().remove("callbackReference");
    body["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    body["expiryDeadline"] = in_seconds(600);
    bed.ask("PUT", &path, Some(&body)).expect(200);
    bed.hand_over(0, 1);
    assert_eq!(next(&mut socket)["trgEcgi"][0], ecgi(1));
    bed.ask("DELETE", &path, None).expect(204);
    assert!(matches!(socket.read(), Ok(Message::Close(_))));
}

#[test]
fn numbered_notifications_come_again_until_they_are_acknowledged() {
    let mut bed = Bed::new("");
    let (path, mut first) = socket(&bed, Some("ranpace.numbered.v1"));
    let url = bed.get(&path).json()["websockNotifConfig"]["websocketUri"].as_str().unwrap().to_owned();
    for to in [1, 0, 1] {
        bed.hand_over(0, to);
    }
    let numbers: Vec<Value> = (0..3).map(|_| next(&mut first)["number"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    first.send(Message::text("{\"ack\":1}")).unwrap();
    // The rest of them was not acknowledged before the connection broke.
    while bed.get(&format!("/vendor{path}/delivery")).expect(200).json()["waiting"] != 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(first);
    let mut second = connect(&bed, &url, Some("ranpace.numbered.v1"));
    let again = next(&mut second);
    assert_eq!(
        (&again["number"], &again["missed"], &again["notification"]["trgEcgi"][0]),
        (&json!(2), &json!(0), &ecgi(0))
    );
    assert_eq!(next(&mut second)["number"], 3);
}

#[test]
fn web_sockets_and_events_end_when_the_server_stops() {
    let mut bed = Bed::new("");
    let (_, mut socket) = socket(&bed, None);
    let mut events = bed.connect();
    events.send("GET /rni/v2/vendor/events?period_ms=100 HTTP/1.1\r\nHost: server\r\n\r\n");
    let (status, _) = events.head().unwrap();
    assert!(status.contains("200"), "{status}");
    let begun = Instant::now();
    bed.stop();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(matches!(socket.read(), Ok(Message::Close(_))));
}
