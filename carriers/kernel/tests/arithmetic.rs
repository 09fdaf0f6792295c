//! The arithmetic inside the running kernel, beside `logic/cc`: as in `ranpace-kernel-arithmetic`, but the steps are run by the
//! kernel's own machine. Needs root; whoever is not is told that it is skipped.
#![cfg(all(target_os = "linux", feature = "bpf"))]
#![allow(clippy::unwrap_used, reason = "a panic is a failed test")]

#[path = "../arithmetic/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, ObjectBuilder, ProgramInput};
use ranpace_cc::meld::Variant;
use ranpace_cc::{Algorithm, c2tcp, mdcc, meld, sigma};
use ranpace_kernel_arithmetic::c2tcp::KernelC2tcp;
use ranpace_kernel_arithmetic::cubic::{KernelCubic, SlowStart};
use ranpace_kernel_arithmetic::driven::{CdbeCall, Cdbev2Call, DcicCall, KernelDriven};
use ranpace_kernel_arithmetic::engine::{Engine, Flat};
use ranpace_kernel_arithmetic::mdcc::KernelMdcc;
use ranpace_kernel_arithmetic::meld::KernelMeld;
use ranpace_kernel_arithmetic::parent;
use ranpace_kernel_arithmetic::rapid::{KernelRapid, Settings};
use ranpace_kernel_arithmetic::sigma::KernelSigma;

use common::{Build, compare, few, few_peps, few_proxies, few_uploads, uneven};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steps.bpf.o"));

fn can_load() -> bool {
    let can = nix::unistd::geteuid().is_root();
    if !can {
        assert!(std::env::var_os("RANPACE_NO_SKIP").is_none(), "needs root");
        eprintln!("skipped: needs root");
    }
    can
}

/// The kernel's machine: the program `run_NAME` on the map `NAME_event`.
fn inside<C: Flat + 'static>(name: &str) -> Engine<C> {
    let object = ObjectBuilder::default().open_memory(OBJECT).unwrap().load().unwrap();
    let map = object.maps().find(|map| map.name() == format!("{name}_event").as_str()).unwrap();
    let (map, program) = (MapHandle::try_from(&map).unwrap(), format!("run_{name}"));
    Engine::new(move |call: &mut C| {
        let first = 0_u32.to_ne_bytes();
        map.update(&first, call.bytes(), MapFlags::ANY).unwrap();
        let program = object.progs_mut().find(|found| found.name() == program.as_str()).unwrap();
        assert_eq!(program.test_run(ProgramInput::default()).unwrap().return_value, 0);
        call.set_bytes(&map.lookup(&first, MapFlags::ANY).unwrap().unwrap());
    })
}

fn options(text: &str) -> ranpace_cc::Options {
    text.parse::<Algorithm>().unwrap().options()
}

#[test]
fn c2tcp_has_the_window_of_logic_cc() {
    if can_load() {
        let text = "c2tcp:target=50ms:pace";
        let settings = (&c2tcp::read_params(&mut options(text)).unwrap()).into();
        let kernel: Build =
            Arc::new(move || Box::new(KernelC2tcp::with_engine(parent("cubic"), settings, inside("c2tcp"))));
        let found = compare(&few(), text, &kernel);
        assert!(found.acks > 100_000, "{found}");
    }
}

#[test]
fn meld_hides_what_logic_cc_hides() {
    if can_load() {
        let text = "cubic+meld-me:rto=full:guard=off";
        let settings = (&meld::read_params(&mut options(text), Variant::Mixed).unwrap()).into();
        let kernel: Build =
            Arc::new(move || Box::new(KernelMeld::with_engine(parent("cubic"), settings, inside("meld"))));
        let found = compare(&few(), text, &kernel);
        assert!(found.acks > 100_000 && found.ignored > 0, "{found}");
    }
}

#[test]
fn rapid_has_the_window_of_logic_cc() {
    if can_load() {
        let kernel: Build =
            Arc::new(|| Box::new(KernelRapid::with_engine(Settings { pacing: 1 }, inside("rapid"))));
        let found = compare(&few_proxies(), "rapid:pacing", &kernel);
        assert!(found.acks > 100_000 && found.paced > 0, "{found}");
    }
}

#[test]
fn sigma_has_the_window_of_logic_cc() {
    if can_load() {
        let settings = (&sigma::read_params(&mut options("sigma")).unwrap()).into();
        let kernel: Build = Arc::new(move || Box::new(KernelSigma::with_engine(settings, inside("sigma"))));
        let found = compare(&few_uploads(), "sigma", &kernel);
        assert!(found.acks > 100_000 && found.paced > 1_000, "{found}");
    }
}

#[test]
fn cubic_has_the_window_of_logic_cc() {
    if can_load() {
        let text = "cubic:hystart=plusplus";
        let kernel: Build =
            Arc::new(|| Box::new(KernelCubic::with_engine(SlowStart::PlusPlus, inside("cubic"))));
        let found = compare(&few(), text, &kernel);
        assert!(found.acks > 100_000, "{found}");
    }
}

#[test]
fn mdcc_has_the_windows_of_logic_cc() {
    if can_load() {
        let text = "mdcc:a=0.0937";
        let settings = (&mdcc::read_settings(&mut options(text)).unwrap()).into();
        let kernel: Build = Arc::new(move || Box::new(KernelMdcc::with_engine(settings, inside("mdcc"))));
        let found = compare(&few_peps(), text, &kernel);
        assert!(found.acks > 100_000, "{found}");
    }
}

#[test]
fn client_driven_senders_have_the_window_of_logic_cc() {
    if !can_load() {
        return;
    }
    for text in ["cdbev2:report=exp", "cdbe:report=exp", "cqic-s:report=exp", "dcic:report=exp:guard=off"] {
        let kernel: Build = Arc::new(move || {
            let options = &mut options(text);
            match text.split(':').next() {
                Some("dcic") => {
                    Box::new(KernelDriven::with_engine(DcicCall::read(options).unwrap(), inside("dcic")))
                }
                Some("cdbe") => {
                    Box::new(KernelDriven::with_engine(CdbeCall::cdbe(options).unwrap(), inside("cdbe")))
                }
                Some("cqic-s") => {
                    Box::new(KernelDriven::with_engine(CdbeCall::cqic_s(options).unwrap(), inside("cdbe")))
                }
                _ => {
                    let call = Cdbev2Call::read(options, 1).unwrap();
                    Box::new(KernelDriven::with_engine(call, inside("cdbev2")))
                }
            }
        });
        let found = compare(&uneven(few()), text, &kernel);
        assert!(found.acks > 100_000, "{text}: {found}");
    }
}
