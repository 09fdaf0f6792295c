//! Records the radio information of a run's cells as lines of JSON (`ranpace_rnis::lines`).

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use ranpace_rnis::lines::{LineClock, Writer};
use ranpace_rnis::update::Update;
use ranpace_rnis::{AssociateId, IdType};
use ranpace_scenario::Scenario;
use ranpace_sim::{RunResult, Simulation, Updates};
use ranpace_units::Time;

use crate::failure::Failure;

/// Plays a scenario and writes the radio information of its cells to a file. Users have the addresses that they would have in an emulation.
pub fn play(
    scenario: &Scenario,
    path: &Path,
    go_on: &mut dyn FnMut(Time) -> bool,
) -> Result<RunResult, Failure> {
    if scenario.cells.is_empty() {
        return Err(Failure::asked("--rnis-record records cells, and the scenario has none: add a [[cell]]"));
    }
    let failed = |error: io::Error| Failure::asked(format!("{}: {error}", path.display()));
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
    let topology = ranpace_emulator::Topology::new(scenario).ok();
    let ids = |user: u32| {
        let host = scenario.users.get(user as usize).map(|user| user.host);
        let place =
            topology.as_ref().and_then(|topology| topology.hosts.iter().position(|at| Some(*at) == host));
        let id = |place| AssociateId {
            id_type: IdType::UeIpv4,
            value: ranpace_emulator::addresses::v4(place).to_string(),
        };
        place.map(id).into_iter().collect()
    };
    let writer = Writer::default();
    let mut line = Vec::new();
    writer.stream(LineClock::Run, &mut line);
    let mut written = file.write_all(&line);
    let mut updates = Updates(|update: Update| {
        if written.is_ok() {
            line.clear();
            writer.update(&update, &mut line);
            written = file.write_all(&line);
        }
    });
    let result = Simulation::new(scenario).with_updates(&ids, &mut updates).run_while(go_on);
    written.and_then(|()| file.flush()).map_err(failed)?;
    Ok(result)
}
