//! `ranpace list`: what there is to choose from.

use clap::ValueEnum;
use ranpace_lab::{BUILTIN, BUILTIN_LENGTH, ListedControl};
use ranpace_scenario::cells::PRESETS;
use ranpace_scenario::{Kind, QUEUES, WORKLOADS};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// List algorithms, workloads, queues, cells, built-in traces or reproductions
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace list cc\n  \
    ranpace list cc --json\n  \
    ranpace list cells\n  \
    ranpace list reproductions")]
pub struct List {
    /// What to list
    #[arg(value_enum)]
    what: What,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Congestion controls and decorators, with their options
    Cc,
    /// Workloads that flows can carry
    Workloads,
    /// Queues of links
    Queues,
    /// Presets of cells
    Cells,
    /// Built-in traces
    Traces,
    /// Published experiments
    Reproductions,
}

/// A workload, a queue or a trace.
#[derive(Serialize)]
struct Simple {
    name: String,
    about: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    keys: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    example: &'static str,
}

impl List {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            What::Cc => self.cc(),
            What::Workloads => self.kinds("workload", &WORKLOADS),
            What::Queues => self.kinds("queue", &QUEUES),
            What::Cells => self.cells(),
            What::Traces => self.traces(),
            What::Reproductions => self.reproductions(),
        }
    }

    fn cc(&self) -> Result<(), Failure> {
        let list = ranpace_lab::controls(&[]);
        if self.json {
            return output::json(&list);
        }
        let mut text = String::from(
            "Written as NAME, NAME+DECORATOR, NAME:option=value:option=value, such as cubic+c2tcp:target=50ms\n",
        );
        let short = list.short_names.iter().map(|(short, full)| format!("{short} = {full}"));
        text.push_str(&format!("Short names: {}\n", short.collect::<Vec<_>>().join(", ")));
        for listed in &list.algorithms {
            let carried = if listed.transport == Some("datagram") { "; over datagrams" } else { "" };
            let wrapped = if listed.decorators == Some(true) { "; takes decorators" } else { "" };
            text.push_str(&format!("\n{}  {}{carried}{wrapped}\n", listed.name, listed.about));
            text.push_str(&details(listed));
        }
        text.push_str("\nDecorators:\n");
        for listed in &list.decorators {
            text.push_str(&format!("\n+{}  {}\n", listed.name, listed.about));
            text.push_str(&details(listed));
        }
        output::line(text.trim_end())
    }

    fn kinds(&self, what: &str, kinds: &[Kind]) -> Result<(), Failure> {
        let list: Vec<Simple> = kinds
            .iter()
            .map(|kind| Simple {
                name: kind.name.to_owned(),
                about: kind.about,
                keys: kind.keys(),
                example: kind.example,
            })
            .collect();
        if self.json {
            return output::json(&list);
        }
        let width = kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for kind in kinds {
            text.push_str(&format!("{:width$}  {}\n", kind.name, kind.about));
            let keys = kind.keys();
            if !keys.is_empty() {
                text.push_str(&format!("{:width$}  keys: {keys}\n", ""));
            }
            text.push_str(&format!("{:width$}  {what} = {}\n\n", "", kind.example));
        }
        output::line(text.trim_end())
    }

    fn cells(&self) -> Result<(), Failure> {
        if self.json {
            let list = PRESETS.map(|preset| {
                serde_json::json!({ "name": preset.name, "about": preset.about, "source": preset.source })
            });
            return output::json(&list);
        }
        let width = PRESETS.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
        let lines = PRESETS.iter().map(|preset| {
            format!("{:width$}  {}\n{:width$}  {}", preset.name, preset.about, "", preset.source)
        });
        let lines = lines.collect::<Vec<_>>().join("\n\n");
        output::line(format!("{lines}\n\nIn a [[cell]]: preset = \"NAME\""))
    }

    fn traces(&self) -> Result<(), Failure> {
        let list: Vec<Simple> = BUILTIN
            .iter()
            .map(|builtin| Simple {
                name: format!("builtin:{}", builtin.name),
                about: builtin.about,
                keys: String::new(),
                example: "",
            })
            .collect();
        if self.json {
            return output::json(&list);
        }
        let width = list.iter().map(|trace| trace.name.len()).max().unwrap_or(0);
        let lines = list.iter().map(|trace| format!("{:width$}  {}", trace.name, trace.about));
        let lines = lines.collect::<Vec<_>>().join("\n");
        output::line(format!(
            "{lines}\n\n{BUILTIN_LENGTH} each, then again; `ranpace trace info NAME` has the figures"
        ))
    }

    fn reproductions(&self) -> Result<(), Failure> {
        use ranpace_lab::reproduce;
        let list = reproduce::listing(&reproduce::experiments().map_err(Failure::ours)?);
        if self.json {
            return output::json(&list);
        }
        let mut text = String::new();
        for listed in &list {
            let alias: String = listed.alias.iter().map(|alias| format!(", {alias}")).collect();
            text.push_str(&format!("{}{alias}\n    {}\n    {}\n", listed.name, listed.title, listed.source));
            if let Some(why) = &listed.pending {
                text.push_str(&format!("    pending: {why}\n"));
            }
            text.push('\n');
        }
        output::line(text.trim_end())
    }
}

/// Source and options, indented.
fn details(listed: &ListedControl) -> String {
    let mut text = format!("    {}\n", listed.source);
    let width = listed.options.iter().map(|option| option.key.len()).max().unwrap_or(0);
    for option in &listed.options {
        text.push_str(&format!("    :{:width$}  {}: {}\n", option.key, option.about, option.values));
    }
    text
}
