//! The controls that the kernel can run.

use ranpace_cc::{Algorithm, Options};

use crate::error::KernelError;
use crate::layout::Layout;
use crate::settings::{self, Settings};

/// The section of the settings, which `ranpace kernel set` may write while the control runs.
pub(crate) const SETTINGS: &str = ".data.settings";
/// Room for the text of the options in [`SETTINGS`], its end counted.
const OPTIONS_TEXT: usize = 192;

/// A kind of control that the kernel can run.
pub struct Kind {
    /// Its short name, as [`Algorithm`] understands it.
    pub name: &'static str,
    /// The version of Linux that has everything that it uses.
    pub since: &'static str,
    /// The compiled programs.
    pub(crate) object: &'static [u8],
    /// The base algorithm's and the decorator's names, as [`Algorithm`] has them.
    algorithm: (&'static str, Option<&'static str>),
    /// What the settings are.
    settings: fn(&str, &mut Options) -> Result<Settings, KernelError>,
}

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

/// All of them.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "c2tcp",
        since: "6.4",
        object: object!("c2tcp"),
        algorithm: ("cubic", Some("c2tcp")),
        settings: settings::c2tcp::over_cubic,
    },
    Kind {
        name: "newreno+c2tcp",
        since: "6.4",
        object: object!("c2tcp"),
        algorithm: ("newreno", Some("c2tcp")),
        settings: settings::c2tcp::over_reno,
    },
    Kind {
        name: "cdbe",
        since: "6.10",
        object: object!("cdbe"),
        algorithm: ("cdbe", None),
        settings: settings::cdbe::read,
    },
    Kind {
        name: "cdbev2",
        since: "6.10",
        object: object!("cdbev2"),
        algorithm: ("cdbev2", None),
        settings: settings::cdbev2::read,
    },
    Kind {
        name: "dcic",
        since: "6.10",
        object: object!("dcic"),
        algorithm: ("dcic", None),
        settings: settings::dcic::dcic,
    },
    Kind {
        name: "cqic-s",
        since: "6.10",
        object: object!("cqic_s"),
        algorithm: ("cqic-s", None),
        settings: settings::dcic::cqic_s,
    },
    Kind {
        name: "cubic+meld-me",
        since: "6.10",
        object: object!("meld"),
        algorithm: ("cubic", Some("meld-me")),
        settings: settings::meld::mixed_over_cubic,
    },
    Kind {
        name: "cubic+meld-de",
        since: "6.10",
        object: object!("meld"),
        algorithm: ("cubic", Some("meld-de")),
        settings: settings::meld::download_over_cubic,
    },
    Kind {
        name: "newreno+meld-me",
        since: "6.10",
        object: object!("meld"),
        algorithm: ("newreno", Some("meld-me")),
        settings: settings::meld::mixed_over_reno,
    },
    Kind {
        name: "newreno+meld-de",
        since: "6.10",
        object: object!("meld"),
        algorithm: ("newreno", Some("meld-de")),
        settings: settings::meld::download_over_reno,
    },
    Kind {
        name: "rapid",
        since: "6.10",
        object: object!("rapid"),
        algorithm: ("rapid", None),
        settings: settings::rapid::read,
    },
    Kind {
        name: "sigma",
        since: "6.10",
        object: object!("sigma"),
        algorithm: ("sigma", None),
        settings: settings::sigma::read,
    },
    Kind {
        name: "mdcc",
        since: "6.10",
        object: object!("mdcc"),
        algorithm: ("mdcc", None),
        settings: settings::mdcc::read,
    },
];

/// Tells builds of the programs apart: FNV-1a of all of them, 64 bits.
pub fn fingerprint() -> u64 {
    let bytes = KINDS.iter().flat_map(|kind| kind.object);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A control with its options, checked.
#[derive(Clone)]
pub struct Control {
    text: String,
    kind: &'static Kind,
    settings: Settings,
}

impl Control {
    /// Reads what the simulator understands too, such as `c2tcp:target=50ms`.
    pub fn parse(text: &str) -> Result<Self, KernelError> {
        let text = text.trim();
        let algorithm: Algorithm = text.parse().map_err(KernelError::Algorithm)?;
        let decorators: Vec<&str> = algorithm.decorators().iter().map(|decorator| decorator.name).collect();
        let kind = KINDS
            .iter()
            .find(|kind| {
                let (base, decorator) = kind.algorithm;
                base == algorithm.entry().name && decorators.iter().copied().eq(decorator)
            })
            .ok_or_else(|| KernelError::NotInKernel {
                text: text.to_owned(),
                all: KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", "),
            })?;
        if text.len() >= OPTIONS_TEXT {
            return Err(KernelError::TooLong {
                text: text.to_owned(),
                length: text.len(),
                most: OPTIONS_TEXT - 1,
            });
        }
        let settings = (kind.settings)(text, &mut algorithm.options())?;
        Ok(Self { text: text.to_owned(), kind, settings })
    }

    /// The same with further options, `key=value:key=value`, each of which replaces one that is there.
    pub fn with(&self, options: &str) -> Result<Self, KernelError> {
        let key = |option: &str| option.split('=').next().unwrap_or_default().trim().to_owned();
        let new: Vec<&str> = options.split(':').filter(|option| !option.trim().is_empty()).collect();
        let replaced: Vec<String> = new.iter().map(|option| key(option)).collect();
        let kept = self.text.split(':').skip(1).filter(|option| !replaced.contains(&key(option)));
        let head = self.text.split(':').next().unwrap_or_default();
        let parts: Vec<&str> = [head].into_iter().chain(kept).chain(new.iter().copied()).collect();
        Self::parse(&parts.join(":"))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it is.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The name under which the kernel lists it, unless the user gives another.
    pub fn default_name(&self) -> String {
        self.kind.name.replace(['+', '-'], "_")
    }

    /// The content of the section of the settings.
    pub(crate) fn section(&self) -> Result<Vec<u8>, KernelError> {
        let layout = Layout::of(self.kind.object, SETTINGS)?;
        let mut bytes = vec![0; layout.size()];
        for (name, value) in &self.settings {
            layout.write(&mut bytes, name, *value)?;
        }
        layout.write(&mut bytes, "layout", layout.id())?;
        let text = layout.bytes(&mut bytes, "options")?;
        if let Some(place) = text.get_mut(..self.text.len()) {
            place.copy_from_slice(self.text.as_bytes());
        }
        Ok(bytes)
    }
}
