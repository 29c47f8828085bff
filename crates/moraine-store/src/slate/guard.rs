//! One call into the storage engine: bounded in time, its panics caught, its errors turned into ours.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use moraine_keys::Key;
use slatedb::{CloseReason, ErrorKind};

use crate::error::with_sources;
use crate::observed::Observations;
use crate::read::Hex;
use crate::{CommitError, ReadError};

/// What calls into the engine need to say what happened.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) limit: Duration,
    pub(crate) seen: Arc<Observations>,
}

/// How a call ended without an answer.
pub(crate) enum Failure {
    /// The engine's error, and its text with the object that it is about.
    Engine(ErrorKind, String),
    Panicked(String),
    TimedOut(String),
}

impl From<slatedb::Error> for Failure {
    fn from(error: slatedb::Error) -> Self {
        Failure::Engine(error.kind(), with_sources(&error))
    }
}

impl Guard {
    /// Runs one call.
    pub(crate) async fn run<T>(
        &self,
        call: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        match tokio::time::timeout(self.limit, AssertUnwindSafe(call).catch_unwind()).await {
            Ok(Ok(result)) => result.map_err(|error| match error.kind() {
                kind @ (ErrorKind::Data | ErrorKind::Internal) => {
                    Failure::Engine(kind, self.with_object(&with_sources(&error)))
                }
                _ => error.into(),
            }),
            Ok(Err(panic)) => Err(Failure::Panicked(self.with_object(&panic_text(panic.as_ref())))),
            Err(_) => Err(Failure::TimedOut(self.timeout_text(start))),
        }
    }

    /// Runs one read of `what`, a key or a range.
    pub(crate) async fn read<T>(
        &self,
        what: impl fmt::Display,
        call: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, ReadError> {
        self.run(call).await.map_err(|failure| read_error(failure, &what))
    }

    /// `text` on one line, with the object that was read last where it names none.
    fn with_object(&self, text: &str) -> String {
        let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.contains("not found") {
            // Garbage collection spares what is younger than minutes, and no longer what a read holds on to.
            text.push_str(
                "; a read that went on for very long finds this too, and then succeeds when begun again",
            );
        }
        match self.seen.last_read() {
            Some(object) if !text.contains(".sst") => format!("{text} (the last object read was {object})"),
            _ => text,
        }
    }

    /// That the limit has passed, and the object store's last complaint if there was one.
    pub(crate) fn timeout_text(&self, start: Instant) -> String {
        let limit = self.limit;
        match self.seen.failure_since(start) {
            Some(failure) => format!("no answer within {limit:?}; the object store said last: {failure}"),
            None => format!("no answer within {limit:?}"),
        }
    }
}

/// The reason of a call's failure while reading `what`.
pub(crate) fn read_error(failure: Failure, what: &dyn fmt::Display) -> ReadError {
    let (kind, detail) = match failure {
        Failure::Engine(kind, detail) => (kind, detail),
        Failure::Panicked(detail) => {
            return ReadError::corruption(
                what.to_string(),
                format!("the storage engine panicked on what is stored: {detail}"),
            );
        }
        Failure::TimedOut(detail) => {
            return ReadError::Unavailable {
                doing: format!("reading {what}"),
                detail,
            };
        }
    };
    match kind {
        ErrorKind::Closed(CloseReason::Fenced) => ReadError::Fenced { detail },
        ErrorKind::Closed(CloseReason::Clean) => ReadError::Closed,
        ErrorKind::Unavailable => ReadError::Unavailable {
            doing: format!("reading {what}"),
            detail,
        },
        ErrorKind::Data => ReadError::corruption(what.to_string(), detail),
        ErrorKind::Invalid => ReadError::Invalid { detail },
        _ => ReadError::Stopped { detail },
    }
}

/// The outcome of a batch whose submission or flush failed so.
pub(crate) fn commit_error(failure: Failure) -> CommitError {
    match failure {
        Failure::Engine(kind, detail) => match kind {
            ErrorKind::Transaction => CommitError::Conflicted,
            ErrorKind::Closed(CloseReason::Fenced) => CommitError::Fenced { detail },
            // Refused for what the batch is, before it went anywhere.
            ErrorKind::Invalid => CommitError::Abandoned {
                source: ReadError::Invalid { detail },
            },
            _ => CommitError::Unknown { detail },
        },
        Failure::Panicked(detail) => CommitError::Unknown {
            detail: format!("the storage engine panicked: {detail}"),
        },
        Failure::TimedOut(detail) => CommitError::Unknown { detail },
    }
}

/// The text of a caught panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}

/// A raw key as people read it: its kind and components, or its bytes where it has none.
pub(crate) struct KeyName<'a>(pub(crate) &'a [u8]);

impl fmt::Display for KeyName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Key::decode(self.0) {
            Ok(key) => key.fmt(f),
            Err(_) => write!(f, "key {}", Hex(self.0)),
        }
    }
}
