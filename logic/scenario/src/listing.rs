//! The kinds of workloads and queues with their descriptions, the same ones that the parser accepts.

pub(crate) mod queues;
pub(crate) mod workloads;

use crate::key::Group;

/// A kind of workload or queue, as listed.
#[derive(Clone, Copy)]
pub struct Kind {
    /// As written in a scenario.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// Its keys, except `kind`.
    settings: Group,
    /// An example as written in a scenario, which can be pasted.
    pub example: &'static str,
}

impl Kind {
    /// Its keys, with their defaults in brackets; those without one are required.
    pub fn keys(&self) -> String {
        let shown = self.settings.iter().map(|key| {
            let [_, _, default, _] = key.row();
            match default.as_str() {
                "required" => key.name().to_owned(),
                default => format!("{} ({})", key.name(), default.replace(['`', '"'], "")),
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// The kinds of workload, in the order in which they are listed. `cbr` and `ppbp` need `transport = "udp"`, the others
/// need TCP; `bulk` can also be carried by datagram algorithms.
pub const WORKLOADS: [Kind; 7] = [
    Kind {
        name: "bulk",
        about: "as much data as can be sent, without end",
        settings: &[],
        example: "\"bulk\"",
    },
    Kind {
        name: "fixed",
        about: "one transfer of a given size",
        settings: workloads::FIXED,
        example: "{ kind = \"fixed\", size = \"1MB\" }",
    },
    Kind {
        name: "repeat",
        about: "transfers of a given size, one after the other",
        settings: workloads::REPEAT,
        example: "{ kind = \"repeat\", size = \"100KB\", pause = \"500ms\" }",
    },
    Kind {
        name: "paced",
        about: "an application that writes at a rate, such as a call or a live stream",
        settings: workloads::PACED,
        example: "{ kind = \"paced\", rate = \"2Mbit/s\" }",
    },
    Kind {
        name: "web",
        about: "a page at regular intervals",
        settings: workloads::WEB,
        example: "{ kind = \"web\", page = \"2MB\", interval = \"5s\" }",
    },
    Kind {
        name: "cbr",
        about: "UDP packets at a constant rate",
        settings: workloads::CBR,
        example: "{ kind = \"cbr\", rate = \"10Mbit/s\" }",
    },
    Kind {
        name: "ppbp",
        about: "UDP cross traffic with long memory: a Poisson-Pareto burst process",
        settings: workloads::PPBP,
        example: "{ kind = \"ppbp\", rate = \"2Mbit/s\" }",
    },
];

/// The kinds of queue, in the order in which they are listed.
pub const QUEUES: [Kind; 7] = [
    Kind {
        name: "droptail",
        about: "FIFO queue; drops packets that arrive when it is full",
        settings: queues::DROP_TAIL,
        example: "{ kind = \"droptail\", limit = \"150KB\" }",
    },
    Kind {
        name: "codel",
        about: "CoDel (RFC 8289): drops when the delay stays above a target for an interval",
        settings: queues::CODEL,
        example: "{ kind = \"codel\", target = \"5ms\", interval = \"100ms\" }",
    },
    Kind {
        name: "fq_codel",
        about: "FQ-CoDel (RFC 8290): a CoDel queue per flow, served in turn",
        settings: queues::FQ_CODEL,
        example: "{ kind = \"fq_codel\", quantum = \"1514B\" }",
    },
    Kind {
        name: "pie",
        about: "PIE (RFC 8033): drops at random, with a probability that grows with the delay",
        settings: queues::PIE,
        example: "{ kind = \"pie\", target = \"15ms\" }",
    },
    Kind {
        name: "dualpi2",
        about: "DualPI2 (RFC 9332): a queue for L4S packets, marked early, and one for the rest",
        settings: queues::DUAL_PI2,
        example: "{ kind = \"dualpi2\", step = \"1ms\" }",
    },
    Kind {
        name: "l4span",
        about: "L4Span's marks at a base station, as understood: by whether what waits can leave within a target",
        settings: queues::L4SPAN,
        example: "{ kind = \"l4span\", target = \"10ms\" }",
    },
    Kind {
        name: "abc",
        about: "ABC's router, as understood: tells `abc` flows to send more or less, by the link's capacity",
        settings: queues::ABC,
        example: "{ kind = \"abc\", delay = \"50ms\" }",
    },
];

#[cfg(test)]
mod tests {
    use ranpace_link::QueueConfig;

    use super::*;
    use crate::presets::QueueKind;
    use crate::{Scenario, ScenarioError, parse};

    fn scenario(workload: &str, queue: &str) -> Result<Scenario, ScenarioError> {
        let is_udp = workload.contains("cbr") || workload.contains("ppbp");
        let transport = if is_udp { "transport = \"udp\"" } else { "cc = \"newreno\"" };
        let text = format!(
            "duration = \"10s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\nqueue = {queue}\nduplex = true\n\
             [[flow]]\nfrom = \"a\"\nto = \"b\"\n{transport}\nworkload = {workload}\n"
        );
        parse(&text, "listed.toml", &mut ())
    }

    #[test]
    fn listed_examples_are_understood() {
        for kind in WORKLOADS {
            scenario(kind.example, "\"pie\"").unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        }
        for kind in QUEUES {
            scenario("\"bulk\"", kind.example).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
            let bare = format!("{:?}", kind.name);
            scenario("\"bulk\"", &bare).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        }
        assert_eq!(QUEUES.map(|kind| kind.name), QueueKind::ALL.map(QueueKind::as_str));
    }

    /// The answer to an unknown key lists all keys.
    #[test]
    fn keys_are_all_keys() {
        let listed = |keys: &str| -> Vec<String> {
            let plain = keys.split(", ").map(|key| key.split(' ').next().unwrap_or_default().to_owned());
            plain.filter(|key| !key.is_empty()).collect()
        };
        let check = |kind: &Kind, error: String| {
            let expected = error.split("expected one of kind").nth(1).unwrap_or_else(|| panic!("{error}"));
            let expected = expected.lines().next().unwrap_or_default().trim_end_matches('.');
            let expected = expected.split("; did you mean").next().unwrap_or_default();
            let mut expected: Vec<String> =
                expected.split(", ").filter(|key| !key.is_empty()).map(str::to_owned).collect();
            let mut keys = listed(&kind.keys());
            expected.sort();
            keys.sort();
            assert_eq!(keys, expected, "{}", kind.name);
        };
        for kind in WORKLOADS {
            let text = format!("{{ kind = {:?}, zzz = 1 }}", kind.name);
            check(&kind, scenario(&text, "\"pie\"").unwrap_err().to_string());
        }
        for kind in QUEUES {
            let text = format!("{{ kind = {:?}, zzz = 1 }}", kind.name);
            check(&kind, scenario("\"bulk\"", &text).unwrap_err().to_string());
        }
    }

    /// The defaults in brackets are the actual ones.
    #[test]
    fn defaults_of_queues_are_as_listed() {
        for kind in QUEUES {
            let bare = scenario("\"bulk\"", &format!("{:?}", kind.name)).unwrap();
            let keys = kind.keys();
            let given = keys.split(", ").filter_map(|key| {
                let (name, default) = key.strip_suffix(')')?.split_once(" (")?;
                let text = match default {
                    "never marks" => return None,
                    "true" | "false" => default.to_owned(),
                    _ if default.bytes().all(|byte| byte.is_ascii_digit()) => default.to_owned(),
                    _ => format!("{default:?}"),
                };
                Some(format!("{name} = {text}"))
            });
            let written = format!("{{ kind = {:?}, {} }}", kind.name, given.collect::<Vec<_>>().join(", "));
            let written = scenario("\"bulk\"", &written).unwrap_or_else(|error| panic!("{written}: {error}"));
            let queues =
                [&bare, &written].map(|scenario| -> &QueueConfig { &scenario.links[0].config.queue });
            assert_eq!(queues[0], queues[1], "{}", kind.name);
        }
    }
}
