//! Flows that pass by a proxy: UDP, datagrams and QUIC. It lets them through and may count them.

use ranpace_scenario::{ProxyKind, Scenario};

/// The proxies that count what passes by, and what that is.
#[derive(Debug)]
pub(crate) struct Passing {
    /// Of each flow its proxy, the hops before that, and its user; proxy [`NOBODY`] if none counts it. Empty if none counts any.
    of: Vec<(u16, u16, u32)>,
}

const NOBODY: u16 = u16::MAX;

impl Passing {
    /// Those of a scenario. A flow that passes several proxies by is counted by the first of them in the file.
    pub fn new(scenario: &Scenario) -> Self {
        let mut of = Vec::new();
        for (index, proxy) in scenario.proxies.iter().enumerate() {
            if !matches!(&proxy.kind, ProxyKind::Rapid(settings) if settings.account_udp) {
                continue;
            }
            of.resize(scenario.flows.len(), (NOBODY, 0, 0));
            for passing in &proxy.passing {
                let entry = &mut of[passing.flow];
                if entry.0 == NOBODY {
                    // The parser bounds proxies, hops and users far below.
                    *entry = (index as u16, passing.forward as u16, passing.user as u32);
                }
            }
        }
        Self { of }
    }

    /// The proxy that a packet has reached with its last hop, if it counts it, and the user.
    #[inline]
    pub fn at(&self, flow: u32, hop: u16) -> Option<(usize, u32)> {
        match self.of.get(flow as usize) {
            Some(&(proxy, forward, user)) if proxy != NOBODY && forward == hop => {
                Some((usize::from(proxy), user))
            }
            _ => None,
        }
    }
}
