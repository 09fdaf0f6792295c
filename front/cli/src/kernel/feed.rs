//! `ranpace kernel feed`: brings radio information to the connections of a control.

mod origin;
mod peps;
#[cfg(feature = "rnis")]
mod rnis;

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use ranpace_emulator::{HintLine, LONGEST_HINT_LINE, PepLine};
use ranpace_kernel::{
    Control, DeviceConnections, KernelError, Loaded, PepFeed, PepSeen, Radio, RadioFeed, Reported,
};
use ranpace_tap::agent::Agents;
use ranpace_units::Time;

pub use self::origin::{Asking, Origin};
use crate::failure::Failure;
use crate::hint_source::{Look, Source};
use crate::{interrupt, output};

/// How often it is looked which connections there are.
const REFRESH: Duration = Duration::from_millis(100);
/// So many bad lines are told of one by one.
const TOLD: u64 = 3;

/// Bring radio information to the connections of a loaded control, in the network namespace of the device
///
/// DCIC and CQIC-S go by what the device's modem is granted, and by the quality that it measures; SIGMA by what the modem knows of
/// its uplink; MELD, on a server, by the edge's reports on its users; Multi-Domain control, on a server, by what a PEP has seen.
/// Without that, or when it stops, they are the kernel's CUBIC.
/// Lines are those of `ranpace emulate --hints`. An RNIS server (rnis:URL) or its shared table (table:PATH) knows users by their addresses.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    mkfifo hints.pipe\n  \
    ranpace kernel load dcic --cgroup /sys/fs/cgroup/user.slice\n  \
    ranpace kernel feed dcic --from hints.pipe --user phone\n  \
    ranpace kernel feed dcic --from hints.jsonl --user phone=10.77.0.2\n  \
    ranpace kernel feed cubic_meld_me --from hints.pipe --user phone=192.0.2.7 --user car=192.0.2.8\n  \
    ranpace kernel feed cubic_meld_me --from rnis:http://127.0.0.1:8012          all users that the server tells of\n  \
    ranpace kernel feed mdcc --from pep:/etc/ranpace/agent.toml                  what Lightweight PEPs report\n  \
    ranpace kernel feed sigma --from table:/dev/shm/rnis --user phone=10.77.0.2\n  \
    ssh phone cat /run/modem | ranpace kernel feed dcic --from - --user phone")]
pub struct Feed {
    /// Name of the control, as `ranpace kernel list` shows it
    name: String,
    /// Where radio information comes from: lines from a named pipe, a file that grows (from its end on) or - for standard input;
    /// rnis:URL, an RNIS server by datagrams; table:PATH, the shared table of a server of this host; pep:FILE, Lightweight PEPs, by the
    /// configuration of the agent that subscribes to them
    #[arg(long, value_name = "WHERE", value_parser = Origin::parse)]
    from: Origin,
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    users: Users,
}

/// Whose information it is.
#[derive(Clone, clap::Args)]
pub struct Users {
    /// The device, by its name in the lines [default: behind a host of an emulation, that host]; with an address, its connections from
    /// there alone. For MELD, a user that the server sends to, whose name is looked up if no address is given. Can be repeated
    #[arg(long = "user", value_name = "NAME[=ADDRESS]", value_parser = user)]
    users: Vec<User>,
    /// The source knows their addresses.
    #[arg(skip)]
    is_known: bool,
}

/// A device's name in the lines, and its address, or all of the network namespace.
pub type User = (String, Option<IpAddr>);

fn user(text: &str) -> Result<User, String> {
    let Some((name, address)) = text.split_once('=') else { return Ok((text.to_owned(), None)) };
    let address = address.parse().map_err(|_| "expected NAME or NAME=ADDRESS, such as phone=10.77.0.2")?;
    Ok((name.to_owned(), Some(address)))
}

impl From<String> for Users {
    /// This device alone.
    fn from(name: String) -> Self {
        Self { users: vec![(name, None)], is_known: false }
    }
}

impl Users {
    /// Users of this origin: an RNIS server knows their addresses, and who there is.
    pub fn of(self, origin: &Origin) -> Self {
        Self { is_known: !matches!(origin, Origin::Lines(_) | Origin::Peps(_)), ..self }
    }

    /// The same at this address.
    pub fn at(mut self, address: IpAddr) -> Self {
        for (_, of_user) in &mut self.users {
            *of_user = Some(address);
        }
        self
    }

    /// Those that were asked for, or the host of the emulation that this process is behind.
    fn or_host(self) -> Result<Vec<User>, Failure> {
        if !self.users.is_empty() || self.is_known {
            return Ok(self.users);
        }
        let host = std::env::var("RANPACE_HOST").ok().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| {
            Failure::asked("whose radio information? --user NAME says it, as the lines call the device")
        });
        Ok(vec![(host?, None)])
    }
}

impl Users {
    /// Those that were asked for, with their addresses; a name without one is looked up.
    fn with_addresses(self) -> Result<Vec<User>, Failure> {
        if self.is_known {
            return Ok(self.users);
        }
        if self.users.is_empty() {
            return Err(Failure::asked("whose radio information? --user NAME=ADDRESS says it for each user"));
        }
        let mut found = Vec::new();
        for (name, address) in self.users {
            if address.is_some() {
                found.push((name, address));
                continue;
            }
            let addresses = (name.as_str(), 0).to_socket_addrs().map_err(|error| {
                Failure::asked(format!(
                    "no address of {name} is known ({error}); --user {name}=ADDRESS says it"
                ))
            })?;
            found.extend(addresses.map(|address| (name.clone(), Some(address.ip()))));
        }
        Ok(found)
    }
}

impl Feed {
    /// Runs the command, until Ctrl-C or the end of standard input.
    pub fn run(self) -> Result<(), Failure> {
        let mut listener = Listener::pinned(&self.name, self.users.of(&self.from))?;
        let mut hints = listener.hints(&self.from, &self.asking)?;
        let told = listener.follow(&mut hints, interrupt::flag())?;
        output::say(&told.to_string());
        Ok(())
    }
}

/// Radio information that has been opened.
pub enum Hints {
    /// Lines.
    Lines(Source),
    /// What PEPs report.
    Peps(Box<Agents>),
    /// An RNIS server or its table.
    #[cfg(feature = "rnis")]
    Rnis(Box<ranpace_rnisd::client::HintReader>),
}

/// What became of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Lines or reports that were for the control.
    pub hints: u64,
    /// Connections that took one, counted each time.
    pub taken: u64,
    /// Those of other users or connections, or of a kind that the control does not take.
    pub others: u64,
    /// Lines that could not be read, and messages that were refused.
    pub skipped: u64,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hints, taken, others, skipped } = self;
        write!(
            f,
            "{hints} hints, taken {taken} times by connections; {others} were of others, {skipped} could not be read or were refused"
        )
    }
}

/// The connections that are told.
enum Destination<'a> {
    /// Connections of the device that receive.
    Receivers(DeviceConnections<'a>),
    /// Connections of the device that send.
    Senders(DeviceConnections<'a>),
    /// All connections to a user, by the addresses of [`Listener::users`].
    Users(RadioFeed),
    /// Single connections, which a PEP's report names.
    Connections(Peps<'a>),
}

/// A control that hears PEPs.
enum Peps<'a> {
    Loaded(&'a Loaded),
    /// With its name.
    Pinned(PepFeed, String),
}

impl Peps<'_> {
    fn report(&self, server: SocketAddr, user: SocketAddr, seen: &PepSeen) -> Result<Reported, KernelError> {
        match self {
            Self::Loaded(loaded) => loaded.report(server, user, seen),
            Self::Pinned(feed, _) => feed.report(server, user, seen),
        }
    }
}

/// A PEP's line as the control is told of it.
fn seen(line: &PepLine) -> PepSeen {
    PepSeen {
        cumulative: line.cumulative,
        ranges: line.ranges.clone(),
        hold: line.hold,
        marked: line.marked.map(u64::from),
        new_epoch: line.new_epoch,
    }
}

/// Reads lines, and tells a control what is meant for it.
pub struct Listener<'a> {
    destination: Destination<'a>,
    users: Vec<User>,
    looked: Option<Instant>,
    /// Number of the line.
    number: u64,
    told: Told,
}

impl<'a> Listener<'a> {
    /// For the control that this process has loaded.
    pub fn of(loaded: &'a Loaded, users: Users) -> Result<Self, Failure> {
        Ok(match loaded.control().kind().radio() {
            Some(Radio::Users) => {
                Self::to(Destination::Users(RadioFeed::of(loaded)?), users.with_addresses()?)
            }
            Some(Radio::Senders) => {
                Self::to(Destination::Senders(loaded.device_connections()?), users.or_host()?)
            }
            Some(Radio::Pep) => Self::to(Destination::Connections(Peps::Loaded(loaded)), Vec::new()),
            // A control that takes nothing is refused.
            _ => Self::to(Destination::Receivers(loaded.device_connections()?), users.or_host()?),
        })
    }

    fn to(destination: Destination<'a>, users: Vec<User>) -> Self {
        Self { destination, users, looked: None, number: 0, told: Told::default() }
    }

    /// Opens what the control is to hear.
    #[cfg_attr(not(feature = "rnis"), expect(unused_variables, reason = "only an RNIS server is asked"))]
    pub fn hints(&self, origin: &Origin, asking: &Asking) -> Result<Hints, Failure> {
        match origin {
            Origin::Lines(path) => Source::named(path).map(Hints::Lines),
            Origin::Peps(file) => self.agents(file).map(|agents| Hints::Peps(Box::new(agents))),
            #[cfg(feature = "rnis")]
            Origin::Rnis(origin) => Ok(Hints::Rnis(Box::new(self.reader(origin, asking)?))),
        }
    }

    /// Tells what comes, until `stop` is set or the source ends.
    pub fn follow(&mut self, hints: &mut Hints, stop: &AtomicBool) -> Result<Told, Failure> {
        match hints {
            Hints::Lines(source) => self.follow_lines(source, stop),
            Hints::Peps(agents) => self.follow_peps(agents, stop),
            #[cfg(feature = "rnis")]
            Hints::Rnis(reader) => self.follow_hints(reader, stop),
        }
    }

    /// Tells what lines say.
    pub fn follow_lines(&mut self, source: &mut Source, stop: &AtomicBool) -> Result<Told, Failure> {
        while !stop.load(Ordering::SeqCst) {
            if self.looked.is_none_or(|looked| looked.elapsed() >= REFRESH) {
                self.refresh()?;
                self.looked = Some(Instant::now());
            }
            let mut failed = None;
            let look = source.look(|line| {
                if failed.is_none() {
                    failed = self.take(line).err();
                }
            });
            if let Some(error) = failed {
                return Err(error.into());
            }
            match look.map_err(|error| Failure::ours(format!("reading radio information: {error}")))? {
                Look::Read => {}
                Look::WriterGone => output::say(
                    "nobody writes radio information any more: without it the control is CUBIC; another writer may come",
                ),
                Look::End => break,
            }
        }
        Ok(self.told.clone())
    }

    fn refresh(&mut self) -> Result<(), KernelError> {
        match &mut self.destination {
            Destination::Receivers(device) | Destination::Senders(device) => device.refresh().map(drop),
            Destination::Users(_) | Destination::Connections(_) => Ok(()),
        }
    }

    /// A line has come; `None` is one that is too long.
    fn take(&mut self, line: Option<&[u8]>) -> Result<(), KernelError> {
        self.number += 1;
        let read = line
            .ok_or_else(|| format!("expected at most {LONGEST_HINT_LINE} bytes"))
            .and_then(HintLine::parse);
        let line = match read {
            Ok(HintLine::Radio(line)) => line,
            Ok(HintLine::Pep(line)) => return self.take_report(&line),
            Err(why) => {
                self.told.skipped += 1;
                if self.told.skipped <= TOLD {
                    let more =
                        if self.told.skipped == TOLD { "; further ones are counted alone" } else { "" };
                    output::say(&format!("line {} is skipped: {why}{more}", self.number));
                }
                return Ok(());
            }
        };
        // By age: clocks of emulations and modems begin where they like.
        let measured_at = now() - line.age;
        let users = self.users.iter().filter(|(name, _)| *name == line.user);
        let mut is_ours = false;
        for (_, address) in users {
            let taken = match &mut self.destination {
                Destination::Receivers(device) => {
                    let Some(hint) = line.for_receivers(measured_at) else { continue };
                    device.hint(*address, &hint)?
                }
                Destination::Senders(device) => {
                    let Some(hint) = line.for_senders(measured_at) else { continue };
                    device.hint(*address, &hint)?
                }
                Destination::Users(feed) => {
                    let (Some(hint), Some(address)) = (line.for_servers(measured_at), address) else {
                        continue;
                    };
                    feed.report(*address, &hint)?;
                    1
                }
                Destination::Connections(_) => continue,
            };
            is_ours = true;
            self.told.taken += taken as u64;
        }
        *(if is_ours { &mut self.told.hints } else { &mut self.told.others }) += 1;
        Ok(())
    }
}

impl Listener<'_> {
    /// A report of a PEP has come.
    fn take_report(&mut self, line: &PepLine) -> Result<(), KernelError> {
        let reported = match &self.destination {
            Destination::Connections(peps) => peps.report(line.server, line.user, &seen(line))?,
            _ => Reported::NotOurs,
        };
        match reported {
            Reported::Taken => {
                self.told.hints += 1;
                self.told.taken += 1;
            }
            // What is impossible, the control refuses and counts by itself.
            Reported::NoSocket | Reported::NotOurs | Reported::Impossible => self.told.others += 1,
        }
        Ok(())
    }
}

impl Listener<'static> {
    /// For a control that `ranpace kernel load` has loaded.
    pub fn pinned(name: &str, users: Users) -> Result<Self, Failure> {
        let radio = ranpace_kernel::list()?
            .into_iter()
            .find(|pinned| pinned.name == name)
            .and_then(|pinned| Control::parse(&pinned.text?).ok())
            .and_then(|control| control.kind().radio());
        Ok(match radio {
            Some(Radio::Users) => {
                Self::to(Destination::Users(RadioFeed::pinned(name)?), users.with_addresses()?)
            }
            Some(Radio::Senders) => {
                Self::to(Destination::Senders(DeviceConnections::pinned(name)?), users.or_host()?)
            }
            Some(Radio::Pep) => {
                let peps = Peps::Pinned(PepFeed::pinned(name)?, name.to_owned());
                Self::to(Destination::Connections(peps), Vec::new())
            }
            // A name that is not loaded, and a control that takes nothing, are refused.
            _ => Self::to(Destination::Receivers(DeviceConnections::pinned(name)?), users.or_host()?),
        })
    }
}

/// The kernel's monotonic clock, which programs of the kernel read too.
fn now() -> Time {
    // It is always there (POSIX); at zero every hint would be of the future, which counts as now.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Time::ZERO, |now| {
        let nanos = i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec());
        Time::from_nanos(u64::try_from(nanos).unwrap_or(0))
    })
}
