//! Participants on the path of packets that are not their endpoints: Lightweight PEPs, header rewriters, and proxies that count what they
//! pass.

use ranpace_network::{Direction, Stop};
use ranpace_scenario::{ProxyKind, Scenario};

/// A participant on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnPath {
    /// A Lightweight PEP, by its number.
    Pep(usize),
    /// A header rewriter, by its number.
    Rewriter(usize),
    /// A proxy, by its number, that counts the traffic to this user that it does not split: UDP, datagrams and QUIC.
    Proxy(usize, u32),
}

/// All participants, and where packets pass them. A flow that passes several proxies is counted by the first of them in the file.
pub(crate) fn participants(scenario: &Scenario) -> (Vec<OnPath>, Vec<Stop>) {
    let (mut on_path, mut stops) = (Vec::new(), Vec::new());
    let mut stop = |who: OnPath, flow: usize, direction: Direction, hop: usize| {
        let place = on_path.iter().position(|known| *known == who).unwrap_or_else(|| {
            on_path.push(who);
            on_path.len() - 1
        });
        stops.push(Stop { flow, direction, hop, participant: place as u32 });
    };
    for (index, pep) in scenario.peps.iter().enumerate() {
        let watches = pep.watches.iter();
        watches.for_each(|watch| stop(OnPath::Pep(index), watch.flow, Direction::Forward, watch.forward));
    }
    for (index, rewriter) in scenario.rewriters.iter().enumerate() {
        for watch in &rewriter.watches {
            stop(OnPath::Rewriter(index), watch.flow, Direction::Forward, watch.forward);
            stop(OnPath::Rewriter(index), watch.flow, Direction::Back, watch.back);
        }
    }
    let mut counted = vec![false; scenario.flows.len()];
    for (index, proxy) in scenario.proxies.iter().enumerate() {
        if !matches!(&proxy.kind, ProxyKind::Rapid(settings) if settings.account_udp) {
            continue;
        }
        for passing in &proxy.passing {
            if !std::mem::replace(&mut counted[passing.flow], true) {
                let who = OnPath::Proxy(index, passing.user as u32);
                stop(who, passing.flow, Direction::Forward, passing.forward);
            }
        }
    }
    (on_path, stops)
}
