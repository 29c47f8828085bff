//! The protocol by `pgwire`: start-up, simple and extended queries, COPY, errors. Each connection has one of these and it
//! has the session; dropping it drops the session, and with it whatever the client left open.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{FutureExt, Sink, SinkExt};
use pgwire::api::auth::{
    DefaultServerParameterProvider, StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::copy::CopyHandler;
use pgwire::api::portal::Portal;
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler, send_ready_for_query};
use pgwire::api::results::Response;
use pgwire::api::stmt::NoopQueryParser;
use pgwire::api::store::PortalStore;
use pgwire::api::{
    ClientInfo, ClientPortalStore, ErrorHandler, METADATA_DATABASE, METADATA_USER, PgWireConnectionState,
    PgWireServerHandlers, PidSecretKeyGenerator, RandomPidSecretKeyGenerator, Type,
};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::copy::{CopyData, CopyDone, CopyFail};
use pgwire::messages::data::{FieldDescription, NoData, ParameterDescription, RowDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete, Sync as SyncMessage,
    TARGET_TYPE_BYTE_PORTAL,
};
use pgwire::messages::response::{ErrorResponse, ReadyForQuery};
use pgwire::messages::simplequery::Query;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use tokio::sync::Mutex;

use crate::bind::Output;
use crate::cancel::{CancelRegistry, Canceller};
use crate::copy::output::describe;
use crate::errors::{SqlError, state};
use crate::lakes::Lakes;
use crate::parsed::ParsedTexts;
use crate::session::run::panicked;
use crate::session::settings::SERVER_VERSION;
use crate::session::{Next, Session};
use crate::turns::{Client, Place};
use crate::wire::{ClientWire, Failure, Wire};

/// Parameters of a start-up message that are no settings.
const NOT_SETTINGS: [&str; 3] = [METADATA_USER, METADATA_DATABASE, "replication"];

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) lakes: Arc<Lakes>,
    pub(crate) cancel: Arc<CancelRegistry>,
    pub(crate) texts: Arc<ParsedTexts>,
    pub(crate) pids: RandomPidSecretKeyGenerator,
}

/// One connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    /// `None` until the client has said who it is.
    session: Mutex<Option<Session>>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Connection {
        Connection {
            shared,
            session: Mutex::new(None),
        }
    }

    /// Whether no statement is running. A transaction may be open, and is given up if the connection ends now.
    pub(crate) fn is_idle(&self) -> bool {
        self.session.try_lock().is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(session) = self.session.get_mut() {
            tracing::debug!(pid = session.pid, in_block = session.in_block(), "session ended");
            self.shared.cancel.remove(session.pid);
        }
    }
}

fn no_session() -> PgWireError {
    SqlError::new(state::PROTOCOL_VIOLATION, "no session has been started")
        .fatal()
        .into()
}

#[async_trait]
impl StartupHandler for Connection {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let PgWireFrontendMessage::Startup(startup) = &message else {
            return Err(
                SqlError::new(state::PROTOCOL_VIOLATION, "a startup message was expected")
                    .fatal()
                    .into(),
            );
        };
        protocol_negotiation(client, startup).await?;
        save_startup_parameters_to_metadata(client, startup);
        let (pid, secret) = self.shared.pids.generate(client);
        client.set_pid_and_secret_key(pid, secret.clone());
        let user = client.metadata().get(METADATA_USER).cloned().unwrap_or_default();
        // As in Postgres, a client that names no database wants the one of its user.
        let database = client
            .metadata()
            .get(METADATA_DATABASE)
            .cloned()
            .unwrap_or_else(|| user.clone());
        // A name that no lake can have is refused before anything is asked of it.
        self.shared
            .lakes
            .lake(&database, crate::lakes::DEFAULT_SCHEMA)
            .map_err(SqlError::fatal)?;
        tracing::debug!(pid, database, user, "session started");
        let application = client.metadata().get("application_name").cloned();
        let place = Place {
            address: client.socket_addr().ip(),
            user,
            application: application.unwrap_or_default(),
        };
        let identity = Client::new(pid, place);
        let (lakes, texts) = (Arc::clone(&self.shared.lakes), Arc::clone(&self.shared.texts));
        let mut session = Session::new(lakes, texts, identity, database);
        let parameters = client.metadata().iter();
        for (name, value) in parameters.filter(|(name, _)| !NOT_SETTINGS.contains(&name.as_str())) {
            session.start_with(name, value).map_err(SqlError::fatal)?;
        }
        self.shared.cancel.add(pid, secret, session.cancel_token());
        *self.session.lock().await = Some(session);
        let mut parameters = DefaultServerParameterProvider::default();
        parameters.server_version = SERVER_VERSION.to_owned();
        parameters.time_zone = "UTC".to_owned();
        parameters.in_hot_standby = self.shared.lakes.only_reads();
        parameters.default_transaction_read_only = self.shared.lakes.only_reads();
        finish_authentication(client, &parameters).await
    }
}

#[async_trait]
impl SimpleQueryHandler for Connection {
    /// Answers a simple query message by message, rather than from a list of finished responses: rows leave while they
    /// are read, a COPY may stand anywhere in the message, and the transaction's state is the session's own.
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if !matches!(client.state(), PgWireConnectionState::ReadyForQuery) {
            return Err(PgWireError::NotReadyForQuery);
        }
        client.set_state(PgWireConnectionState::QueryInProgress);
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session)?;
        let mut wire = ClientWire(client);
        let answered = AssertUnwindSafe(session.simple_query(&query.query, &mut wire))
            .catch_unwind()
            .await;
        let next = match answered {
            Ok(next) => next?,
            Err(panic) => {
                session.fail_block();
                client.set_transaction_status(session.status());
                return Err(panicked(panic.as_ref()).into());
            }
        };
        let status = session.status();
        client.set_transaction_status(status);
        match next {
            Next::CopyIn => {
                client.set_state(PgWireConnectionState::CopyInProgress(false));
                client.flush().await?;
                Ok(())
            }
            Next::Ready => {
                client.set_state(PgWireConnectionState::ReadyForQuery);
                send_ready_for_query(client, status).await
            }
        }
    }

    async fn do_query<C>(&self, _client: &mut C, _query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Ok(vec![Response::Error(Box::new(
            SqlError::internal("a query that nobody answers").into_info(),
        ))])
    }
}

/// The fields of a result as the client is told of them.
fn fields(outputs: impl Iterator<Item = (Output, bool)>) -> PgWireBackendMessage {
    let fields: Vec<FieldDescription> = outputs
        .map(|(output, binary)| describe(&output, binary))
        .collect();
    if fields.is_empty() {
        PgWireBackendMessage::NoData(NoData::new())
    } else {
        PgWireBackendMessage::RowDescription(RowDescription::new(fields))
    }
}

/// The end of a step of the extended protocol: an error, told by `pgwire`, which then waits for Sync.
fn told(outcome: Result<(), Failure>) -> PgWireResult<()> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Sql(error)) => Err(error.into()),
        Err(Failure::Gone(error)) => Err(error),
    }
}

impl Connection {
    async fn describe<C>(&self, client: &mut C, message: &Describe) -> Result<(), Failure>
    where
        C: Sink<PgWireBackendMessage> + Unpin + Send,
        C::Error: Debug,
        PgWireError: From<C::Error>,
    {
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session).map_err(Failure::Gone)?;
        let mut wire = ClientWire(client);
        let name = message.name.as_deref().unwrap_or_default();
        if message.target_type == TARGET_TYPE_BYTE_PORTAL {
            session.cancel_token().start();
            let described = session.describe_portal(name).await;
            session.cancel_token().finish();
            return wire.feed(fields(described?.into_iter())).await;
        }
        let prepared = session.prepared(name)?;
        // What was prepared before its transaction began waits for a turn here.
        session.cancel_token().start();
        let described = session.describe_prepared(&prepared).await;
        session.cancel_token().finish();
        let described = described?;
        let oids = described.parameters.iter().map(Type::oid).collect();
        let parameters = ParameterDescription::new(oids);
        wire.feed(PgWireBackendMessage::ParameterDescription(parameters))
            .await?;
        let outputs = described.outputs.into_iter().map(|output| (output, false));
        wire.feed(fields(outputs)).await
    }

    /// Does one step of the extended protocol; a panic in it is its error.
    async fn step<T>(&self, work: impl AsyncFnOnce(&mut Session) -> Result<T, Failure>) -> PgWireResult<T> {
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session)?;
        session.cancel_token().start();
        let done = AssertUnwindSafe(work(session)).catch_unwind().await;
        session.cancel_token().finish();
        match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Failure::Sql(error))) => Err(error.into()),
            Ok(Err(Failure::Gone(error))) => Err(error),
            Err(panic) => Err(panicked(panic.as_ref()).into()),
        }
    }
}

#[async_trait]
impl ExtendedQueryHandler for Connection {
    // Statements and portals are the session's: SQL names them too.
    type Statement = String;
    type QueryParser = NoopQueryParser;

    fn query_parser(&self) -> Arc<Self::QueryParser> {
        Arc::new(NoopQueryParser)
    }

    async fn on_parse<C>(&self, client: &mut C, message: Parse) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or_default();
        self.step(async |session: &mut Session| {
            session.parse(name, &message.query, &message.type_oids).await
        })
        .await?;
        client
            .feed(PgWireBackendMessage::ParseComplete(ParseComplete::new()))
            .await?;
        Ok(())
    }

    async fn on_bind<C>(&self, client: &mut C, message: Bind) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        self.step(async |session: &mut Session| session.bind(message).map_err(Failure::from))
            .await?;
        client
            .feed(PgWireBackendMessage::BindComplete(BindComplete::new()))
            .await?;
        Ok(())
    }

    async fn on_describe<C>(&self, client: &mut C, message: Describe) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match AssertUnwindSafe(self.describe(client, &message))
            .catch_unwind()
            .await
        {
            Ok(described) => told(described),
            Err(panic) => Err(panicked(panic.as_ref()).into()),
        }
    }

    async fn on_execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or_default();
        // As in Postgres, no number and a negative one mean all rows.
        let rows_max = usize::try_from(message.max_rows).unwrap_or(0);
        let mut wire = ClientWire(client);
        let next = self
            .step(async |session: &mut Session| session.execute(name, rows_max, &mut wire).await)
            .await?;
        if next == Next::CopyIn {
            client.set_state(PgWireConnectionState::CopyInProgress(true));
            client.flush().await?;
        }
        Ok(())
    }

    async fn on_close<C>(&self, client: &mut C, message: Close) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or_default();
        let is_portal = message.target_type == TARGET_TYPE_BYTE_PORTAL;
        self.step(async |session: &mut Session| {
            match is_portal {
                true => session.close_portal(name),
                false => session.close_statement(name),
            }
            Ok(())
        })
        .await?;
        client
            .feed(PgWireBackendMessage::CloseComplete(CloseComplete::new()))
            .await?;
        Ok(())
    }

    async fn do_query<C>(
        &self,
        _client: &mut C,
        _portal: &Portal<Self::Statement>,
        _max_rows: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Ok(Response::Error(Box::new(
            SqlError::internal("a portal that nobody runs").into_info(),
        )))
    }

    /// Ends the transaction of the messages before it. Its state is what the session says, whatever has failed before.
    async fn on_sync<C>(&self, client: &mut C, _message: SyncMessage) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session)?;
        let ended = AssertUnwindSafe(session.sync()).catch_unwind().await;
        let ended = ended.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        if let Err(error) = ended {
            session.fail_block();
            let response = ErrorResponse::from(error.into_info());
            client.feed(PgWireBackendMessage::ErrorResponse(response)).await?;
        }
        let status = session.status();
        client.set_transaction_status(status);
        client
            .send(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status)))
            .await?;
        Ok(())
    }
}

#[async_trait]
impl CopyHandler for Connection {
    async fn on_copy_data<C>(&self, _client: &mut C, data: CopyData) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        self.session
            .lock()
            .await
            .as_mut()
            .ok_or_else(no_session)?
            .copy_data(&data.data);
        Ok(())
    }

    async fn on_copy_done<C>(&self, client: &mut C, _done: CopyDone) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session)?;
        let mut wire = ClientWire(client);
        let answered = AssertUnwindSafe(session.copy_done(&mut wire))
            .catch_unwind()
            .await;
        if answered.is_err() {
            session.fail_block();
        }
        client.set_transaction_status(session.status());
        match answered {
            Ok(answered) => answered,
            Err(panic) => Err(panicked(panic.as_ref()).into()),
        }
    }

    async fn on_copy_fail<C>(&self, _client: &mut C, fail: CopyFail) -> PgWireError
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        match self.session.lock().await.as_mut() {
            Some(session) => session.copy_failed(&fail.message).into(),
            None => no_session(),
        }
    }
}

impl ErrorHandler for Connection {
    /// Whatever error the client is told of, an open transaction has failed with it, as in Postgres.
    fn on_error<C>(&self, _client: &C, error: &mut PgWireError)
    where
        C: ClientInfo,
    {
        // Nobody else has the session: errors are told between messages.
        if let Ok(mut session) = self.session.try_lock()
            && let Some(session) = session.as_mut()
        {
            tracing::debug!(pid = session.pid, %error, "error answered");
            session.fail_block();
        }
    }
}

/// What `pgwire` asks for the parts of a connection: all of them are the connection.
pub(crate) struct Handlers(pub(crate) Arc<Connection>);

impl PgWireServerHandlers for Handlers {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::clone(&self.0)
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::clone(&self.0)
    }

    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        Arc::clone(&self.0)
    }

    fn copy_handler(&self) -> Arc<impl CopyHandler> {
        Arc::clone(&self.0)
    }

    fn error_handler(&self) -> Arc<impl ErrorHandler> {
        Arc::clone(&self.0)
    }

    fn cancel_handler(&self) -> Arc<impl pgwire::api::cancel::CancelHandler> {
        Arc::new(Canceller(Arc::clone(&self.0.shared.cancel)))
    }
}
