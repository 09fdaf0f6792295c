//! The list of all algorithms and decorators. A new one is registered here.

use crate::classic::{cubic, newreno, scalable, vegas, veno, westwood, yeah};
use crate::client_driven::{cdbe, cdbev2, cqic_s, dcic, pbe, quic_cqic};
use crate::decorators::{c2tcp, lda, meld};
use crate::entry::{Decorator, Entry};
use crate::marks::{abc, prague};
use crate::radio::{mdcc, natcp, rapid, sigma, xtcp};
use crate::rate_based::{bbr_zhong, bbr1, bbr3, copa, sprout, verus, vivace};

/// Every algorithm, in the order in which they are listed.
pub const ALL: &[&Entry] = &[
    &newreno::ENTRY,
    &cubic::ENTRY,
    &scalable::ENTRY,
    &westwood::ENTRY,
    &westwood::PLUS,
    &veno::ENTRY,
    &vegas::ENTRY,
    &yeah::ENTRY,
    &prague::ENTRY,
    &abc::ENTRY,
    &bbr1::ENTRY,
    &bbr3::ENTRY,
    &bbr_zhong::ENTRY,
    &copa::ENTRY,
    &vivace::ENTRY,
    &sprout::ENTRY,
    &verus::ENTRY,
    &quic_cqic::ENTRY,
    &dcic::ENTRY,
    &cqic_s::ENTRY,
    &cdbe::ENTRY,
    &cdbev2::ENTRY,
    &pbe::ENTRY,
    &rapid::ENTRY,
    &sigma::ENTRY,
    &xtcp::ENTRY,
    &natcp::ENTRY,
    &mdcc::ENTRY,
];

/// Every decorator.
pub const DECORATORS: &[&Decorator] = &[&c2tcp::ENTRY, &lda::ENTRY, &meld::DE, &meld::ME];

/// Short names for combinations.
pub const ALIASES: &[(&str, &str)] = &[("c2tcp", "cubic+c2tcp"), ("reno", "newreno")];
