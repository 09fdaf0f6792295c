//! Controls that receive information about the radio link: radio reports ([`sigma`], [`xtcp`]), a proxy's allocation ([`rapid`]), or a
//! proxy's acknowledgements from the border between the wired part and the radio part of the path ([`mdcc`]).

pub mod mdcc;
pub(crate) mod modem;
pub(crate) mod natcp;
pub(crate) mod rapid;
pub mod sigma;
pub(crate) mod xtcp;
