//! Controls whose receiver measures the bandwidth and reports it: QUIC-CQIC, DCIC, CQIC-S, CDBE and CDBEv2 (Zhong 2020), and
//! PBE-CC (Xie et al. 2020).
//!
//! Those of Zhong share the format of a report ([`bw_report`]), the reporting interval ([`reporter`]), the measuring windows of the
//! clients ([`tumbling`]), the sender's view of the path ([`pipe`]), and the [`guard`] against false reports.

pub mod bw_report;
pub mod cdbe;
pub mod cdbev2;
pub(crate) mod cqic_s;
pub(crate) mod dcic;
pub(crate) mod guard;
pub(crate) mod pbe;
pub(crate) mod pbe_report;
pub(crate) mod pipe;
pub(crate) mod quic_cqic;
pub(crate) mod reporter;
pub(crate) mod tumbling;
