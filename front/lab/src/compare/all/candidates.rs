//! What is compared: every control and mechanism, with what it needs and where it can be used.

/// What a control or mechanism needs, other than the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Whether the sender has to be changed; a proxy alone changes no end.
    pub sender: bool,
    /// Whether the receiver has to be changed.
    pub receiver: bool,
    /// An element of the network; empty for none.
    pub network: &'static str,
    /// Where radio information comes from; empty for none.
    pub radio: &'static str,
}

impl Needs {
    /// In words, separated by commas.
    pub fn words(&self) -> String {
        let parts = [
            if self.sender { "sender" } else { "" },
            if self.receiver { "receiver" } else { "" },
            self.network,
            self.radio,
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// Where it can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Over any path.
    Anywhere,
    /// Downloads, over links and in cells.
    Down,
    /// Downloads in a cell.
    CellDown,
    /// Uploads in a cell.
    CellUp,
}

/// A control or mechanism of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its name in the tables.
    pub name: &'static str,
    /// The congestion control of the flows, with its options.
    pub cc: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// Where it can be used.
    pub place: Place,
    /// Tables of the scenario that it needs in a cell.
    pub around: &'static str,
    /// Queue of a link whose capacity changes, and of one that it shares with CUBIC, if it needs another one than drop-tail; empty for
    /// that.
    pub queue: [&'static str; 2],
    /// Keys of bearers in `[[cell]]`, as lines; empty for none.
    pub bearer: &'static str,
    /// Whether it carries files; others send datagrams without repairing losses.
    pub reliable: bool,
}

const fn control(cc: &'static str) -> Candidate {
    let needs = Needs { sender: true, receiver: false, network: "", radio: "" };
    let (place, around, queue, bearer) = (Place::Anywhere, "", [""; 2], "");
    Candidate { name: cc, cc, needs, place, around, queue, bearer, reliable: true }
}

impl Candidate {
    /// The receiver has to be changed, too.
    const fn with_receiver(self) -> Self {
        Self { needs: Needs { receiver: true, ..self.needs }, ..self }
    }

    const fn with_radio(self, radio: &'static str, place: Place) -> Self {
        Self { needs: Needs { radio, ..self.needs }, place, ..self }
    }

    const fn with_network(self, network: &'static str, place: Place, around: &'static str) -> Self {
        Self { needs: Needs { network, ..self.needs }, place, around, ..self }
    }

    const fn of_datagrams(self) -> Self {
        Self { reliable: false, ..self.with_receiver() }
    }
}

const MODEM: &str = "the device's modem";
const DECODER: &str = "the grants of all users, decoded by the device";
const REPORTS: &str = "reports of the base station";

/// A proxy at the base station.
const RAPID: &str = "\n[[proxy]]\nname = \"proxy\"\nhost = \"mast\"\nkind = \"rapid\"\n";
/// Header rewriters at the base station.
const GUIDANCE: &str = "\n[[rewriter]]\nhost = \"mast\"\nkind = \"guidance\"\n";
const MILLIPROXY: &str = "\n[[rewriter]]\nhost = \"mast\"\nkind = \"milliproxy\"\n";
/// A Lightweight PEP at the border of wires and radio.
const PEP: &str = "\n[[pep]]\nhost = \"edge\"\n";

/// All of them, in the order of the tables: what needs less comes first.
pub const CANDIDATES: &[Candidate] = &[
    control("cubic"),
    control("newreno"),
    control("scalable"),
    control("westwood"),
    control("westwoodplus"),
    control("veno"),
    control("vegas"),
    control("yeah"),
    control("bbr1"),
    control("bbr3"),
    control("bbr-zhong"),
    control("copa:mode=default"),
    control("copa"),
    control("vivace"),
    control("c2tcp:target=50ms"),
    control("c2tcp:target=100ms"),
    control("newreno+lda"),
    control("newreno+lda:rule=eq"),
    Candidate {
        queue: ["kind = \"l4span\"", "kind = \"dualpi2\""],
        bearer: "aqm = \"l4span\"",
        ..control("prague").with_receiver().with_network("L4S marks", Place::Anywhere, "")
    },
    Candidate {
        queue: ["kind = \"abc\""; 2],
        bearer: "aqm = \"abc\"",
        ..control("abc").with_receiver().with_network("ABC router", Place::Down, "")
    },
    control("sprout").of_datagrams(),
    control("verus").of_datagrams(),
    control("cdbe").with_receiver(),
    control("cdbev2").with_receiver(),
    control("dcic").with_receiver().with_radio(MODEM, Place::CellDown),
    control("cqic-s").with_receiver().with_radio(MODEM, Place::CellDown),
    control("pbe").with_receiver().with_radio(DECODER, Place::CellDown),
    control("pbe:source=edge").with_radio(REPORTS, Place::CellDown),
    control("sigma").with_radio(MODEM, Place::CellUp),
    control("xtcp").with_radio(MODEM, Place::CellUp),
    control("newreno+meld-me").with_radio(REPORTS, Place::CellDown),
    control("cubic+meld-me").with_radio(REPORTS, Place::CellDown),
    control("cubic+meld-de").with_radio(REPORTS, Place::CellDown),
    control("natcp").with_radio(REPORTS, Place::CellDown),
    control("natcp:keep=cubic").with_radio(REPORTS, Place::CellDown),
    control("natcp:keep=cubic:feed=guidance").with_network("guidance", Place::CellDown, GUIDANCE),
    Candidate {
        name: "milliproxy",
        needs: Needs { sender: false, receiver: false, network: "header rewriter", radio: REPORTS },
        ..control("cubic").with_network("header rewriter", Place::CellDown, MILLIPROXY)
    },
    control("mdcc").with_network("PEP", Place::CellDown, PEP),
    control("mdcc:start=coupled").with_network("PEP", Place::CellDown, PEP),
    Candidate {
        name: "rapid",
        needs: Needs { sender: false, receiver: false, network: "proxy", radio: REPORTS },
        ..control("cubic").with_network("proxy", Place::CellDown, RAPID)
    },
];

/// Controls that are not compared, and why.
pub const LEFT_OUT: &[(&str, &str)] =
    &[("quic-cqic", "it needs the channel quality of HSPA+, and the cells are LTE and NR")];

#[cfg(test)]
mod tests {
    use super::*;
    use ranpace_cc::{ALL, Algorithm, DECORATORS};

    #[test]
    fn every_control_and_decorator_is_compared() {
        let cc: Vec<&str> = CANDIDATES.iter().flat_map(|candidate| [candidate.name, candidate.cc]).collect();
        let has = |name: &str| cc.iter().any(|cc| cc.split([':', '+']).any(|part| part == name));
        for name in ALL.iter().map(|entry| entry.name).chain(DECORATORS.iter().map(|one| one.name)) {
            let is_left_out = LEFT_OUT.iter().any(|(left_out, _)| *left_out == name);
            assert!(
                has(name) != is_left_out,
                "{name} is in no row of `compare --all`: add it to the candidates"
            );
        }
    }

    #[test]
    fn needs_are_those_of_the_control() {
        for candidate in CANDIDATES {
            let algorithm: Algorithm = candidate.cc.parse().unwrap();
            let is_radio = algorithm.build(1).wants_radio();
            let from_modem = candidate.needs.radio == MODEM && candidate.needs.receiver;
            let decodes = algorithm.receiver().is_some_and(|half| half.wants_cell());
            assert_eq!(decodes, candidate.needs.radio == DECODER, "{}", candidate.name);
            if candidate.needs.sender && !from_modem && !decodes {
                assert_eq!(is_radio, !candidate.needs.radio.is_empty(), "{}", candidate.name);
            }
            // Others need a receiver that acknowledges datagrams, or counts marks.
            assert!(algorithm.receiver().is_none() || candidate.needs.receiver, "{}", candidate.name);
        }
    }
}
