//! What this kernel offers, found out by trying.

use std::path::Path;

use crate::cgroup;
use crate::control::{Control, KINDS};
use crate::loaded::try_load;
use crate::pins;

/// One thing that commands need.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// The version of Linux that brought it.
    pub since: &'static str,
    /// What needs it.
    pub needed_for: &'static str,
    /// What is wrong, and what to do; `None` if it is there.
    pub missing: Option<String>,
}

/// Tries everything.
pub fn check() -> Vec<Finding> {
    let mut findings = vec![
        Finding {
            what: "type information of the kernel (BTF)".to_owned(),
            since: "5.4",
            needed_for: "all commands",
            missing: missing(
                Path::new("/sys/kernel/btf/vmlinux").exists(),
                "/sys/kernel/btf/vmlinux is not there: the kernel was built without CONFIG_DEBUG_INFO_BTF",
            ),
        },
        Finding {
            what: "BPF file system".to_owned(),
            since: "4.4",
            needed_for: "load",
            missing: missing(
                pins::is_bpffs(),
                "nothing is mounted at /sys/fs/bpf: `ranpace kernel load` mounts it, with the rights to",
            ),
        },
        Finding {
            what: "control groups, version 2".to_owned(),
            since: "4.5",
            needed_for: "exec, load --cgroup",
            missing: cgroup::mount_point().err().map(|error| error.to_string()),
        },
    ];
    for kind in KINDS {
        let tried = Control::parse(kind.name).and_then(|control| try_load(&control));
        findings.push(Finding {
            what: format!("control {}", kind.name),
            since: kind.since,
            needed_for: "load, exec",
            missing: tried.err().map(|error| error.to_string()),
        });
    }
    findings
}

fn missing(there: bool, why: &str) -> Option<String> {
    (!there).then(|| why.to_owned())
}
