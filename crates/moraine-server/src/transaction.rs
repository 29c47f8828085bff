//! One transaction of a session: a pinned transaction on each lake it has touched, of which one at most is written, and
//! the row numbers it has handed out. What statements do in it is in `execute`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use moraine_commit::{
    Catalog, CatalogTransaction, CommitFailure, ReadError, TransactionSavepoint, Turn, TurnPlace,
};
use moraine_tables::{CompareOp, Comparison, Filter, Relation, Value};

use crate::errors::{SqlError, state};
use crate::lakes::{Lake, Lakes};
use crate::parse::Parsed;
use crate::tid::Ledger;
use crate::turns::{Client, Intention, Lately, Opening};

/// A transaction over the lakes of one database. Dropping it takes everything back and frees what it held.
pub(crate) struct Transaction {
    lakes: Arc<Lakes>,
    database: String,
    client: Arc<Client>,
    opening: Opening,
    turn: Option<Turn>,
    /// Whether it has shown that it is going to delete or update rows.
    is_writing: bool,
    /// Microseconds since 1970 at which it began: the value of NOW().
    pub(crate) started: i64,
    pub(crate) read_only: bool,
    pinned: BTreeMap<String, Pinned>,
    /// The lakes that it is about to pin.
    approached: BTreeMap<String, Approach>,
    /// The schema of the lake this transaction changes.
    written: Option<String>,
    pub(crate) ledger: Ledger,
    /// Whether results leave before the end of the transaction although their client takes them for final: then what
    /// they show must be durable first.
    pub(crate) is_implicit: bool,
    /// The lakes of which all that is seen is known to be durable.
    settled: BTreeSet<String>,
    /// Whether this is a state of another transaction, to be read.
    is_frozen: bool,
}

/// A state of a transaction to go back to.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    lakes: BTreeMap<String, TransactionSavepoint>,
    written: Option<String>,
}

/// One lake as this transaction sees it.
struct Pinned {
    lake: Arc<Lake>,
    /// `None` where there is no store.
    open: Option<(Arc<Catalog>, CatalogTransaction)>,
    /// The state before any change, where there was a store from the beginning.
    begun: Option<TransactionSavepoint>,
}

/// A lake that a transaction is going to begin on, and its place in line where it waits for its turn.
struct Approach {
    catalog: Arc<Catalog>,
    place: Option<TurnPlace>,
}

/// The lakes a transaction has pinned.
#[derive(Clone, Copy)]
pub(crate) struct PinnedLakes<'t>(&'t BTreeMap<String, Pinned>);

impl<'t> PinnedLakes<'t> {
    /// The lake of a schema, if it is pinned and has a store.
    pub(crate) fn get(&self, schema: &str) -> Option<&'t CatalogTransaction> {
        let open = self.0.get(schema)?.open.as_ref();
        open.map(|(_, transaction)| transaction)
    }
}

impl Transaction {
    pub(crate) fn new(
        lakes: Arc<Lakes>,
        database: String,
        client: Arc<Client>,
        read_only: bool,
    ) -> Transaction {
        Transaction {
            lakes,
            database,
            client,
            opening: Opening::Other,
            turn: None,
            is_writing: false,
            started: now_micros(),
            read_only,
            pinned: BTreeMap::new(),
            approached: BTreeMap::new(),
            written: None,
            ledger: Ledger::default(),
            is_implicit: false,
            settled: BTreeSet::new(),
            is_frozen: false,
        }
    }

    /// The transaction as it is now, to be read while this one goes on. What it pins from here on it pins for itself.
    pub(crate) fn frozen(&self) -> Transaction {
        let frozen = |pinned: &Pinned| {
            let open = pinned.open.as_ref();
            Pinned {
                lake: Arc::clone(&pinned.lake),
                open: open.map(|(catalog, transaction)| (Arc::clone(catalog), transaction.frozen())),
                begun: None,
            }
        };
        let pinned = self.pinned.iter();
        Transaction {
            lakes: Arc::clone(&self.lakes),
            database: self.database.clone(),
            client: Arc::clone(&self.client),
            opening: self.opening,
            turn: None,
            started: self.started,
            read_only: true,
            is_writing: false,
            pinned: pinned
                .map(|(schema, lake)| (schema.clone(), frozen(lake)))
                .collect(),
            approached: BTreeMap::new(),
            written: None,
            ledger: Ledger::default(),
            is_implicit: false,
            settled: BTreeSet::new(),
            is_frozen: true,
        }
    }

    /// The present state, to go back to.
    pub(crate) fn mark(&self) -> Mark {
        let open = |(schema, pinned): (&String, &Pinned)| {
            let (_, transaction) = pinned.open.as_ref()?;
            Some((schema.clone(), transaction.savepoint()))
        };
        Mark {
            lakes: self.pinned.iter().filter_map(open).collect(),
            written: self.written.clone(),
        }
    }

    /// Takes back what was changed since `mark`. What was pinned since stays pinned.
    pub(crate) fn roll_back_to(&mut self, mark: &Mark) {
        for (schema, pinned) in &mut self.pinned {
            let savepoint = mark.lakes.get(schema).or(pinned.begun.as_ref()).cloned();
            if let (Some((_, transaction)), Some(savepoint)) = (&mut pinned.open, savepoint) {
                transaction.rollback_to(savepoint);
            }
        }
        self.written.clone_from(&mark.written);
    }

    /// Waits until everything this transaction sees is durable, where its results leave before its end.
    pub(crate) async fn settle(&mut self) -> Result<(), SqlError> {
        if !self.is_implicit || self.has_written() {
            return Ok(());
        }
        for (schema, pinned) in &self.pinned {
            if let Some((catalog, _)) = &pinned.open
                && !self.settled.contains(schema)
            {
                // One that begins now sees all that this one sees.
                let newer = begin(&pinned.lake, catalog, None).await?;
                Box::pin(newer.commit()).await?;
                self.settled.insert(schema.clone());
            }
        }
        Ok(())
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Takes note of the statement that comes next. The first one tells what the transaction is about, later ones whether
    /// it is to write.
    pub(crate) fn opens_with(&mut self, parsed: &Parsed) {
        if self.pinned.is_empty() {
            self.opening = Opening::of(parsed);
            return;
        }
        if self.read_only {
            return;
        }
        let shown = Intention::of(parsed);
        if shown == Some(Intention::Write) && !self.is_writing {
            tracing::trace!(session = self.client.session, "is about to write");
            self.is_writing = true;
        }
        let open = self.pinned.values_mut().filter_map(|pinned| pinned.open.as_mut());
        for (_, transaction) in open {
            match shown {
                Some(Intention::Write) => transaction.take_turn(),
                // What updates reads too.
                Some(Intention::Read)
                    if matches!(self.turn, Some(Turn::Possible | Turn::Append)) && !self.is_writing =>
                {
                    transaction.give_turn_up();
                }
                _ => transaction.keep_turn(),
            }
        }
    }

    pub(crate) fn lakes(&self) -> &Arc<Lakes> {
        &self.lakes
    }

    /// Pins the lake of a schema at its newest state, if this transaction has not yet. Who has lost a race there waits for
    /// its turn first.
    async fn pin(&mut self, schema: &str) -> Result<(), SqlError> {
        if self.pinned.contains_key(schema) {
            return Ok(());
        }
        let lake = self.lakes.lake(&self.database, schema)?;
        let open = match self.approach(schema).await? {
            Some(Approach { catalog, place }) => {
                let transaction = begin(&lake, &catalog, place).await?;
                Some((catalog, transaction))
            }
            None => None,
        };
        let begun = open.as_ref().map(|(_, transaction)| transaction.savepoint());
        self.pinned
            .insert(schema.to_owned(), Pinned { lake, open, begun });
        Ok(())
    }

    /// Finds the lake of a schema and, where this transaction is to wait for its turn there, takes a place in line.
    async fn approach(&mut self, schema: &str) -> Result<Option<Approach>, SqlError> {
        if let Some(approach) = self.approached.remove(schema) {
            return Ok(Some(approach));
        }
        if self.opening == Opening::Other {
            self.client.note_attach();
        }
        let lake = self.lakes.lake(&self.database, schema)?;
        // What opens a store is deep; its type ends here.
        let Some(catalog) = lake.existing().boxed().await? else {
            return Ok(None);
        };
        let turn = match self.read_only {
            true => None,
            false => lake
                .losses()
                .turn(&self.client, self.opening, Lately::of(&catalog)),
        };
        tracing::trace!(session = self.client.session, opening = ?self.opening, ?turn, "begins");
        self.turn = self.turn.or(turn);
        let place = turn.map(|turn| catalog.line_up(turn));
        Ok(Some(Approach { catalog, place }))
    }

    /// Waits until this transaction's turn on the lake of a schema is near, and says whether a lake is known to be there.
    /// Where the lake is pinned already there is nothing to wait for, and nothing is said.
    ///
    /// To wait here, before anything is read, is cheaper for DuckDB than to wait where it reads: it prepares a query on the
    /// thread that runs its statement, which sleeps meanwhile, and reads on another one, for which it waits in a busy loop.
    pub(crate) async fn come_near(&mut self, schema: &str) -> Result<bool, SqlError> {
        if self.pinned.contains_key(schema) {
            return Ok(false);
        }
        let Some(approach) = self.approach(schema).await? else {
            return Ok(false);
        };
        if let Some(place) = &approach.place {
            place.near().await;
        }
        let exists = approach.catalog.is_known_to_exist();
        self.approached.insert(schema.to_owned(), approach);
        Ok(exists)
    }

    /// The lake of a schema as this transaction sees it; `None` when there is none.
    pub(crate) async fn read(&mut self, schema: &str) -> Result<Option<&CatalogTransaction>, SqlError> {
        Ok(self.read_with_ledger(schema).await?.0)
    }

    /// The lake of a schema to read, and the ledger to number its rows in.
    pub(crate) async fn read_with_ledger(
        &mut self,
        schema: &str,
    ) -> Result<(Option<&CatalogTransaction>, &mut Ledger), SqlError> {
        self.pin(schema).await?;
        let open = self.pinned.get(schema).and_then(|pinned| pinned.open.as_ref());
        Ok((open.map(|(_, transaction)| transaction), &mut self.ledger))
    }

    /// The lakes pinned so far, and the ledger to number their rows in.
    pub(crate) fn lakes_and_ledger(&mut self) -> (PinnedLakes<'_>, &mut Ledger) {
        (PinnedLakes(&self.pinned), &mut self.ledger)
    }

    /// The lake of a schema to change; 25006 in a read-only transaction, 0A000 when another lake is changed already.
    pub(crate) async fn write(&mut self, schema: &str) -> Result<&mut CatalogTransaction, SqlError> {
        self.claim(schema)?;
        self.pin(schema).await?;
        let open = self
            .pinned
            .get_mut(schema)
            .and_then(|pinned| pinned.open.as_mut());
        let missing = || {
            SqlError::new(
                state::UNDEFINED_TABLE,
                format!("there is no lake in schema \"{schema}\" yet"),
            )
        };
        open.map(|(_, transaction)| transaction).ok_or_else(missing)
    }

    /// The lake of a schema to create its tables in, with a new store where there is none.
    pub(crate) async fn create(&mut self, schema: &str) -> Result<&mut CatalogTransaction, SqlError> {
        self.claim(schema)?;
        self.pin(schema).await?;
        let pinned = self
            .pinned
            .get_mut(schema)
            .ok_or_else(|| SqlError::internal("a lake that was not pinned"))?;
        if pinned.open.is_none() {
            let catalog = pinned.lake.created().boxed().await?;
            let transaction = begin(&pinned.lake, &catalog, None).await?;
            pinned.begun = Some(transaction.savepoint());
            pinned.open = Some((catalog, transaction));
        }
        let open = pinned.open.as_mut().map(|(_, transaction)| transaction);
        open.ok_or_else(|| SqlError::internal("a lake that did not open"))
    }

    fn claim(&mut self, schema: &str) -> Result<(), SqlError> {
        if self.lakes.only_reads() {
            return Err(SqlError::only_reads());
        }
        if self.read_only {
            let message = "cannot change anything in a read-only transaction";
            return Err(SqlError::new(state::READ_ONLY_TRANSACTION, message));
        }
        match &self.written {
            Some(written) if written != schema => Err(SqlError::unsupported(format!(
                "changing the lakes of schemas \"{written}\" and \"{schema}\" in one transaction"
            ))
            .hint("Each schema is a lake of its own; commit before changing another one.")),
            Some(_) => Ok(()),
            None => {
                self.written = Some(schema.to_owned());
                Ok(())
            }
        }
    }

    /// Whether anything may have been changed.
    pub(crate) fn has_written(&self) -> bool {
        self.written.is_some()
    }

    /// Takes everything back, and waits until what was read is durable: results of it are about to be sent.
    pub(crate) async fn abandon(mut self) -> Result<(), SqlError> {
        for (_, pinned) in std::mem::take(&mut self.pinned) {
            if let Some((catalog, transaction)) = pinned.open {
                drop(transaction);
                let transaction = begin(&pinned.lake, &catalog, None).await?;
                Box::pin(transaction.commit()).await?;
            }
        }
        Ok(())
    }

    /// Commits: what was read is durable, and what was changed is durable, once this returns.
    pub(crate) async fn commit(mut self) -> Result<(), SqlError> {
        let written = self
            .written
            .as_ref()
            .and_then(|schema| self.pinned.remove(schema));
        let has_read = !self.pinned.is_empty();
        for (_, pinned) in std::mem::take(&mut self.pinned) {
            if let Some((_, transaction)) = pinned.open {
                Box::pin(transaction.commit()).await?;
            }
        }
        if written.is_none() && has_read && !self.read_only {
            match self.opening {
                Opening::NewestSnapshot => self.client.note_read(),
                // Not one of DuckLake's transactions: what an ATTACH asks says nothing about what comes.
                _ => self.client.note_end(false),
            }
        }
        let Some(Pinned {
            lake,
            open: Some((catalog, transaction)),
            ..
        }) = written
        else {
            return Ok(());
        };
        if transaction.is_creating()
            && let Some(data_path) = data_path(&transaction).await?
        {
            lake.check_data_path(&data_path)?;
        }
        let in_time = !transaction.was_overtaken();
        let is_append = transaction.is_append();
        match Box::pin(transaction.commit()).await {
            Ok(committed) => {
                if is_append {
                    self.client.note_append();
                } else {
                    self.client.note_end(in_time && committed.snapshot_id.is_some());
                }
                tracing::debug!(schema = %lake.schema, snapshot = ?committed.snapshot_id, "committed");
                Ok(())
            }
            Err(error) => {
                if matches!(error, CommitFailure::Conflict { .. }) {
                    lake.losses().note(&self.client);
                }
                forget_if_stopped(&lake, &catalog, &error.to_string()).await;
                Err(SqlError::from(error))
            }
        }
    }
}

impl Drop for Transaction {
    /// Remembers a lost race, however the transaction ends: the client's next goes first.
    fn drop(&mut self) {
        if self.is_frozen {
            return;
        }
        for pinned in self.pinned.values() {
            if pinned.open.as_ref().is_some_and(|(_, open)| open.has_lost()) {
                pinned.lake.losses().note(&self.client);
            }
        }
        // What is left here was neither committed nor refused: whoever began it is not only writing, unless it was a second
        // try that its client gave up because what was committed meanwhile is in the way.
        let given_up = |pinned: &Pinned| matches!(&pinned.open, Some((_, open)) if !open.has_lost());
        if self.turn != Some(Turn::SecondTry) && self.pinned.values().any(given_up) {
            self.client.note_end(false);
        }
    }
}

/// Begins on an open catalog. One whose engine has stopped is opened again by the next.
async fn begin(
    lake: &Arc<Lake>,
    catalog: &Arc<Catalog>,
    place: Option<TurnPlace>,
) -> Result<CatalogTransaction, SqlError> {
    let begun = match place {
        Some(place) => Box::pin(catalog.begin_at(place)).await,
        None => Box::pin(catalog.begin()).await,
    };
    match begun {
        Ok(transaction) => Ok(transaction),
        Err(error) => {
            let error = SqlError::from(error);
            forget_if_stopped(lake, catalog, &error.message).await;
            Err(error)
        }
    }
}

async fn forget_if_stopped(lake: &Arc<Lake>, catalog: &Arc<Catalog>, reason: &str) {
    let Err(stopped) = catalog.store().view() else {
        return;
    };
    let taken_over = matches!(stopped, ReadError::Fenced { .. });
    if taken_over {
        tracing::error!(schema = %lake.schema, reason, "another process has taken over the lake; it is not served here any more");
    } else {
        tracing::warn!(schema = %lake.schema, reason, "the lake's store has stopped; the next use opens it again");
    }
    lake.forget(catalog, taken_over).await;
}

/// The data path a new lake is to be created with.
async fn data_path(transaction: &CatalogTransaction) -> Result<Option<String>, SqlError> {
    let key = Comparison::Compare {
        column: 0,
        op: CompareOp::Eq,
        value: Value::text("data_path"),
    };
    let filter = Filter::only(key);
    let rows = moraine_tables::scan(transaction, Relation::Metadata, &[1], &filter)
        .await?
        .collect()
        .await?;
    Ok(rows
        .into_iter()
        .find_map(|row| match row.values.into_iter().next() {
            Some(Value::Text(path)) => Some(path.to_string()),
            _ => None,
        }))
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
