//! Measures the costs of the RNIS server's interface: queries, callbacks of which some are never answered, and memory. The figures are in
//! docs/performance.md.
//!
//! `cargo run --release -p ranpace-benches --example rnis_server [queries | callbacks | memory]`; all of it takes a minute. The load
//! comes from this process, over loopback; the server's own threads are pinned to one core for the queries.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[cfg(target_os = "linux")]
fn main() {
    rnis_server::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: needs Linux");
}

#[cfg(target_os = "linux")]
mod rnis_server {
    use std::fs;
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::{Duration, Instant};

    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;
    use ranpace_rnis::lines::Reader;
    use ranpace_rnisd::config::Config;
    use ranpace_rnisd::metrics::SourceLabels;
    use ranpace_rnisd::server::Server;
    use ranpace_rnisd::tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use ranpace_rnisd::tokio::net::TcpListener;
    use ranpace_rnisd::tokio::runtime;
    use ranpace_rnisd::tokio::spawn;
    use ranpace_units::Time;

    /// In one cell; as many as a busy one has.
    const USERS: u32 = 50;
    /// Offered in each second, and for how long.
    const QUERIES: u64 = 5_000;
    const SECONDS: u64 = 5;
    const CLIENTS: u64 = 8;
    /// Callbacks, and those of them that are never answered.
    const SUBSCRIPTIONS: usize = 1_000;
    const SILENT: usize = 100;
    /// Notifications to each subscription, one in each interval.
    const EVENTS: usize = 50;
    const INTERVAL: Duration = Duration::from_millis(200);

    pub fn main() {
        let wanted = std::env::args().nth(1);
        let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
        if is_wanted("queries") {
            queries();
        }
        if is_wanted("callbacks") {
            println!(
                "callbacks: from the handover to its arrival at an endpoint that answers, {EVENTS} handovers"
            );
            callbacks(SUBSCRIPTIONS - SILENT, 0);
            callbacks(SUBSCRIPTIONS - SILENT, SILENT);
        }
        if is_wanted("memory") {
            memory();
        }
    }

    /// A server without a source: this program says what happens.
    struct Cell {
        server: Server,
        reader: Reader,
        labels: SourceLabels,
    }

    impl Cell {
        fn start() -> Self {
            let text = "listen = \"127.0.0.1:0\"\n[callbacks]\nallow = [\"127.0.0.0/8\"]\n\
                        [limits]\nconnections_per_address = 4096\n[subscriptions]\nmost_per_client = 10000\n";
            let config = Config::parse("benchmark", text).unwrap();
            let server = Server::start(config, Vec::new(), None).unwrap();
            let labels = SourceLabels { source: "benchmark".to_owned() };
            let mut cell = Self { server, reader: Reader::default(), labels };
            for number in 0..2 {
                cell.say(&format!(
                    "{{\"cell\":{{\"cell\":{number},\"ecgi\":{{\"cellId\":\"{number}\",\"plmn\":{{\"mcc\":\"001\",\"mnc\":\"01\"}}}},\
                     \"technology\":\"lte\",\"prbs\":100}}}}"
                ));
            }
            for user in 0..USERS {
                cell.say(&format!(
                    "{{\"user\":{{\"user\":{user},\"ids\":[{{\"type\":1,\"value\":\"10.0.0.{}\"}}]}}}}",
                    user + 1
                ));
                cell.say(&format!("{{\"event\":{{\"cell\":0,\"user\":{user},\"kind\":\"attached\"}}}}"));
                cell.say(&format!(
                    "{{\"event\":{{\"cell\":0,\"user\":{user},\"kind\":\"bearer_set_up\",\"bearer\":0}}}}"
                ));
            }
            cell
        }

        fn say(&mut self, line: &str) {
            let core = Arc::clone(self.server.core());
            let mut now = |_, _: Option<u64>| ranpace_rnisd::clock::now().unwrap_or(Time::ZERO);
            let labels = &self.labels;
            self.reader
                .read(line.as_bytes(), &mut now, &mut |update| core.update(0, labels, update))
                .unwrap();
        }

        fn hand_over(&mut self, to: usize) {
            let from = 1 - to;
            self.say(&format!(
                "{{\"event\":{{\"cell\":{to},\"user\":0,\"kind\":\"handover_completed\",\"from\":{from}}}}}"
            ));
        }

        fn subscribe(&self, stream: &mut TcpStream, callback: &str) {
            let body = format!(
                "{{\"subscriptionType\":\"CellChangeSubscription\",\"callbackReference\":\"{callback}\",\"filterCriteriaAssocHo\":{{}}}}"
            );
            let length = body.len();
            let head = format!(
                "POST /rni/v2/subscriptions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            assert_eq!(ask(stream, &(head + &body)), 201);
        }
    }

    /// Sends a request, and reads the answer; its status.
    fn ask(stream: &mut TcpStream, request: &str) -> u16 {
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut chunk = [0; 1 << 14];
        loop {
            let length = stream.read(&mut chunk).unwrap();
            assert!(length > 0, "the server closed the connection");
            answer.extend_from_slice(&chunk[..length]);
            if let Some(whole) = length_of(&answer)
                && answer.len() >= whole
            {
                return String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
            }
        }
    }

    /// Bytes of the message that begins here; `None` before its head is whole.
    fn length_of(message: &[u8]) -> Option<usize> {
        let head = message.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&message[..head]).to_ascii_lowercase();
        let body = text.split("content-length: ").nth(1)?.split("\r\n").next()?;
        Some(head + body.parse::<usize>().ok()?)
    }

    fn print_percentiles(what: &str, mut times: Vec<Duration>) {
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "  {what}: p50 {:.2} ms, p99 {:.2} ms, at most {:.2} ms, of {}",
            at(0.5),
            at(0.99),
            at(1.0),
            times.len()
        );
    }

    /// CPU time of the server's threads.
    fn server_time() -> Duration {
        let mut ticks = 0;
        for task in fs::read_dir("/proc/self/task").unwrap() {
            let path = task.unwrap().path();
            let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
            let Ok(stat) = fs::read_to_string(path.join("stat")) else { continue };
            if name.starts_with("rnis") {
                // Behind the name, which may have spaces: user and system time are the 12th and 13th fields.
                let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
                ticks += fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
            }
        }
        // A tick is a hundredth of a second on every Linux that Rust runs on.
        Duration::from_millis(10 * ticks)
    }

    fn pin(cores: impl IntoIterator<Item = usize>) {
        let mut set = CpuSet::new();
        cores.into_iter().for_each(|core| set.set(core).unwrap());
        sched_setaffinity(Pid::from_raw(0), &set).unwrap();
    }

    fn queries() {
        let cores = thread::available_parallelism().unwrap().get();
        // Threads inherit it.
        pin([0]);
        let cell = Cell::start();
        pin(if cores > 1 { 1..cores } else { 0..1 });
        let address = cell.server.address();
        println!(
            "queries: {QUERIES} a second for {SECONDS} s over {CLIENTS} connections, {USERS} users, server on one core"
        );
        for (name, path) in [
            ("rab_info of one user", "/queries/rab_info?ue_ipv4_address=10.0.0.7"),
            ("rab_info of all", "/queries/rab_info"),
            ("layer2_meas of one user", "/queries/layer2_meas?ue_ipv4_address=10.0.0.7"),
        ] {
            let (used, begun) = (server_time(), Instant::now());
            let request = format!("GET /rni/v2{path} HTTP/1.1\r\nHost: a\r\n\r\n");
            let all: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let request = request.clone();
                    thread::spawn(move || {
                        let mut stream = connect(address);
                        let mut times = Vec::new();
                        let interval = Duration::from_secs(1) * CLIENTS as u32 / QUERIES as u32;
                        let first = begun + interval * client as u32 / CLIENTS as u32;
                        for number in 0..QUERIES * SECONDS / CLIENTS {
                            // From the time when it was due: a server that falls behind does not make the load smaller.
                            let due = first + interval * number as u32;
                            thread::sleep(due.saturating_duration_since(Instant::now()));
                            assert_eq!(ask(&mut stream, &request), 200);
                            times.push(due.elapsed());
                        }
                        times
                    })
                })
                .collect();
            let times: Vec<Duration> = all.into_iter().flat_map(|one| one.join().unwrap()).collect();
            let per_query = (server_time() - used).as_secs_f64() * 1e6 / times.len() as f64;
            let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
            print_percentiles(&format!("{name}, {rate:.0} a second, {per_query:.0} us of CPU each"), times);
        }
        pin(0..cores);
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Arrivals at an endpoint.
    type Arrivals = Arc<Mutex<Vec<Instant>>>;

    /// An endpoint that takes every notification, and answers if it shall.
    fn endpoint(runtime: &runtime::Runtime, answers: bool) -> (SocketAddr, Arrivals) {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let arrivals = Arrivals::default();
        let own = Arc::clone(&arrivals);
        runtime.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let arrivals = Arc::clone(&own);
                spawn(async move {
                    let mut message = Vec::new();
                    while stream.read_buf(&mut message).await.is_ok_and(|length| length > 0) {
                        if length_of(&message).is_some_and(|length| message.len() >= length) {
                            arrivals.lock().unwrap().push(Instant::now());
                            message.clear();
                            if answers && stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.is_err()
                            {
                                return;
                            }
                        }
                    }
                });
            }
        });
        (address, arrivals)
    }

    fn callbacks(answering: usize, silent: usize) {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (good, arrivals) = endpoint(&runtime, true);
        let (bad, _) = endpoint(&runtime, false);
        let mut cell = Cell::start();
        let mut stream = connect(cell.server.address());
        for address in std::iter::repeat_n(good, answering).chain(std::iter::repeat_n(bad, silent)) {
            cell.subscribe(&mut stream, &format!("http://{address}/a"));
        }
        let mut times = Vec::new();
        // The first two make the connections.
        for event in 0..EVENTS + 2 {
            arrivals.lock().unwrap().clear();
            let begun = Instant::now();
            cell.hand_over(1 - event % 2);
            while arrivals.lock().unwrap().len() < answering {
                assert!(begun.elapsed() < Duration::from_secs(60), "a notification did not arrive");
                thread::sleep(Duration::from_millis(1));
            }
            if event >= 2 {
                times.extend(arrivals.lock().unwrap().iter().map(|at| *at - begun));
            }
            thread::sleep(INTERVAL.saturating_sub(begun.elapsed()));
        }
        print_percentiles(&format!("{answering} that answer beside {silent} that never do"), times);
        drop(cell);
        runtime.shutdown_background();
    }

    /// Resident memory of this process, in bytes.
    fn resident() -> usize {
        let pages = fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    fn memory() {
        const CONNECTIONS: usize = 400;
        const MORE: usize = 5_000;
        let cell = Cell::start();
        let address = cell.server.address();
        let mut stream = connect(address);
        ask(&mut stream, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
        let before = resident();
        // Each has had an answer, and waits.
        let idle: Vec<TcpStream> = (0..CONNECTIONS)
            .map(|_| {
                let mut stream = connect(address);
                ask(&mut stream, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
                stream
            })
            .collect();
        let each =
            |before: usize, count: usize| resident().saturating_sub(before) as f64 / count as f64 / 1024.0;
        println!("memory: {:.1} KiB of an idle connection", each(before, CONNECTIONS));
        drop(idle);
        let before = resident();
        let mut stream = connect(address);
        for _ in 0..MORE {
            cell.subscribe(&mut stream, "http://127.0.0.1:9/a");
        }
        println!("  {:.1} KiB of a subscription with a callback that has not been used", each(before, MORE));
    }
}
