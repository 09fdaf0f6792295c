//! The cost of a packet in RLC and HARQ: `cargo run --release -p ranpace-radio --example rlc_speed` prints it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use ranpace_link::Packet;
use ranpace_phy::Direction::{Downlink, Uplink};
use ranpace_radio::harq::{Draw, Harq, HarqConfig, Outcome};
use ranpace_radio::rlc::{BearerConfig, Config, Observer, User, UserPdu};
use ranpace_units::{Bytes, Time};

/// About as large as a packet of the simulator.
struct Datagram {
    content: [u64; 12],
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(1500)
    }
    fn flow(&self) -> u32 {
        0
    }
}

#[derive(Default)]
struct Sum(u64, u64);

impl Observer<Datagram> for Sum {
    fn on_delivered(&mut self, _: Time, packet: Datagram) {
        self.0 += 1;
        self.1 ^= packet.content[3];
    }
}

/// Gives `users_per_tti` of 100 users, in turn, blocks of this many bytes in each TTI; 10 % of first attempts fail. All users are
/// queried in each TTI, in both directions; the first row shows the cost of that alone.
fn play(name: &str, config: Config, block: u64, users_per_tti: u64) -> String {
    const USERS: u64 = 100;
    let mut users: Vec<User<Datagram>> =
        (0..USERS).map(|n| User::new(&[BearerConfig::both(config.clone())], n)).collect();
    let mut harqs: Vec<[Harq<Vec<UserPdu>>; 2]> =
        (0..USERS).map(|_| [Harq::new(HarqConfig::LTE), Harq::new(HarqConfig::LTE_UPLINK)]).collect();
    let (mut spare, mut sums) = (Vec::new(), [Sum::default(), Sum::default()]);
    let (mut blocks, mut random) = (0u64, 1u64);
    let begin = Instant::now();
    let ttis = 20_000;
    for tti in 0..ttis {
        let now = Time::from_millis(tti);
        let served = tti * users_per_tti % USERS..tti * users_per_tti % USERS + users_per_tti;
        for (n, (user, harqs)) in users.iter_mut().zip(&mut harqs).enumerate() {
            for ((direction, harq), sum) in [Downlink, Uplink].into_iter().zip(harqs).zip(&mut sums) {
                if user.next_deadline(direction) <= now {
                    user.on_deadline(now, direction, sum);
                }
                while let Some(outcome) = harq.outcome(tti) {
                    let mut content = match outcome {
                        Outcome::Decoded(content) => {
                            user.on_received(now, direction, &content, sum);
                            content
                        }
                        Outcome::Lost(content) => {
                            user.on_lost(now, direction, &content, sum);
                            content
                        }
                    };
                    content.clear();
                    spare.push(content);
                }
                while let Some(process) = harq.due(tti).next() {
                    harq.send_again(tti, process, 10.0, Draw::of(0.5), |_| 0.0);
                }
                if !served.contains(&(n as u64)) {
                    continue;
                }
                if direction == Downlink {
                    while user.to_be_sent(Downlink) < Bytes::new(block) {
                        let packet = Datagram { content: [tti; 12] };
                        if let Some(bearer) = user.bearer_mut(0) {
                            bearer.enqueue(now, Downlink, packet, sum);
                        }
                    }
                } else if user.wanted(now, Uplink).is_zero() {
                    continue;
                }
                let Some(process) = harq.free(tti) else { continue };
                let mut content: Vec<UserPdu> = spare.pop().unwrap_or_default();
                user.fill(now, direction, Bytes::new(block), &mut content, sum);
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let draw = Draw::of((random >> 11) as f64 / (1u64 << 53) as f64);
                harq.send(tti, process, content, 10.0, draw, |_| 0.1);
                blocks += 1;
            }
        }
    }
    let nanos = begin.elapsed().as_nanos() as f64;
    let [down, _] = black_box(sums);
    format!(
        "{name}: {:.0} ns a packet, {:.0} ns a block, {:.1} ms a simulated second at {:.0} Mbit/s",
        nanos / down.0 as f64,
        nanos / blocks as f64,
        nanos / ttis as f64 / 1e3,
        down.0 as f64 * 12_000.0 / ttis as f64 / 1e3,
    )
}

fn main() {
    let (um, am) = (Config::um(Bytes::new(1_000_000)), Config::am(Bytes::new(1_000_000)));
    println!("{}", play("nobody served", um.clone(), 0, 0));
    for users in [1, 10] {
        println!("{}", play(&format!("UM, {users} users a TTI"), um.clone(), 9422 / users, users));
        println!("{}", play(&format!("AM, {users} users a TTI"), am.clone(), 9422 / users, users));
    }
}
