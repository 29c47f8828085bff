//! Statements that change no lake: settings, DISCARD, CHECKPOINT, cursors, prepared statements, and queries of the system
//! catalogs.

use std::sync::Arc;

use async_trait::async_trait;
use sqlparser::ast::{
    CloseCursor, ContextModifier, Declare, DiscardObject, Expr, LockTableMode, Reset, Set, Statement,
};

use super::control::Modes;
use super::cursors::Cursor;
use super::general::Answer;
use super::portals::{Portal, PortalState, no_cursor};
use super::reader::{cells, outputs, query_of};
use super::run::Framing;
use super::set_config::{self, SetConfig};
use super::{Session, send_warning, settings};
use crate::bind::fold;
use crate::copy::output::{Form, RowWriter, complete};
use crate::errors::{SqlError, state};
use crate::execute::{Cell, RowSink};
use crate::introspect::{self, ResultSet};
use crate::parse::{Fetch, Parsed};
use crate::transaction::Transaction;
use crate::values::parameters::Parameters;
use crate::wire::{Failure, Wire};

/// A prepared statement with values for its parameters.
pub(super) type Execution = (Arc<Parsed>, Arc<Parameters>);

/// Where the rows go that a MOVE passes.
struct Nowhere;

#[async_trait]
impl RowSink for Nowhere {
    async fn rows(&mut self, _: Vec<Vec<Cell>>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Session {
    /// Runs a statement of this kind; false for any other.
    pub(super) async fn utility(
        &mut self,
        parsed: &Parsed,
        parameters: &Arc<Parameters>,
        framing: &Framing,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<bool, Failure> {
        if let Parsed::Sql(statement) = parsed
            && let Statement::Query(query) = statement.as_ref()
            && let Some((calls, query)) = set_config::of(query)?
        {
            let query = Parsed::Sql(Box::new(Statement::Query(Box::new(query))));
            let mut answer = Answer::new(wire, framing);
            let rows = self
                .reader()
                .read(&query, parameters, transaction, &mut answer)
                .await?;
            calls.iter().try_for_each(|call| self.set_config(call))?;
            answer.finish(rows).await?;
            return Ok(true);
        }
        if let Some(result) = self.reader().result_set(parsed, transaction).await? {
            send(result, framing, wire).await?;
            return Ok(true);
        }
        let statement = match parsed {
            // Every commit is durable when it is acknowledged; there is nothing left to write.
            Parsed::Checkpoint => {
                complete(wire, "CHECKPOINT").await?;
                return Ok(true);
            }
            Parsed::Insert(_) => return Ok(false),
            Parsed::Fetch(fetch) => {
                self.fetch(fetch, framing, transaction, wire).await?;
                return Ok(true);
            }
            Parsed::Sql(statement) => statement.as_ref(),
        };
        if let Statement::Declare { stmts } = statement {
            self.declare(stmts, parameters, transaction).await?;
            complete(wire, "DECLARE CURSOR").await?;
            return Ok(true);
        }
        let Some(tag) = self.about_the_session(statement, transaction, wire).await? else {
            return Ok(false);
        };
        complete(wire, &tag).await?;
        Ok(true)
    }

    /// Runs a statement that changes the session only; its tag, or `None` for any other statement.
    async fn about_the_session(
        &mut self,
        statement: &Statement,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<Option<String>, Failure> {
        let tag = match statement {
            Statement::Set(set) => {
                self.set(set, transaction, wire).await?;
                "SET"
            }
            Statement::Reset(reset) => {
                match &reset.reset {
                    Reset::ALL => self.settings.reset_all(),
                    Reset::ConfigurationParameter(name) => self.settings.reset(&name.to_string())?,
                }
                "RESET"
            }
            Statement::Discard { object_type } => {
                self.discard(object_type)?;
                return Ok(Some(format!("DISCARD {object_type}")));
            }
            Statement::Prepare {
                name,
                data_types,
                statement,
            } => {
                self.prepare(name, data_types, statement, transaction).await?;
                "PREPARE"
            }
            Statement::Deallocate { name, .. } => {
                let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
                self.deallocate((!is_all).then(|| fold(name)).as_deref())?;
                if is_all { "DEALLOCATE ALL" } else { "DEALLOCATE" }
            }
            Statement::Close { cursor } => {
                match cursor {
                    CloseCursor::All => self.portals.clear(),
                    CloseCursor::Specific { name } => {
                        let name = fold(name);
                        self.portals.remove(&name).ok_or_else(|| no_cursor(&name))?;
                    }
                }
                "CLOSE CURSOR"
            }
            // Transactions read at a pinned view: a lock that only keeps a table there adds nothing.
            Statement::Lock(lock) if lock.lock_mode == Some(LockTableMode::AccessShare) => "LOCK TABLE",
            Statement::UNLISTEN { .. } => "UNLISTEN",
            _ => return Ok(None),
        };
        Ok(Some(tag.to_owned()))
    }

    /// The statement an EXECUTE stands for, with its parameters; `None` for any other statement.
    pub(super) fn execute_of(&self, parsed: &Parsed, now: i64) -> Result<Option<Execution>, SqlError> {
        let Parsed::Sql(statement) = parsed else {
            return Ok(None);
        };
        match statement.as_ref() {
            Statement::Execute {
                name: Some(name),
                parameters,
                immediate: false,
                ..
            } => self.executed(name, parameters, now).map(Some),
            _ => Ok(None),
        }
    }

    fn set_config(&mut self, call: &SetConfig) -> Result<(), SqlError> {
        if call.if_known && self.settings.get(&call.name).is_err() {
            return Ok(());
        }
        match &call.value {
            // Outside of a block the transaction ends with the statement.
            Some(value) if call.is_local => self.settings.set_local(&call.name, value),
            Some(value) => self.settings.set(&call.name, value),
            None => self.settings.reset(&call.name),
        }
    }

    /// DECLARE … CURSOR.
    async fn declare(
        &mut self,
        declared: &[Declare],
        parameters: &Arc<Parameters>,
        transaction: &mut Transaction,
    ) -> Result<(), Failure> {
        let [
            Declare {
                names,
                for_query: Some(query),
                binary,
                scroll,
                hold,
                ..
            },
        ] = declared
        else {
            return Err(SqlError::unsupported("this DECLARE").into());
        };
        let name = names.first().map(fold).unwrap_or_default();
        let holds = *hold == Some(true);
        if !holds && !self.in_block() {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(SqlError::new(state::NO_ACTIVE_TRANSACTION, message).into());
        }
        if self.portals.contains_key(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(state::DUPLICATE_CURSOR, message).into());
        }
        let query = Parsed::Sql(Box::new(Statement::Query(query.clone())));
        if query_of(&query).is_none() {
            return Err(SqlError::unsupported("a cursor over a change").into());
        }
        let scrolls = *scroll == Some(true);
        let parameters = Arc::clone(parameters);
        let cursor = self
            .open_cursor(Arc::new(query), parameters, transaction, scrolls)
            .await?;
        let portal = Portal::of_cursor(cursor, *binary == Some(true), holds);
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Opens a cursor over what the transaction sees now.
    pub(super) async fn open_cursor(
        &self,
        query: Arc<Parsed>,
        parameters: Arc<Parameters>,
        transaction: &mut Transaction,
        scrolls: bool,
    ) -> Result<Cursor, Failure> {
        let reader = self.reader();
        if let Some(query) = query_of(&query)
            && !introspect::is_about_the_system(query)
        {
            crate::general::pin(query, transaction, &reader.surroundings()).await?;
        }
        let frozen = transaction.frozen();
        Ok(Cursor::open(query, parameters, frozen, reader.to_own(), scrolls).await?)
    }

    /// FETCH and MOVE.
    async fn fetch(
        &mut self,
        fetch: &Fetch,
        framing: &Framing,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<(), Failure> {
        self.start_bound(&fetch.cursor, transaction).await?;
        let portal = self.portals.get_mut(&fetch.cursor);
        let portal = portal.ok_or_else(|| no_cursor(&fetch.cursor))?;
        let is_binary = portal.is_binary();
        let PortalState::Running(cursor) = &mut portal.state else {
            return Err(SqlError::unsupported("FETCH from a portal that is no cursor").into());
        };
        if fetch.moves_only {
            let mut nowhere = Nowhere;
            let moved = cursor.travel(fetch.direction, &mut nowhere).await?;
            return complete(wire, &format!("MOVE {moved}")).await;
        }
        let outputs = cursor.outputs().to_vec();
        let form = match framing.form(outputs.len()) {
            Form::Rows { described, .. } if is_binary => Form::Rows {
                binary: vec![true; outputs.len()],
                described,
            },
            form => form,
        };
        let mut writer = RowWriter::owning(wire, outputs, form);
        let fetched = cursor.travel(fetch.direction, &mut writer).await?;
        writer.finish_as(&format!("FETCH {fetched}")).await
    }

    /// Starts the query of a portal that Bind made and nobody has run yet: it is a cursor as well as a declared one.
    async fn start_bound(&mut self, name: &str, transaction: &mut Transaction) -> Result<(), Failure> {
        let bound = self.portals.get(name).and_then(Portal::bound_query);
        let Some((query, parameters)) = bound else {
            return Ok(());
        };
        let cursor = self.open_cursor(query, parameters, transaction, false).await?;
        if let Some(portal) = self.portals.get_mut(name) {
            portal.state = PortalState::Running(Box::new(cursor));
        }
        Ok(())
    }

    async fn set(
        &mut self,
        set: &Set,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<(), Failure> {
        let is_local = match set {
            Set::SingleAssignment { scope, .. } => *scope == Some(ContextModifier::Local),
            Set::SetTimeZone { local, .. } => *local,
            _ => false,
        };
        if is_local && !self.in_block() {
            let message = "SET LOCAL can only be used in transaction blocks";
            send_warning(wire, state::NO_ACTIVE_TRANSACTION, message).await?;
            return Ok(());
        }
        self.assign(set, is_local, transaction)?;
        Ok(())
    }

    fn assign(&mut self, set: &Set, is_local: bool, transaction: &mut Transaction) -> Result<(), SqlError> {
        match set {
            Set::SingleAssignment { variable, values, .. } => {
                let texts: Vec<String> = values.iter().map(setting_text).collect::<Result<_, _>>()?;
                let name = variable.to_string();
                if let [only] = texts.as_slice()
                    && only.eq_ignore_ascii_case("default")
                {
                    return self.settings.reset(&name);
                }
                let value = texts.join(", ");
                match name.to_lowercase().as_str() {
                    "transaction_read_only" => {
                        transaction.read_only = settings::parse_switch(&name, &value)? == "on";
                        self.settings.set_local(&name, &value)
                    }
                    "transaction_isolation" => self.settings.set_local(&name, &value),
                    _ if is_local => self.settings.set_local(&name, &value),
                    _ => self.settings.set(&name, &value),
                }
            }
            Set::SetTimeZone { value, .. } => {
                let value = setting_text(value)?;
                match value.to_lowercase().as_str() {
                    "local" | "default" => self.settings.reset("timezone"),
                    _ if is_local => self.settings.set_local("timezone", &value),
                    _ => self.settings.set("timezone", &value),
                }
            }
            Set::SetNames { charset_name, .. } => self.settings.set("client_encoding", &charset_name.value),
            Set::SetTransaction {
                snapshot: Some(_), ..
            } => Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT")),
            Set::SetTransaction { modes, session, .. } => {
                let modes = Modes::of(modes);
                if *session {
                    return self.settings.set_default_modes(modes);
                }
                if let Some(read_only) = modes.read_only {
                    transaction.read_only = read_only;
                }
                self.settings.note_modes(modes);
                Ok(())
            }
            Set::SetSessionAuthorization(_) | Set::SetRole { .. } => {
                Err(SqlError::unsupported("another role than the session's"))
            }
            other => Err(SqlError::unsupported(other)),
        }
    }

    /// `DISCARD ALL` gives a pooled connection back as new.
    fn discard(&mut self, what: &DiscardObject) -> Result<(), SqlError> {
        match what {
            DiscardObject::ALL if self.in_block() => {
                let message = "DISCARD ALL cannot run inside a transaction block";
                return Err(SqlError::new(state::ACTIVE_TRANSACTION, message));
            }
            DiscardObject::ALL => {
                self.settings.reset_all();
                self.temporary.clear();
                self.statements.clear();
                self.portals.clear();
            }
            DiscardObject::TEMP => self.temporary.clear(),
            DiscardObject::PLANS | DiscardObject::SEQUENCES => {}
        }
        Ok(())
    }
}

/// The text of a setting's value.
fn setting_text(expr: &Expr) -> Result<String, SqlError> {
    Ok(match expr {
        Expr::Value(value) => match &value.value {
            sqlparser::ast::Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(ident) => ident.value.clone(),
        other => other.to_string(),
    })
}

async fn send(result: ResultSet, framing: &Framing, wire: &mut dyn Wire) -> Result<(), Failure> {
    let outputs = outputs(&result);
    let form: Form = framing.form(outputs.len());
    let mut writer = RowWriter::new(wire, &outputs, form);
    let count = u64::try_from(result.rows.len()).unwrap_or(u64::MAX);
    writer.rows(cells(result)).await?;
    writer.finish(count).await
}
