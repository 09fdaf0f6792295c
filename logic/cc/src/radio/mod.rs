//! Controls that are told about the radio link: by radio information ([`sigma`]), by a proxy's allocation ([`rapid`]), or
//! by a proxy's acknowledgements from the border between the wired part and the radio part of the path ([`mdcc`]).

pub mod mdcc;
pub(crate) mod rapid;
pub mod sigma;
