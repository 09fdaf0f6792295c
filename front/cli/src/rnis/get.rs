//! `ranpace rnis get`: one query, answered as JSON.

use ranpace_rnisd::hyper::Method;

use super::ask::{self, Target};
use crate::failure::Failure;
use crate::output;

/// Ask a server once, and print the answer as JSON
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace rnis get rab_info --qci 9\n  \
    ranpace rnis get layer2_meas --ue-ipv4-address 10.77.0.2 --measure dl_nongbr_throughput_ue\n  \
    ranpace rnis get tti_meas --ue-ipv4-address 10.77.0.2 https://mec.example --token @token --ca ca.pem\n  \
    ranpace rnis get /rni/v2/subscriptions/3")]
pub struct Get {
    /// What to ask for: rab_info, plmn_info, s1_bearer_info, layer2_meas, subscriptions; of our extension cell_config, tti_meas, users;
    /// health; or a path that begins with /
    what: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    filter: Filter,
}

/// What selects: the standard's parameters. Where a list may stand, repeat the option, or separate entries by commas.
#[derive(clap::Args)]
#[command(next_help_heading = "Filters")]
struct Filter {
    /// Cells, by cellId
    #[arg(long, value_name = "ID")]
    cell_id: Vec<String>,
    /// Users, by IPv4 address
    #[arg(long, value_name = "ADDRESS")]
    ue_ipv4_address: Vec<String>,
    /// Users, by IPv6 address
    #[arg(long, value_name = "ADDRESS")]
    ue_ipv6_address: Vec<String>,
    /// Users, by the address that NAT gives them
    #[arg(long, value_name = "ADDRESS")]
    nated_ip_address: Vec<String>,
    /// Users, by tunnel endpoint identifier
    #[arg(long, value_name = "TEID")]
    gtp_teid: Vec<String>,
    /// Users of s1_bearer_info, by temporary identifier: MMEC,M-TMSI
    #[arg(long, value_name = "MMEC,M-TMSI")]
    temp_ue_id: Vec<String>,
    /// Bearer, by its number
    #[arg(long, value_name = "ID")]
    erab_id: Vec<String>,
    /// Class of bearers (rab_info)
    #[arg(long)]
    qci: Option<u8>,
    /// Maximum rate downlink of bearers, bit/s (rab_info)
    #[arg(long, value_name = "RATE")]
    erab_mbr_dl: Option<u64>,
    /// Maximum rate uplink
    #[arg(long, value_name = "RATE")]
    erab_mbr_ul: Option<u64>,
    /// Guaranteed rate downlink
    #[arg(long, value_name = "RATE")]
    erab_gbr_dl: Option<u64>,
    /// Guaranteed rate uplink
    #[arg(long, value_name = "RATE")]
    erab_gbr_ul: Option<u64>,
    /// Application instance [default of plmn_info, which needs one: ranpace]
    #[arg(long, value_name = "ID")]
    app_ins_id: Option<String>,
    /// Only these measures of layer2_meas, such as dl_total_prb_usage_cell
    #[arg(long, value_name = "NAME")]
    measure: Vec<String>,
    /// Subscriptions of this type, such as cell_change
    #[arg(long, value_name = "TYPE")]
    subscription_type: Option<String>,
}

impl Filter {
    /// As parameters of an address.
    fn parameters(&self) -> Vec<(&str, String)> {
        let mut all = Vec::new();
        for (name, values) in [
            ("cell_id", &self.cell_id),
            ("ue_ipv4_address", &self.ue_ipv4_address),
            ("ue_ipv6_address", &self.ue_ipv6_address),
            ("nated_ip_address", &self.nated_ip_address),
            ("gtp_teid", &self.gtp_teid),
            ("temp_ue_id", &self.temp_ue_id),
            ("erab_id", &self.erab_id),
        ] {
            all.extend(values.iter().map(|value| (name, value.clone())));
        }
        for (name, value) in [
            ("qci", self.qci.map(u64::from)),
            ("erab_mbr_dl", self.erab_mbr_dl),
            ("erab_mbr_ul", self.erab_mbr_ul),
            ("erab_gbr_dl", self.erab_gbr_dl),
            ("erab_gbr_ul", self.erab_gbr_ul),
        ] {
            all.extend(value.map(|value| (name, value.to_string())));
        }
        all.extend(self.app_ins_id.clone().map(|app| ("app_ins_id", app)));
        all.extend(self.measure.iter().map(|measure| (measure.as_str(), "true".to_owned())));
        all.extend(self.subscription_type.clone().map(|kind| ("subscription_type", kind)));
        all
    }
}

/// The path of what is asked for.
fn path(what: &str) -> Result<String, Failure> {
    Ok(match what {
        "rab_info" | "plmn_info" | "s1_bearer_info" | "layer2_meas" => format!("/rni/v2/queries/{what}"),
        "cell_config" | "tti_meas" | "users" => format!("/rni/v2/vendor/{what}"),
        "subscriptions" => "/rni/v2/subscriptions".to_owned(),
        "health" => "/health".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        other => {
            return Err(Failure::asked(format!(
                "expected rab_info, plmn_info, s1_bearer_info, layer2_meas, subscriptions, cell_config, tti_meas, users, health, \
                 or a path that begins with /; found {other:?}"
            )));
        }
    })
}

impl Get {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let path = path(&self.what)?;
        let mut asker = self.target.asker()?;
        let mut url = asker.url(&path)?;
        let mut parameters = self.filter.parameters();
        if self.what == "plmn_info" && self.filter.app_ins_id.is_none() {
            parameters.push(("app_ins_id", "ranpace".to_owned()));
        }
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        let answer = asker.ask(Method::GET, &url, &[], None)?;
        output::json(&ask::json(&answer)?)
    }
}
