//! Congestion controls written in Python: a class, the hooks that it defines, and its options.
//!
//! A hook that the class does not define costs nothing: Python is not called. All calls of a simulated run happen on the thread that
//! called `run`, so that a control sees its events in their order and the same run gives the same bytes. In an emulation they happen on
//! the emulator's threads, which wait for Python's lock: [`watch`] measures for how long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use ranpace_cc::{
    Ack, Congestion, CongestionControl, Context, Control, Entry, LossResponse, OptionError, OptionInfo,
    Options, Packet, PepReport, ReceiverReport, Sample, Sent, Transport, Window,
};
use ranpace_rnis::RadioHint;
use ranpace_units::{Span, Time};

use crate::{events, failure, watch};

/// What plays a control, and how it fails: the simulator, or the emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Virtual time, on the calling thread, which has Python's lock.
    Virtual,
    /// Real time, on other threads.
    Real,
}

/// A registered class, as each clock's entry.
struct Registered {
    in_virtual_time: &'static Entry,
    in_real_time: &'static Entry,
}

/// The registered controls, by name.
static REGISTERED: Mutex<BTreeMap<String, Registered>> = Mutex::new(BTreeMap::new());

/// The registered controls, for scenarios that this clock plays.
pub fn registered(clock: Clock) -> Vec<&'static Entry> {
    // Nothing that could panic happens between the steps of a change to the list, so it is whole.
    let all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let entries = all.values().map(|own| match clock {
        Clock::Virtual => own.in_virtual_time,
        Clock::Real => own.in_real_time,
    });
    entries.collect()
}

/// Whether a text may name a registered control: such runs call Python.
pub fn is_named_in(text: &str) -> bool {
    registered(Clock::Virtual).iter().any(|entry| text.contains(entry.name))
}

/// An option: its key, its default, and what the default shows of its kind.
struct OwnOption {
    key: &'static str,
    default: Py<PyAny>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Flag,
    Whole,
    Real,
    Text,
}

impl OwnOption {
    /// The value that was given, or the default.
    fn read(&self, py: Python<'_>, options: &mut Options) -> Result<Py<PyAny>, OptionError> {
        const UNREAD: &str = "";
        let given: String = options.value(self.key, "a value", UNREAD.to_owned())?;
        if given.is_empty() {
            return Ok(self.default.clone_ref(py));
        }
        let refused = |expected: &str| OptionError {
            key: self.key,
            expected: expected.to_owned(),
            found: given.clone(),
        };
        let made = match self.kind {
            Kind::Flag => match given.as_str() {
                "on" | "true" | "1" => true.into_py_any(py),
                "off" | "false" | "0" => false.into_py_any(py),
                _ => return Err(refused("on or off")),
            },
            Kind::Whole => given.parse::<i64>().map_err(|_| refused("a whole number"))?.into_py_any(py),
            Kind::Real => {
                let number = given.parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| refused("a number"))?.into_py_any(py)
            }
            Kind::Text => given.as_str().into_py_any(py),
        };
        made.map_err(|error| refused(&error.to_string()))
    }
}

/// Registers a class under a name; a control of that name registered before is replaced. Called by `ranpace.register`, which has
/// looked at the class.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "it is called in one place, by name")]
#[pyo3(signature = (*, name, about, options, class_, takes_seed, hooks, owns_recovery, receiver))]
pub fn register(
    py: Python<'_>,
    name: &str,
    about: &str,
    options: Vec<(String, Py<PyAny>)>,
    class_: Py<PyAny>,
    takes_seed: bool,
    hooks: BTreeSet<String>,
    owns_recovery: bool,
    receiver: Option<&str>,
) -> PyResult<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(PyValueError::new_err(format!(
            "the name of a control consists of letters, digits, - and _; found {name:?}"
        )));
    }
    let is_listed = ranpace_cc::ALL.iter().any(|entry| entry.name == name)
        || ranpace_cc::ALIASES.iter().any(|(alias, _)| *alias == name);
    if is_listed {
        return Err(PyValueError::new_err(format!(
            "{name:?} is a control of Ranpace; choose another name for your own"
        )));
    }
    let receiver = match receiver {
        None => None,
        Some(of) => {
            let entry = ranpace_cc::ALL.iter().find(|entry| entry.name == of);
            Some(entry.and_then(|entry| entry.receiver).ok_or_else(|| {
                let having = ranpace_cc::ALL.iter().filter(|entry| entry.receiver.is_some());
                let names: Vec<&str> = having.map(|entry| entry.name).collect();
                PyValueError::new_err(format!(
                    "receiver = {of:?}: expected a control with a receiver's half: {}",
                    names.join(", ")
                ))
            })?)
        }
    };
    let mut own = Vec::new();
    let mut infos = Vec::new();
    for (key, default) in options {
        let bound = default.bind(py);
        // A flag is also a whole number in Python, so it is asked for first.
        let (kind, values) = if bound.is_instance_of::<pyo3::types::PyBool>() {
            (Kind::Flag, "on or off")
        } else if bound.is_instance_of::<pyo3::types::PyInt>() {
            (Kind::Whole, "a whole number")
        } else if bound.is_instance_of::<pyo3::types::PyFloat>() {
            (Kind::Real, "a number")
        } else if bound.is_instance_of::<pyo3::types::PyString>() {
            (Kind::Text, "a text")
        } else {
            return Err(PyTypeError::new_err(format!(
                "option {key} of {name}: expected a default that is a number, a text or a bool, found {}",
                bound.get_type().name()?
            )));
        };
        // Entries live as long as the process; a notebook that registers a class again leaves a few hundred bytes behind.
        let key: &'static str = key.leak();
        let values = format!("{values} ({})", bound.str()?).leak();
        infos.push(OptionInfo { key, values, about: "" });
        own.push(OwnOption { key, default, kind });
    }
    let name: &'static str = name.to_owned().leak();
    let (about, options): (&'static str, &'static [OptionInfo]) = (about.to_owned().leak(), infos.leak());
    let class: &'static Class =
        Box::leak(Box::new(Class { name, options: own, class: class_, takes_seed, hooks, owns_recovery }));
    let entry = |clock: Clock| -> &'static Entry {
        let build = move |options: &mut Options, seed: u64| class.build(options, seed, clock);
        Box::leak(Box::new(Entry {
            name,
            about,
            source: "Python",
            options,
            transport: Transport::Tcp,
            loss_based: false,
            build: Box::leak(Box::new(build)),
            receiver,
        }))
    };
    let own = Registered { in_virtual_time: entry(Clock::Virtual), in_real_time: entry(Clock::Real) };
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), own);
    Ok(())
}

/// A registered class.
struct Class {
    name: &'static str,
    options: Vec<OwnOption>,
    class: Py<PyAny>,
    takes_seed: bool,
    hooks: BTreeSet<String>,
    owns_recovery: bool,
}

impl Class {
    /// The control of a connection. Making it is a call like those of its hooks.
    fn build(&self, options: &mut Options, seed: u64, clock: Clock) -> Result<Control, OptionError> {
        let built = attach(clock, |py| Ok(self.build_in(py, options, seed, clock)));
        built.unwrap_or_else(|error| Ok(self.failed(error, clock)))
    }

    fn build_in(
        &self,
        py: Python<'_>,
        options: &mut Options,
        seed: u64,
        clock: Clock,
    ) -> Result<Control, OptionError> {
        let arguments = PyDict::new(py);
        let set = |key: &str, value: Py<PyAny>| arguments.set_item(key, value);
        let mut failed = Ok(());
        for option in &self.options {
            failed = failed.and(set(option.key, option.read(py, options)?));
        }
        if self.takes_seed {
            failed = failed.and(set("seed", seed.into_py_any(py).unwrap_or_else(|_| py.None())));
        }
        let made = failed
            .and_then(|()| self.class.bind(py).call((), Some(&arguments)))
            .and_then(|instance| PythonControl::new(self, &instance, clock));
        Ok(made.map_or_else(|error| self.failed(error, clock), |control| Control::Other(Box::new(control))))
    }

    /// A class that cannot be instantiated stops the run; until then the connection has a control without hooks.
    fn failed(&self, error: PyErr, clock: Clock) -> Control {
        let mut control = PythonControl::without_hooks(self.name, clock);
        control.fail(error);
        Control::Other(Box::new(control))
    }
}

/// Calls Python. Fails where the interpreter has ended.
fn attach<T>(clock: Clock, work: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>) -> PyResult<T> {
    match clock {
        Clock::Virtual => Python::attach(work),
        Clock::Real => {
            let asked = Instant::now();
            let done = Python::try_attach(|py| {
                let began = Instant::now();
                let result = work(py);
                watch::count(began - asked, began.elapsed());
                result
            });
            done.unwrap_or_else(|| Err(PyRuntimeError::new_err("the Python interpreter has ended")))
        }
    }
}

/// A hook bound to its instance.
type Hook = Option<Py<PyAny>>;

/// The control of one connection.
#[derive(Debug)]
struct PythonControl {
    name: &'static str,
    clock: Clock,
    /// Lent to every hook.
    window: Option<Py<events::Window>>,
    /// A hook has raised an exception: the run is about to stop.
    failed: bool,
    owns_recovery: bool,
    ack_every: Option<u32>,
    on_start: Hook,
    on_sent: Hook,
    on_sample: Hook,
    on_ack: Hook,
    on_loss: Hook,
    on_packet: Hook,
    on_recovered: Hook,
    on_spurious: Hook,
    on_idle_restart: Hook,
    on_path_change: Hook,
    next_deadline: Hook,
    on_deadline: Hook,
    on_report: Hook,
    on_radio: Hook,
    on_pep: Hook,
    inspect: Hook,
}

impl PythonControl {
    fn without_hooks(name: &'static str, clock: Clock) -> Self {
        Self {
            name,
            clock,
            window: None,
            failed: false,
            owns_recovery: false,
            ack_every: None,
            on_start: None,
            on_sent: None,
            on_sample: None,
            on_ack: None,
            on_loss: None,
            on_packet: None,
            on_recovered: None,
            on_spurious: None,
            on_idle_restart: None,
            on_path_change: None,
            next_deadline: None,
            on_deadline: None,
            on_report: None,
            on_radio: None,
            on_pep: None,
            inspect: None,
        }
    }

    fn new(class: &Class, instance: &Bound<'_, PyAny>, clock: Clock) -> PyResult<Self> {
        let py = instance.py();
        let hook = |name: &str| -> PyResult<Hook> {
            if class.hooks.contains(name) { Ok(Some(instance.getattr(name)?.unbind())) } else { Ok(None) }
        };
        let ack_every = match instance.getattr_opt("ack_every")? {
            Some(value) => value.extract()?,
            None => None,
        };
        let window = Py::new(py, events::Window::of(&Window::new(0.0)))?;
        Ok(Self {
            window: Some(window),
            owns_recovery: class.owns_recovery,
            ack_every,
            on_start: hook("on_start")?,
            on_sent: hook("on_sent")?,
            on_sample: hook("on_sample")?,
            on_ack: hook("on_ack")?,
            on_loss: hook("on_loss")?,
            on_packet: hook("on_packet")?,
            on_recovered: hook("on_recovered")?,
            on_spurious: hook("on_spurious")?,
            on_idle_restart: hook("on_idle_restart")?,
            on_path_change: hook("on_path_change")?,
            next_deadline: hook("next_deadline")?,
            on_deadline: hook("on_deadline")?,
            on_report: hook("on_report")?,
            on_radio: hook("on_radio")?,
            on_pep: hook("on_pep")?,
            inspect: hook("inspect")?,
            ..Self::without_hooks(class.name, clock)
        })
    }

    fn attach<T>(&self, work: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>) -> PyResult<T> {
        attach(self.clock, work)
    }

    /// Calls a hook with the connection, the window and what `argument` makes; the window has then what the hook set.
    fn call<A>(
        &mut self,
        hook: fn(&Self) -> &Hook,
        title: &str,
        cx: &Context,
        w: &mut Window,
        argument: impl FnOnce(Python<'_>) -> PyResult<A>,
    ) -> Option<Py<PyAny>>
    where
        A: for<'py> IntoPyObject<'py>,
    {
        if self.failed {
            return None;
        }
        let (Some(hook), Some(window)) = (hook(self), &self.window) else { return None };
        let called = self.attach(|py| {
            *window.try_borrow_mut(py)? = events::Window::of(w);
            let context = Py::new(py, events::Context(*cx))?;
            let argument = argument(py)?.into_py_any(py)?;
            let answer = if argument.is_none(py) {
                hook.call1(py, (context, window))?
            } else {
                hook.call1(py, (context, window, argument))?
            };
            window
                .try_borrow(py)?
                .write(w)
                .map_err(|problem| PyValueError::new_err(format!("{}.{title} {problem}", self.name)))?;
            Ok(answer)
        });
        called.map_err(|error| self.fail(error)).ok()
    }

    fn fail(&mut self, error: PyErr) {
        self.failed = true;
        self.stop_run(error);
    }

    fn stop_run(&self, error: PyErr) {
        match self.clock {
            Clock::Virtual => failure::stop_run(error),
            Clock::Real => watch::stop_run(error),
        }
    }

    /// What a hook answered to congestion.
    fn response(&self, answer: &Bound<'_, PyAny>) -> PyResult<LossResponse> {
        if answer.is_none() {
            if self.owns_recovery {
                return Ok(LossResponse::Own);
            }
            return Err(PyTypeError::new_err(format!(
                "{}.on_loss returned None; expected the new ssthresh in segments, ranpace.IGNORE, or owns_recovery = True in the class",
                self.name
            )));
        }
        if answer.extract::<&str>().is_ok_and(|word| word == "ignore") {
            return Ok(LossResponse::Ignore);
        }
        let threshold: f64 = answer.extract().map_err(|_| {
            PyTypeError::new_err(format!(
                "{}.on_loss returned {answer}; expected the new ssthresh in segments, ranpace.IGNORE, or None",
                self.name
            ))
        })?;
        if !threshold.is_finite() || threshold < 0.0 {
            return Err(PyValueError::new_err(format!(
                "{}.on_loss returned {threshold}; expected the new ssthresh in segments, a finite number from 0",
                self.name
            )));
        }
        Ok(LossResponse::ReduceTo(threshold))
    }
}

/// No argument besides connection and window.
fn nothing(py: Python<'_>) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

impl CongestionControl for PythonControl {
    fn on_start(&mut self, cx: &Context, w: &mut Window) {
        self.call(|own| &own.on_start, "on_start", cx, w, nothing);
    }

    fn on_sent(&mut self, cx: &Context, w: &mut Window, sent: &Sent) {
        self.call(|own| &own.on_sent, "on_sent", cx, w, |py| Py::new(py, events::Sent(*sent)));
    }

    fn on_sample(&mut self, cx: &Context, w: &mut Window, sample: &Sample) {
        self.call(|own| &own.on_sample, "on_sample", cx, w, |py| Py::new(py, events::Sample(*sample)));
    }

    /// Halves the window if the class does not say otherwise (RFC 5681, equation 4).
    fn on_congestion(&mut self, cx: &Context, w: &mut Window, event: &Congestion) -> LossResponse {
        let default = LossResponse::ReduceTo((w.cwnd / 2.0).max(2.0));
        let answer =
            self.call(|own| &own.on_loss, "on_loss", cx, w, |py| Py::new(py, events::Congestion(*event)));
        let Some(answer) = answer else { return default };
        let response = self.attach(|py| self.response(answer.bind(py)));
        response.unwrap_or_else(|error| {
            self.fail(error);
            default
        })
    }

    fn on_ack(&mut self, cx: &Context, w: &mut Window, ack: &Ack) {
        self.call(|own| &own.on_ack, "on_ack", cx, w, |py| Py::new(py, events::Ack(*ack)));
    }

    fn owns_recovery(&self) -> bool {
        self.owns_recovery
    }

    fn ack_every(&self) -> Option<u32> {
        self.ack_every
    }

    fn wants_packets(&self) -> bool {
        self.on_packet.is_some()
    }

    fn on_packet(&mut self, cx: &Context, w: &mut Window, packet: &Packet) {
        self.call(|own| &own.on_packet, "on_packet", cx, w, |py| Py::new(py, events::Packet(*packet)));
    }

    fn on_recovered(&mut self, cx: &Context, w: &mut Window) {
        self.call(|own| &own.on_recovered, "on_recovered", cx, w, nothing);
    }

    fn on_spurious(&mut self, cx: &Context, w: &mut Window, prior: &Window) {
        if self.on_spurious.is_none() {
            w.cwnd = w.cwnd.max(prior.cwnd);
            w.ssthresh = w.ssthresh.max(prior.ssthresh);
        }
        self.call(|own| &own.on_spurious, "on_spurious", cx, w, |py| Py::new(py, events::Window::of(prior)));
    }

    fn on_idle_restart(&mut self, cx: &Context, w: &mut Window, idle: Span) {
        self.call(|own| &own.on_idle_restart, "on_idle_restart", cx, w, |_| Ok(idle.as_secs_f64()));
    }

    fn on_path_change(&mut self, cx: &Context, w: &mut Window) {
        self.call(|own| &own.on_path_change, "on_path_change", cx, w, nothing);
    }

    fn next_deadline(&self) -> Option<Time> {
        let hook = self.next_deadline.as_ref().filter(|_| !self.failed)?;
        let asked = self.attach(|py| {
            let at: Option<f64> = hook.call0(py)?.extract(py)?;
            match at {
                Some(at) if !(0.0..1e9).contains(&at) => Err(PyValueError::new_err(format!(
                    "{}.next_deadline returned {at}; expected seconds since the run began, or None",
                    self.name
                ))),
                at => Ok(at.map(|at| Time::ZERO + Span::from_secs_f64(at))),
            }
        });
        asked.unwrap_or_else(|error| {
            self.stop_run(error);
            None
        })
    }

    fn on_deadline(&mut self, cx: &Context, w: &mut Window) {
        self.call(|own| &own.on_deadline, "on_deadline", cx, w, nothing);
        // The endpoint would call again at the same instant, for ever.
        if let Some(at) = self.next_deadline().filter(|at| *at <= cx.now) {
            let (name, at, now) = (self.name, at.as_secs_f64(), cx.now.as_secs_f64());
            self.fail(PyValueError::new_err(format!(
                "{name}.next_deadline returned {at} after on_deadline at {now}; expected a later time, or None"
            )));
        }
    }

    fn on_report(&mut self, cx: &Context, w: &mut Window, report: &ReceiverReport) {
        self.call(
            |own| &own.on_report,
            "on_report",
            cx,
            w,
            |py| Ok(PyBytes::new(py, report.as_bytes()).unbind()),
        );
    }

    fn wants_radio(&self) -> bool {
        self.on_radio.is_some()
    }

    fn on_radio(&mut self, cx: &Context, w: &mut Window, hint: &RadioHint) {
        self.call(|own| &own.on_radio, "on_radio", cx, w, |py| Py::new(py, events::RadioHint(*hint)));
    }

    fn on_pep(&mut self, cx: &Context, w: &mut Window, report: &PepReport) {
        self.call(|own| &own.on_pep, "on_pep", cx, w, |py| Py::new(py, events::PepReport(*report)));
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let Some(hook) = self.inspect.as_ref().filter(|_| !self.failed) else { return };
        let shown = self.attach(|py| {
            let figures: BTreeMap<String, f64> = hook.call0(py)?.extract(py)?;
            figures.into_iter().for_each(|(name, value)| show(interned(name), value));
            Ok(())
        });
        if let Err(error) = shown {
            self.stop_run(error);
        }
    }
}

/// A name of a figure that lives as long as the process: there are as many as the classes' `inspect` return.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let Ok(mut names) = NAMES.lock() else { return "state" };
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name = name.leak();
    names.insert(name);
    name
}
