//! The tables of a scenario and their keys, for `vary` and for the pages of the guide.

use crate::cell::keys::nested;
use crate::key::Group;
use crate::{cell, change, flow, link, middlebox, parse, pep, proxy, quic, rewriter, rnis, tcp};

/// A table of a scenario.
pub(crate) struct Table {
    /// As written in a scenario.
    pub name: &'static str,
    /// Whether it may appear several times: `[[name]]`.
    pub is_list: bool,
    pub keys: &'static [Group],
    /// A key used as an example in messages.
    pub example: &'static str,
}

/// The keys at the top.
pub(crate) const TOP: &[Group] = &[parse::KEYS];

/// All tables, in the order in which messages list them.
pub(crate) const TABLES: [Table; 11] = [
    Table { name: "link", is_list: true, keys: link::GROUPS, example: "rate" },
    Table { name: "cell", is_list: true, keys: cell::CELL_GROUPS, example: "bandwidth" },
    Table { name: "user", is_list: true, keys: cell::USER_GROUPS, example: "position" },
    Table { name: "flow", is_list: true, keys: flow::GROUPS, example: "cc" },
    Table { name: "proxy", is_list: true, keys: &[proxy::KEYS, proxy::RAPID_KEYS], example: "ran_cc" },
    Table { name: "pep", is_list: true, keys: &[pep::KEYS], example: "host" },
    Table { name: "middlebox", is_list: true, keys: &[middlebox::KEYS], example: "host" },
    Table {
        name: "rewriter",
        is_list: true,
        keys: &[rewriter::KEYS, rewriter::MILLIPROXY_KEYS, rewriter::GUIDANCE_KEYS],
        example: "policy",
    },
    Table { name: "change", is_list: true, keys: &[change::KEYS], example: "at" },
    Table { name: "rnis", is_list: false, keys: &[rnis::KEYS], example: "period" },
    Table { name: "modem", is_list: false, keys: &[rnis::KEYS], example: "period" },
];

/// Names of groups of keys on pages.
const GROUPS: [(&str, Group); 40] = [
    ("top", parse::KEYS),
    ("link", link::KEYS),
    ("link.jitter", link::jitter::KEYS),
    ("link.loss", link::loss::KEYS),
    ("link.reorder", link::reorder::KEYS),
    ("flow", flow::keys::KEYS),
    ("tcp", tcp::KEYS),
    ("quic", quic::KEYS),
    ("change", change::KEYS),
    ("proxy", proxy::KEYS),
    ("proxy.rapid", proxy::RAPID_KEYS),
    ("pep", pep::KEYS),
    ("middlebox", middlebox::KEYS),
    ("rewriter", rewriter::KEYS),
    ("rewriter.milliproxy", rewriter::MILLIPROXY_KEYS),
    ("rewriter.guidance", rewriter::GUIDANCE_KEYS),
    ("rnis", rnis::KEYS),
    ("cell", cell::keys::CELL),
    ("cell.air", cell::keys::AIR),
    ("cell.channel", cell::keys::CHANNEL),
    ("cell.path_loss", nested::path_loss::KEYS),
    ("cell.sight", nested::sight::KEYS),
    ("cell.building", nested::building::KEYS),
    ("cell.shadowing", nested::shadowing::KEYS),
    ("cell.fading", nested::fading::KEYS),
    ("cell.noise", nested::noise::KEYS),
    ("cell.adaptation", cell::keys::ADAPTATION),
    ("cell.outer_loop", nested::outer_loop::KEYS),
    ("cell.harq", nested::harq::KEYS),
    ("cell.uplink", cell::keys::UPLINK),
    ("cell.scheduler", nested::scheduler::KEYS),
    ("cell.control_channels", nested::control_channels::KEYS),
    ("cell.ul_power", nested::ul_power::KEYS),
    ("bearer", cell::keys::BEARER),
    ("bearer.rlc_timers", nested::rlc_timers::KEYS),
    ("user", cell::user::KEYS),
    ("user.disc", cell::user::disc::KEYS),
    ("user.walk", cell::user::walk::KEYS),
    ("user.waypoints", cell::user::waypoints::KEYS),
    ("user.recording", cell::user::recording::KEYS),
];

/// The names of groups of keys for [`key_table`].
pub fn key_groups() -> impl Iterator<Item = &'static str> {
    GROUPS.into_iter().map(|(name, _)| name)
}

/// The Markdown table of a group of keys, as shown in the guide; `None` if there is no such group.
pub fn key_table(group: &str) -> Option<String> {
    let (_, keys) = GROUPS.into_iter().find(|(name, _)| *name == group)?;
    let rows: Vec<[String; 4]> = keys.iter().map(|key| key.row()).collect();
    let has_defaults = rows.iter().any(|[_, _, default, _]| !default.is_empty());
    let line = |[key, value, default, about]: &[String; 4]| {
        let cells = if has_defaults { vec![key, value, default, about] } else { vec![key, value, about] };
        let cells: Vec<String> =
            cells.into_iter().map(|cell| format!(" {cell} ").replace("  ", " ")).collect();
        format!("|{}|\n", cells.join("|"))
    };
    let head = ["key", "value", "default", ""].map(str::to_owned);
    let rule = if has_defaults { "|---|---|---|---|\n" } else { "|---|---|---|\n" };
    Some(line(&head) + rule + &rows.iter().map(line).collect::<String>())
}
