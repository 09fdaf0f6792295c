//! Drawing in the terminal while a command runs.
//!
//! The command draws on the alternate screen. The terminal stays in its usual mode, so that Ctrl-C works as always and reaches programs,
//! too. Ctrl-\\ and Ctrl-Z end and stop the command as they do with any program, but only after the usual screen is back.

use std::io::{self, IsTerminal as _, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal, raise};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};

use crate::failure::Failure;
use crate::interrupt;

/// Without news the screen is drawn this often, because the terminal's size, or a log that it shows, may have changed.
const PATIENCE: Duration = Duration::from_millis(200);

/// Whether the alternate screen is in use. The lock is held while something is drawn, and while the command is stopped.
static DRAWN: Mutex<bool> = Mutex::new(false);
/// Whether the terminal's content may differ from what was drawn.
static IS_STALE: AtomicBool = AtomicBool::new(false);

/// A view to draw.
pub trait View: Send + 'static {
    /// News that it shows.
    type News: Send + 'static;

    /// Takes in what happened.
    fn add(&mut self, news: Self::News);

    /// Is called before each drawing, to read what does not come as news. `stops`: Ctrl-C was pressed.
    fn look(&mut self, stops: bool);

    /// Draws it all.
    fn draw(&self, frame: &mut Frame<'_>);
}

/// Signals that wait until the terminal is given back.
pub struct Signals(SigSet);

/// Fails with the message `otherwise` if standard output is no terminal. Call it before there is a second thread: from here on Ctrl-\\
/// and Ctrl-Z wait for [`start`], in all threads. Programs get them as usual.
pub fn check(otherwise: &str) -> Result<Signals, Failure> {
    if stdout().is_terminal() {
        let signals = SigSet::from_iter([Signal::SIGQUIT, Signal::SIGTSTP]);
        signals.thread_block().map_err(Failure::ours)?;
        return Ok(Signals(signals));
    }
    Err(Failure::asked(otherwise))
}

/// Draws until the other end of the channel is gone.
pub fn start<V: View>(
    mut view: V,
    from: Receiver<V::News>,
    signals: Option<Signals>,
) -> JoinHandle<io::Result<()>> {
    if let Some(Signals(signals)) = signals {
        // It ends with the process.
        thread::spawn(move || attend(signals));
    }
    thread::spawn(move || {
        interrupt::at_exit(restore);
        let _back = Back;
        *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = true;
        execute!(stdout(), EnterAlternateScreen)?;
        let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        loop {
            match from.recv_timeout(PATIENCE) {
                Ok(news) => view.add(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            view.look(interrupt::is_set());
            let _drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
            if IS_STALE.swap(false, Ordering::Relaxed) {
                // A new `Terminal` draws everything. (`clear` would ask the terminal for the position of its cursor, and wait for the
                // answer.)
                terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
            }
            terminal.draw(|frame| view.draw(frame))?;
        }
    })
}

/// Restores the usual screen, lets a signal take its effect, and returns to the alternate screen.
fn attend(signals: SigSet) {
    while let Ok(signal) = signals.wait() {
        let drawn = not_drawing();
        let is_drawn = drawn.as_ref().is_none_or(|drawn| **drawn);
        if is_drawn {
            restore();
        }
        let only = SigSet::from_iter([signal]);
        // This thread receives it as soon as it unblocks it.
        let passed = raise(signal).and_then(|()| only.thread_unblock()).and_then(|()| only.thread_block());
        if passed.is_err() {
            return;
        }
        // Stopped, and continued by now.
        if is_drawn && execute!(stdout(), EnterAlternateScreen).is_ok() {
            IS_STALE.store(true, Ordering::Relaxed);
        }
    }
}

/// Waits until nothing is being drawn; not for long, a terminal may take nothing more.
fn not_drawing() -> Option<MutexGuard<'static, bool>> {
    (0..PATIENCE.as_millis()).find_map(|_| match DRAWN.try_lock() {
        Ok(drawn) => Some(drawn),
        Err(TryLockError::Poisoned(drawn)) => Some(drawn.into_inner()),
        Err(TryLockError::WouldBlock) => {
            thread::sleep(Duration::from_millis(1));
            None
        }
    })
}

/// Gives the terminal back when it is dropped.
struct Back;

impl Drop for Back {
    fn drop(&mut self) {
        *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        restore();
    }
}

fn restore() {
    // Nothing can be done about a terminal that is gone.
    let _ = execute!(stdout(), Show, LeaveAlternateScreen);
}
