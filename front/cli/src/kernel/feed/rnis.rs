//! Hints of an RNIS server, or of its shared table, for the connections of a control.
//!
//! Users are found by address. MELD hears of all users that the server tells of, or of those that are named. A device's control hears
//! of one: the one that is named, the host of the emulation that this process is behind, or the one that has an address of this
//! network namespace.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use ranpace_cc::RadioHint;
use ranpace_phy::Direction;
use ranpace_rnis::shared_table::directory::Identity;
use ranpace_rnisd::client::{ClientError, HintReader, Origin};
use ranpace_rnisd::identity;
use ranpace_units::{Span, Time};

use super::origin::Asking;
use super::{Destination, Listener, REFRESH, Told, User};
use crate::failure::Failure;
use crate::output;

/// Longest wait for a report: how soon it is seen that it is to end.
const WAIT: Duration = Duration::from_millis(20);
/// Interval of the edge's reports for MELD: those of the source (Diarra 2022, 4.2.4).
const MELD_PERIOD: Span = Span::from_millis(8);

/// A user whose hints are passed on.
struct Target {
    /// Its address in the feed.
    user: IpAddr,
    /// The connections' own address, on a device; all if `None`.
    own: Option<IpAddr>,
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Setup(_) => Self::asked(error),
            _ => Self::ours(error),
        }
    }
}

impl Listener<'_> {
    /// Begins to read what the control needs.
    pub fn reader(&self, origin: &Origin, asking: &Asking) -> Result<HintReader, Failure> {
        let wanted = match self.destination {
            Destination::Receivers(_) => asking.wanted(Direction::Downlink, Span::ZERO)?,
            Destination::Senders(_) => asking.wanted(Direction::Uplink, Span::ZERO)?,
            Destination::Users(_) => asking.wanted(Direction::Downlink, MELD_PERIOD)?,
            Destination::Connections(_) => {
                return Err(Failure::asked(
                    "this control goes by what a PEP has seen, which no RNIS server knows; --from a pipe or file of `ranpace emulate \
                     --hints`",
                ));
            }
        };
        Ok(HintReader::open(origin, &wanted)?)
    }

    /// Passes hints on, until `stop` is set.
    pub fn follow_hints(&mut self, reader: &mut HintReader, stop: &AtomicBool) -> Result<Told, Failure> {
        let (mut targets, mut told) = (Vec::new(), HashMap::new());
        while !stop.load(Ordering::SeqCst) {
            if self.looked.is_none_or(|looked| looked.elapsed() >= REFRESH) {
                self.refresh()?;
                targets = self.targets(&reader.users())?;
                self.looked = Some(Instant::now());
            }
            if let Some(why) = reader.complaint() {
                output::say(&format!("no radio information: {why}; without it the control is CUBIC"));
            }
            if reader.wait(WAIT)? {
                for target in &targets {
                    self.pass_on(reader, target, &mut told)?;
                }
            }
        }
        Ok(self.told.clone())
    }

    /// Tells the connections of a target what is new.
    fn pass_on(
        &mut self,
        reader: &mut HintReader,
        target: &Target,
        told: &mut HashMap<IpAddr, Time>,
    ) -> Result<(), Failure> {
        let Some(hint) = reader.hint(target.user).map(|aged| aged.hint.value) else { return Ok(()) };
        if told.insert(target.user, hint.measured_at).is_some_and(|before| before >= hint.measured_at) {
            return Ok(());
        }
        let mut hints = Vec::new();
        match self.destination {
            Destination::Receivers(_) => {
                let of = |hint: &RadioHint| RadioHint {
                    layers: hint.layers,
                    ..RadioHint::of(hint.info, hint.measured_at)
                };
                // A grant and a quality are two hints, as a modem's are.
                reader.grants(target.user, &mut |grant| {
                    hints.push(RadioHint { tbs_bits: grant.tbs_bits, granted: grant.granted, ..of(&grant) });
                });
                if hint.cqi.is_some() {
                    hints.push(RadioHint { cqi: hint.cqi, ..of(&hint) });
                }
            }
            _ => hints.push(hint),
        }
        for hint in &hints {
            let taken = match &mut self.destination {
                Destination::Receivers(device) | Destination::Senders(device) => {
                    device.hint(target.own, hint)?
                }
                Destination::Users(feed) => {
                    feed.report(target.user, hint)?;
                    1
                }
                Destination::Connections(_) => 0,
            };
            self.told.hints += 1;
            self.told.taken += taken as u64;
        }
        Ok(())
    }

    /// Whose hints are passed on, of those that the server tells of.
    fn targets(&self, known: &[Identity]) -> Result<Vec<Target>, Failure> {
        let is_device = !matches!(self.destination, Destination::Users(_));
        let addresses = |of: &Identity| of.addresses.iter().map(identity::ip).collect::<Vec<_>>();
        let of_name = |name: &str, own: Option<IpAddr>| -> Vec<Target> {
            let named = known.iter().filter(|of| of.name == name).flat_map(addresses);
            named.map(|user| Target { user, own }).collect()
        };
        let of_user = |(name, address): &User| match address {
            Some(address) => vec![Target { user: *address, own: is_device.then_some(*address) }],
            None => of_name(name, None),
        };
        if !self.users.is_empty() {
            return Ok(first_of_each(self.users.iter().map(of_user), is_device));
        }
        if !is_device {
            return Ok(known.iter().flat_map(addresses).map(|user| Target { user, own: None }).collect());
        }
        if let Some(host) = std::env::var("RANPACE_HOST").ok().filter(|host| !host.is_empty()) {
            return Ok(first_of_each([of_name(&host, None)].into_iter(), true));
        }
        let own = own_addresses()?;
        let here = known.iter().flat_map(addresses).filter(|address| own.contains(address));
        Ok(here.map(|user| Target { user, own: Some(user) }).collect())
    }
}

/// A device with several addresses is still one device, so that one of them is enough; servers see each address.
fn first_of_each(of_users: impl Iterator<Item = Vec<Target>>, is_device: bool) -> Vec<Target> {
    of_users.flat_map(|all| all.into_iter().take(if is_device { 1 } else { usize::MAX })).collect()
}

/// The addresses of this network namespace.
fn own_addresses() -> Result<Vec<IpAddr>, Failure> {
    let all = getifaddrs()
        .map_err(|error| Failure::ours(format!("the addresses of this network namespace: {error}")))?;
    let ip = |address: SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|of| IpAddr::V4(of.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|of| IpAddr::V6(of.ip())))
    };
    Ok(all.filter_map(|interface| ip(interface.address?)).filter(|ip| !ip.is_loopback()).collect())
}
