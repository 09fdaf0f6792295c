//! An update without loss: a new process takes the place of a running one.
//!
//! The new process sets itself up, listens at `SOCKET.new` beside the control socket, and asks the old one to hand over. The old one
//! connects to it and sends, a message each, its devices and listeners, the connections that wait for an answer, and those that pass;
//! sockets travel with the messages (`SCM_RIGHTS`). Until the new one has said that it goes on, the old one touches none of them, and
//! keeps everything if that does not come. What was split already stays with the old process until it has ended.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ranpace_units::Time;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use socket2::{SockRef, Socket};

use crate::client;
use crate::config::{self, Config};
use crate::devices::Devices;
use crate::error::ProxyError;
use crate::handshakes::{Handshake, State};
use crate::syn::Ends;

/// Form of the messages: processes of other versions may have another one.
const FORM: u32 = 2;
/// Longest wait for the other process, which has nothing else to do. Ours.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest message, and most descriptors of one.
const LARGEST: usize = 64 << 10;
const MOST_DESCRIPTORS: usize = 4;
/// Connections that pass, in one message. Ours.
const PASSING_AT_ONCE: usize = 256;

/// What comes, in this order.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// The proxy; with two devices if it holds SYNs, and its listeners.
    Proxy { form: u32, name: String, number: u32, port: u16, handshake: config::Handshake, rules: String },
    /// Connections whose SYNs pass, and until when.
    Passing(Vec<(Ends, u64)>),
    /// A connection whose SYN is held or was released; with the leg of the server.
    Held { ends: Ends, syn: Vec<u8>, number: u32, released: bool, since: u64 },
    /// A connection that was accepted first; with the leg of the server, and of the user.
    Accepted { ends: Ends, since: u64 },
    /// All has been said.
    End,
}

/// What a process has of another one's.
pub struct Inheritance {
    /// Of an exact handshake.
    pub devices: Option<Devices>,
    /// The listeners.
    pub listeners: Vec<Socket>,
    /// The text of the table that is installed.
    pub rules: String,
    /// Connections that wait for an answer.
    pub handshakes: Vec<Handshake>,
    /// Connections that pass.
    pub passing: Vec<(Ends, Time)>,
    stream: OwnedFd,
}

/// Where the new process listens.
fn meeting(control_socket: &Path) -> PathBuf {
    let mut name = control_socket.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

fn set_patience(socket: &OwnedFd) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))
}

impl Inheritance {
    /// Asks the running proxy of this configuration to hand over; `None` if none runs.
    ///
    /// # Errors
    ///
    /// It refuses, hangs, or has another name, number, port or kind of handshake.
    pub fn ask(config: &Config) -> Result<Option<Self>, ProxyError> {
        let path = meeting(&config.control.socket);
        let failed = || ProxyError::system::<io::Error>(format!("listen at {}", path.display()));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed()(error)),
            _ => {}
        }
        let listener = socket().map_err(failed())?;
        let address = SocketAddrUnix::new(&path).map_err(io::Error::from).map_err(failed())?;
        rustix::net::bind(&listener, &address).map_err(io::Error::from).map_err(failed())?;
        let _removed = Removed(&path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed())?;
        rustix::net::listen(&listener, 1).map_err(io::Error::from).map_err(failed())?;
        SockRef::from(&listener).set_nonblocking(true).map_err(failed())?;
        let control_socket = config.control.socket.clone();
        let asking = std::thread::spawn(move || client::ask_hand_over(&control_socket));
        let until = Instant::now() + PATIENCE;
        let stream = loop {
            match rustix::net::accept_with(&listener, SocketFlags::CLOEXEC) {
                Ok(stream) => break stream,
                Err(_) if asking.is_finished() => {
                    return match asking.join() {
                        Ok(Err(ProxyError::NotRunning { .. })) => Ok(None),
                        Ok(Err(error)) => Err(error),
                        Ok(Ok(())) | Err(_) => Err(broken("it did not come to where it was asked to")),
                    };
                }
                Err(_) if Instant::now() > until => return Err(broken("it did not answer: does it hang?")),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        set_patience(&stream).map_err(failed())?;
        Self::receive(stream, config).map(Some)
    }

    fn receive(stream: OwnedFd, config: &Config) -> Result<Self, ProxyError> {
        let (first, descriptors) = receive(&stream)?;
        let Message::Proxy { form: FORM, name, number, port, handshake, rules } = first else {
            return Err(broken(
                "it is of another version: use `ranpace proxy drain --wait`, and start this one then",
            ));
        };
        if (name.as_str(), number, port, handshake)
            != (config.name.as_str(), config.number, config.port, config.handshake)
        {
            return Err(broken(&format!(
                "it has name {name:?}, number {number}, port {port} and handshake {handshake:?}, which must stay as they are; use `ranpace proxy drain --wait`, and start this one then"
            )));
        }
        let mut descriptors = descriptors.into_iter();
        let devices = match handshake {
            config::Handshake::Exact => descriptors.next().zip(descriptors.next()),
            config::Handshake::AcceptFirst => None,
        };
        let mut inheritance = Self {
            devices: devices.map(|(listening, passing)| Devices::of([listening, passing])),
            listeners: descriptors.map(Socket::from).collect(),
            rules,
            handshakes: Vec::new(),
            passing: Vec::new(),
            stream,
        };
        loop {
            let (message, descriptors) = receive(&inheritance.stream)?;
            let mut legs = descriptors.into_iter();
            match message {
                Message::End => return Ok(inheritance),
                Message::Passing(all) => {
                    let all = all.into_iter().map(|(ends, until)| (ends, Time::from_nanos(until)));
                    inheritance.passing.extend(all);
                }
                Message::Held { ends, syn, number, released, since } => {
                    let server = legs.next().ok_or_else(|| broken("a connection came without its socket"))?;
                    let state = State::Exact { syn: syn.into(), number, released };
                    let since = Time::from_nanos(since);
                    inheritance.handshakes.push(Handshake { ends, server, state, since });
                }
                Message::Accepted { ends, since } => {
                    let sockets = legs.next().zip(legs.next());
                    let (server, user) =
                        sockets.ok_or_else(|| broken("a connection came without its sockets"))?;
                    let (state, since) = (State::Accepted(user), Time::from_nanos(since));
                    inheritance.handshakes.push(Handshake { ends, server, state, since });
                }
                Message::Proxy { .. } => return Err(broken("it began twice")),
            }
        }
    }

    /// Tells the old process to leave everything to this one.
    ///
    /// # Errors
    ///
    /// It has given up waiting, and goes on itself.
    pub fn accept(&self) -> Result<(), ProxyError> {
        send(&self.stream, &Message::End, &[])
            .map_err(ProxyError::system("take over from the running proxy"))?;
        match receive(&self.stream) {
            Ok((Message::End, _)) => Ok(()),
            Ok(_) | Err(_) => Err(broken("it has given up waiting, and goes on itself")),
        }
    }
}

/// What a process hands over.
pub struct Estate<'a> {
    /// Its configuration.
    pub config: &'a Config,
    /// Of an exact handshake.
    pub devices: Option<&'a Devices>,
    /// The listeners.
    pub listeners: &'a [Socket],
    /// The text of the table that is installed.
    pub rules: &'a str,
}

impl Estate<'_> {
    /// Sends all to the process that has asked for it, and returns when that goes on with it.
    ///
    /// # Errors
    ///
    /// It is not there, or has not said in time that it goes on; nothing is handed over then.
    pub fn hand_over<'a>(
        &self,
        handshakes: impl Iterator<Item = &'a Handshake>,
        passing: impl Iterator<Item = (Ends, Time)>,
    ) -> io::Result<()> {
        let Config { name, number, port, handshake, control, .. } = self.config;
        let stream = socket()?;
        set_patience(&stream)?;
        rustix::net::connect(&stream, &SocketAddrUnix::new(meeting(&control.socket))?)?;
        let rules = self.rules.to_owned();
        let first = Message::Proxy {
            form: FORM,
            name: name.clone(),
            number: *number,
            port: *port,
            handshake: *handshake,
            rules,
        };
        let devices = self.devices.map(Devices::descriptors);
        let devices = devices.into_iter().flat_map(|(listening, passing)| [listening, passing]);
        let descriptors: Vec<BorrowedFd<'_>> =
            devices.chain(self.listeners.iter().map(Socket::as_fd)).collect();
        send(&stream, &first, &descriptors)?;
        let passing: Vec<(Ends, u64)> = passing.map(|(ends, until)| (ends, until.as_nanos())).collect();
        for some in passing.chunks(PASSING_AT_ONCE) {
            send(&stream, &Message::Passing(some.to_vec()), &[])?;
        }
        for Handshake { ends, server, state, since } in handshakes {
            let (ends, since) = (*ends, since.as_nanos());
            match state {
                State::Exact { syn, number, released } => {
                    let (syn, number, released) = (syn.to_vec(), *number, *released);
                    send(&stream, &Message::Held { ends, syn, number, released, since }, &[server.as_fd()])?;
                }
                State::Accepted(user) => {
                    send(&stream, &Message::Accepted { ends, since }, &[server.as_fd(), user.as_fd()])?;
                }
            }
        }
        send(&stream, &Message::End, &[])?;
        match receive(&stream).map_err(io::Error::other)? {
            (Message::End, _) => send(&stream, &Message::End, &[]),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "expected that the other process goes on")),
        }
    }
}

fn send(stream: &OwnedFd, message: &Message, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for a message"));
    }
    sendmsg(stream, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(stream: &OwnedFd) -> Result<(Message, Vec<OwnedFd>), ProxyError> {
    let mut text = vec![0; LARGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(stream, &mut [IoSliceMut::new(&mut text)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        .map_err(ProxyError::system("hear of the other proxy"))?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    let message = serde_json::from_slice(&text[..got.bytes]).map_err(|error| {
        broken(&format!("what it says is not understood ({error}): is it of another version?"))
    })?;
    Ok((message, descriptors))
}

fn broken(reason: &str) -> ProxyError {
    ProxyError::Setup(format!("the running proxy does not hand over: {reason}"))
}

/// Removes a file when it is dropped.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        // One that is left is replaced by the next process.
        let _ = fs::remove_file(self.0);
    }
}
