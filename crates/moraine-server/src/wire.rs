//! What a session says to its client, whichever client that is: messages are fed to a connection, or kept until a commit
//! allows them to be sent.

use std::fmt::Debug;

use async_trait::async_trait;
use futures::{Sink, SinkExt};
use pgwire::error::PgWireError;
use pgwire::messages::PgWireBackendMessage;

use crate::errors::SqlError;

/// Why a statement ended before its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error the client is told about.
    Sql(SqlError),
    /// The client is gone; nobody is left to tell.
    Gone(PgWireError),
}

impl<E: Into<SqlError>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Sql(error.into())
    }
}

/// Where messages to the client go.
#[async_trait]
pub(crate) trait Wire: Send {
    /// Adds a message to what is to be sent.
    async fn feed(&mut self, message: PgWireBackendMessage) -> Result<(), Failure>;
}

/// A client's connection.
pub(crate) struct ClientWire<'a, C>(pub(crate) &'a mut C);

#[async_trait]
impl<C> Wire for ClientWire<'_, C>
where
    C: Sink<PgWireBackendMessage> + Unpin + Send,
    C::Error: Debug,
    PgWireError: From<C::Error>,
{
    async fn feed(&mut self, message: PgWireBackendMessage) -> Result<(), Failure> {
        self.0
            .feed(message)
            .await
            .map_err(|error| Failure::Gone(PgWireError::from(error)))
    }
}

/// Messages kept back.
#[derive(Default)]
pub(crate) struct KeptWire(Vec<PgWireBackendMessage>);

impl KeptWire {
    /// Sends what was kept.
    pub(crate) async fn release(&mut self, wire: &mut dyn Wire) -> Result<(), Failure> {
        for message in self.0.drain(..) {
            wire.feed(message).await?;
        }
        Ok(())
    }

    /// Takes the messages kept so far.
    pub(crate) fn take(&mut self) -> Vec<PgWireBackendMessage> {
        std::mem::take(&mut self.0)
    }
}

#[async_trait]
impl Wire for KeptWire {
    async fn feed(&mut self, message: PgWireBackendMessage) -> Result<(), Failure> {
        self.0.push(message);
        Ok(())
    }
}
