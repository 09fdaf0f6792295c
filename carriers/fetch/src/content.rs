//! A content while it comes: counted, timed, digested and kept.

use std::time::Instant;

use ring::digest::{Context, SHA256};

use crate::answer::Promise;
use crate::error::FetchError;
use crate::output::PartialFile;
use crate::rate::Rates;

/// A content that is coming.
pub(crate) struct Content {
    promise: Promise,
    file: Option<PartialFile>,
    /// If there is a digest to compare with.
    digest: Option<Context>,
    began: Instant,
    pub received: u64,
    pub first_byte: Option<Instant>,
    pub rates: Rates,
}

impl Content {
    /// The content of an answer to a download that began at `began`.
    pub fn new(promise: Promise, mut file: Option<PartialFile>, began: Instant) -> Result<Self, FetchError> {
        let mut digest = promise.digest.map(|_| Context::new(&SHA256));
        if let Some(file) = &mut file {
            if promise.from > 0 {
                file.go_on(|piece| {
                    if let Some(digest) = &mut digest {
                        digest.update(piece);
                    }
                })?;
            } else {
                file.begin(promise.etag.as_deref())?;
            }
        }
        Ok(Self { promise, file, digest, began, received: 0, first_byte: None, rates: Rates::default() })
    }

    /// Takes a piece.
    pub fn add(&mut self, piece: &[u8]) -> Result<(), FetchError> {
        let now = Instant::now();
        self.first_byte.get_or_insert(now);
        self.received += piece.len() as u64;
        if let Some(announced) = self.promise.length.filter(|announced| self.received > *announced) {
            return Err(FetchError::Length { announced, received: self.received });
        }
        self.rates.record(now - self.began, self.received);
        if let Some(digest) = &mut self.digest {
            digest.update(piece);
        }
        match &mut self.file {
            Some(file) => Ok(file.write(piece)?),
            None => Ok(()),
        }
    }

    /// The body has ended: checks that it is whole, and keeps it. Returns whether its digest was compared. `ends_clearly`: the
    /// protocol itself tells the end of a body from the end of a connection.
    pub fn end(&mut self, ends_clearly: bool) -> Result<bool, FetchError> {
        let received = self.received;
        match self.promise.length {
            Some(announced) if announced != received => {
                return Err(FetchError::Length { announced, received });
            }
            None if !ends_clearly && self.file.is_some() => return Err(FetchError::NoLength),
            _ => {}
        }
        if let (Some(announced), Some(digest)) = (&self.promise.digest, self.digest.take()) {
            let found = digest.finish();
            if found.as_ref() != announced {
                if let Some(file) = self.file.take() {
                    file.discard()?;
                }
                let found: Vec<u8> = found.as_ref().to_vec();
                return Err(FetchError::Digest { announced: hex(announced), found: hex(&found) });
            }
        }
        if let Some(file) = self.file.take() {
            file.finish()?;
        }
        Ok(self.promise.digest.is_some())
    }

    /// Bytes that were there before.
    pub fn resumed_from(&self) -> u64 {
        self.promise.from
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
