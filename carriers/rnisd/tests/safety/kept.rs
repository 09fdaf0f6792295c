//! What survives: `kill -9`, changes of subscriptions, endpoints that do not answer.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::bed::{self, Bed, cell_change};
use crate::support::eventually;
use crate::support::http::{Connection, Reply};
use crate::support::receiver::{Arrival, Behaviour, Receiver};

/// Quick retries, and callbacks to this host.
const QUICK: &str = "[callbacks]\nallow = [\"127.0.0.0/8\"]\nretry = \"20ms\"\nretry_at_most = \"20ms\"\n";

/// Runs in a process of its own, until it is killed: see [`Process`].
#[test]
#[ignore = "run by the tests that kill it"]
fn serve_until_killed() {
    let folder = PathBuf::from(std::env::var_os("RANPACE_TEST_FOLDER").unwrap());
    let more = fs::read_to_string(folder.join("more.toml")).unwrap();
    let config = bed::configuration(&folder, &more);
    let sources = config.source.iter().map(|source| source.open().unwrap()).collect();
    let server = ranpace_rnisd::server::Server::start(config, sources, None).unwrap();
    // Whole, or not there.
    fs::write(folder.join("address.new"), server.address().to_string()).unwrap();
    fs::rename(folder.join("address.new"), folder.join("address")).unwrap();
    loop {
        std::thread::park();
    }
}

/// A server in another process, with its base station.
struct Process {
    folder: PathBuf,
    child: Child,
    station: UnixStream,
}

impl Process {
    fn start(folder: &Path, more: &str) -> Self {
        let data = folder.join("data");
        fs::write(folder.join("more.toml"), format!("data = {data:?}\n{more}")).unwrap();
        // A socket or address that a killed process left would be taken for the new one's.
        for file in ["address", "cell.sock"] {
            let _ = fs::remove_file(folder.join(file));
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kept::serve_until_killed", "--ignored", "--nocapture"])
            .env("RANPACE_TEST_FOLDER", folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut station = bed::station(&folder.join("cell.sock"));
        bed::describe(&mut station);
        let process = Self { folder: folder.to_owned(), child, station };
        eventually("the server knows its users", || {
            (process.ask("GET", "/queries/rab_info", None).json()["cellUserInfo"][0]["ueInfo"]
                .as_array()?
                .len()
                == 2)
                .then_some(())
        });
        process
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let address =
            eventually("the server listens", || fs::read_to_string(self.folder.join("address")).ok());
        let body = body.map(Value::to_string);
        let path = format!("/rni/v2{path}");
        Connection::to(address.parse().unwrap()).ask(method, &path, &[], body.as_ref().map(String::as_bytes))
    }

    fn say(&mut self, line: Value) {
        bed::say(&mut self.station, &line);
    }

    fn hand_over(&mut self, user: u32, to: u32) {
        self.say(bed::handover(user, to));
    }

    /// Subscribes; returns the path.
    fn subscribe(&self, body: &Value) -> String {
        let reply = self.ask("POST", "/subscriptions", Some(body)).expect(201);
        reply.header("location").unwrap().split_once("/rni/v2").unwrap().1.to_owned()
    }

    fn delivery(&self, subscription: &str) -> Value {
        self.ask("GET", &format!("/vendor{subscription}/delivery"), None).expect(200).json()
    }

    /// `kill -9`.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn without_links(reply: &Reply) -> Value {
    let mut value = reply.json();
    value.as_object_mut().unwrap().remove("_links");
    if let Some(uri) = value.get_mut("websockNotifConfig").and_then(|config| config.get_mut("websocketUri")) {
        *uri = json!(uri.as_str().unwrap().rsplit('/').next());
    }
    value
}

#[test]
fn subscriptions_and_what_waits_for_them_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let (healthy, broken) = (Receiver::new(), Receiver::new());
    broken.behave(Behaviour::Status(503));
    // Retries are rare, so that none is given up.
    let more = "[callbacks]\nallow = [\"127.0.0.0/8\"]\nretry = \"1s\"\n";
    let mut process = Process::start(folder.path(), more);
    let good = process.subscribe(&cell_change(&healthy.url("a")));
    let bad = process.subscribe(&cell_change(&broken.url("b")));
    let mut body = cell_change("");
    body["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    let socket = process.subscribe(&body);
    let gone = process.subscribe(&cell_change(&healthy.url("gone")));
    process.ask("DELETE", &gone, None).expect(204);
    process.ask("PUT", &good, Some(&cell_change(&healthy.url("c")))).expect(200);
    let before: Vec<Reply> =
        [&good, &bad, &socket].map(|path| process.ask("GET", path, None).expect(200)).into();
    for to in [1, 0, 1, 0, 1] {
        process.hand_over(0, to);
    }
    let first = healthy.wait("c", 5);
    assert_eq!(first.iter().map(Arrival::number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    broken.wait("b", 1);
    // Longer than what waits is kept after.
    std::thread::sleep(Duration::from_millis(500));
    process.kill();

    let mut process = Process::start(folder.path(), more);
    for (path, before) in [&good, &bad, &socket].into_iter().zip(&before) {
        let after = process.ask("GET", path, None).expect(200);
        assert_eq!(without_links(&after), without_links(before));
        assert_eq!(after.header("etag"), before.header("etag"));
    }
    process.ask("GET", &gone, None).expect(404);
    broken.behave(Behaviour::Status(204));
    let waited = eventually("what waited arrives", || {
        let arrivals = broken.arrivals("b");
        arrivals.iter().any(|one| one.number() == 5).then_some(arrivals)
    });
    for (one, original) in waited.iter().map(|one| (one, &first[one.number() as usize - 1])) {
        assert_eq!(one.body["timeStamp"], original.body["timeStamp"], "number {}", one.number());
    }
    process.hand_over(0, 0);
    for arrivals in [
        healthy.wait("c", 6),
        eventually("a new one arrives", || {
            let arrivals = broken.arrivals("b");
            (arrivals.last()?.number() > 5).then_some(arrivals)
        }),
    ] {
        assert!(arrivals.last().unwrap().number() > 6, "a gap tells that some may have been missed");
    }
    assert_eq!(process.delivery(&socket)["waiting"], 6);
    // A new subscription has a new number, also after one that was deleted.
    let new = process.subscribe(&cell_change(&healthy.url("new")));
    assert!(![&good, &bad, &socket, &gone].contains(&&new));
}

#[test]
fn no_number_comes_twice_with_other_content_and_nothing_old_is_lost_however_often_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::new();
    let more = "[callbacks]\nallow = [\"127.0.0.0/8\"]\nretry = \"100ms\"\n";
    let mut process = Process::start(folder.path(), more);
    let subscription = |path: &str| {
        json!({
            "subscriptionType": "MeasTaSubscription", "callbackReference": receiver.url(path), "filterCriteriaAssoc": {},
        })
    };
    process.subscribe(&subscription("quick"));
    let mut expected = Vec::new();
    let mut count = 0;
    for round in 0..6 {
        // A different moment each time; the last round is not killed.
        let begun = Instant::now();
        let runs = Duration::from_millis(600 + 37 * round);
        while begun.elapsed() < runs {
            count += 1;
            // Steps of 2 Ts, each a number of its own.
            let round_trip_ns = count * 2_000_000_000_u64 / 30_720_000 + 1;
            process
                .say(json!({ "timing_advance": { "cell": 0, "user": 0, "round_trip_ns": round_trip_ns } }));
            if begun.elapsed() + Duration::from_millis(400) < runs {
                expected.push(count);
            }
            std::thread::sleep(Duration::from_millis(4));
        }
        if round < 5 {
            // Of the second kind of rounds, what waits must survive, too.
            receiver.behave(if round % 2 == 0 { Behaviour::Silent } else { Behaviour::Status(204) });
            process.kill();
            process = Process::start(folder.path(), more);
        }
    }
    receiver.behave(Behaviour::Status(204));
    let arrivals = eventually("everything that was said in time arrives", || {
        let arrivals = receiver.arrivals("quick");
        let there = |count: &u64| arrivals.iter().any(|one| one.body["timingAdvance"] == json!(count));
        expected.iter().all(there).then_some(arrivals)
    });
    let mut by_number = BTreeMap::new();
    for arrival in &arrivals {
        let before = by_number.insert(arrival.number(), arrival.body["timingAdvance"].clone());
        assert!(
            before.is_none_or(|before| before == arrival.body["timingAdvance"]),
            "number {}",
            arrival.number()
        );
    }
    let order: Vec<u64> = by_number.values().map(|advance| advance.as_u64().unwrap()).collect();
    assert!(order.is_sorted(), "numbers are in the order of what happened: {order:?}");
    assert!(count < 2_048, "steps are of 2 Ts");
}

#[test]
fn a_subscriber_is_told_what_it_missed() {
    let mut bed = Bed::new(&QUICK.replace("retry = \"20ms\"", "retry = \"20ms\"\nqueue = 5"));
    let receiver = Receiver::new();
    receiver.behave(Behaviour::Status(500));
    let path = bed.subscribe(&receiver.url("a"));
    for _ in 0..4 {
        bed.hand_over(0, 1);
        bed.hand_over(0, 0);
    }
    eventually("three are dropped", || {
        (bed.get(&format!("/vendor{path}/delivery")).json()["missed"] == 3).then_some(())
    });
    receiver.behave(Behaviour::Status(204));
    eventually("the rest arrives", || {
        receiver.arrivals("a").iter().any(|one| one.number() == 8).then_some(())
    });
    let arrivals = receiver.arrivals("a");
    let last: Vec<(u64, u64)> =
        arrivals.iter().rev().take(5).rev().map(|one| (one.number(), one.missed())).collect();
    assert_eq!(last, [(4, 3), (5, 3), (6, 3), (7, 3), (8, 3)]);
    let counts = eventually("all are delivered", || {
        let counts = bed.get(&format!("/vendor{path}/delivery")).expect(200).json();
        (counts["waiting"] == 0).then_some(counts)
    });
    assert_eq!(counts, json!({ "number": 8, "delivered": 5, "missed": 3, "waiting": 0 }));
}

#[test]
fn endpoints_that_never_answer_delay_nobody_else() {
    let mut bed = Bed::new("[callbacks]\nallow = [\"127.0.0.0/8\"]\nanswer_time = \"60s\"\n");
    let (healthy, silent) = (Receiver::new(), Receiver::new());
    silent.behave(Behaviour::Silent);
    for _ in 0..60 {
        bed.subscribe(&silent.url("silent"));
    }
    bed.subscribe(&healthy.url("a"));
    let mut slowest = Duration::ZERO;
    for count in 1..=20 {
        let begun = Instant::now();
        bed.hand_over(0, count % 2);
        healthy.wait("a", count as usize);
        slowest = slowest.max(begun.elapsed());
    }
    // Far below the minute that each of the others takes; the benchmark has the milliseconds.
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    assert_eq!(silent.arrivals("silent").len(), 60, "each has one request that is not answered");
}

#[test]
fn a_changed_subscription_keeps_what_waits() {
    let mut bed = Bed::new(QUICK);
    let (broken, healthy) = (Receiver::new(), Receiver::new());
    broken.behave(Behaviour::Status(500));
    let path = bed.subscribe(&broken.url("old"));
    for to in [1, 0, 1] {
        bed.hand_over(0, to);
    }
    broken.wait("old", 2);
    bed.ask("PUT", &path, Some(&cell_change(&healthy.url("new")))).expect(200);
    bed.hand_over(0, 0);
    let numbers: Vec<u64> = healthy.wait("new", 4).iter().map(Arrival::number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let before = broken.arrivals("old").len();
    bed.hand_over(0, 1);
    healthy.wait("new", 5);
    assert_eq!(broken.arrivals("old").len(), before, "nothing more goes to the old address");
}

#[test]
fn of_changes_of_the_same_revision_one_succeeds() {
    let bed = Bed::new(QUICK);
    let receiver = Receiver::new();
    for _ in 0..5 {
        let path = bed.subscribe(&receiver.url("a"));
        let etag = bed.get(&path).header("etag").unwrap().to_owned();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let change = |number: usize| {
                let body = cell_change(&receiver.url(&number.to_string())).to_string();
                let headers = [("If-Match", etag.as_str())];
                // One of them is an end.
                let (method, body) =
                    if number == 0 { ("DELETE", None) } else { ("PUT", Some(body.as_bytes())) };
                bed.connect().ask(method, &format!("/rni/v2{path}"), &headers, body).status
            };
            let all: Vec<_> = (0..6).map(|number| scope.spawn(move || change(number))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let good = statuses.iter().filter(|status| matches!(status, 200 | 204)).count();
        assert_eq!(good, 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| matches!(status, 200 | 204 | 404 | 412)), "{statuses:?}");
        let is_there = bed.get(&path).status == 200;
        assert_eq!(is_there, statuses[0] != 204, "an ended subscription does not come back");
    }
}

#[test]
fn what_the_configuration_says_of_a_client_also_holds_for_its_older_subscriptions() {
    let key = "[auth]\nkeys = \"FOLDER/public.pem\"\n";
    let callbacks = "[callbacks]\nallow = [\"127.0.0.0/8\"]\n";
    let put =
        |folder: &Path| fs::write(folder.join("public.pem"), include_str!("../data/rsa-public.pem")).unwrap();
    let mut bed = Bed::with(&format!("data = \"FOLDER/data\"\n{key}{callbacks}"), put);
    let receiver = Receiver::new();
    bed.token = Some(crate::auth::rsa_token(json!({ "sub": "app-1" })));
    bed.subscribe(&receiver.url("a"));
    bed.hand_over(0, 1);
    assert_eq!(receiver.wait("a", 1)[0].body["associateId"].as_array().unwrap().len(), 4);
    bed.stop();
    let client = "[[client]]\nid = \"app-1\"\nusers = [\"10.77.0.3/32\"]\nidentifiers = [\"ue-ipv4\"]\n";
    bed.start(&format!("data = \"FOLDER/data\"\n{key}{callbacks}{client}"));
    bed.hand_over(0, 1);
    bed.hand_over(1, 1);
    let arrivals = receiver.wait("a", 2);
    assert_eq!(arrivals.len(), 2);
    assert_eq!(arrivals[1].body["associateId"], json!([{ "type": 1, "value": "10.77.0.3" }]));
}
