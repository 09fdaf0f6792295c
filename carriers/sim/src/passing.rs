//! What packets pass on their way that is none of their ends: Lightweight PEPs, and proxies that count what they let through.

use ranpace_network::{Direction, Stop};
use ranpace_scenario::{ProxyKind, Scenario};

/// Somebody whom packets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A Lightweight PEP, by its number.
    Pep(usize),
    /// A proxy, by its number, that counts what goes to this user: UDP, datagrams and QUIC.
    Proxy(usize, u32),
}

/// All of them, and where packets pass them. A flow that passes several proxies is counted by the first of them in the
/// file.
pub(crate) fn participants(scenario: &Scenario) -> (Vec<Passed>, Vec<Stop>) {
    let (mut passed, mut stops) = (Vec::new(), Vec::new());
    let mut stop = |who: Passed, flow: usize, hop: usize| {
        let place = passed.iter().position(|known| *known == who).unwrap_or_else(|| {
            passed.push(who);
            passed.len() - 1
        });
        stops.push(Stop { flow, direction: Direction::Forward, hop, participant: place as u32 });
    };
    for (index, pep) in scenario.peps.iter().enumerate() {
        pep.watches.iter().for_each(|watch| stop(Passed::Pep(index), watch.flow, watch.forward));
    }
    let mut counted = vec![false; scenario.flows.len()];
    for (index, proxy) in scenario.proxies.iter().enumerate() {
        if !matches!(&proxy.kind, ProxyKind::Rapid(settings) if settings.account_udp) {
            continue;
        }
        for passing in &proxy.passing {
            if !std::mem::replace(&mut counted[passing.flow], true) {
                stop(Passed::Proxy(index, passing.user as u32), passing.flow, passing.forward);
            }
        }
    }
    (passed, stops)
}
