//! Who works out an event: the headers as they are compiled natively, or as a program inside the kernel.

use core::fmt;

/// A structure of C without padding: its bytes are what a map of the kernel holds.
///
/// # Safety
///
/// It is `#[repr(C)]`, all of its bytes belong to fields, and any content of them is a valid value.
pub unsafe trait Flat: Sized {
    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        // SAFETY: as the trait asks, each of these bytes is initialised.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// Takes these bytes, which are as many as it has.
    ///
    /// # Panics
    ///
    /// There are more or less of them.
    fn set_bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as the trait asks, any content is a valid value.
        let place: &mut [u8] =
            unsafe { core::slice::from_raw_parts_mut(core::ptr::from_mut(self).cast(), size_of::<Self>()) };
        place.copy_from_slice(bytes);
    }
}

/// What an adapter calls for each event.
pub struct Engine<C>(Box<dyn FnMut(&mut C) + Send>);

impl<C> Engine<C> {
    /// This one.
    pub fn new(step: impl FnMut(&mut C) + Send + 'static) -> Self {
        Self(Box::new(step))
    }

    /// One event.
    pub fn step(&mut self, call: &mut C) {
        (self.0)(call);
    }
}

impl<C> fmt::Debug for Engine<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine")
    }
}
