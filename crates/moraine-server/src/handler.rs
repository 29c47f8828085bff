//! The protocol by `pgwire`: start-up, simple and extended queries, COPY, errors. Each connection has one of these and it
//! has the session; dropping it drops the session, and with it whatever the client left open.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{FutureExt, Sink, SinkExt, stream};
use pgwire::api::auth::{
    DefaultServerParameterProvider, StartupHandler, finish_authentication, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::copy::CopyHandler;
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler, send_ready_for_query};
use pgwire::api::results::{
    CopyResponse, DescribePortalResponse, DescribeStatementResponse, FieldFormat, FieldInfo, QueryResponse,
    Response, Tag,
};
use pgwire::api::stmt::{QueryParser, StoredStatement};
use pgwire::api::store::PortalStore;
use pgwire::api::{
    ClientInfo, ClientPortalStore, DEFAULT_NAME, ErrorHandler, METADATA_DATABASE, METADATA_USER,
    PgWireConnectionState, PgWireServerHandlers, PidSecretKeyGenerator, RandomPidSecretKeyGenerator, Type,
};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::copy::{CopyData, CopyDone, CopyFail};
use pgwire::messages::extendedquery::Sync as SyncMessage;
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::simplequery::Query;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use tokio::sync::Mutex;

use crate::bind::Output;
use crate::cancel::{CancelRegistry, Canceller};
use crate::errors::{SqlError, state};
use crate::lakes::Lakes;
use crate::parse::{self, Parsed};
use crate::session::extended::Executed;
use crate::session::run::panicked;
use crate::session::settings::SERVER_VERSION;
use crate::session::{Next, Session};
use crate::turns::{Client, Place};
use crate::values::parameters::Parameter;
use crate::values::types;
use crate::wire::ClientWire;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) lakes: Arc<Lakes>,
    pub(crate) cancel: Arc<CancelRegistry>,
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

    /// Whether nothing would be lost if the connection ended now: no statement is running, no transaction is open.
    pub(crate) fn is_idle(&self) -> bool {
        let session = self.session.try_lock();
        session.is_ok_and(|session| session.as_ref().is_none_or(Session::is_idle))
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
        let session = Session::new(Arc::clone(&self.shared.lakes), identity, database);
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

/// A statement prepared for a connection.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// `None` for an empty query.
    statement: Option<Parsed>,
}

/// Reads prepared statements; what they give is described by the session.
pub(crate) struct PreparedParser;

#[async_trait]
impl QueryParser for PreparedParser {
    type Statement = Arc<Prepared>;

    async fn parse_sql<C>(
        &self,
        _client: &C,
        sql: &str,
        _types: &[Option<Type>],
    ) -> PgWireResult<Option<Self::Statement>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        let mut statements = parse::statements(sql)?.into_iter();
        let statement = statements.next();
        if statements.next().is_some() {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(state::SYNTAX_ERROR, message).into());
        }
        Ok(statement.map(|statement| {
            Arc::new(Prepared {
                statement: Some(statement),
            })
        }))
    }

    fn get_parameter_types(&self, _statement: &Self::Statement) -> PgWireResult<Vec<Type>> {
        Ok(Vec::new())
    }

    fn get_result_schema(&self, _: &Self::Statement, _: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        Ok(Vec::new())
    }
}

/// The result formats of a Bind as the list of codes it was.
fn codes(format: &Format) -> Vec<i16> {
    match format {
        Format::UnifiedText => Vec::new(),
        Format::UnifiedBinary => vec![1],
        Format::Individual(codes) => codes.clone(),
    }
}

fn field(output: &Output, binary: bool) -> FieldInfo {
    let format = if binary {
        FieldFormat::Binary
    } else {
        FieldFormat::Text
    };
    FieldInfo::new(output.name.clone(), None, None, output.wire_type.clone(), format)
        .with_type_size(types::type_size(&output.wire_type))
        .with_type_modifier(output.type_modifier)
}

#[async_trait]
impl ExtendedQueryHandler for Connection {
    type Statement = Arc<Prepared>;
    type QueryParser = PreparedParser;

    fn query_parser(&self) -> Arc<Self::QueryParser> {
        Arc::new(PreparedParser)
    }

    async fn do_describe_statement<C>(
        &self,
        _client: &mut C,
        target: &StoredStatement<Self::Statement>,
    ) -> PgWireResult<DescribeStatementResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session)?;
        let Some(statement) = &target.statement.statement else {
            return Ok(DescribeStatementResponse::new(Vec::new(), Vec::new()));
        };
        let description = session.describe(statement).await?;
        let declared = &target.parameter_types;
        let count = declared.len().max(description.parameters.len());
        let parameters = (0..count).map(|index| {
            let given = declared
                .get(index)
                .cloned()
                .flatten()
                .filter(|given| *given != Type::UNKNOWN);
            given
                .or_else(|| description.parameters.get(index).cloned())
                .unwrap_or(Type::TEXT)
        });
        let fields = description.outputs.iter().map(|output| field(output, false));
        Ok(DescribeStatementResponse::new(
            parameters.collect(),
            fields.collect(),
        ))
    }

    async fn do_describe_portal<C>(
        &self,
        _client: &mut C,
        target: &Portal<Self::Statement>,
    ) -> PgWireResult<DescribePortalResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session)?;
        let Some(statement) = &target.statement.statement.statement else {
            return Ok(DescribePortalResponse::new(Vec::new()));
        };
        let description = session.describe(statement).await?;
        let codes = codes(&target.result_column_format);
        let fields = description.outputs.iter().enumerate();
        let fields =
            fields.map(|(index, output)| field(output, crate::session::extended::is_binary(&codes, index)));
        Ok(DescribePortalResponse::new(fields.collect()))
    }

    async fn do_query<C>(
        &self,
        _client: &mut C,
        portal: &Portal<Self::Statement>,
        _max_rows: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut guard = self.session.lock().await;
        let session = guard.as_mut().ok_or_else(no_session)?;
        let Some(statement) = &portal.statement.statement.statement else {
            return Ok(Response::EmptyQuery);
        };
        let declared = &portal.statement.parameter_types;
        let formats = codes(&portal.parameter_format);
        let parameters = portal
            .parameters
            .iter()
            .enumerate()
            .map(|(index, bytes)| Parameter {
                bytes: bytes.clone(),
                binary: crate::session::extended::is_binary(&formats, index),
                declared: declared.get(index).cloned().flatten(),
            });
        let result_codes = codes(&portal.result_column_format);
        let executed = session.execute(statement, parameters.collect(), &result_codes);
        let executed = match AssertUnwindSafe(executed).catch_unwind().await {
            Ok(executed) => executed?,
            Err(panic) => {
                session.fail_block();
                return Err(panicked(panic.as_ref()).into());
            }
        };
        Ok(respond(executed))
    }

    /// The transaction's state is what the session says, whatever has failed before.
    async fn on_sync<C>(&self, client: &mut C, _message: SyncMessage) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        client.portal_store().rm_portal(DEFAULT_NAME);
        let status = self
            .session
            .lock()
            .await
            .as_ref()
            .ok_or_else(no_session)?
            .status();
        client.set_transaction_status(status);
        client
            .send(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status)))
            .await?;
        Ok(())
    }
}

fn respond(executed: Executed) -> Response {
    match executed {
        Executed::Rows(rows, verb) => {
            let rows = stream::iter(rows.into_iter().map(Ok));
            let mut response = QueryResponse::new(Arc::new(Vec::new()), rows);
            response.set_command_tag(&verb);
            Response::Query(response)
        }
        Executed::Command(tag) => Response::Execution(Tag::new(&tag)),
        Executed::Began(tag) => Response::TransactionStart(Tag::new(&tag)),
        Executed::Ended(tag) => Response::TransactionEnd(Tag::new(&tag)),
        Executed::CopyOut {
            binary,
            columns,
            data,
        } => {
            let data = stream::iter(data.into_iter().map(|piece| Ok(CopyData::new(piece))));
            // A response that is made as binary adds a trailer of its own; this one has its trailer.
            let mut response = CopyResponse::new(0, columns, data);
            response.format = i8::from(binary);
            Response::CopyOut(response)
        }
        Executed::CopyIn { binary, columns } => {
            let mut response = CopyResponse::new(0, columns, stream::empty());
            response.format = i8::from(binary);
            Response::CopyIn(response)
        }
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
