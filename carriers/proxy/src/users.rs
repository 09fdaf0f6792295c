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

/// All users that have connections. A user is known by one of its addresses, and has a number for as long as it has connections, also if
/// it becomes known by another address. A number never becomes another user's, so that a hint that is on its way cannot be taken for one
/// about that user.
#[derive(Debug, Default)]
pub struct Users {
    /// The address in the feed of other addresses, from the configuration, and from the feed.
    configured: HashMap<IpAddr, IpAddr>,
    told: HashMap<IpAddr, IpAddr>,
    /// Connections of each client's address.
    clients: HashMap<IpAddr, usize>,
    by_address: HashMap<IpAddr, User>,
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

    /// The feed's users with several addresses have changed: the first address of each other one. Returns whether connections are
    /// another user's now ([`Self::number`]).
    pub fn on_addresses(&mut self, told: HashMap<IpAddr, IpAddr>) -> bool {
        let known_as = |users: &Self| -> Vec<IpAddr> {
            users.clients.keys().map(|client| users.address(*client)).collect()
        };
        let mut before = known_as(self);
        self.told = told;
        let after = known_as(self);
        self.rename(&mut before, &after);
        let counts: Vec<usize> = self.clients.values().copied().collect();
        let moved = || before.iter().zip(&after).zip(&counts).filter(|((before, after), _)| before != after);
        // In this order, who stays keeps its number.
        moved().for_each(|((_, after), count)| {
            self.add(*after, *count);
        });
        moved().for_each(|((before, _), count)| self.take(*before, *count));
        moved().next().is_some()
    }

    /// Users all of whose connections become those of one address that nobody is known by yet keep their numbers, and with them what is
    /// allocated to them: only their first address has changed. Where several users become one, the oldest gives it its number. `before`
    /// and `after` have the address by which the user of each client was known, and is known now; `before` is brought up to date.
    fn rename(&mut self, before: &mut [IpAddr], after: &[IpAddr]) {
        // The new address of each old one; `None` if there are several.
        let mut new = HashMap::new();
        for (before, after) in before.iter().zip(after) {
            new.entry(*before)
                .and_modify(|only: &mut Option<IpAddr>| *only = only.filter(|only| only == after))
                .or_insert(Some(*after));
        }
        let mut renamed: Vec<(u32, IpAddr, IpAddr)> = new
            .into_iter()
            .filter_map(|(old, new)| Some((self.by_address.get(&old)?.number, old, new?)))
            .filter(|(_, _, new)| !self.by_address.contains_key(new))
            .collect();
        renamed.sort_unstable();
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, old, new) in renamed {
            if self.by_address.contains_key(&new) {
                continue;
            }
            let Some(user) = self.by_address.remove(&old) else { continue };
            self.by_address.insert(new, user);
            wanted.insert(number, new);
            before.iter_mut().filter(|address| **address == old).for_each(|address| *address = new);
        }
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
        *self.clients.entry(client).or_default() += 1;
        self.add(self.address(client), 1)
    }

    /// A connection of this address is over.
    pub fn end(&mut self, client: IpAddr) {
        let Some(connections) = self.clients.get_mut(&client) else { return };
        *connections -= 1;
        if *connections == 0 {
            self.clients.remove(&client);
        }
        self.take(self.address(client), 1);
    }

    /// The user that is known by this address has more connections; returns its number.
    fn add(&mut self, address: IpAddr, connections: usize) -> u32 {
        let user = self.by_address.entry(address).or_insert_with(|| {
            self.last = self.last.wrapping_add(1);
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).insert(self.last, address);
            User { number: self.last, connections: 0 }
        });
        user.connections += connections;
        user.number
    }

    /// It has fewer, perhaps none.
    fn take(&mut self, address: IpAddr, connections: usize) {
        let Some(user) = self.by_address.get_mut(&address) else { return };
        user.connections -= connections;
        if user.connections == 0 {
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).remove(&user.number);
            self.by_address.remove(&address);
        }
    }

    /// Numbers, addresses and connections.
    pub fn all(&self) -> impl Iterator<Item = (u32, IpAddr, usize)> + '_ {
        self.by_address.iter().map(|(address, user)| (user.number, *address, user.connections))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

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
        users.end(v4);
        users.end(v6);
        assert_eq!(users.connections(v6), 0);
        assert_ne!(users.begin(v4), first, "numbers are not used again");
    }

    #[test]
    fn connections_follow_their_addresses_and_who_stays_keeps_its_number() {
        let [v4, v6, other]: [IpAddr; 3] =
            ["10.0.0.2", "fd00::2", "10.0.0.3"].map(|text| text.parse().expect("an address"));
        let mut users = Users::default();
        let [first, second, third] = [v4, v6, other].map(|client| users.begin(client));
        assert!(users.on_addresses(HashMap::from([(v6, v4)])));
        assert_eq!(
            [v4, v6, other].map(|client| users.number(client)),
            [Some(first), Some(first), Some(third)]
        );
        assert_eq!((users.connections(v4), users.connections(v6)), (2, 2));
        let wanted = |users: &Users| users.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert_eq!(wanted(&users), HashMap::from([(first, v4), (third, other)]));
        assert!(!users.on_addresses(HashMap::from([(v6, v4)])), "nobody moves");
        assert!(users.on_addresses(HashMap::new()));
        assert_eq!(users.number(v4), Some(first));
        assert!(users.number(v6).is_some_and(|number| ![first, second, third].contains(&number)));
    }

    #[test]
    fn a_user_whose_first_address_changes_keeps_its_number() {
        let [v4, v6, new, other]: [IpAddr; 4] =
            ["10.0.0.2", "fd00::2", "fd00::9", "10.0.0.3"].map(|text| text.parse().expect("an address"));
        let mut users = Users::default();
        users.on_addresses(HashMap::from([(v6, v4)]));
        let [first, second] = [v6, other].map(|client| users.begin(client));
        assert_eq!(users.begin(v4), first);
        // The feed names another address first, of which there are no connections.
        assert!(!users.on_addresses(HashMap::from([(v6, new), (v4, new)])), "nobody moves");
        assert_eq!([v6, v4, new].map(|client| users.number(client)), [Some(first); 3]);
        let wanted = |users: &Users| users.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        assert_eq!(wanted(&users), HashMap::from([(first, new), (second, other)]));
        // Two users become one, which is known by an address that is new, too: the older one's number is its.
        let last: IpAddr = "fd00::10".parse().expect("an address");
        assert!(users.on_addresses(HashMap::from([v6, v4, other].map(|client| (client, last)))));
        assert_eq!([v6, v4, other].map(|client| users.number(client)), [Some(first); 3]);
        assert_eq!(wanted(&users), HashMap::from([(first, last)]));
        assert_eq!(users.connections(last), 3);
    }

    #[derive(Clone, Debug)]
    enum Event {
        Begin(u8),
        End(u8),
        Addresses(Vec<(u8, u8)>),
    }

    fn event() -> impl Strategy<Value = Event> {
        let pairs = prop::collection::vec((0..6_u8, 0..6_u8), 0..5);
        prop_oneof![
            3 => (0..6_u8).prop_map(Event::Begin),
            2 => (0..6_u8).prop_map(Event::End),
            1 => pairs.prop_map(Event::Addresses),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// After any events the users are those of a fresh start with the same table and connections, and the hints of exactly these
        /// are wanted.
        #[test]
        fn groups_are_those_of_a_fresh_start(events in prop::collection::vec(event(), 0..60)) {
            let client = |last: u8| IpAddr::from([10, 0, 0, last]);
            let configured = config::User { addresses: vec![client(0), client(5)], feed_address: None };
            let configured = [configured];
            let mut users = Users::new(&configured);
            let (mut open, mut told) = (BTreeMap::<u8, usize>::new(), HashMap::new());
            for event in events {
                match event {
                    Event::Begin(last) => {
                        users.begin(client(last));
                        *open.entry(last).or_default() += 1;
                    }
                    Event::End(last) => {
                        if let Some(count) = open.get_mut(&last).filter(|count| **count > 0) {
                            users.end(client(last));
                            *count -= 1;
                        }
                    }
                    Event::Addresses(pairs) => {
                        told = pairs.iter().map(|(other, first)| (client(*other), client(*first))).collect();
                        let numbers = |users: &Users| [0, 1, 2, 3, 4, 5].map(|last| {
                            users.number(client(last)).filter(|_| open.get(&last).is_some_and(|count| *count > 0))
                        });
                        let before = numbers(&users);
                        let known_as = |users: &Users| [0, 1, 2, 3, 4, 5].map(|last| users.address(client(last)));
                        let addresses = known_as(&users);
                        let moved = users.on_addresses(told.clone());
                        prop_assert_eq!(moved, numbers(&users) != before);
                        // A user of which all, and nobody else, has become known by an address by which nobody was known keeps its number.
                        let now = known_as(&users);
                        let is_open = |last: &usize| open.get(&(*last as u8)).is_some_and(|count| *count > 0);
                        let all = || (0..6).filter(is_open);
                        for last in all() {
                            let is_same = all().all(|other| (addresses[other] == addresses[last]) == (now[other] == now[last]));
                            let was_free = all().all(|other| addresses[other] != now[last] || addresses[other] == addresses[last]);
                            if is_same && was_free {
                                prop_assert_eq!(users.number(client(last as u8)), before[last]);
                            }
                        }
                    }
                }
                let mut fresh = Users::new(&configured);
                fresh.on_addresses(told.clone());
                for (last, count) in &open {
                    (0..*count).for_each(|_| { fresh.begin(client(*last)); });
                }
                let groups = |users: &Users| -> BTreeMap<IpAddr, usize> {
                    users.all().map(|(_, address, connections)| (address, connections)).collect()
                };
                prop_assert_eq!(groups(&users), groups(&fresh));
                let numbers: HashMap<u32, IpAddr> = users.all().map(|(number, address, _)| (number, address)).collect();
                prop_assert_eq!(&*users.wanted.lock().unwrap_or_else(PoisonError::into_inner), &numbers);
            }
        }
    }
}
