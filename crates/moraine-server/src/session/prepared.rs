//! Prepared statements: made by Parse or by PREPARE, kept by name, and typed when they are made.

use std::sync::Arc;

use moraine_tables::Value;
use postgres_types::Type;
use sqlparser::ast::{DataType, Expr, Ident, ObjectName, Statement};

use super::control::Control;
use super::general::General;
use super::run::interruptible;
use super::tables::{DescribedTables, SessionTables};
use super::{Block, Session};
use crate::bind::{Binder, Bound, Output, fold, object_name};
use crate::errors::{SqlError, state};
use crate::parse::Parsed;
use crate::transaction::Transaction;
use crate::values::literal::{Literal, Target};
use crate::values::parameters::{Parameter, Parameters};
use crate::values::types;
use crate::wire::Failure;

/// What a statement takes and gives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Description {
    pub(crate) parameters: Vec<Type>,
    /// Empty for a statement without rows.
    pub(crate) outputs: Vec<Output>,
}

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// `None` for an empty query.
    pub(crate) parsed: Option<Arc<Parsed>>,
    pub(crate) description: Description,
}

impl Session {
    /// Prepares the statement of a Parse message. `types` are object ids, 0 where the client leaves the type open.
    pub(crate) async fn parse(&mut self, name: &str, sql: &str, types: &[u32]) -> Result<(), Failure> {
        let mut statements = self.texts.statements(sql)?.into_iter();
        let parsed = statements.next();
        if statements.next().is_some() {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(state::SYNTAX_ERROR, message).into());
        }
        self.check_free(name)?;
        let declared = types
            .iter()
            .map(|oid| declared(*oid))
            .collect::<Result<Vec<_>, _>>()?;
        let prepared = match parsed {
            None => Prepared {
                parsed: None,
                description: Description::default(),
            },
            Some(parsed) => {
                let description = self.describe(&parsed, &declared).await;
                Prepared {
                    description: description.map_err(|error| error.located(sql))?,
                    parsed: Some(parsed),
                }
            }
        };
        self.statements.insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    fn check_free(&self, name: &str) -> Result<(), SqlError> {
        if !name.is_empty() && self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(state::DUPLICATE_STATEMENT, message));
        }
        Ok(())
    }

    /// The statement of that name; 26000 where there is none.
    pub(crate) fn prepared(&self, name: &str) -> Result<Arc<Prepared>, SqlError> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new(state::INVALID_STATEMENT_NAME, message)
        })
    }

    /// What a prepared statement takes and gives now: tables may have come to be others since it was prepared.
    pub(crate) async fn describe_prepared(&mut self, prepared: &Prepared) -> Result<Description, SqlError> {
        let Some(parsed) = &prepared.parsed else {
            return Ok(Description::default());
        };
        let types = &prepared.description.parameters;
        let declared: Vec<Option<Type>> = types.iter().cloned().map(Some).collect();
        self.describe(parsed, &declared).await
    }

    /// What a statement takes and gives, without running it.
    async fn describe(
        &mut self,
        parsed: &Parsed,
        declared: &[Option<Type>],
    ) -> Result<Description, SqlError> {
        if Control::of(parsed)?.is_some() {
            return Ok(Description::default());
        }
        match std::mem::replace(&mut self.block, Block::Failed(None)) {
            Block::Failed(kept) => {
                self.block = Block::Failed(kept);
                Err(SqlError::in_failed_transaction())
            }
            Block::Open(mut transaction) => {
                let outcome = self.describe_with(parsed, declared, &mut transaction).await;
                match outcome {
                    Ok(_) => self.block = Block::Open(transaction),
                    Err(_) => self.failed(transaction),
                }
                outcome
            }
            Block::Idle => {
                self.block = Block::Idle;
                // What the messages before this one have done, it sees.
                if let Some(mut transaction) = self.implicit.take() {
                    let outcome = self.describe_with(parsed, declared, &mut transaction).await;
                    self.implicit = Some(transaction);
                    return outcome;
                }
                let mut transaction = self.new_transaction(true);
                let outcome = self.describe_with(parsed, declared, &mut transaction).await;
                transaction.commit().await?;
                outcome
            }
        }
    }

    /// [`Session::describe_in`] so that neither a panic, nor a cancel request, nor the statement timeout outlives it: it may
    /// wait for its transaction's turn.
    async fn describe_with(
        &mut self,
        parsed: &Parsed,
        declared: &[Option<Type>],
        transaction: &mut Transaction,
    ) -> Result<Description, SqlError> {
        let cancel = Arc::clone(&self.cancel);
        let timeout = self.settings.statement_timeout();
        interruptible(&cancel, timeout, self.describe_in(parsed, declared, transaction)).await
    }

    async fn describe_in(
        &mut self,
        parsed: &Parsed,
        declared: &[Option<Type>],
        transaction: &mut Transaction,
    ) -> Result<Description, SqlError> {
        if let Some(description) = self.describe_own(parsed)? {
            return Ok(description);
        }
        if let Parsed::Sql(statement) = parsed
            && let Statement::Declare { stmts } = statement.as_ref()
            && let [declare] = stmts.as_slice()
            && let Some(query) = &declare.for_query
        {
            let query = Parsed::Sql(Box::new(Statement::Query(query.clone())));
            let described = Box::pin(self.describe_in(&query, declared, transaction)).await?;
            return Ok(Description {
                parameters: described.parameters,
                outputs: Vec::new(),
            });
        }
        let reader = self.reader();
        if let Parsed::Sql(statement) = parsed
            && let Statement::Query(query) = statement.as_ref()
            && let Some((_, query)) = super::set_config::of(query)?
        {
            let query = Parsed::Sql(Box::new(Statement::Query(Box::new(query))));
            return Box::pin(self.describe_in(&query, declared, transaction)).await;
        }
        if let Some(result) = reader.result_set(parsed, transaction).await? {
            return Ok(Description {
                parameters: Vec::new(),
                outputs: super::reader::outputs(&result),
            });
        }
        transaction.opens_with(parsed);
        let parameters = Arc::new(Parameters::to_learn(declared));
        let (names, now) = (reader.names(), transaction.started);
        let mut tables = DescribedTables(SessionTables {
            transaction,
            temporary: &self.temporary,
            schema: names.schema.clone(),
        });
        let bound = Binder::new(&mut tables, Arc::clone(&parameters), names, now)
            .bind(parsed)
            .await;
        match (bound, General::of(parsed)) {
            (Ok(bound), _) => Ok(Description {
                parameters: parameters.learned(),
                outputs: match bound {
                    Bound::Select(select) => select.outputs,
                    _ => Vec::new(),
                },
            }),
            (Err(error), Some(general)) if general.takes(&error) => {
                let parameters = Parameters::to_learn(declared);
                reader.describe_general(&general, transaction, &parameters).await
            }
            (Err(error), _) => Err(error),
        }
    }

    /// What statements about the session itself take and give; `None` for any other statement.
    fn describe_own(&self, parsed: &Parsed) -> Result<Option<Description>, SqlError> {
        let nothing = Some(Description::default());
        let statement = match parsed {
            Parsed::Checkpoint => return Ok(nothing),
            Parsed::Insert(_) => return Ok(None),
            Parsed::Fetch(fetch) => {
                let outputs = match fetch.moves_only {
                    true => Vec::new(),
                    false => self.cursor_outputs(&fetch.cursor)?,
                };
                return Ok(Some(Description {
                    parameters: Vec::new(),
                    outputs,
                }));
            }
            Parsed::Sql(statement) => statement.as_ref(),
        };
        Ok(match statement {
            Statement::Execute { name: Some(name), .. } => Some(Description {
                parameters: Vec::new(),
                outputs: self
                    .prepared(&object_name(name)?.table)?
                    .description
                    .outputs
                    .clone(),
            }),
            Statement::Set(_)
            | Statement::Reset(_)
            | Statement::Discard { .. }
            | Statement::Deallocate { .. }
            | Statement::Prepare { .. }
            | Statement::Close { .. }
            | Statement::Lock(_)
            | Statement::UNLISTEN { .. } => nothing,
            _ => None,
        })
    }

    /// PREPARE.
    pub(super) async fn prepare(
        &mut self,
        name: &Ident,
        data_types: &[DataType],
        statement: &Statement,
        transaction: &mut Transaction,
    ) -> Result<(), SqlError> {
        let name = fold(name);
        self.check_free(&name)?;
        let declared =
            |data_type: &DataType| types::from_sql(data_type).map(|known| Some(types::wire_type(known)));
        let declared = data_types.iter().map(declared).collect::<Result<Vec<_>, _>>()?;
        let parsed = Parsed::Sql(Box::new(statement.clone()));
        if Control::of(&parsed)?.is_some() || General::of(&parsed).is_none() {
            return Err(SqlError::unsupported(format!("PREPARE of {statement}")));
        }
        let description = self.describe_in(&parsed, &declared, transaction).await?;
        let prepared = Prepared {
            parsed: Some(Arc::new(parsed)),
            description,
        };
        self.statements.insert(name, Arc::new(prepared));
        Ok(())
    }

    /// The statement that an EXECUTE runs, and the values of its parameters.
    pub(super) fn executed(
        &self,
        name: &ObjectName,
        arguments: &[Expr],
        now: i64,
    ) -> Result<super::utility::Execution, SqlError> {
        let name = object_name(name)?.table;
        let prepared = self.prepared(&name)?;
        let wanted = &prepared.description.parameters;
        if wanted.len() != arguments.len() {
            let message = format!(
                "wrong number of parameters for prepared statement \"{name}\": expected {}, got {}",
                wanted.len(),
                arguments.len()
            );
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, of_type) in arguments.iter().zip(wanted) {
            let value = argument_value(argument, of_type, now)?;
            values.push(Parameter::valued(value, of_type.clone()));
        }
        let parsed = prepared.parsed.clone();
        let parsed = parsed.ok_or_else(|| SqlError::internal("EXECUTE of an empty statement"))?;
        Ok((parsed, Arc::new(Parameters::bound(values))))
    }

    /// DEALLOCATE; `None` is ALL.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<(), SqlError> {
        match name {
            None => self.statements.clear(),
            Some(name) => {
                self.prepared(name)?;
                self.statements.remove(name);
            }
        }
        Ok(())
    }
}

fn argument_value(argument: &Expr, of_type: &Type, now: i64) -> Result<Value, SqlError> {
    let literal = crate::bind::literal(argument)?;
    if let (Literal::Quoted(text), Some(_)) = (&literal, crate::values::arrays::element(of_type)) {
        return Ok(Value::text(text));
    }
    let column_type = types::of_wire_type(of_type)
        .ok_or_else(|| SqlError::unsupported(format!("a parameter of type {}", of_type.name())))?;
    let target = Target {
        column: "parameter",
        column_type: match (&literal, column_type) {
            (
                Literal::Number(digits) | Literal::Quoted(digits),
                moraine_tables::ColumnType::Numeric { .. },
            ) => crate::values::decode::natural_numeric(digits),
            (_, column_type) => column_type,
        },
        now,
    };
    literal.coerce(target)
}

/// The type of an object id in a Parse message; `None` where the client leaves it open.
fn declared(oid: u32) -> Result<Option<Type>, SqlError> {
    match Type::from_oid(oid) {
        _ if oid == 0 => Ok(None),
        Some(known) => Ok(Some(known).filter(|known| *known != Type::UNKNOWN)),
        None => {
            let message = format!("type with OID {oid} does not exist");
            Err(SqlError::new(state::UNDEFINED_OBJECT, message))
        }
    }
}
