//! Changes: rows are found by a read, and handed to the tables by their addresses.

use std::collections::HashMap;

use moraine_tables::{Comparison, Filter, Row, RowAddress, Value};

use super::select::{Resolved, resolve};
use crate::bind::{AssignedValue, CreateTable, Delete, Insert, Join, Scalar, Source, TableName, Update};
use crate::errors::SqlError;
use crate::tid::{self, TableKey};
use crate::transaction::Transaction;
use crate::values::literal::{Literal, Target};
use crate::wire::Failure;

/// Distinct join keys up to which the keys themselves are given to the scan.
const JOIN_KEYS_PUSHED_MAX: usize = 65_536;

/// Inserts complete rows; how many.
pub(crate) async fn insert(transaction: &mut Transaction, insert: Insert) -> Result<u64, Failure> {
    let Source::Relation { lake, relation, .. } = &insert.target else {
        return Err(SqlError::internal("an insert into a temporary table reached the lake").into());
    };
    let catalog = transaction.write(lake).await?;
    Ok(Box::pin(moraine_tables::insert(catalog, *relation, insert.rows)).await?)
}

/// Deletes the rows that pass; how many.
pub(crate) async fn delete(transaction: &mut Transaction, delete: &Delete) -> Result<u64, Failure> {
    let Source::Relation { lake, relation, .. } = &delete.target else {
        return Err(SqlError::unsupported("DELETE from a temporary table").into());
    };
    // Before anything is looked for: a read-only transaction changes nothing, not even no row.
    transaction.write(lake).await?;
    let Some(filter) = resolve(transaction, &delete.target, &delete.filter).await? else {
        return Ok(0);
    };
    let rows = find(transaction, &delete.target, filter).await?;
    let addresses: Vec<RowAddress> = rows.into_iter().map(|row| row.address).collect();
    if addresses.is_empty() {
        return Ok(0);
    }
    let catalog = transaction.write(lake).await?;
    Ok(Box::pin(moraine_tables::delete(catalog, *relation, addresses)).await?)
}

/// Updates the rows that pass, and that find a partner where there is a join; how many.
pub(crate) async fn update(transaction: &mut Transaction, update: &Update) -> Result<u64, Failure> {
    let Source::Relation { lake, relation, .. } = &update.target else {
        return Err(SqlError::unsupported("UPDATE of a temporary table").into());
    };
    transaction.write(lake).await?;
    let Some(mut filter) = resolve(transaction, &update.target, &update.filter).await? else {
        return Ok(0);
    };
    let partners = match &update.join {
        Some(join) => {
            let Some(partners) = Partners::new(transaction, &update.target, join, &mut filter)? else {
                return Ok(0);
            };
            Some(partners)
        }
        None => None,
    };
    let rows = find(transaction, &update.target, filter).await?;
    let mut changes = Vec::with_capacity(rows.len());
    for row in rows {
        let partner = match &partners {
            Some(partners) => match partners.of(&row) {
                Some(partner) => partner,
                None => continue,
            },
            None => &[],
        };
        changes.push((
            row.address,
            assigned(update, &row.values, partner, transaction.started)?,
        ));
    }
    if changes.is_empty() {
        return Ok(0);
    }
    let catalog = transaction.write(lake).await?;
    Ok(Box::pin(moraine_tables::update(catalog, *relation, changes)).await?)
}

/// The values one row is given.
fn assigned(
    update: &Update,
    row: &[Value],
    partner: &[Literal],
    now: i64,
) -> Result<Vec<(usize, Value)>, SqlError> {
    let mut values = Vec::with_capacity(update.assignments.len());
    for assignment in &update.assignments {
        let value = match &assignment.value {
            AssignedValue::Constant(value) => value.clone(),
            AssignedValue::Scalar(scalar) => {
                let column = update.target.columns().get(assignment.column);
                let column = column.ok_or_else(|| SqlError::internal("an assignment beyond the table"))?;
                let target = Target {
                    column: &column.name,
                    column_type: column.column_type,
                    now,
                };
                evaluate(scalar, row, partner).coerce(target)?
            }
        };
        values.push((assignment.column, value));
    }
    Ok(values)
}

fn evaluate(scalar: &Scalar, row: &[Value], partner: &[Literal]) -> Literal {
    match scalar {
        Scalar::Literal(literal) => literal.clone(),
        Scalar::Target(column) => row.get(*column).cloned().map_or(Literal::Null, Literal::Typed),
        Scalar::Partner(column) => partner.get(*column).cloned().unwrap_or(Literal::Null),
        Scalar::Cast(inner, column_type) => {
            Literal::Cast(Box::new(evaluate(inner, row, partner)), *column_type)
        }
    }
}

/// The rows of a relation that pass, whole.
async fn find(transaction: &mut Transaction, source: &Source, filter: Resolved) -> Result<Vec<Row>, Failure> {
    let Source::Relation {
        lake,
        relation,
        schema,
    } = source
    else {
        return Err(SqlError::internal("a temporary table has no addresses").into());
    };
    let Some(catalog) = transaction.read(lake).await? else {
        return Err(SqlError::undefined_table(relation).into());
    };
    let all: Vec<usize> = (0..schema.columns.len()).collect();
    let Resolved {
        comparisons,
        residual,
    } = filter;
    let filter = Filter { all_of: comparisons };
    let mut scan = Box::pin(moraine_tables::scan(catalog, *relation, &all, &filter)).await?;
    let mut rows = Vec::new();
    while let Some(batch) = Box::pin(scan.next_batch()).await? {
        rows.extend(batch.into_iter().filter(|row| {
            let get = |column: usize| row.values.get(column).unwrap_or(&Value::Null);
            residual
                .iter()
                .all(|condition| condition.evaluate(&get) == Some(true))
        }));
        tokio::task::yield_now().await;
    }
    Ok(rows)
}

/// The rows of FROM, found by what they must equal.
struct Partners<'a> {
    join: &'a Join,
    by_key: HashMap<Vec<Value>, usize>,
    by_address: Option<HashMap<RowAddress, usize>>,
}

impl<'a> Partners<'a> {
    /// Prepares the join and narrows the read of the target to what can match; `None` when nothing can.
    fn new(
        transaction: &Transaction,
        target: &Source,
        join: &'a Join,
        filter: &mut Resolved,
    ) -> Result<Option<Partners<'a>>, SqlError> {
        let mut by_key = HashMap::with_capacity(join.rows.len());
        let mut by_address = join.ctid.map(|_| HashMap::with_capacity(join.rows.len()));
        for (index, row) in join.rows.iter().enumerate() {
            let Some(key) = key(row, target, join, transaction.started)? else {
                continue;
            };
            if let (Some(addresses), Some(column)) = (&mut by_address, join.ctid) {
                if let Some(address) = address(row.get(column), target, transaction)? {
                    addresses.entry(address).or_insert(index);
                }
                continue;
            }
            by_key.entry(key).or_insert(index);
        }
        if by_key.is_empty() && by_address.as_ref().is_none_or(HashMap::is_empty) {
            return Ok(None);
        }
        if let Some(addresses) = &by_address {
            filter
                .comparisons
                .push(Comparison::Address(addresses.keys().cloned().collect()));
        }
        for (position, (column, _)) in join.on.iter().enumerate() {
            let mut values: Vec<Value> = by_key
                .keys()
                .filter_map(|key: &Vec<Value>| key.get(position).cloned())
                .collect();
            values.sort_by(|left, right| left.compare(right).unwrap_or(std::cmp::Ordering::Equal));
            values.dedup();
            if !values.is_empty() && values.len() <= JOIN_KEYS_PUSHED_MAX {
                filter.comparisons.push(Comparison::In {
                    column: *column,
                    values,
                });
            }
        }
        Ok(Some(Partners {
            join,
            by_key,
            by_address,
        }))
    }

    /// The partner of a row.
    fn of(&self, row: &Row) -> Option<&'a [Literal]> {
        let index = match &self.by_address {
            Some(addresses) => addresses.get(&row.address)?,
            None => {
                let key: Vec<Value> = self
                    .join
                    .on
                    .iter()
                    .map(|(column, _)| row.values.get(*column).cloned().unwrap_or(Value::Null))
                    .collect();
                self.by_key.get(&key)?
            }
        };
        self.join.rows.get(*index).map(Vec::as_slice)
    }
}

/// The key of a partner, typed as the target's columns; `None` when a part is NULL, which equals nothing.
fn key(row: &[Literal], target: &Source, join: &Join, now: i64) -> Result<Option<Vec<Value>>, SqlError> {
    let mut key = Vec::with_capacity(join.on.len());
    for (column, partner) in &join.on {
        let column = target.columns().get(*column);
        let column = column.ok_or_else(|| SqlError::internal("a join beyond the table"))?;
        let target = Target {
            column: &column.name,
            column_type: column.column_type,
            now,
        };
        let value = row.get(*partner).unwrap_or(&Literal::Null).coerce(target)?;
        if value.is_null() {
            return Ok(None);
        }
        key.push(value);
    }
    Ok(Some(key))
}

/// The address a `ctid` text names; `None` for a row this transaction has not shown.
fn address(
    literal: Option<&Literal>,
    target: &Source,
    transaction: &Transaction,
) -> Result<Option<RowAddress>, SqlError> {
    let text: &str = match literal {
        Some(Literal::Typed(Value::Text(text))) => text,
        Some(Literal::Quoted(text)) => text,
        _ => return Ok(None),
    };
    let Source::Relation { lake, relation, .. } = target else {
        return Ok(None);
    };
    let table = TableKey {
        lake: lake.clone(),
        relation: *relation,
    };
    Ok(transaction.ledger.row(&table, tid::parse(text)?).cloned())
}

/// Creates a table of a lake, and the lake with the first one. False when it was there and that is allowed.
pub(crate) async fn create_table(
    transaction: &mut Transaction,
    create: CreateTable,
) -> Result<bool, Failure> {
    let CreateTable {
        lake,
        relation,
        columns,
        if_not_exists,
    } = create;
    if if_not_exists
        && let Some(catalog) = transaction.read(&lake).await?
        && Box::pin(moraine_tables::describe(catalog, relation))
            .await?
            .is_some()
    {
        return Ok(false);
    }
    // The first table of a lake creates its store; an inlined table has a lake to be in.
    let catalog = if relation.is_fixed() {
        transaction.create(&lake).await?
    } else {
        transaction.write(&lake).await?
    };
    Box::pin(moraine_tables::create(catalog, relation, Some(columns))).await?;
    Ok(true)
}

/// Drops a table of a lake. False when it was not there and that is allowed.
pub(crate) async fn drop_table(
    transaction: &mut Transaction,
    source: Option<Source>,
    name: &TableName,
    if_exists: bool,
) -> Result<bool, Failure> {
    let Some(Source::Relation { lake, relation, .. }) = source else {
        if if_exists {
            return Ok(false);
        }
        return Err(SqlError::undefined_table(name).into());
    };
    let catalog = transaction.write(&lake).await?;
    Ok(Box::pin(moraine_tables::drop(catalog, relation)).await?)
}
