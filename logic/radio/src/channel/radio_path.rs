//! One user's radio path in one direction: combines this module's models, from the user's position to the SINR of each
//! group of resource blocks.
//!
//! A [`Site`] holds what the users of a carrier share, a [`RadioPath`] what one of them has (less than 400 bytes). Nothing
//! happens between looks. The average loss changes slowly and is computed once per [`GRAIN`] that contains a look, at the
//! beginning of the grain; so the result of a look does not depend on earlier looks.

use std::sync::Arc;

use ranpace_units::{Span, Time};

use super::buildings::Blockage;
use super::decibel::{MOST, counted, from_db};
use super::{
    Building, Carrier, CqiScale, Fading, FadingSpeed, FadingUser, Flicker, Mobility, Motion, Path, PathLoss,
    Position, Receiver, RecordedFading, Recording, Shadowing, Transmitter, shadowing, umi_clear_probability,
};

/// Path loss, shadowing and blockage are constant for this long: 10 ms, in which a car moves 30 cm. Ours.
pub const GRAIN: Span = Span::from_millis(10);

/// Whether users have line of sight to the base station.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// All do.
    Clear,
    /// None does.
    Blocked,
    /// Users without a building between them and the base station.
    Buildings(Arc<[Building]>),
    /// With the probability of a street canyon ([`umi_clear_probability`]), drawn anew every 50 m travelled.
    Chance,
}

/// Source of the average SINR.
#[derive(Clone, Debug)]
pub enum Average {
    /// The distance.
    Distance {
        /// Path loss.
        loss: PathLoss,
        /// Line of sight. Among path losses only the street canyon's depends on it; but with all of them, a path through two
        /// buildings, or into one, loses 20 dB more.
        sight: Sight,
        /// Shadowing.
        shadowing: Option<Shadowing>,
    },
    /// The CQI of a recording, converted by [`CqiScale::middle_db`]: this is what the phone reported to its network, so a cell here
    /// grants what that network could. A phone's SNR describes reference signals and is less informative: with several antennas,
    /// interference cancellation or another numerology the two differ widely (logs with a mean of 9 dB have a mean CQI of 12). A CQI
    /// already contains fast fading, so none is added. A recording without CQI is used by its SINR. Either already contains the noise of
    /// the receiver; a generator of noise or other cells are not modelled with a recording.
    Recording(Arc<Recording>, Box<CqiScale>),
}

/// Fast fading.
#[derive(Clone, Debug)]
pub enum Fast {
    /// No fast fading.
    Steady,
    /// Multipath fading.
    Fading(Fading, FadingSpeed),
    /// Millimetre waves.
    Flicker(Flicker),
    /// From a file.
    Recorded(Arc<RecordedFading>),
}

/// The state that all users of a carrier share in one direction.
#[derive(Clone, Debug)]
pub struct Site {
    /// Position of the base station.
    pub position: Position,
    /// The carrier.
    pub carrier: Carrier,
    /// The transmitter: the base station, or a user. Cells set 0 dBm on each PRB for users, and add the power of a grant.
    pub transmitter: Transmitter,
    /// The receiving end.
    pub receiver: Receiver,
    /// Width of a PRB in Hz: twelve sub-carriers.
    pub prb_hz: f64,
    /// Source of the average SINR.
    pub average: Average,
    /// Fast fading.
    pub fast: Fast,
}

/// Result of a look, besides the SINR of each group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// SINR without fast fading, as a ratio.
    pub average_sinr: f64,
    /// Loss in dB without fast fading; 0 under a recording.
    pub loss_db: f64,
    /// Whether the user has line of sight to the base station.
    pub clear: bool,
}

/// The slow parts of the channel in one grain.
#[derive(Clone, Copy, Debug)]
struct Slow {
    grain: u64,
    /// Motion of the user, which determines the rest; `None` if the rest comes from a recording.
    motion: Option<Motion>,
    look: Look,
    /// SINR while a generator of noise is on.
    disturbed: f64,
    /// Whether it already contains fast fading.
    is_whole: bool,
}

/// One user's path in one direction.
#[derive(Clone, Debug)]
pub struct RadioPath {
    seed: u64,
    fading: FadingUser,
    /// Offset at which this user starts in a recording.
    start: Span,
    slow: Option<Slow>,
}

impl RadioPath {
    /// The path of user number `user` under this seed. Shadowing and line of sight depend on the user only; fading also depends on
    /// `direction`, as on the two carriers of FDD (in TDD use one value for both).
    pub fn new(seed: u64, user: u64, direction: u8) -> Self {
        let own = seed.wrapping_add(user.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { seed: own, fading: FadingUser::new(own, direction.into()), start: Span::ZERO, slow: None }
    }

    /// The same path, started this far into the recordings of its site.
    pub fn starting_at(self, start: Span) -> Self {
        Self { start, ..self }
    }

    /// Writes the SINR of each group at this time, as ratios, to the groups that fit in `sinrs`. Groups are defined by fading only;
    /// without it, all of `sinrs` are equal. Entries beyond the groups are 0. With an empty slice, only the slow parts are computed.
    pub fn look(&mut self, site: &Site, mobility: &mut Mobility, now: Time, sinrs: &mut [f32]) -> Look {
        let slow = self.slow(site, mobility, now);
        let disturbed = site.receiver.source.is_some_and(|source| source.is_on(now, self.seed));
        let look = Look {
            average_sinr: if disturbed { slow.disturbed } else { slow.look.average_sinr },
            ..slow.look
        };
        if sinrs.is_empty() {
            return look;
        }
        let average = look.average_sinr as f32;
        match &site.fast {
            _ if slow.is_whole => sinrs.fill(1.0),
            Fast::Steady => sinrs.fill(1.0),
            Fast::Flicker(flicker) => sinrs.fill(flicker.gain(self.seed, now) as f32),
            Fast::Fading(fading, speed) => {
                // Distance matters only if fading follows it.
                let travelled = match speed {
                    FadingSpeed::AsMoving => mobility.at(now).travelled_m,
                    FadingSpeed::Fixed(_) => 0.0,
                };
                let wavelengths = speed.wavelengths(site.carrier, now, travelled);
                fading.scaled(&self.fading, wavelengths, average, sinrs);
                let known = fading.groups().min(sinrs.len());
                sinrs[known..].fill(0.0);
                return look;
            }
            Fast::Recorded(recorded) => {
                sinrs.fill(0.0);
                recorded.gains(self.start, now, sinrs);
            }
        }
        for sinr in sinrs {
            *sinr = (*sinr * average).min(MOST as f32);
        }
        look
    }

    /// Bounds on the SINRs from `now` on, over the longest time that can be predicted, divided by `parts`; `None` if nothing
    /// can be predicted.
    pub(crate) fn outlook(
        &mut self,
        site: &Site,
        mobility: &mut Mobility,
        now: Time,
        parts: u64,
    ) -> Option<SinrBounds> {
        let Fast::Fading(fading, speed @ FadingSpeed::Fixed(metres)) = &site.fast else { return None };
        if site.receiver.source.is_some()
            || matches!(site.average, Average::Recording(..))
            || fading.groups() > SinrBounds::GROUPS
        {
            return None;
        }
        let average = self.slow(site, mobility, now).look.average_sinr;
        let per_second = *metres / site.carrier.wavelength_m();
        if average <= 0.0 || per_second <= 0.0 {
            return None;
        }
        let straight = Span::from_secs_f64(0.999 * Fading::STEP / per_second) / parts.max(1);
        // The average SINR of a moving user holds only within the grain.
        let holds = match mobility {
            Mobility::Static(_) => straight,
            _ => straight.min(Span::from_nanos(GRAIN.as_nanos() - 1 - now.as_nanos() % GRAIN.as_nanos())),
        };
        let [from, to] = [now, now + holds].map(|at| speed.wavelengths(site.carrier, at, 0.0));
        let deviation = fading.deviation(&self.fading, from, to - from);
        let groups = fading.groups();
        let mut ends = [[[0.0; 2]; SinrBounds::GROUPS]; 2];
        for (amplitudes, at) in ends.iter_mut().zip([from, to]) {
            fading.amplitudes(&self.fading, at, &mut amplitudes[..groups]);
        }
        Some(SinrBounds { average, ends, groups, deviation, holds })
    }

    /// Noise and interference in dBm on a PRB at its receiver.
    pub fn noise_dbm(&self, site: &Site, now: Time) -> f64 {
        site.receiver.noise_dbm(site.prb_hz, now, self.seed)
    }

    /// The slow parts, now.
    #[inline]
    fn slow(&mut self, site: &Site, mobility: &mut Mobility, now: Time) -> Slow {
        let grain = now.as_nanos() / GRAIN.as_nanos();
        match self.slow {
            Some(slow) if slow.grain == grain => slow,
            _ => self.slow_of(site, mobility, grain),
        }
    }

    #[inline(never)]
    fn slow_of(&mut self, site: &Site, mobility: &mut Mobility, grain: u64) -> Slow {
        let (mut at, mut is_whole) = (None, false);
        let (look, disturbed) = match &site.average {
            Average::Distance { loss, sight, shadowing } => {
                let motion = mobility.at(Time::ZERO + GRAIN * grain);
                at = Some(motion);
                if let Some(slow) = self.slow.as_mut().filter(|slow| slow.motion == at) {
                    slow.grain = grain; // the user did not move
                    return *slow;
                }
                let (loss_db, clear) = self.loss(site, *loss, sight, *shadowing, &motion);
                let received = from_db(site.transmitter.prb_dbm() - loss_db);
                let [quiet, disturbed] =
                    site.receiver.noise_mw(site.prb_hz).map(|noise| ratio(received, noise));
                (Look { average_sinr: quiet, loss_db, clear }, disturbed)
            }
            Average::Recording(recording, scale) => {
                let found = recording.at(self.start + GRAIN * grain);
                let from_cqi = found.cqi.map(|cqi| scale.middle_db(cqi));
                is_whole = from_cqi.is_some();
                let sinr_db = from_cqi.or(found.sinr_db).unwrap_or(0.0) + found.gain_db.unwrap_or(0.0);
                let average_sinr = from_db(sinr_db);
                (Look { average_sinr, loss_db: 0.0, clear: true }, average_sinr)
            }
        };
        let slow = Slow { grain, motion: at, look, disturbed, is_whole };
        self.slow = Some(slow);
        slow
    }

    /// Loss in dB, and whether the user has line of sight.
    fn loss(
        &self,
        site: &Site,
        loss: PathLoss,
        sight: &Sight,
        shadowing: Option<Shadowing>,
        motion: &Motion,
    ) -> (f64, bool) {
        let path = Path::between(site.position, motion.position);
        let (clear, extra_db) = match sight {
            Sight::Clear => (true, 0.0),
            Sight::Blocked => (false, 0.0),
            Sight::Buildings(buildings) => {
                let found = Blockage::between(buildings, site.position, motion.position);
                (found.is_clear(), found.extra_db())
            }
            Sight::Chance => {
                let probability = umi_clear_probability(path.ground_m());
                (shadowing::in_sight(self.seed, motion.travelled_m, probability), 0.0)
            }
        };
        let shadow_db =
            shadowing.map_or(0.0, |shadowing| shadowing.loss_db(self.seed, motion.travelled_m, clear));
        (loss.loss_db(path, site.carrier, clear) + extra_db + shadow_db, clear)
    }
}

/// Bounds on the SINRs of a path for some time. Over so short a distance the complex amplitudes of fading are nearly straight
/// lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinrBounds {
    /// SINR without fading.
    average: f64,
    /// Amplitudes of all groups at the beginning and at the end of the time for which it holds.
    ends: [[[f32; 2]; Self::GROUPS]; 2],
    groups: usize,
    /// Bound on the deviation of amplitudes from the straight lines between both.
    deviation: f64,
    /// For how long it holds.
    pub holds: Span,
}

impl SinrBounds {
    /// The most groups that a cell has.
    const GROUPS: usize = 32;
    /// Margin for the rounding of gains and distances, in amplitudes. Ours: a thousand times the actual error.
    const ROUNDING: f64 = 1e-3;

    /// Lower and upper bound of each group's SINR while it holds.
    pub fn ranges(&self) -> impl Iterator<Item = [f64; 2]> {
        let [begins, ends] = &self.ends;
        begins.iter().zip(ends).take(self.groups).map(|(begin, end)| {
            let [a, b, c, d] = [begin[0], begin[1], end[0], end[1]].map(f64::from);
            // The nearest and the farthest point from the origin on the line between both ends.
            let (along, across) = (c - a, d - b);
            let square = along * along + across * across;
            let share = if square > 0.0 { (-(a * along + b * across) / square).clamp(0.0, 1.0) } else { 0.0 };
            let length = |x: f64, y: f64| (x * x + y * y).sqrt();
            let margin = self.deviation + Self::ROUNDING;
            let least = (length(a + share * along, b + share * across) - margin).max(0.0);
            let most = length(a, b).max(length(c, d)) + margin;
            [least * least * self.average, most * most * self.average]
        })
    }
}

/// Signal-to-noise ratio.
fn ratio(signal: f64, noise: f64) -> f64 {
    if noise > 0.0 { counted(signal / noise) } else { MOST }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{
        DelayProfile, Groups, NoiseSource, Rings, STREET, STREET_BASE, STREET_IN_SIGHT, STREET_OUT_OF_SIGHT,
        Trajectory, effective_sinr, to_db,
    };
    use proptest::prelude::*;
    use ranpace_phy::{CqiThresholds, LteBandwidth};

    fn rapid(sight: Sight, fast: Fast) -> Site {
        Site {
            position: STREET_BASE,
            carrier: Carrier::GHZ_28,
            transmitter: Transmitter { power_dbm: 35.0, gain_db: Transmitter::MMWAVE_BEAM_DB, prbs: 1 },
            receiver: Receiver::quiet(9.0),
            prb_hz: 200e6,
            average: Average::Distance { loss: PathLoss::UmiStreetCanyon, sight, shadowing: None },
            fast,
        }
    }

    /// 004's downlink.
    fn cost231(fast: Fast) -> Site {
        Site {
            position: Position::default(),
            carrier: Carrier::MHZ_2120,
            transmitter: Transmitter { power_dbm: 46.0, gain_db: 0.0, prbs: 100 },
            receiver: Receiver::quiet(9.0),
            prb_hz: 180e3,
            average: Average::Distance { loss: PathLoss::COST231_NS3, sight: Sight::Clear, shadowing: None },
            fast,
        }
    }

    fn epa() -> Fast {
        let groups = Groups::lte(LteBandwidth::Mhz20.prbs());
        Fast::Fading(Fading::new(Rings::shared(), DelayProfile::Epa, &groups), FadingSpeed::KM_H_3)
    }

    fn standing(x: f64) -> Mobility {
        Mobility::Static(Position::new(x, 0.0, 0.0))
    }

    #[test]
    fn the_street_in_sight_and_out_of_it() {
        let site = rapid(Sight::Buildings(STREET.into()), Fast::Steady);
        let mut sinr = [0.0; 2];
        let mut path = RadioPath::new(1, 1, 0);
        let look = path.look(&site, &mut Mobility::Static(STREET_IN_SIGHT), Time::ZERO, &mut sinr);
        // Test P-4 and the beam: 32.2 + 30 dB.
        assert!(look.clear && (to_db(look.average_sinr) - 62.2).abs() < 0.05);
        assert!(sinr[0] == sinr[1] && f64::from(sinr[0]) == look.average_sinr as f32 as f64);
        let away = Position { y: 63.0, ..STREET_OUT_OF_SIGHT };
        let walk = Trajectory::waypoints(Time::ZERO, 1.0, &[STREET_OUT_OF_SIGHT, away]).unwrap();
        let look =
            RadioPath::new(1, 1, 0).look(&site, &mut Mobility::Path(walk.into()), Time::ZERO, &mut sinr);
        // Test P-4 at 100 m, the beam, and 20 dB for a user inside a building: -6.9 + 30 - 20 dB.
        assert!(!look.clear && (to_db(look.average_sinr) - 3.1).abs() < 0.1, "{look:?}");
    }

    #[test]
    fn fading_leaves_the_mean_power_and_costs_capacity() {
        let site = cost231(epa());
        let (mut power, mut capacity) = (0.0, 0.0);
        let groups = Groups::lte(LteBandwidth::Mhz20.prbs());
        for user in 0..400 {
            let (mut path, mut mobility) = (RadioPath::new(7, user, 0), standing(500.0));
            let mut sinrs = [0.0; 25];
            let look = path.look(&site, &mut mobility, Time::from_secs(3), &mut sinrs);
            assert!((to_db(look.average_sinr) - 7.62).abs() < 0.05);
            power += f64::from(sinrs.iter().sum::<f32>()) / 25.0 / look.average_sinr / 400.0;
            let effective = effective_sinr(sinrs.iter().copied().zip(groups.prbs().iter().copied()));
            capacity += libm::log2(1.0 + effective) / 400.0;
        }
        // The mean power of 400 users, each nearly flat over the band: five standard errors are 0.2.
        assert!((power - 1.0).abs() < 0.2, "{power}");
        // Rayleigh at 7.62 dB: E log2(1 + 5.78 g) = exp(1/5.78) E1(1/5.78) / ln 2 is 2.28, and 2.76 without fading.
        assert!((2.0..2.6).contains(&capacity), "{capacity}");
    }

    #[test]
    fn readings_do_not_depend_on_earlier_readings() {
        let site = Site {
            average: Average::Distance {
                loss: PathLoss::UmiStreetCanyon,
                sight: Sight::Chance,
                shadowing: Some(Shadowing::UMI),
            },
            ..cost231(epa())
        };
        let line = [Position::new(10.0, 0.0, 1.5), Position::new(500.0, 0.0, 1.5)];
        let mut mobility = Mobility::Path(Trajectory::waypoints(Time::ZERO, 20.0, &line).unwrap().into());
        let mut often = RadioPath::new(2, 3, 1);
        for ms in 0..5000 {
            let (mut a, mut b) = ([0.0; 25], [0.0; 25]);
            let now = Time::from_millis(ms);
            let found = often.look(&site, &mut mobility, now, &mut a);
            if ms % 97 == 0 {
                assert_eq!(RadioPath::new(2, 3, 1).look(&site, &mut mobility, now, &mut b), found);
                assert_eq!(a, b);
            }
        }
    }

    /// Cells rely on the bounds of an outlook instead of measuring, so no look may fall outside them.
    #[test]
    fn every_look_is_within_the_outlook() {
        let line = [Position::new(300.0, 0.0, 1.5), Position::new(320.0, 0.0, 1.5)];
        let walk = Trajectory::waypoints(Time::ZERO, 1.5, &line).unwrap();
        let (mut looks, mut narrow) = (0, 0);
        for (profile, speed) in [
            (DelayProfile::Epa, FadingSpeed::KM_H_3),
            (DelayProfile::Etu, FadingSpeed::KM_H_60),
            (DelayProfile::Flat, FadingSpeed::KM_H_3),
        ] {
            let groups = Groups::lte(LteBandwidth::Mhz20.prbs());
            let site = cost231(Fast::Fading(Fading::new(Rings::shared(), profile, &groups), speed));
            for user in 0..40 {
                let mut mobility =
                    if user % 2 == 0 { standing(300.0) } else { Mobility::Path(walk.clone().into()) };
                let mut path = RadioPath::new(3, user, 0);
                for begin in (0..3000).step_by(37).map(Time::from_millis) {
                    let outlook = path.outlook(&site, &mut mobility, begin, 1 + user % 4).unwrap();
                    let ranges: Vec<[f64; 2]> = outlook.ranges().collect();
                    for after in (0..9).map(|part| outlook.holds / 8 * part) {
                        let mut sinrs = [0.0; 25];
                        path.look(&site, &mut mobility, begin + after, &mut sinrs);
                        for (sinr, [least, most]) in sinrs.into_iter().zip(&ranges) {
                            assert!((*least..=*most).contains(&f64::from(sinr)), "{sinr}: {least} to {most}");
                        }
                        looks += 1;
                        narrow += u64::from(ranges.iter().all(|[least, most]| *most < 4.0 * least));
                    }
                }
            }
        }
        assert!(narrow * 4 > looks, "{narrow} of {looks} outlooks say much");
    }

    #[test]
    fn users_and_directions_differ_and_a_path_is_small() {
        let site = cost231(epa());
        let look = |user, direction| {
            let mut sinrs = [0.0; 25];
            RadioPath::new(5, user, direction).look(&site, &mut standing(100.0), Time::ZERO, &mut sinrs);
            sinrs
        };
        assert_eq!(look(1, 0), look(1, 0));
        assert_ne!(look(1, 0), look(2, 0));
        assert_ne!(look(1, 0), look(1, 1));
        assert!(size_of::<RadioPath>() < 400, "{}", size_of::<RadioPath>());
    }

    #[test]
    fn a_generator_of_noise_is_heard_while_it_is_on() {
        let mut site = cost231(Fast::Steady);
        let source = NoiseSource {
            prb_dbm: -90.0,
            on: Span::from_millis(5),
            period: Span::from_millis(20),
            random: false,
        };
        site.receiver.source = Some(source);
        let mut path = RadioPath::new(1, 1, 0);
        for (ms, expected) in [(0, true), (4, true), (5, false), (19, false), (20, true)] {
            let found = path.look(&site, &mut standing(500.0), Time::from_millis(ms), &mut []).average_sinr;
            // 7.62 dB over a floor of -112.4 dBm; the generator is 22.4 dB above it.
            assert_eq!(to_db(found) < -10.0, expected, "{ms} ms: {found}");
        }
    }

    #[test]
    fn a_recording_is_the_average() {
        let recording = Recording::parse("time_s,sinr_db\n0,10\n1,20\n").unwrap();
        let scale = CqiScale::new(CqiThresholds::Awgn);
        let mut site = cost231(Fast::Steady);
        site.average = Average::Recording(Arc::new(recording), Box::new(scale));
        let mut path = RadioPath::new(1, 1, 0).starting_at(Span::from_millis(500));
        let found = path.look(&site, &mut standing(500.0), Time::from_millis(104), &mut []).average_sinr;
        assert!((to_db(found) - 16.0).abs() < 1e-9, "{found}");
        // The recorded CQI counts, whatever the SINR, and no fading is added.
        let both = Recording::parse("time_s,sinr_db,cqi\n0,-12,12\n1,30,\n2,-5,1\n").unwrap();
        let measured =
            Site { average: Average::Recording(Arc::new(both), Box::new(scale)), ..cost231(epa()) };
        for (ms, cqi) in [(0, 12), (999, 12), (1500, 12), (2000, 1), (2900, 1)] {
            let mut sinrs = [0.0; 25];
            RadioPath::new(1, 1, 0).look(&measured, &mut standing(500.0), Time::from_millis(ms), &mut sinrs);
            assert!(sinrs.iter().all(|sinr| scale.cqi((*sinr).into()).get() == cqi), "{ms} ms: {sinrs:?}");
        }
        let only_cqi = Recording::parse("time_s,cqi\n0,7\n").unwrap();
        site.average = Average::Recording(Arc::new(only_cqi), Box::new(scale));
        let found =
            RadioPath::new(1, 1, 0).look(&site, &mut standing(500.0), Time::ZERO, &mut []).average_sinr;
        assert_eq!(scale.cqi(found).get(), 7);
    }

    proptest! {
        #[test]
        fn any_place_at_any_time_has_an_sinr(
            x in any::<f64>(), y in any::<f64>(), z in any::<f64>(), ns: u64, power_dbm in any::<f64>(),
            noise_db in any::<f64>(), prb_hz in any::<f64>(), kind in 0..4
        ) {
            let mut site = rapid(Sight::Buildings(STREET.into()), Fast::Flicker(Flicker::MMWAVE));
            site.transmitter.power_dbm = power_dbm;
            site.receiver.noise_figure_db = noise_db;
            site.prb_hz = prb_hz;
            let (loss, sight) = match kind {
                0 => (PathLoss::Friis, Sight::Clear),
                1 => (PathLoss::COST231_NS3, Sight::Blocked),
                2 => (PathLoss::UmiStreetCanyon, Sight::Chance),
                _ => (PathLoss::UmiStreetCanyon, Sight::Buildings(STREET.into())),
            };
            site.average = Average::Distance { loss, sight, shadowing: Some(Shadowing::UMI) };
            let mut sinrs = [0.0; 3];
            let mut mobility = Mobility::Static(Position::new(x, y, z));
            let look = RadioPath::new(ns, ns, 0).look(&site, &mut mobility, Time::from_nanos(ns), &mut sinrs);
            prop_assert!(look.average_sinr.is_finite() && look.loss_db.is_finite());
            prop_assert!(sinrs.iter().all(|sinr| *sinr >= 0.0 && sinr.is_finite()), "{sinrs:?}");
        }
    }
}
