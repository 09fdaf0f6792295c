//! What `--from` and `--feed` name: lines, an RNIS server, its shared table, or Lightweight PEPs.

use std::path::PathBuf;

#[cfg(feature = "rnis")]
use crate::failure::Failure;

/// Where radio information comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Lines from a pipe, a file, or standard input.
    Lines(PathBuf),
    /// PEPs, by the file of the agent that subscribes to them.
    Peps(PathBuf),
    /// An RNIS server or its table.
    #[cfg(feature = "rnis")]
    Rnis(ranpace_rnisd::client::Origin),
}

impl Origin {
    /// Reads `rnis:URL`, `table:PATH`, `pep:FILE`, a broker's `amqp://...`, or the name of a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix("pep:") {
            return Ok(Self::Peps(file.into()));
        }
        if !["rnis:", "table:", "amqp://"].iter().any(|prefix| text.starts_with(prefix)) {
            return Ok(Self::Lines(text.into()));
        }
        #[cfg(feature = "rnis")]
        return text
            .parse()
            .map(Self::Rnis)
            .map_err(|error: ranpace_rnisd::client::NotAnOrigin| error.to_string());
        #[cfg(not(feature = "rnis"))]
        Err("this ranpace was built without its RNIS commands (feature `rnis`)".to_owned())
    }
}

/// How an RNIS server is asked.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Asking {
    /// Interval between two reports of an RNIS server or table [default: 8ms for MELD, every TTI for a device's controls]
    #[arg(long, value_name = "TIME")]
    period: Option<ranpace_units::Span>,
    /// Bearer token for an RNIS server, or @FILE that contains one
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// PEM file of the authority that signed the RNIS server's certificate, if that is no public one
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

#[cfg(feature = "rnis")]
impl Asking {
    /// What is asked for: hints of this direction, this often if the user does not say how often.
    pub fn wanted(
        &self,
        direction: ranpace_phy::Direction,
        period: ranpace_units::Span,
    ) -> Result<ranpace_rnisd::client::Wanted, Failure> {
        let token = match self.token.as_deref().map(|token| (token, token.strip_prefix('@'))) {
            Some((token, Some(file))) => {
                let read = std::fs::read_to_string(file);
                let text = read.map_err(|error| Failure::asked(format!("--token {token}: {error}")))?;
                Some(text.trim().to_owned())
            }
            Some((token, None)) => Some(token.to_owned()),
            None => None,
        };
        let period = self.period.unwrap_or(period);
        Ok(ranpace_rnisd::client::Wanted { direction, period, users: Vec::new(), token, ca: self.ca.clone() })
    }
}
