//! One statement: bound, run, answered. A panic in it is an error of the statement and not the end of the connection:
//! DuckDB gives up its whole instance when a COPY breaks off.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::CopyInResponse;
use sqlparser::ast::Statement;

use super::control::Control;
use super::general::General;
use super::portals::is_binary;
use super::tables::SessionTables;
use super::{Block, Session, TemporaryTables};
use crate::bind::{Binder, Bound, CopyFormat, CopyIn, Insert, SessionNames, Source, TableName, Tables};
use crate::cancel::CancelToken;
use crate::copy::input::CopyReader;
use crate::copy::output::{Form, RowWriter, complete};
use crate::errors::{SqlError, state};
use crate::execute::{modify, select};
use crate::parse::Parsed;
use crate::temporary::TemporaryTable;
use crate::transaction::Transaction;
use crate::values::parameters::Parameters;
use crate::wire::{Failure, KeptWire, Wire};

/// How rows go out when the statement does not say.
#[derive(Debug, Clone)]
pub(super) struct Framing {
    pub(super) described: bool,
    /// The formats of the columns as Bind gives them.
    pub(super) codes: Vec<i16>,
}

impl Framing {
    /// Text rows behind their description: the answer to a simple query.
    pub(super) fn simple() -> Framing {
        Framing {
            described: true,
            codes: Vec::new(),
        }
    }

    pub(super) fn form(&self, columns: usize) -> Form {
        let binary = (0..columns).map(|index| is_binary(&self.codes, index)).collect();
        Form::Rows {
            binary,
            described: self.described,
        }
    }
}

/// Runs something so that neither a panic, nor a cancel request, nor the statement timeout outlives it.
pub(super) async fn interruptible<T, E: From<SqlError>>(
    cancel: &CancelToken,
    timeout: Option<Duration>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let work = AssertUnwindSafe(work).catch_unwind();
    let expired = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(SqlError::canceled().into()),
        () = expired => {
            let message = "canceling statement due to statement timeout";
            Err(SqlError::new(state::QUERY_CANCELED, message).into())
        }
        outcome = work => outcome.unwrap_or_else(|panic| Err(panicked(panic.as_ref()).into())),
    }
}

impl Session {
    /// Runs one statement of a message. A COPY FROM STDIN is answered by the reader of its rows.
    pub(super) async fn run_one(
        &mut self,
        parsed: &Parsed,
        is_last: bool,
        implicit: &mut Option<Box<Transaction>>,
        kept: &mut KeptWire,
        wire: &mut dyn Wire,
    ) -> Result<Option<CopyReader>, Failure> {
        if let Some(control) = Control::of(parsed)? {
            let tag = self.control(control, implicit, kept, wire).await?;
            complete(wire, tag).await?;
            return Ok(None);
        }
        let parameters = Arc::new(Parameters::none());
        let framing = Framing::simple();
        match std::mem::replace(&mut self.block, Block::Failed(None)) {
            Block::Failed(kept) => {
                self.block = Block::Failed(kept);
                Err(SqlError::in_failed_transaction().into())
            }
            Block::Open(mut transaction) => {
                let outcome = self
                    .guarded(parsed, parameters, &framing, &mut transaction, wire)
                    .await;
                match outcome {
                    Ok(_) => self.block = Block::Open(transaction),
                    Err(_) => self.failed(transaction),
                }
                outcome
            }
            Block::Idle => {
                self.block = Block::Idle;
                self.run_implicit(parsed, is_last, implicit, kept, wire).await
            }
        }
    }

    /// Runs one statement of a message outside of a block. The last one commits, and only then results are sent; but the
    /// rows of a read that is alone leave as they are read, once what they show is durable.
    async fn run_implicit(
        &mut self,
        parsed: &Parsed,
        is_last: bool,
        implicit: &mut Option<Box<Transaction>>,
        kept: &mut KeptWire,
        wire: &mut dyn Wire,
    ) -> Result<Option<CopyReader>, Failure> {
        let is_first = implicit.is_none();
        let mut transaction = match implicit.take() {
            Some(transaction) => transaction,
            None => {
                self.note_beginning();
                Box::new(self.new_transaction(false))
            }
        };
        let parameters = Arc::new(Parameters::none());
        let framing = Framing::simple();
        let leaves_at_once = is_first && is_last && reads(parsed);
        transaction.is_implicit = leaves_at_once;
        let outcome = if leaves_at_once {
            self.guarded(parsed, parameters, &framing, &mut transaction, wire)
                .await
        } else {
            self.guarded(parsed, parameters, &framing, &mut transaction, kept)
                .await
        };
        if outcome.is_err() {
            self.restore();
        }
        if let Some(reader) = outcome? {
            let messages = kept.take();
            if messages.len() > 1 {
                let what =
                    "COPY FROM STDIN after other statements of a message outside of a transaction block";
                return Err(SqlError::unsupported(what).into());
            }
            for message in messages {
                wire.feed(message).await?;
            }
            *implicit = Some(transaction);
            return Ok(Some(reader));
        }
        if !is_last {
            *implicit = Some(transaction);
            return Ok(None);
        }
        self.end_transaction(true);
        if let Err(error) = transaction.commit().await {
            self.restore();
            return Err(error.into());
        }
        kept.release(wire).await?;
        Ok(None)
    }

    /// Runs a statement so that neither a panic, nor a cancel request, nor the statement timeout outlives it.
    pub(super) async fn guarded(
        &mut self,
        parsed: &Parsed,
        parameters: Arc<Parameters>,
        framing: &Framing,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<Option<CopyReader>, Failure> {
        let cancel = Arc::clone(&self.cancel);
        let timeout = self.settings.statement_timeout();
        let executed = self.execute_of(parsed, transaction.started)?;
        let (parsed, parameters) = match &executed {
            Some((inner, values)) => (inner.as_ref(), Arc::clone(values)),
            None => (parsed, parameters),
        };
        let statement = self
            .statement(parsed, parameters, framing, transaction, wire)
            .boxed();
        interruptible(&cancel, timeout, statement).await
    }

    async fn statement(
        &mut self,
        parsed: &Parsed,
        parameters: Arc<Parameters>,
        framing: &Framing,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<Option<CopyReader>, Failure> {
        if self
            .utility(parsed, &parameters, framing, transaction, wire)
            .await?
        {
            return Ok(None);
        }
        transaction.opens_with(parsed);
        let names = self.reader().names();
        let bound = bind(
            parsed,
            Arc::clone(&parameters),
            names,
            transaction,
            &self.temporary,
        )
        .await;
        match (bound, General::of(parsed)) {
            (Ok(bound), _) => self.bound(bound, framing, transaction, wire).await,
            (Err(error), Some(general)) if general.takes(&error) => {
                self.general(&general, &parameters, framing, transaction, wire)
                    .await?;
                Ok(None)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    async fn bound(
        &mut self,
        bound: Bound,
        framing: &Framing,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<Option<CopyReader>, Failure> {
        match bound {
            Bound::Select(read) => {
                transaction.settle().await?;
                let mut writer = RowWriter::new(wire, &read.outputs, framing.form(read.outputs.len()));
                let rows = select::run(transaction, &read, &mut writer).await?;
                writer.finish(rows).await?;
            }
            Bound::CopyOut { select: read, format } => {
                transaction.settle().await?;
                let mut writer = RowWriter::new(wire, &read.outputs, Form::Copy(format));
                let rows = select::run(transaction, &read, &mut writer).await?;
                writer.finish(rows).await?;
            }
            Bound::CopyIn(copy) => {
                let reader = CopyReader::new(copy, transaction.started);
                announce_copy(&reader.copy, wire).await?;
                return Ok(Some(reader));
            }
            Bound::Insert(insert) => {
                let rows = self.insert(transaction, insert).await?;
                complete(wire, &format!("INSERT 0 {rows}")).await?;
            }
            Bound::Update(update) => {
                let rows = modify::update(transaction, &update).await?;
                complete(wire, &format!("UPDATE {rows}")).await?;
            }
            Bound::Delete(delete) => {
                let rows = modify::delete(transaction, &delete).await?;
                complete(wire, &format!("DELETE {rows}")).await?;
            }
            Bound::CreateTable(create) => {
                modify::create_table(transaction, create).await?;
                complete(wire, "CREATE TABLE").await?;
            }
            Bound::CreateTemporary(table) => {
                self.create_temporary(table)?;
                complete(wire, "CREATE TABLE").await?;
            }
            Bound::DropTables { names, if_exists } => {
                for name in &names {
                    self.drop_table(name, if_exists, transaction).await?;
                }
                complete(wire, "DROP TABLE").await?;
            }
            Bound::CreateSchema { name, if_not_exists } => {
                if !self.lakes.announce(&self.database, &name).await? && !if_not_exists {
                    let message = format!("schema \"{name}\" already exists");
                    return Err(SqlError::new(state::DUPLICATE_SCHEMA, message).into());
                }
                complete(wire, "CREATE SCHEMA").await?;
            }
        }
        Ok(None)
    }

    fn create_temporary(&mut self, table: TemporaryTable) -> Result<(), SqlError> {
        if self.temporary.contains_key(&table.name) {
            let message = format!("relation \"{}\" already exists", table.name);
            return Err(SqlError::new(state::DUPLICATE_TABLE, message));
        }
        self.temporary.insert(table.name.clone(), Arc::new(table));
        Ok(())
    }

    async fn drop_table(
        &mut self,
        name: &TableName,
        if_exists: bool,
        transaction: &mut Transaction,
    ) -> Result<(), Failure> {
        let source = self.find(name, transaction).await?;
        if let Some(Source::Temporary(table)) = &source {
            self.temporary.remove(&table.name);
            return Ok(());
        }
        modify::drop_table(transaction, source, name, if_exists).await?;
        Ok(())
    }

    async fn find(
        &self,
        name: &TableName,
        transaction: &mut Transaction,
    ) -> Result<Option<Source>, SqlError> {
        let schema = self.settings.schema();
        SessionTables {
            transaction,
            temporary: &self.temporary,
            schema,
        }
        .find(name)
        .await
    }

    /// Inserts complete rows into a table of a lake or of the session.
    async fn insert(&mut self, transaction: &mut Transaction, insert: Insert) -> Result<u64, Failure> {
        let Source::Temporary(table) = &insert.target else {
            return modify::insert(transaction, insert).await;
        };
        let added = u64::try_from(insert.rows.len()).unwrap_or(u64::MAX);
        check_not_null(table, &insert.rows)?;
        let mut grown = TemporaryTable::clone(table);
        grown.rows.extend(insert.rows);
        self.temporary.insert(grown.name.clone(), Arc::new(grown));
        Ok(added)
    }

    /// Inserts the rows a COPY has brought, and answers it.
    pub(super) async fn finish_copy(
        &mut self,
        reader: CopyReader,
        own: Option<Box<Transaction>>,
        wire: &mut dyn Wire,
    ) -> Result<(), Failure> {
        let insert = reader.finish().map(|(copy, rows)| Insert {
            target: copy.target,
            rows,
        })?;
        if let Some(mut transaction) = own {
            let rows = match self.guarded_insert(&mut transaction, insert).await {
                Ok(rows) => rows,
                Err(failure) => {
                    self.restore();
                    return Err(failure);
                }
            };
            self.end_transaction(true);
            if let Err(error) = transaction.commit().await {
                self.restore();
                return Err(error.into());
            }
            return complete(wire, &format!("COPY {rows}")).await;
        }
        match std::mem::replace(&mut self.block, Block::Failed(None)) {
            Block::Open(mut transaction) => {
                let outcome = self.guarded_insert(&mut transaction, insert).await;
                match outcome {
                    Ok(_) => self.block = Block::Open(transaction),
                    Err(_) => self.failed(transaction),
                }
                complete(wire, &format!("COPY {}", outcome?)).await
            }
            block => {
                self.block = block;
                Err(SqlError::in_failed_transaction().into())
            }
        }
    }

    async fn guarded_insert(
        &mut self,
        transaction: &mut Transaction,
        insert: Insert,
    ) -> Result<u64, Failure> {
        let cancel = Arc::clone(&self.cancel);
        let timeout = self.settings.statement_timeout();
        interruptible(&cancel, timeout, self.insert(transaction, insert).boxed()).await
    }
}

/// Whether a statement only reads.
fn reads(parsed: &Parsed) -> bool {
    let is_copy_out = matches!(
        parsed,
        Parsed::Sql(statement) if matches!(statement.as_ref(), Statement::Copy { to: true, .. })
    );
    is_copy_out || super::reader::query_of(parsed).is_some()
}

/// Binds a statement against a transaction.
pub(super) async fn bind(
    parsed: &Parsed,
    parameters: Arc<Parameters>,
    names: SessionNames,
    transaction: &mut Transaction,
    temporary: &TemporaryTables,
) -> Result<Bound, SqlError> {
    let now = transaction.started;
    let mut tables = SessionTables {
        transaction,
        temporary,
        schema: names.schema.clone(),
    };
    Binder::new(&mut tables, parameters, names, now)
        .bind(parsed)
        .await
}

async fn announce_copy(copy: &CopyIn, wire: &mut dyn Wire) -> Result<(), Failure> {
    let columns = i16::try_from(copy.columns.len()).unwrap_or(i16::MAX);
    let code = i8::from(copy.format == CopyFormat::Binary);
    let codes = copy.columns.iter().map(|_| i16::from(code)).collect();
    let response = CopyInResponse::new(code, columns, codes);
    wire.feed(PgWireBackendMessage::CopyInResponse(response)).await
}

fn check_not_null(table: &TemporaryTable, rows: &[Vec<moraine_tables::Value>]) -> Result<(), SqlError> {
    for (position, column) in table
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.not_null)
    {
        if rows
            .iter()
            .any(|row| row.get(position).is_none_or(moraine_tables::Value::is_null))
        {
            let message = format!(
                "null value in column \"{}\" violates its not-null constraint",
                column.name
            );
            return Err(SqlError::new(state::NOT_NULL_VIOLATION, message));
        }
    }
    Ok(())
}

/// What a panic becomes: an error with what it said.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> SqlError {
    let said = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason given".to_owned());
    tracing::error!(reason = %said, "a statement panicked");
    SqlError::internal(format!("internal error while running the statement: {said}"))
        .hint("The transaction was rolled back; the server goes on. Please report this.")
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use moraine_commit::CatalogOptions;
    use pgwire::messages::response::TransactionStatus;

    use super::*;
    use crate::lakes::Lakes;
    use crate::session::Next;
    use crate::turns::{Client, Place};

    /// A connection in which sending the data of a COPY is a bug.
    #[derive(Default)]
    struct Broken(Vec<String>);

    #[async_trait]
    impl Wire for Broken {
        async fn feed(&mut self, message: PgWireBackendMessage) -> Result<(), Failure> {
            match message {
                PgWireBackendMessage::CopyData(_) => panic!("a bug while rows are sent"),
                PgWireBackendMessage::ErrorResponse(error) => {
                    let fields = error
                        .fields
                        .into_iter()
                        .filter(|(kind, _)| matches!(kind, b'C' | b'M'));
                    self.0.extend(fields.map(|(_, text)| text));
                }
                _ => {}
            }
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_panic_in_the_middle_of_a_copy_is_an_error_and_the_session_goes_on() {
        let lakes = Lakes::new("memory://panics".parse().unwrap(), CatalogOptions::default());
        let place = Place {
            address: [127, 0, 0, 1].into(),
            user: "x".to_owned(),
            application: String::new(),
        };
        let client = Client::new(1, place);
        let mut session = Session::new(Arc::new(lakes), Arc::default(), client, "lake".to_owned());
        let mut wire = Broken::default();
        let table = "BEGIN; CREATE TEMP TABLE x (a INTEGER); INSERT INTO x VALUES (1)";
        assert_eq!(session.simple_query(table, &mut wire).await.unwrap(), Next::Ready);
        let copy = "COPY (SELECT a FROM x) TO STDOUT (FORMAT binary)";
        assert_eq!(session.simple_query(copy, &mut wire).await.unwrap(), Next::Ready);
        assert_eq!(wire.0.len(), 2, "one error: {:?}", wire.0);
        assert_eq!(wire.0[0], "XX000");
        assert!(wire.0[1].contains("a bug while rows are sent"), "{}", wire.0[1]);
        assert_eq!(session.status(), TransactionStatus::Error);
        session
            .simple_query("ROLLBACK; SELECT 1", &mut wire)
            .await
            .unwrap();
        assert_eq!(session.status(), TransactionStatus::Idle);
        assert_eq!(wire.0.len(), 2);
    }
}
