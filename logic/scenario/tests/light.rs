//! `light` of a link: a recording under light load in front of a trace.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use ranpace_link::{Service, Trace};
use ranpace_scenario::{TraceSource, parse};
use ranpace_units::{Bytes, Span};

struct Files;

impl TraceSource for Files {
    fn load(&mut self, _: &str) -> Result<Arc<Trace>, String> {
        Trace::from_millis(1..=100).map(Arc::new).map_err(|error| error.to_string())
    }
    fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        Ok(if name == "light" { "0 20 0 2\n100 40 0\n200 20 0\n" } else { "0 20\n" }.into())
    }
}

fn of_link(keys: &str) -> String {
    format!(
        "duration = \"1s\"\n[[link]]\nname = \"down\"\nfrom = \"server\"\nto = \"phone\"\nduplex = true\n{keys}\n\
         [[flow]]\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n"
    )
}

#[test]
fn a_recording_under_light_load_is_read_with_its_opportunities_for_both_directions() {
    let text =
        of_link("trace = \"heavy\"\nlight = \"light\"\nlight_timer = \"30ms\"\nback = { delay = \"1ms\" }");
    let scenario = parse(&text, "light.toml", &mut Files).unwrap();
    for link in &scenario.links {
        let light = link.config.light.as_ref().unwrap();
        assert_eq!((light.trace.trains().len(), light.timer), (3, Span::from_millis(30)));
        let Service::Trace(heavy) = &link.config.service else { panic!("{:?}", link.config.service) };
        assert_eq!([light.opportunity, heavy.opportunity], [Bytes::new(1_400); 2]);
        assert_eq!(light.overhead, heavy.overhead);
    }
    let text = of_link("trace = \"heavy\"\nlight = \"light\"\nback = { rate = \"10Mbit/s\" }");
    let scenario = parse(&text, "light.toml", &mut Files).unwrap();
    assert!(scenario.links[0].config.light.is_some() && scenario.links[1].config.light.is_none());
}

#[test]
fn it_is_refused_without_a_trace_or_if_it_is_none() {
    for (keys, expected) in [
        ("rate = \"10Mbit/s\"\nlight = \"light\"", "which is then the recording under heavy load"),
        ("trace = \"heavy\"\nlight = \"other\"", "line 1: expected the time of a train"),
        ("trace = \"heavy\"\nlight_timer = \"1ms\"", "applies only to a link with `light`"),
    ] {
        let error = parse(&of_link(keys), "light.toml", &mut Files).unwrap_err().to_string();
        assert!(error.contains(expected), "{keys}: {error}");
    }
}
