//! Users: which addresses are one user's, and the numbers under which the allocator knows them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config;

/// A user with connections.
#[derive(Clone, Copy, Debug, Default)]
struct User {
    number: u32,
    connections: usize,
}

/// The users whose hints are wanted: numbers, with addresses in the feed. Shared with the thread that reads the feed.
pub type Wanted = Arc<Mutex<HashMap<u32, IpAddr>>>;

/// All users that have connections.
#[derive(Debug, Default)]
pub struct Users {
    /// The address in the feed of other addresses, from the configuration, and from the feed.
    configured: HashMap<IpAddr, IpAddr>,
    told: HashMap<IpAddr, IpAddr>,
    by_address: HashMap<IpAddr, User>,
    addresses: HashMap<u32, IpAddr>,
    wanted: Wanted,
    last: u32,
}

impl Users {
    /// With the users of the configuration.
    pub fn new(users: &[config::User]) -> Self {
        let mut configured = HashMap::new();
        for user in users {
            let Some(address) = user.feed_address.or(user.addresses.first().copied()) else { continue };
            configured.extend(user.addresses.iter().map(|own| (*own, address)));
        }
        Self { configured, ..Self::default() }
    }

    /// The users whose hints are wanted.
    pub fn wanted(&self) -> Wanted {
        Arc::clone(&self.wanted)
    }

    /// The feed's users with several addresses have changed: the first address of each other one.
    pub fn on_addresses(&mut self, told: HashMap<IpAddr, IpAddr>) {
        self.told = told;
    }

    /// The address under which the user of this address is known.
    fn address(&self, client: IpAddr) -> IpAddr {
        self.configured.get(&client).or_else(|| self.told.get(&client)).copied().unwrap_or(client)
    }

    /// Connections of the user of this address.
    pub fn connections(&self, client: IpAddr) -> usize {
        self.by_address.get(&self.address(client)).map_or(0, |user| user.connections)
    }

    /// The number of the user of this address, if it has connections.
    pub fn number(&self, client: IpAddr) -> Option<u32> {
        self.by_address.get(&self.address(client)).map(|user| user.number)
    }

    /// A connection of this address begins; returns the number of its user.
    pub fn begin(&mut self, client: IpAddr) -> u32 {
        let address = self.address(client);
        let user = self.by_address.entry(address).or_insert_with(|| {
            self.last = self.last.wrapping_add(1);
            self.addresses.insert(self.last, address);
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).insert(self.last, address);
            User { number: self.last, connections: 0 }
        });
        user.connections += 1;
        user.number
    }

    /// A connection of the user with this number is over.
    pub fn end(&mut self, number: u32) {
        let Some(address) = self.addresses.get(&number).copied() else { return };
        let Some(user) = self.by_address.get_mut(&address) else { return };
        user.connections -= 1;
        if user.connections == 0 {
            self.by_address.remove(&address);
            self.addresses.remove(&number);
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        }
    }

    /// Numbers, addresses and connections.
    pub fn all(&self) -> impl Iterator<Item = (u32, IpAddr, usize)> + '_ {
        self.by_address.iter().map(|(address, user)| (user.number, *address, user.connections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_a_user_are_one_user() {
        let [v4, v6, nat, other]: [IpAddr; 4] =
            ["10.0.0.2", "fd00::2", "192.0.2.7", "10.0.0.3"].map(|text| text.parse().expect("an address"));
        let mut users = Users::new(&[config::User { addresses: vec![v4], feed_address: Some(nat) }]);
        users.on_addresses(HashMap::from([(v6, nat)]));
        let first = users.begin(v4);
        assert_eq!(users.begin(v6), first);
        assert_ne!(users.begin(other), first);
        assert_eq!((users.connections(v4), users.connections(other)), (2, 1));
        assert_eq!(users.wanted().lock().unwrap_or_else(PoisonError::into_inner).get(&first), Some(&nat));
        users.end(first);
        users.end(first);
        assert_eq!(users.connections(v6), 0);
        assert_ne!(users.begin(v4), first, "numbers are not used again");
    }
}
