//! Clients and servers of the benchmark, each in a process of its own so that its CPU time is known.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};

use crate::rig::PORT;

/// Bytes of a request: how many bytes to send, and at which rate in bytes per second (0: without a limit).
const REQUEST: usize = 16;
/// The answer of a short connection.
const SHORT: u64 = 64;

/// Serves until it is killed.
pub fn serve() {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.set_reuse_address(true).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into()).unwrap();
    listener.listen(4096).unwrap();
    let listener = TcpListener::from(listener);
    // Short connections are answered by this thread, so that their ends cost as little as they can.
    let mut open = Vec::new();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut request = [0; REQUEST];
        if stream.read_exact(&mut request).is_err() {
            continue;
        }
        let number = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap());
        let (bytes, rate) = (number(0), number(8));
        match bytes {
            // It stays open, idle.
            0 => open.push(stream),
            SHORT => {
                // A client that has ended its connection early is counted there.
                let _ = stream.write_all(&[7; SHORT as usize]);
            }
            _ => {
                thread::spawn(move || answer(stream, bytes, rate));
            }
        }
    }
}

fn answer(mut stream: TcpStream, bytes: u64, rate: u64) {
    if rate > 0 {
        ranpace_proxy_options::set_max_pacing_rate(&stream, Some(rate)).unwrap();
    }
    let buffer = vec![7; 1 << 18];
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(buffer.len() as u64) as usize;
        if stream.write_all(&buffer[..piece]).is_err() {
            return;
        }
        left -= piece as u64;
    }
}

fn ask(server: SocketAddr, bytes: u64, rate: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(&[bytes.to_le_bytes(), rate.to_le_bytes()].concat()).unwrap();
    stream
}

/// Downloads so many bytes at this rate, and prints how long it took, in seconds.
pub fn download(server: SocketAddr, bytes: u64, rate: u64) {
    let begun = Instant::now();
    let mut stream = ask(server, bytes, rate);
    let (mut buffer, mut got) = (vec![0; 1 << 18], 0);
    while got < bytes {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "cut after {got} bytes");
        got += read as u64;
    }
    say_and_wait(&format!("{}", begun.elapsed().as_secs_f64()));
}

/// Opens short connections one after another, `threads` at a time, for this time; prints how many were complete, and how many failed.
pub fn connect(server: SocketAddr, threads: usize, time: Duration) {
    let until = Instant::now() + time;
    let all: Vec<_> = (0..threads)
        .map(|_| {
            thread::spawn(move || {
                let (mut complete, mut failed) = (0_u64, 0_u64);
                while Instant::now() < until {
                    match short(server) {
                        Ok(()) => complete += 1,
                        Err(_) => failed += 1,
                    }
                }
                (complete, failed)
            })
        })
        .collect();
    let (mut complete, mut failed) = (0, 0);
    for one in all {
        let (own, other) = one.join().unwrap();
        complete += own;
        failed += other;
    }
    say_and_wait(&format!("{complete} {failed}"));
}

fn short(server: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(&[SHORT.to_le_bytes(), [0; 8]].concat())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer.len() as u64 == SHORT { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// Opens connections from `clients` addresses in turn, says so, and keeps them open until its standard input ends.
pub fn hold(server: SocketAddr, connections: usize, clients: u8) {
    let streams: Vec<TcpStream> = (0..connections)
        .map(|number| {
            let client = [10, 91, 1, 2 + (number % usize::from(clients)) as u8];
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            SockRef::from(&socket).set_tcp_nodelay(true).unwrap();
            socket.bind(&SocketAddr::from((client, 0)).into()).unwrap();
            socket.connect(&server.into()).unwrap();
            let mut stream = TcpStream::from(socket);
            stream.write_all(&[0; REQUEST]).unwrap();
            stream
        })
        .collect();
    say_and_wait("open");
    drop(streams);
}

/// Says something, and waits until nobody wants to know more of this process: its standard input ends.
fn say_and_wait(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
