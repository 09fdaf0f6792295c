//! Bearers and users together.

use ranpace_phy::Direction::{Downlink, Uplink};
use ranpace_units::{Bytes, Time};

use crate::rlc::testing::{Log, TestPacket, ms};
use crate::rlc::{Bearer, BearerConfig, Config, User};

fn user() -> User<TestPacket> {
    let am = BearerConfig::both(Config::am(Bytes::new(100_000)));
    let um = BearerConfig::both(Config::um(Bytes::new(100_000)));
    User::new(&[am, um], 1)
}

#[test]
fn earlier_bearers_go_first_and_reports_travel_back() {
    let (mut user, mut log, mut other) = (user(), Log::default(), Log::default());
    for id in 0..2 {
        let bearer = 1 - id as u8;
        let packet = TestPacket { id: bearer.into(), size: 1000 };
        user.bearer_mut(bearer).unwrap().enqueue(ms(0), Downlink, packet, &mut log);
    }
    let mut content = Vec::new();
    assert_eq!(user.fill(ms(0), Downlink, Bytes::new(1500), &mut content, &mut log), Bytes::ZERO);
    assert_eq!(content.iter().map(|pdu| pdu.bearer).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(content[0].pdu.payload(), Bytes::new(1002));
    user.on_received(ms(3), Downlink, &content, &mut log);
    assert_eq!(log.delivered_ids(), [0]);
    content.clear();
    // The poll is answered in the uplink.
    assert_eq!(user.wanted(ms(3), Uplink), Bytes::new(4));
    user.fill(ms(3), Uplink, Bytes::new(100), &mut content, &mut other);
    assert!(content.len() == 1 && content[0].pdu.is_status());
    user.on_received(ms(6), Uplink, &content, &mut other);
    assert_eq!(user.next_deadline(Downlink), Time::MAX, "acknowledged: the poll's timer has stopped");
    assert!(user.to_be_sent(Downlink) > Bytes::ZERO && user.to_be_sent(Uplink).is_zero());
}

#[test]
fn an_idle_user_has_no_deadlines_and_takes_little_memory() {
    let user = user();
    assert_eq!(user.next_deadline(Downlink).min(user.next_deadline(Uplink)), Time::MAX);
    assert!(user.wanted(Time::MAX, Downlink).is_zero());
    // The heap holds nothing but the bearers themselves.
    assert!(size_of::<Bearer<TestPacket>>() < 2_000, "{}", size_of::<Bearer<TestPacket>>());
}

#[test]
fn absurd_input_is_ignored() {
    let (mut user, mut log) = (user(), Log::default());
    assert!(user.bearer_mut(2).is_none());
    let mut content = Vec::new();
    user.bearer_mut(0).unwrap().enqueue(ms(0), Downlink, TestPacket { id: 0, size: u64::MAX }, &mut log);
    user.bearer_mut(0).unwrap().enqueue(ms(0), Downlink, TestPacket { id: 1, size: 100 }, &mut log);
    user.fill(ms(0), Downlink, Bytes::MAX, &mut content, &mut log);
    let mut stranger = User::<TestPacket>::new(&[BearerConfig::both(Config::am(Bytes::ZERO))], 1);
    for _ in 0..2 {
        stranger.on_received(ms(1), Downlink, &content, &mut log);
        stranger.on_lost(ms(1), Downlink, &content, &mut log);
        user.on_received(ms(1), Uplink, &content, &mut log);
        user.on_received(ms(1), Downlink, &content, &mut log);
        user.on_lost(ms(1), Downlink, &content, &mut log);
    }
    user.on_deadline(Time::MAX, Downlink, &mut log);
    assert_eq!((log.delivered_ids(), log.dropped.len()), (vec![1], 1));
}
