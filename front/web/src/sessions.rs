//! All runs that are played.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ranpace_lab::{Job, TraceLibrary};

use crate::limits;
use crate::problem::Refusal;
use crate::protocol::Speed;
use crate::session::{Engine, Handle};

/// The runs, by identifier.
#[derive(Debug, Default)]
pub struct Sessions {
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    handles: BTreeMap<String, Handle>,
}

/// Takes a run off the list when its thread ends, however it ends.
struct Listed {
    sessions: Arc<Sessions>,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.sessions.lock().handles.remove(&self.id);
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
        if running.handles.len() >= limits::SESSIONS {
            return Err(Refusal::too_many(format!(
                "{} runs are played, the most there may be; close one, or wait until one ends that nobody watches",
                limits::SESSIONS
            )));
        }
        running.next += 1;
        let id = running.next.to_string();
        let (engine, handle) = Engine::new(id.clone(), job, library, speed, paused)?;
        let listed = Listed { sessions: Arc::clone(self), id: id.clone() };
        running.handles.insert(id.clone(), handle.clone());
        // Without the lock, which `listed` takes if the thread cannot begin.
        drop(running);
        let thread = std::thread::Builder::new().name(format!("run {id}")).spawn(move || {
            let _listed = listed;
            engine.run();
        });
        thread.map_err(|error| Refusal::ours(format!("cannot start a thread: {error}")))?;
        Ok(handle)
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
