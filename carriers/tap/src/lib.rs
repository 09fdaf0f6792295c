//! The Lightweight PEP.
