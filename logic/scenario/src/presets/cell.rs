//! A cell of [`crate::cells`] with its surroundings, as the text of a scenario.

use core::fmt::{self, Write as _};

use ranpace_cc::Algorithm;
use ranpace_units::Span;

use super::{quoted, write_flows, write_head};
use crate::cells::{BASE, Preset};

/// A server, a preset cell, and flows to its users, or from them if the preset is for uploads.
#[derive(Clone, Debug)]
pub struct CellRunSpec<'a> {
    /// Name of the scenario.
    pub name: String,
    /// The cell and its surroundings.
    pub preset: &'static Preset,
    /// Round-trip time of the wired part, in place of the preset's; all of it on the first link.
    pub rtt: Option<Span>,
    /// Flows of each user.
    pub flows: u32,
    /// Time between the starts of consecutive flows.
    pub stagger: Span,
    /// The flows' congestion control.
    pub cc: &'a Algorithm,
    /// Duration of the run.
    pub duration: Span,
    /// Start of measurement.
    pub warmup: Span,
    /// Seed of all random choices, including the places of users.
    pub seed: u64,
}

impl<'a> CellRunSpec<'a> {
    /// One flow for each user for 30 s, with seed 1.
    pub fn new(preset: &'static Preset, cc: &'a Algorithm) -> Self {
        Self {
            name: preset.name.to_owned(),
            preset,
            rtt: None,
            flows: 1,
            stagger: Span::ZERO,
            cc,
            duration: Span::from_secs(30),
            warmup: Span::ZERO,
            seed: 1,
        }
    }
}

/// The text of a scenario with the host "server", the cell "cell", its user "user", or "user.1" and so on if there are
/// several, and flows between them: "flow", or "flow.1" and so on. Values that are invalid in a scenario, such as zero flows,
/// are written unchanged, and [`crate::parse()`] refuses them.
pub fn cell(spec: &CellRunSpec<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, spec);
    text
}

fn write(text: &mut String, spec: &CellRunSpec<'_>) -> fmt::Result {
    let (preset, around) = (spec.preset, &spec.preset.around);
    writeln!(text, "# {}.", preset.about)?;
    write_head(text, &spec.name, [spec.duration, spec.warmup], spec.seed)?;
    let mut from = "server";
    for (index, wired) in around.wired.iter().enumerate() {
        writeln!(
            text,
            "\n[[link]]\nname = \"{from}-{}\"\nfrom = \"{from}\"\nto = \"{}\"",
            wired.to, wired.to
        )?;
        writeln!(text, "rate = \"{}\"", wired.rate)?;
        match spec.rtt {
            // The odd nanosecond goes to the way back.
            Some(rtt) if index == 0 => {
                writeln!(text, "delay = \"{}\"\nback = {{ delay = \"{}\" }}", rtt / 2, rtt - rtt / 2)?;
            }
            Some(_) => writeln!(text, "delay = \"0s\"\nduplex = true")?,
            None => writeln!(text, "delay = \"{}\"\nduplex = true", wired.delay)?,
        }
        if !wired.overhead.is_zero() {
            writeln!(text, "overhead = \"{}\"", wired.overhead)?;
        }
        // The wired links are never the bottleneck and lose nothing.
        writeln!(text, "queue = {{ kind = \"droptail\", limit = \"unlimited\" }}")?;
        from = wired.to;
    }
    writeln!(text, "\n[[cell]]\nname = \"cell\"\nhost = \"{BASE}\"\npreset = {}", quoted(preset.name))?;
    writeln!(text, "\n[[user]]\nname = \"user\"\ncell = \"cell\"")?;
    if around.users != 1 {
        writeln!(text, "count = {}", around.users)?;
    }
    let ends = if around.is_upload { ("user", "server") } else { ("server", "user") };
    let flows = u64::from(around.users) * u64::from(spec.flows);
    write_flows(text, ends, flows, spec.stagger, spec.cc)?;
    text.push_str(around.flow);
    text.push_str(around.more);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::PRESETS;
    use crate::{Hop, parse};
    use ranpace_phy::Direction;

    #[test]
    fn every_preset_is_a_scenario_whose_flows_cross_the_cell() {
        let cc: Algorithm = "newreno".parse().unwrap();
        for preset in &PRESETS {
            for (rtt, flows) in [(None, 1), (Some(Span::from_millis(7)), 3)] {
                let spec = CellRunSpec { rtt, flows, ..CellRunSpec::new(preset, &cc) };
                let text = cell(&spec);
                let scenario = parse(&text, "preset.toml", &mut ()).unwrap_or_else(|e| panic!("{e}\n{text}"));
                assert_eq!(scenario.cells[0].config, preset.config(), "{}", preset.name);
                assert_eq!(scenario.users[0].config, preset.user(), "{}", preset.name);
                let flows: Vec<_> = scenario.flows.iter().filter(|f| f.name.starts_with("flow")).collect();
                assert_eq!(flows.len() as u32, preset.around.users * spec.flows, "{}", preset.name);
                for (flow, number) in flows.into_iter().zip(0..) {
                    let user = number % preset.around.users;
                    let radio = |direction| Hop::Radio { user, direction };
                    let (first, last) = (flow.path.first().unwrap(), flow.path.last().unwrap());
                    match preset.around.is_upload {
                        true => assert_eq!(*first, radio(Direction::Uplink)),
                        false => assert_eq!(*last, radio(Direction::Downlink)),
                    }
                    let wire = flow.path.iter().chain(&flow.back).filter_map(|hop| hop.link());
                    let wire: Span = wire.map(|link| scenario.links[link].config.delay).sum();
                    let expected = preset.around.wired.iter().map(|wired| wired.delay * 2).sum();
                    assert_eq!(wire, rtt.unwrap_or(expected), "{}", preset.name);
                }
            }
        }
    }
}
