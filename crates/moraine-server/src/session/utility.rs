//! Statements that touch no lake: settings, DISCARD, CHECKPOINT, and queries of the system catalogs.

use moraine_tables::Value;
use postgres_types::Type;
use sqlparser::ast::{DiscardObject, Expr, LockTableMode, Reset, Set, Statement};

use super::Session;
use super::control::access_of;
use super::run::Framing;
use super::set_config::{self, SetConfig};
use crate::bind::{Output, OutputKind};
use crate::copy::output::{Form, RowWriter, complete};
use crate::errors::{SqlError, state};
use crate::execute::{Cell, RowSink};
use crate::introspect::{self, Context, ResultSet};
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::wire::{Failure, Wire};

impl Session {
    /// Runs a statement of this kind; false for any other.
    pub(super) async fn utility(
        &mut self,
        parsed: &Parsed,
        framing: &Framing,
        transaction: &mut Transaction,
        wire: &mut dyn Wire,
    ) -> Result<bool, Failure> {
        if let Some(result) = self.result_set(parsed, transaction).await? {
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
            Parsed::Sql(statement) => statement.as_ref(),
        };
        let tag = match statement {
            Statement::Set(set) => {
                self.set(set, transaction)?;
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
                complete(wire, &format!("DISCARD {object_type}")).await?;
                return Ok(true);
            }
            // Transactions read at a pinned view: a lock that only keeps a table there adds nothing.
            Statement::Lock(lock) if lock.lock_mode == Some(LockTableMode::AccessShare) => "LOCK TABLE",
            Statement::Deallocate { .. } => "DEALLOCATE",
            Statement::UNLISTEN { .. } => "UNLISTEN",
            _ => return Ok(false),
        };
        complete(wire, tag).await?;
        Ok(true)
    }

    /// The columns of a statement of this kind that has rows; `None` for any other statement.
    pub(super) async fn utility_outputs(
        &mut self,
        parsed: &Parsed,
        transaction: &mut Transaction,
    ) -> Result<Option<Vec<Output>>, SqlError> {
        if let Some(result) = self.result_set(parsed, transaction).await? {
            return Ok(Some(outputs(&result)));
        }
        Ok(match parsed {
            Parsed::Checkpoint => Some(Vec::new()),
            Parsed::Insert(_) => None,
            Parsed::Sql(statement) => matches!(
                statement.as_ref(),
                Statement::Set(_)
                    | Statement::Reset(_)
                    | Statement::Discard { .. }
                    | Statement::Lock(_)
                    | Statement::Deallocate { .. }
                    | Statement::UNLISTEN { .. }
            )
            .then(Vec::new),
        })
    }

    /// The rows of SHOW and of a query of the system catalogs.
    async fn result_set(
        &mut self,
        parsed: &Parsed,
        transaction: &mut Transaction,
    ) -> Result<Option<ResultSet>, SqlError> {
        let Parsed::Sql(statement) = parsed else {
            return Ok(None);
        };
        match statement.as_ref() {
            Statement::ShowVariable { variable } => {
                let words: Vec<String> = variable.iter().map(|ident| ident.value.to_lowercase()).collect();
                self.show(&words).map(Some)
            }
            Statement::Query(query) if introspect::is_about_the_system(query) => {
                if let Some(set) = set_config::of(query)? {
                    return self.set_config(&set).map(Some);
                }
                let settings = self.settings.all();
                let context = Context {
                    user: &self.user,
                    schema: &self.settings.schema(),
                    pid: self.pid,
                    settings: &settings,
                };
                match introspect::run(query, transaction, &context).await {
                    // What the small engine does not have, the query engine may.
                    Err(error)
                        if matches!(
                            error.state,
                            state::FEATURE_NOT_SUPPORTED
                                | state::UNDEFINED_TABLE
                                | state::UNDEFINED_PARAMETER
                        ) =>
                    {
                        Ok(None)
                    }
                    answered => answered.map(Some),
                }
            }
            _ => Ok(None),
        }
    }

    fn set_config(&mut self, set: &SetConfig) -> Result<ResultSet, SqlError> {
        let columns = vec![("set_config".to_owned(), Type::TEXT)];
        if set.if_known && self.settings.get(&set.name).is_err() {
            return Ok(ResultSet {
                columns,
                rows: Vec::new(),
            });
        }
        match &set.value {
            Some(value) => self.settings.set(&set.name, value)?,
            None => self.settings.reset(&set.name)?,
        }
        let value = self.settings.get(&set.name)?;
        Ok(ResultSet {
            columns,
            rows: vec![vec![Value::text(value)]],
        })
    }

    fn show(&self, words: &[String]) -> Result<ResultSet, SqlError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let name = match words.as_slice() {
            ["all"] => {
                let rows = self.settings.all().into_iter();
                let rows = rows
                    .map(|(name, value)| vec![Value::text(name), Value::text(value)])
                    .collect();
                let columns = vec![
                    ("name".to_owned(), Type::TEXT),
                    ("setting".to_owned(), Type::TEXT),
                ];
                return Ok(ResultSet { columns, rows });
            }
            ["transaction", "isolation", "level"] => "transaction_isolation".to_owned(),
            ["time", "zone"] => "timezone".to_owned(),
            words => words.join("."),
        };
        let value = self.settings.get(&name)?;
        Ok(ResultSet {
            columns: vec![(name, Type::TEXT)],
            rows: vec![vec![Value::text(value)]],
        })
    }

    fn set(&mut self, set: &Set, transaction: &mut Transaction) -> Result<(), SqlError> {
        match set {
            Set::SingleAssignment { variable, values, .. } => {
                let texts: Vec<String> = values.iter().map(setting_text).collect::<Result<_, _>>()?;
                let name = variable.to_string();
                if let [only] = texts.as_slice()
                    && only.eq_ignore_ascii_case("default")
                {
                    return self.settings.reset(&name);
                }
                self.settings.set(&name, &texts.join(", "))
            }
            Set::SetTimeZone { value, .. } => self.settings.set("timezone", &setting_text(value)?),
            Set::SetNames { charset_name, .. } => self.settings.set("client_encoding", &charset_name.value),
            Set::SetTransaction {
                snapshot: Some(_), ..
            } => Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT")),
            Set::SetTransaction { modes, session, .. } => {
                match access_of(modes) {
                    Some(read_only) if *session => self.settings.set_reads_only(read_only),
                    Some(read_only) => transaction.read_only = read_only,
                    None => {}
                }
                Ok(())
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
                self.temporary_before.clear();
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

fn outputs(result: &ResultSet) -> Vec<Output> {
    let output = |(name, wire_type): &(String, Type)| Output {
        name: name.clone(),
        kind: OutputKind::Constant(Value::Null),
        wire_type: wire_type.clone(),
        type_modifier: -1,
    };
    result.columns.iter().map(output).collect()
}

async fn send(result: ResultSet, framing: &Framing, wire: &mut dyn Wire) -> Result<(), Failure> {
    let outputs = outputs(&result);
    let form: Form = framing.form(outputs.len());
    let mut writer = RowWriter::new(wire, &outputs, form);
    let count = u64::try_from(result.rows.len()).unwrap_or(u64::MAX);
    let rows = result
        .rows
        .into_iter()
        .map(|row| row.into_iter().map(Cell::Value).collect())
        .collect();
    writer.rows(rows).await?;
    writer.finish(count).await
}
