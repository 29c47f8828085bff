//! A session: the statements of one client, one after the other, and the transaction they run in. What a statement means
//! is the binder's, what it does is `execute`'s, how it is framed is the handler's.

mod control;
mod cursors;
mod general;
mod portals;
mod prepared;
mod reader;
pub(crate) mod run;
mod savepoints;
mod set_config;
pub(crate) mod settings;
mod tables;
mod utility;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pgwire::error::PgWireError;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{EmptyQueryResponse, ErrorResponse, NoticeResponse, TransactionStatus};

use crate::cancel::CancelToken;
use crate::copy::input::CopyReader;
use crate::errors::SqlError;
use crate::lakes::Lakes;
use crate::parse::Parsed;
use crate::parsed::ParsedTexts;
use crate::temporary::TemporaryTable;
use crate::transaction::Transaction;
use crate::turns::Client;
use crate::wire::{Failure, KeptWire, Wire};
pub(crate) use cursors::Direction;
use portals::Portal;
use prepared::Prepared;
use reader::Reader;
use savepoints::{Before, Savepoint};
use settings::Settings;
pub(crate) use tables::SessionTables;

/// The temporary tables of a session by name.
pub(crate) type TemporaryTables = BTreeMap<String, Arc<TemporaryTable>>;

/// One client's state.
pub(crate) struct Session {
    /// The process id told to the client.
    pub(crate) pid: i32,
    client: Arc<Client>,
    lakes: Arc<Lakes>,
    texts: Arc<ParsedTexts>,
    database: String,
    user: String,
    settings: Settings,
    block: Block,
    /// Outside of a block, the transaction of the messages of the extended protocol that no Sync has ended yet.
    implicit: Option<Box<Transaction>>,
    /// The savepoints of the block, the newest last.
    savepoints: Vec<Savepoint>,
    temporary: TemporaryTables,
    /// The session as it was when the transaction began.
    before: Before,
    statements: BTreeMap<String, Arc<Prepared>>,
    portals: BTreeMap<String, Portal>,
    copy: Option<PendingCopy>,
    cancel: Arc<CancelToken>,
}

/// Where the session stands between BEGIN and COMMIT.
enum Block {
    Idle,
    Open(Box<Transaction>),
    /// A statement has failed: nothing but the end of the transaction is heard, or the way back to a savepoint, for which
    /// the transaction is kept.
    Failed(Option<Box<Transaction>>),
}

/// A COPY FROM STDIN whose rows are arriving.
struct PendingCopy {
    reader: CopyReader,
    /// The transaction of a COPY outside of a transaction block.
    own: Option<Box<Transaction>>,
    /// The statements of the same message that follow it.
    rest: VecDeque<Arc<Parsed>>,
}

/// What the connection does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next message.
    Ready,
    /// The rows of a COPY.
    CopyIn,
}

impl Session {
    pub(crate) fn new(
        lakes: Arc<Lakes>,
        texts: Arc<ParsedTexts>,
        client: Client,
        database: String,
    ) -> Session {
        Session {
            pid: client.session,
            user: client.place.user.clone(),
            client: Arc::new(client),
            settings: Settings::new(lakes.only_reads()),
            lakes,
            texts,
            database,
            block: Block::Idle,
            implicit: None,
            savepoints: Vec::new(),
            temporary: TemporaryTables::new(),
            before: Before::default(),
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            copy: None,
            cancel: Arc::default(),
        }
    }

    /// Takes a parameter of the start-up message.
    pub(crate) fn start_with(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let name = name.to_lowercase();
        match name.as_str() {
            "options" => self.settings.set_options(value),
            // These are told to the client as they are; one that wanted others sees that it does not have them.
            "timezone" | "datestyle" => {
                let _ = self.settings.set_initial(&name, value);
                Ok(())
            }
            name => self.settings.set_initial(name, value),
        }
    }

    pub(crate) fn cancel_token(&self) -> Arc<CancelToken> {
        Arc::clone(&self.cancel)
    }

    /// What `ReadyForQuery` says.
    pub(crate) fn status(&self) -> TransactionStatus {
        match self.block {
            Block::Idle => TransactionStatus::Idle,
            Block::Open(_) => TransactionStatus::Transaction,
            Block::Failed(_) => TransactionStatus::Error,
        }
    }

    /// Whether a transaction block is open, failed or not.
    pub(crate) fn in_block(&self) -> bool {
        !matches!(self.block, Block::Idle)
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            database: &self.database,
            user: &self.user,
            pid: self.pid,
            settings: &self.settings,
            temporary: &self.temporary,
        }
    }

    fn new_transaction(&self, read_only: bool) -> Transaction {
        let client = Arc::clone(&self.client);
        let read_only = read_only || self.settings.reads_only();
        Transaction::new(Arc::clone(&self.lakes), self.database.clone(), client, read_only)
    }

    /// Runs the statements of a simple query, and sends their results.
    pub(crate) async fn simple_query(
        &mut self,
        text: &str,
        wire: &mut dyn Wire,
    ) -> Result<Next, PgWireError> {
        self.cancel.start();
        // A Sync was left out: what came before is a transaction of its own.
        if let Err(error) = self.sync().await {
            return gone(send_error(wire, error).await).map(|()| Next::Ready);
        }
        let statements = match self.texts.statements(text) {
            Ok(statements) => statements,
            Err(error) => {
                self.fail_block();
                return gone(send_error(wire, error).await).map(|()| Next::Ready);
            }
        };
        if statements.is_empty() {
            let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
            return gone(wire.feed(empty).await).map(|()| Next::Ready);
        }
        // Of several statements it is not known which one an error is about.
        let located = if statements.len() == 1 { text } else { "" };
        let next = self.run_all(statements, located, wire).await;
        self.cancel.finish();
        gone(self.tell_settings(wire).await)?;
        next
    }

    /// Runs statements one after the other. The first that fails ends the message.
    async fn run_all(
        &mut self,
        mut statements: VecDeque<Arc<Parsed>>,
        text: &str,
        wire: &mut dyn Wire,
    ) -> Result<Next, PgWireError> {
        // Outside of a block, the statements of one message are one transaction, whose results wait for its commit.
        let mut kept = KeptWire::default();
        let mut implicit: Option<Box<Transaction>> = None;
        while let Some(statement) = statements.pop_front() {
            let is_last = statements.is_empty();
            let outcome = self
                .run_one(&statement, is_last, &mut implicit, &mut kept, wire)
                .await;
            match outcome {
                Ok(None) => {}
                Ok(Some(reader)) => {
                    let own = implicit.take();
                    self.copy = Some(PendingCopy {
                        reader,
                        own,
                        rest: statements,
                    });
                    return Ok(Next::CopyIn);
                }
                Err(Failure::Gone(error)) => return Err(error),
                Err(Failure::Sql(error)) => {
                    drop(implicit);
                    self.fail_block();
                    tracing::debug!(pid = self.pid, state = error.state, %error, "statement failed");
                    return gone(send_error(wire, error.located(text)).await).map(|()| Next::Ready);
                }
            }
        }
        Ok(Next::Ready)
    }

    /// After a failure: an open block is failed, and unless it has a savepoint what it held is free at once. What a message
    /// of the extended protocol has done outside of a block is taken back.
    pub(crate) fn fail_block(&mut self) {
        self.copy = None;
        if self.implicit.take().is_some() {
            self.restore();
        }
        match std::mem::replace(&mut self.block, Block::Idle) {
            Block::Open(transaction) => self.failed(transaction),
            block => self.block = block,
        }
        if !self.in_block() {
            self.portals.retain(|_, portal| portal.holds);
        }
    }

    /// Takes a piece of the rows of a COPY.
    pub(crate) fn copy_data(&mut self, data: &[u8]) {
        if let Some(copy) = &mut self.copy {
            copy.reader.add(data);
        }
    }

    /// The client has sent all rows of a COPY: inserts them, and runs what follows in the same message.
    pub(crate) async fn copy_done(&mut self, wire: &mut dyn Wire) -> Result<(), PgWireError> {
        self.cancel.start();
        let Some(PendingCopy { reader, own, rest }) = self.copy.take() else {
            let error = SqlError::new("08P01", "CopyDone without a COPY");
            return gone(send_error(wire, error).await);
        };
        let outcome = self.finish_copy(reader, own, wire).await;
        let next = match outcome {
            Ok(()) if rest.is_empty() => Ok(Next::Ready),
            Ok(()) => self.run_all(rest, "", wire).await,
            Err(Failure::Gone(error)) => Err(error),
            Err(Failure::Sql(error)) => {
                self.fail_block();
                gone(send_error(wire, error).await).map(|()| Next::Ready)
            }
        };
        self.cancel.finish();
        match next? {
            Next::Ready => Ok(()),
            Next::CopyIn => {
                self.fail_block();
                let error = SqlError::unsupported("a second COPY FROM STDIN in one message");
                gone(send_error(wire, error).await)
            }
        }
    }

    /// The client has given up a COPY.
    pub(crate) fn copy_failed(&mut self, reason: &str) -> SqlError {
        self.fail_block();
        SqlError::new(
            crate::errors::state::QUERY_CANCELED,
            format!("COPY from stdin failed: {reason}"),
        )
    }
}

/// Sends an error.
pub(super) async fn send_error(wire: &mut dyn Wire, error: SqlError) -> Result<(), Failure> {
    let response = ErrorResponse::from(error.into_info());
    wire.feed(PgWireBackendMessage::ErrorResponse(response)).await
}

/// Sends a warning; the statement goes on.
pub(super) async fn send_warning(
    wire: &mut dyn Wire,
    state: &'static str,
    message: &str,
) -> Result<(), Failure> {
    let info = pgwire::error::ErrorInfo::new("WARNING".to_owned(), state.to_owned(), message.to_owned());
    wire.feed(PgWireBackendMessage::NoticeResponse(NoticeResponse::from(info)))
        .await
}

/// Of a message that is being sent, the only failure left is that nobody hears it.
fn gone(outcome: Result<(), Failure>) -> Result<(), PgWireError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Failure::Gone(error)) => Err(error),
        Err(Failure::Sql(error)) => Err(PgWireError::from(error)),
    }
}
