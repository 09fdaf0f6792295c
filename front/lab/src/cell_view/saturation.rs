//! The scheduler at work: users with full buffers, and the allocation to each over time.

use ranpace_link::{Limit, QueueConfig};
use ranpace_phy::{Both, Direction};
use ranpace_radio::cell::{Cell, Listener, Subscriber};
use ranpace_units::{Bytes, Span, Time};
use serde::Serialize;

use super::look::Datagram;
use super::moments::Moments;
use super::subject::{Subject, Watched};
use super::{Pictures, View, ViewError};
use crate::table::TextTable;
use crate::{PlotError, Progress};

/// Most users; ours.
const MOST_USERS: u32 = 100;
/// Size of every packet in bytes: a full IP packet.
const PACKET: u32 = 1500;
/// Smallest backlog of each user in each direction: more than the largest blocks of some slots, 1.3 Mbit each; ours.
const WAITING: Bytes = Bytes::new(2_000_000);
/// Capacity of their buffers.
const BUFFER: Bytes = Bytes::new(8_000_000);
const WAYS: [(Direction, &str); 2] = [(Direction::Downlink, "downlink"), (Direction::Uplink, "uplink")];

/// Parameters of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saturation {
    /// Duration, counting interval and seed.
    pub moments: Moments,
    /// Number of users.
    pub users: u32,
}

/// Allocation of one direction of a user.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Served {
    /// PRBs in each interval, retransmissions included: mean over all symbols that can carry data.
    pub prbs: Vec<f64>,
    /// Rate of new transport blocks in each interval, in bit/s.
    pub scheduled_bit_s: Vec<f64>,
    /// Means over the whole run: PRBs.
    pub mean_prbs: f64,
    /// Share of the band.
    pub share: f64,
    /// Rate of new transport blocks.
    pub mean_scheduled_bit_s: f64,
    /// Rate of arrived data, in IP packets.
    pub delivered_bit_s: f64,
    /// Share of retransmissions among the transport blocks on the air.
    pub sent_again: f64,
}

/// Users with full buffers in a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SaturationView {
    /// The cell.
    pub cell: String,
    /// Its description.
    pub about: String,
    /// Parameters of the run.
    pub saturation: Saturation,
    /// PRBs of the band.
    pub prbs: u16,
    /// Names of users, with their allocations.
    pub users: Vec<(String, Both<Served>)>,
}

/// Counts arrivals.
struct Arrivals(Vec<Both<u64>>);

impl Listener<Datagram> for Arrivals {
    fn on_delivered(&mut self, _: Time, user: u32, direction: Direction, packet: Datagram) {
        if let Some(bytes) = self.0.get_mut(user as usize) {
            bytes[direction] += u64::from(packet.0);
        }
    }
}

impl Saturation {
    fn choose(&self, subject: &Subject) -> Result<Vec<Watched>, ViewError> {
        let first = subject.user()?;
        let there = subject.users.len() as u32; // at most 65 523 in a cell
        let most = if subject.can_add { MOST_USERS } else { MOST_USERS.min(there) };
        if self.users == 0 || self.users > most {
            let of = if subject.can_add { "" } else { ", as many as begin in the cell" };
            let expected = format!("1 to {most}{of}");
            return Err(ViewError::value("--saturate", expected, self.users.to_string()));
        }
        let mut users: Vec<Watched> = match subject.can_add {
            true => (0..self.users)
                .map(|id| Watched { name: format!("{}.{}", first.name, id + 1), id, ..first.clone() })
                .collect(),
            false => subject.users.iter().take(self.users as usize).cloned().collect(),
        };
        for bearer in users.iter_mut().flat_map(|user| &mut user.config.bearers) {
            for channel in [&mut bearer.downlink, &mut bearer.uplink] {
                // A buffer that is always full has no delay to keep low.
                channel.buffer = QueueConfig::drop_tail(Limit::Bytes(BUFFER));
                channel.discard = None;
            }
        }
        Ok(users)
    }

    /// Runs the cell with full buffers in both directions.
    pub fn view(&self, subject: &Subject) -> Result<SaturationView, ViewError> {
        let Moments { every, seed, .. } = self.moments;
        let users = self.choose(subject)?;
        subject.config.check(users.len())?;
        let mut cell = Cell::new(subject.number, &subject.config)?;
        let info = *cell.info();
        let count = self.moments.count(info.slot)?;
        let numbers = users.iter().map(|user| user.id as usize + 1).max().unwrap_or(0);
        let mut arrivals = Arrivals(vec![Both::default(); numbers]);
        for user in &users {
            cell.attach(Time::ZERO, Subscriber::new(user.id, &user.config, seed), &mut arrivals);
        }
        let mut served: Vec<Both<Served>> = vec![Both::default(); users.len()];
        let mut before: Vec<Both<(u64, u64)>> = vec![Both::default(); users.len()];
        let per_slot =
            Both::of(|direction| (f64::from(info.symbols) * info.share[direction]).max(f64::MIN_POSITIVE));
        let slots = every.as_secs_f64() / info.slot.as_secs_f64();
        let progress = Progress::new(count, "intervals");
        for index in 0..count {
            let end = Time::ZERO + every * (index + 1);
            play(&mut cell, &users, Time::ZERO + every * index, end, &mut arrivals);
            for ((user, served), before) in users.iter().zip(&mut served).zip(&mut before) {
                let Some(told) = cell.snapshot(end, user.id) else { continue };
                for (direction, _) in WAYS {
                    let link = &told.link[direction];
                    let now = (link.scheduled_bits, link.scheduled_prb_symbols);
                    let (bits, prb_symbols) = core::mem::replace(&mut before[direction], now);
                    let served = &mut served[direction];
                    let rate = (now.0 - bits) as f64 / every.as_secs_f64();
                    served.prbs.push((now.1 - prb_symbols) as f64 / slots / per_slot[direction]);
                    served.scheduled_bit_s.push(rate);
                    let blocks = (link.blocks + link.retransmissions).max(1);
                    served.sent_again = link.retransmissions as f64 / blocks as f64;
                }
            }
            progress.set(index);
        }
        drop(progress);
        let length = (every * count).as_secs_f64();
        for (user, served) in users.iter().zip(&mut served) {
            for (direction, _) in WAYS {
                let served = &mut served[direction];
                served.mean_prbs = crate::stats::mean(&served.prbs).unwrap_or(0.0);
                served.share = served.mean_prbs / f64::from(info.prbs);
                served.mean_scheduled_bit_s = crate::stats::mean(&served.scheduled_bit_s).unwrap_or(0.0);
                served.delivered_bit_s = arrivals.0[user.id as usize][direction] as f64 * 8.0 / length;
            }
        }
        Ok(SaturationView {
            cell: subject.name.clone(),
            about: subject.about.clone(),
            saturation: *self,
            prbs: info.prbs,
            users: users.into_iter().map(|user| user.name).zip(served).collect(),
        })
    }
}

/// Plays the slots from `now` until `end`, with full buffers.
fn play(cell: &mut Cell<Datagram>, users: &[Watched], now: Time, end: Time, arrivals: &mut Arrivals) {
    let slot = cell.info().slot;
    let mut now = now;
    while now < end {
        for user in users {
            for (direction, _) in WAYS {
                fill(cell, user.id, direction, now, arrivals);
            }
        }
        // Filled at intervals of so few slots that the largest blocks cannot empty it.
        let next = (now + slot * 4_u64).min(end);
        cell.poll(next - Span::from_nanos(1), arrivals);
        now = next;
    }
}

fn fill(cell: &mut Cell<Datagram>, user: u32, direction: Direction, now: Time, arrivals: &mut Arrivals) {
    let waiting = cell.queued(user, direction);
    let missing = WAITING.get().saturating_sub(waiting.get()).div_ceil(PACKET.into());
    for _ in 0..missing {
        cell.send(now, user, direction, 0, Datagram(PACKET), arrivals);
    }
}

impl SaturationView {
    /// For people: a row for each user and direction.
    pub fn table(&self) -> TextTable {
        let head = [
            ("", ""),
            ("PRBs", "mean"),
            ("share", "%"),
            ("scheduled", "Mbit/s"),
            ("delivered", "Mbit/s"),
            ("sent again", "%"),
        ];
        let mut table = TextTable::new(head.map(|(title, unit)| (title.to_owned(), unit.to_owned())));
        for (direction, way) in WAYS {
            let mut sum = [0.0; 4];
            let mut push = |name: &str, [prbs, share, scheduled, delivered]: [f64; 4], again: String| {
                table.push(vec![
                    format!("{way} {name}"),
                    format!("{prbs:.2}"),
                    format!("{:.1}", 100.0 * share),
                    format!("{:.3}", scheduled / 1e6),
                    format!("{:.3}", delivered / 1e6),
                    again,
                ]);
            };
            for (name, served) in &self.users {
                let served = &served[direction];
                let row =
                    [served.mean_prbs, served.share, served.mean_scheduled_bit_s, served.delivered_bit_s];
                (0..4).for_each(|index| sum[index] += row[index]);
                push(name, row, format!("{:.1}", 100.0 * served.sent_again));
            }
            if self.users.len() > 1 {
                push("all", sum, String::new());
            }
        }
        table
    }
}

impl View for SaturationView {
    fn text(&self) -> String {
        let table = self.table().to_string();
        let Moments { time, seed, .. } = self.saturation.moments;
        let (cell, about) = (&self.cell, &self.about);
        format!("{cell}: {about}\nfull buffers both ways for {time}, seed {seed}\n\n{}", table.trim_end())
    }

    fn json(&self) -> serde_json::Value {
        let user = |(name, served): &(String, Both<Served>)| serde_json::json!({ "name": name, "downlink": served.downlink, "uplink": served.uplink });
        serde_json::json!({
            "cell": self.cell,
            "about": self.about,
            "seed": self.saturation.moments.seed,
            "time_s": self.saturation.moments.time.as_secs_f64(),
            "every_s": self.saturation.moments.every.as_secs_f64(),
            "prbs": self.prbs,
            "users": self.users.iter().map(user).collect::<Vec<_>>(),
        })
    }

    fn pictures(&self) -> Result<Pictures, PlotError> {
        self.drawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, users: u32, time: &str) -> Result<SaturationView, ViewError> {
        let moments = Moments { time: time.parse().unwrap(), every: Span::from_millis(20), seed: 1 };
        Saturation { moments, users }.view(&Subject::preset(name).unwrap())
    }

    #[test]
    fn like_users_share_the_band_and_fill_it() {
        let found = view("lte", 4, "4s").unwrap();
        let down = |of: fn(&Served) -> f64| found.users.iter().map(move |(_, served)| of(&served.downlink));
        let used: f64 = down(|served| served.mean_prbs).sum();
        assert!((used / f64::from(found.prbs) - 1.0).abs() < 0.02, "{used}");
        assert!(down(|served| served.share).all(|share| (share - 0.25).abs() < 0.05), "{found:?}");
        for (_, served) in &found.users {
            for served in [&served.downlink, &served.uplink] {
                assert_eq!(served.prbs.len(), 200);
                assert!(served.delivered_bit_s > 0.8 * served.mean_scheduled_bit_s, "{served:?}");
                assert!(served.delivered_bit_s < served.mean_scheduled_bit_s);
            }
        }
        assert_eq!(found.table().to_string().lines().count(), 3 + 10);
        assert_eq!(found.json()["users"][3]["name"], "user.4");
    }

    #[test]
    fn every_preset_can_be_saturated() {
        for preset in &ranpace_scenario::cells::PRESETS {
            let found = view(preset.name, 2, "200ms").unwrap();
            let shares: f64 = found.users.iter().map(|(_, served)| served.downlink.share).sum();
            assert!(shares <= 1.001, "{}: {shares}", preset.name);
        }
    }

    #[test]
    fn zero_and_too_many_users_are_refused() {
        for users in [0, 101] {
            let error = view("lte", users, "1s").unwrap_err().to_string();
            assert_eq!(error, format!("--saturate: expected 1 to 100, found {users}"));
        }
    }
}
