//! Cancel requests: a second connection names a session by its process id and secret, and the statement that session is
//! running ends with 57014.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use pgwire::api::cancel::CancelHandler;
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::startup::SecretKey;
use tokio::sync::Notify;

/// The sessions that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct CancelRegistry {
    sessions: Mutex<HashMap<i32, (SecretKey, Arc<CancelToken>)>>,
}

/// Whether the statement a session is running is to end.
#[derive(Debug, Default)]
pub(crate) struct CancelToken {
    cancelled: AtomicBool,
    running: AtomicBool,
    wake: Notify,
}

impl CancelToken {
    /// A message starts: a cancel request that came too late for the last one is forgotten.
    pub(crate) fn start(&self) {
        self.cancelled.store(false, Ordering::SeqCst);
        self.running.store(true, Ordering::SeqCst);
    }

    /// The message is answered: requests from now on find nothing to cancel.
    pub(crate) fn finish(&self) {
        self.running.store(false, Ordering::SeqCst);
    }

    fn cancel(&self) {
        if self.running.load(Ordering::SeqCst) {
            self.cancelled.store(true, Ordering::SeqCst);
            self.wake.notify_waiters();
        }
    }

    /// Ends when the running statement is to end.
    pub(crate) async fn cancelled(&self) {
        loop {
            let mut woken = std::pin::pin!(self.wake.notified());
            // Registered before the flag is read, so that no request falls between the two.
            woken.as_mut().enable();
            if self.cancelled.load(Ordering::SeqCst) {
                return;
            }
            woken.await;
        }
    }
}

impl CancelRegistry {
    pub(crate) fn add(&self, pid: i32, secret: SecretKey, token: Arc<CancelToken>) {
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(pid, (secret, token));
    }

    pub(crate) fn remove(&self, pid: i32) {
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&pid);
    }
}

/// Hands cancel requests to the registry.
pub(crate) struct Canceller(pub(crate) Arc<CancelRegistry>);

#[async_trait]
impl CancelHandler for Canceller {
    async fn on_cancel_request(&self, request: CancelRequest) {
        let sessions = self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        // A wrong secret gets no answer either way, as in Postgres.
        if let Some((secret, token)) = sessions.get(&request.pid)
            && secret.eq_value(&request.secret_key)
        {
            tracing::debug!(pid = request.pid, "cancel requested");
            token.cancel();
        }
    }
}
