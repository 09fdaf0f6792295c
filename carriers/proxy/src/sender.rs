//! The sender towards users: imposes what RAPID allocates.
//!
//! With the kernel control `rapid` a connection has exactly the allocated window. Where that cannot be loaded, the kernel's CUBIC
//! sends, at most at the allocated rate: the window is then CUBIC's, so it bounds the rate but not what is in flight.

use std::io;
use std::os::fd::AsFd;

#[cfg(feature = "kernel")]
use ranpace_kernel::{Allocations, Control, KernelError, Loaded};
use ranpace_units::{Bytes, Rate};

use crate::config::SenderControl;
use crate::error::ProxyError;

/// What imposes allocations.
pub enum Sender {
    /// The kernel control, which lives as long as this.
    #[cfg(feature = "kernel")]
    Kernel {
        /// The control.
        control: Box<Loaded>,
        /// What is allocated.
        allocations: Allocations,
    },
    /// CUBIC with a limit of its pace.
    Pacing,
}

impl Sender {
    /// As configured; with [`SenderControl::Auto`] also says why it is not the kernel control.
    ///
    /// # Errors
    ///
    /// The kernel control is demanded, and cannot be loaded.
    pub fn new(wanted: SenderControl) -> Result<(Self, Option<String>), ProxyError> {
        #[cfg(feature = "kernel")]
        if wanted != SenderControl::Pacing {
            return match Self::load() {
                Ok(sender) => Ok((sender, None)),
                Err(error) if wanted == SenderControl::Kernel => Err(ProxyError::Setup(error.to_string())),
                Err(error) => Ok((Self::Pacing, Some(error.to_string()))),
            };
        }
        let is_missing = wanted == SenderControl::Auto;
        Ok((Self::Pacing, is_missing.then(|| "this ranpace was built without kernel controls".to_owned())))
    }

    #[cfg(feature = "kernel")]
    fn load() -> Result<Self, KernelError> {
        let control = Loaded::unnamed(&Control::parse("rapid")?)?;
        let allocations = Allocations::of(&control)?;
        Ok(Self::Kernel { control: Box::new(control), allocations })
    }

    /// The congestion control of sockets towards users.
    pub fn congestion(&self) -> &str {
        match self {
            #[cfg(feature = "kernel")]
            Self::Kernel { control, .. } => control.name(),
            Self::Pacing => "cubic",
        }
    }

    /// What it is called in messages.
    pub fn name(&self) -> &'static str {
        match self {
            #[cfg(feature = "kernel")]
            Self::Kernel { .. } => "kernel",
            Self::Pacing => "pacing",
        }
    }

    /// The connection at this place has this rate and window from its next acknowledgement on; with `None`, none is imposed.
    /// `is_first`: it was allocated nothing before.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn allocate(
        &self,
        socket: impl AsFd,
        place: usize,
        is_first: bool,
        allocation: Option<(Rate, Bytes)>,
    ) -> io::Result<()> {
        match self {
            #[cfg(feature = "kernel")]
            Self::Kernel { allocations, .. } => {
                let allocation = allocation.map(|(rate, window)| ranpace_cc::Allocation { rate, window });
                allocations.write(place, allocation);
                if is_first { allocations.assign(socket, place).map_err(io::Error::other) } else { Ok(()) }
            }
            Self::Pacing => {
                let _ = (place, is_first);
                // A rate of nothing would stop the connection for ever: the kernel does not ask again.
                let rate = allocation.map(|(rate, _)| (rate.bits_per_s() / 8).max(1_000));
                ranpace_proxy_options::set_max_pacing_rate(socket, rate)
            }
        }
    }

    /// The connection at its place is over, but the kernel still has payload to send: another connection may have the place.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn take_back(&self, socket: impl AsFd) -> io::Result<()> {
        match self {
            #[cfg(feature = "kernel")]
            Self::Kernel { allocations, .. } => allocations.take_back(socket).map_err(io::Error::other),
            Self::Pacing => {
                let _ = socket;
                Ok(())
            }
        }
    }
}
