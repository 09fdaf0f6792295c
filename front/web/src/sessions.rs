//! All runs that are played.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ranpace_lab::{Job, TraceLibrary};

use crate::handle::Handle;
use crate::limits;
use crate::live::Live;
use crate::live::address::Address;
use crate::live::reading::Reading;
use crate::live::source::Source;
use crate::problem::Refusal;
use crate::protocol::Speed;
use crate::session::Engine;

/// The runs, by identifier.
#[derive(Debug, Default)]
pub struct Sessions {
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    handles: BTreeMap<String, Handle>,
    /// Sessions of live sources, by the source's address.
    attached: BTreeMap<Address, String>,
}

impl Running {
    /// The session that reads this address.
    fn attached(&self, address: &Address) -> Option<Handle> {
        self.attached.get(address).and_then(|id| self.handles.get(id)).cloned()
    }
}

/// Takes a run off the list when its thread ends, however it ends.
struct Listed {
    sessions: Arc<Sessions>,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut running = self.sessions.lock();
        running.handles.remove(&self.id);
        running.attached.retain(|_, id| *id != self.id);
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Running> {
        // A panic while it was locked left the list as it was.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run.
    pub fn begin(
        self: &Arc<Self>,
        job: Job,
        library: TraceLibrary,
        speed: Speed,
        paused: bool,
    ) -> Result<Handle, Refusal> {
        let mut running = self.lock();
        let (handle, begin) = self.enlist(&mut running, None, |id| {
            let (engine, handle) = Engine::new(id, job, library, speed, paused)?;
            Ok((handle, move || engine.run()))
        })?;
        drop(running);
        begin()?;
        Ok(handle)
    }

    /// Begins to read a live source; one that is read already is shared.
    pub fn attach(self: &Arc<Self>, source: Source, first: Reading) -> Result<Handle, Refusal> {
        let address = source.address.clone();
        let mut running = self.lock();
        // Another page may have come first since the source was read.
        if let Some(handle) = running.attached(&address) {
            return Ok(handle);
        }
        let (handle, begin) = self.enlist(&mut running, Some(address), |id| {
            let (live, handle) = Live::new(id, source, first);
            Ok((handle, move || live.run()))
        })?;
        drop(running);
        begin()?;
        Ok(handle)
    }

    /// The session that reads this address.
    pub fn attached(&self, address: &Address) -> Option<Handle> {
        self.lock().attached(address)
    }

    /// Puts a session on the list; what is returned with its handle starts its thread, and must not be called under the lock, which
    /// the thread takes when it ends.
    fn enlist<R: FnOnce() + Send + 'static, M: FnOnce(String) -> Result<(Handle, R), Refusal>>(
        self: &Arc<Self>,
        running: &mut Running,
        attached: Option<Address>,
        make: M,
    ) -> Result<(Handle, impl FnOnce() -> Result<(), Refusal> + use<R, M>), Refusal> {
        if running.handles.len() >= limits::SESSIONS {
            return Err(Refusal::too_many(format!(
                "{} runs are played, the most there may be; close one, or wait until one ends that nobody watches",
                limits::SESSIONS
            )));
        }
        running.next += 1;
        let id = running.next.to_string();
        let (handle, run) = make(id.clone())?;
        let listed = Listed { sessions: Arc::clone(self), id: id.clone() };
        running.handles.insert(id.clone(), handle.clone());
        if let Some(address) = attached {
            running.attached.insert(address, id.clone());
        }
        let begin = move || {
            let thread = std::thread::Builder::new().name(format!("run {id}")).spawn(move || {
                let _listed = listed;
                run();
            });
            thread.map(drop).map_err(|error| Refusal::ours(format!("cannot start a thread: {error}")))
        };
        Ok((handle, begin))
    }

    /// The run with this identifier.
    pub fn get(&self, id: &str) -> Result<Handle, Refusal> {
        self.lock().handles.get(id).cloned().ok_or_else(|| {
            Refusal::not_found(format!(
                "no run {id:?}: it ended, or nobody watched it; POST /api/sessions begins one"
            ))
        })
    }

    /// All runs.
    pub fn all(&self) -> Vec<Handle> {
        self.lock().handles.values().cloned().collect()
    }

    /// Viewers of all runs.
    pub fn viewers(&self) -> usize {
        self.lock().handles.values().map(Handle::viewers).sum()
    }

    /// Ends all runs.
    pub fn end(&self) {
        self.all().iter().for_each(Handle::end);
    }
}
