//! INSERT, UPDATE and DELETE whose rows a query finds or makes, with RETURNING and ON CONFLICT.

mod conflict;
mod template;

use moraine_sql::{RelationName, SqlColumn};
use moraine_tables::{Relation, RowAddress, Value};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, OnInsert, Query, SelectItem, SetExpr,
    Statement, TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind, With,
};

use super::{Described, QuerySink, Surroundings};
use crate::bind::{Output, Source, TableName, Tables, object_name, positions};
use crate::errors::SqlError;
use crate::execute::{Cell, Collected, RowSink};
use crate::session::SessionTables;
use crate::tid::TableKey;
use crate::transaction::Transaction;
use crate::values::literal::{self, Target};
use crate::values::parameters::Parameters;
use crate::wire::Failure;

/// A change as the parser gives it.
pub(crate) struct Change<'s> {
    with: Option<&'s With>,
    kind: Kind<'s>,
}

enum Kind<'s> {
    Insert(&'s Insert),
    Update(&'s Update),
    Delete(&'s Delete),
}

/// What a change did.
pub(crate) struct Changed {
    /// The command's tag.
    pub(crate) tag: String,
    /// The rows of RETURNING with their columns.
    pub(crate) returned: Option<(Vec<Output>, Vec<Vec<Cell>>)>,
}

impl<'s> Change<'s> {
    /// The change a statement is, if it is one.
    pub(crate) fn of(statement: &'s Statement) -> Option<Change<'s>> {
        let (with, statement) = match statement {
            Statement::Query(query) => match query.body.as_ref() {
                SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => {
                    (query.with.as_ref(), inner)
                }
                _ => return None,
            },
            statement => (None, statement),
        };
        let kind = match statement {
            Statement::Insert(insert) => Kind::Insert(insert),
            Statement::Update(update) => Kind::Update(update),
            Statement::Delete(delete) => Kind::Delete(delete),
            _ => return None,
        };
        Some(Change { with, kind })
    }

    fn returning(&self) -> Option<&'s [SelectItem]> {
        match self.kind {
            Kind::Insert(insert) => insert.returning.as_deref(),
            Kind::Update(update) => update.returning.as_deref(),
            Kind::Delete(delete) => delete.returning.as_deref(),
        }
    }
}

/// What a change is made with.
struct Work<'w> {
    transaction: &'w mut Transaction,
    surroundings: &'w Surroundings<'w>,
    parameters: &'w Parameters,
}

/// The one relation a change is made to.
struct Changing {
    name: TableName,
    /// The name the statement knows it by.
    alias: String,
    lake: String,
    relation: Relation,
    source: Source,
}

/// Makes a change.
pub(crate) async fn change(
    change: &Change<'_>,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
    parameters: &Parameters,
) -> Result<Changed, Failure> {
    let mut work = Work {
        transaction,
        surroundings,
        parameters,
    };
    let (verb, target, rows) = match change.kind {
        Kind::Insert(insert) => work.insert(insert, change.with).await?,
        Kind::Update(update) => work.update(update, change.with).await?,
        Kind::Delete(delete) => work.delete(delete, change.with).await?,
    };
    let tag = format!("{verb} {}", rows.len());
    let returned = match change.returning() {
        None => None,
        Some(items) => Some(work.returned(items, &target, rows).await?),
    };
    Ok(Changed { tag, returned })
}

/// Describes a change without making it.
pub(crate) async fn describe(
    change: &Change<'_>,
    transaction: &mut Transaction,
    surroundings: &Surroundings<'_>,
    parameters: &Parameters,
) -> Result<Described, SqlError> {
    let mut work = Work {
        transaction,
        surroundings,
        parameters,
    };
    let (target, query) = match change.kind {
        Kind::Insert(insert) => work
            .insert_query(insert, change.with)
            .await
            .map(|(target, query, _)| (target, query))?,
        Kind::Update(update) => work
            .update_query(update, change.with)
            .await
            .map(|(target, query, _)| (target, query))?,
        Kind::Delete(delete) => work.delete_query(delete, change.with).await?,
    };
    let described = super::describe(&query, work.transaction, surroundings, parameters).await?;
    let outputs = match change.returning() {
        None => Vec::new(),
        Some(items) => {
            let returning = template::returning(items, &target.name, &target.alias)?;
            super::describe(&returning, work.transaction, surroundings, parameters)
                .await?
                .outputs
        }
    };
    Ok(Described {
        outputs,
        parameters: described.parameters,
    })
}

type Rows = Vec<Vec<Value>>;

impl Work<'_> {
    async fn changing(&mut self, name: TableName, alias: Option<String>) -> Result<Changing, SqlError> {
        let mut tables = SessionTables {
            transaction: self.transaction,
            temporary: self.surroundings.temporary,
            schema: self.surroundings.schema.clone(),
        };
        let source = tables
            .find(&name)
            .await?
            .ok_or_else(|| SqlError::undefined_table(&name))?;
        let Source::Relation { lake, relation, .. } = &source else {
            return Err(SqlError::unsupported("this change of a temporary table"));
        };
        let alias = alias.unwrap_or_else(|| name.table.clone());
        Ok(Changing {
            name,
            alias,
            lake: lake.clone(),
            relation: *relation,
            source,
        })
    }

    async fn target(&mut self, table: &TableWithJoins) -> Result<Changing, SqlError> {
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = &table.relation
        else {
            return Err(SqlError::unsupported(format!("a change of {}", table.relation)));
        };
        if !table.joins.is_empty() {
            return Err(SqlError::unsupported("JOIN in what is changed"));
        }
        let alias = alias.as_ref().map(|alias| crate::bind::fold(&alias.name));
        self.changing(object_name(name)?, alias).await
    }

    /// Runs a query and keeps its rows.
    async fn rows(&mut self, query: &Query) -> Result<Vec<Vec<Cell>>, Failure> {
        let mut kept = Kept::default();
        super::run(
            query,
            self.transaction,
            self.surroundings,
            self.parameters,
            &mut kept,
        )
        .await?;
        Ok(kept.rows.0)
    }

    fn coerce(&self, cell: Cell, column: &moraine_tables::Column) -> Result<Value, SqlError> {
        let target = Target {
            column: &column.name,
            column_type: column.column_type,
            now: self.transaction.started,
        };
        match cell {
            Cell::Value(Value::Text(text)) => literal::read(&text, target),
            Cell::Value(value) => literal::assign(value, target),
            Cell::Tid(_) => Err(SqlError::mismatch(&column.name, "a column type", "tid")),
        }
    }

    async fn insert_query(
        &mut self,
        insert: &Insert,
        with: Option<&With>,
    ) -> Result<(Changing, Query, Vec<usize>), SqlError> {
        if !insert.assignments.is_empty() {
            return Err(SqlError::unsupported("INSERT … SET"));
        }
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("INSERT into a function"));
        };
        let alias = insert
            .table_alias
            .as_ref()
            .map(|alias| crate::bind::fold(&alias.alias));
        let target = self.changing(object_name(name)?, alias).await?;
        let mut columns = Vec::with_capacity(insert.columns.len());
        for column in &insert.columns {
            columns.push(object_name(column)?.table);
        }
        let positions = positions(&target.source, &columns)?;
        let Some(source) = insert.source.as_deref() else {
            return Err(SqlError::unsupported("INSERT … DEFAULT VALUES"));
        };
        let mut query = template::with_types(source, &target.source, &positions)?;
        if query.with.is_none() {
            query.with = with.cloned();
        }
        Ok((target, query, positions))
    }

    async fn insert(
        &mut self,
        insert: &Insert,
        with: Option<&With>,
    ) -> Result<(&'static str, Changing, Rows), Failure> {
        let (target, query, positions) = self.insert_query(insert, with).await?;
        self.transaction.write(&target.lake).await?;
        let width = target.source.columns().len();
        let mut rows = Vec::new();
        for cells in self.rows(&query).await? {
            if cells.len() > positions.len() || (!insert.columns.is_empty() && cells.len() < positions.len())
            {
                let message = "INSERT has another number of expressions than of target columns";
                return Err(SqlError::new(crate::errors::state::SYNTAX_ERROR, message).into());
            }
            let mut row = vec![Value::Null; width];
            for (cell, position) in cells.into_iter().zip(&positions) {
                let column = target.source.columns().get(*position);
                if let (Some(column), Some(slot)) = (column, row.get_mut(*position)) {
                    *slot = self.coerce(cell, column)?;
                }
            }
            rows.push(row);
        }
        let changed = match &insert.on {
            None => Vec::new(),
            Some(OnInsert::OnConflict(conflict)) => {
                let resolved = self.on_conflict(conflict, &target, rows).await?;
                rows = resolved.insert;
                resolved.changed
            }
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY").into()),
        };
        if !rows.is_empty() {
            let catalog = self.transaction.write(&target.lake).await?;
            Box::pin(moraine_tables::insert(catalog, target.relation, rows.clone())).await?;
        }
        rows.extend(changed);
        Ok(("INSERT 0", target, rows))
    }

    async fn update_query(
        &mut self,
        update: &Update,
        with: Option<&With>,
    ) -> Result<(Changing, Query, Vec<usize>), SqlError> {
        for (present, clause) in [
            (!update.order_by.is_empty(), "ORDER BY of an UPDATE"),
            (update.limit.is_some(), "LIMIT of an UPDATE"),
            (update.or.is_some(), "UPDATE OR"),
        ] {
            if present {
                return Err(SqlError::unsupported(clause));
            }
        }
        let target = self.target(&update.table).await?;
        let (columns, values) = assignments(&update.assignments, &target.source)?;
        let mut from = vec![update.table.clone()];
        if let Some(UpdateTableFromKind::AfterSet(more) | UpdateTableFromKind::BeforeSet(more)) = &update.from
        {
            from.extend(more.iter().cloned());
        }
        let mut query = template::select(
            &target.alias,
            &target.source,
            values,
            from,
            update.selection.as_ref(),
        )?;
        query.with = with.cloned();
        Ok((target, query, columns))
    }

    async fn update(
        &mut self,
        update: &Update,
        with: Option<&With>,
    ) -> Result<(&'static str, Changing, Rows), Failure> {
        let (target, query, columns) = self.update_query(update, with).await?;
        self.transaction.write(&target.lake).await?;
        let rows = self.replace(&target, &query, &columns).await?;
        Ok(("UPDATE", target, rows))
    }

    /// Changes the rows a query finds: its first column is the row, the next ones are the new values, the last ones what
    /// the row was. The rows as they are then.
    async fn replace(
        &mut self,
        target: &Changing,
        query: &Query,
        columns: &[usize],
    ) -> Result<Rows, Failure> {
        let found = self.rows(query).await?;
        self.replace_rows(target, found, columns).await
    }

    async fn replace_rows(
        &mut self,
        target: &Changing,
        found: Vec<Vec<Cell>>,
        columns: &[usize],
    ) -> Result<Rows, Failure> {
        let mut seen = std::collections::HashSet::new();
        let mut changes = Vec::new();
        let mut rows = Vec::new();
        for cells in found {
            let mut cells = cells.into_iter();
            let Some((tid, address)) = self.address(target, cells.next().as_ref()) else {
                continue;
            };
            // A row that several partners match is changed once, as in Postgres.
            if !seen.insert(tid) {
                continue;
            }
            let mut values = Vec::with_capacity(columns.len());
            for position in columns {
                let column = target.source.columns().get(*position);
                if let (Some(column), Some(cell)) = (column, cells.next()) {
                    values.push((*position, self.coerce(cell, column)?));
                }
            }
            let mut row: Vec<Value> = cells.map(plain).collect();
            for (position, value) in &values {
                if let Some(slot) = row.get_mut(*position) {
                    *slot = value.clone();
                }
            }
            rows.push(row);
            changes.push((address, values));
        }
        if !changes.is_empty() {
            let catalog = self.transaction.write(&target.lake).await?;
            Box::pin(moraine_tables::update(catalog, target.relation, changes)).await?;
        }
        Ok(rows)
    }

    fn address(&self, target: &Changing, cell: Option<&Cell>) -> Option<(u64, RowAddress)> {
        let Some(Cell::Tid(tid)) = cell else {
            return None;
        };
        let table = TableKey {
            lake: target.lake.clone(),
            relation: target.relation,
        };
        let address = self.transaction.ledger.row(&table, *tid)?.clone();
        Some((*tid, address))
    }

    async fn delete_query(
        &mut self,
        delete: &Delete,
        with: Option<&With>,
    ) -> Result<(Changing, Query), SqlError> {
        for (present, clause) in [
            (!delete.order_by.is_empty(), "ORDER BY of a DELETE"),
            (delete.limit.is_some(), "LIMIT of a DELETE"),
            (!delete.tables.is_empty(), "DELETE of several tables"),
        ] {
            if present {
                return Err(SqlError::unsupported(clause));
            }
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [table] = from.as_slice() else {
            return Err(SqlError::unsupported("DELETE of several tables"));
        };
        let target = self.target(table).await?;
        let mut from = vec![table.clone()];
        from.extend(delete.using.iter().flatten().cloned());
        let mut query = template::select(
            &target.alias,
            &target.source,
            Vec::new(),
            from,
            delete.selection.as_ref(),
        )?;
        query.with = with.cloned();
        Ok((target, query))
    }

    async fn delete(
        &mut self,
        delete: &Delete,
        with: Option<&With>,
    ) -> Result<(&'static str, Changing, Rows), Failure> {
        let (target, query) = self.delete_query(delete, with).await?;
        self.transaction.write(&target.lake).await?;
        let mut seen = std::collections::HashSet::new();
        let mut addresses = Vec::new();
        let mut rows = Vec::new();
        for cells in self.rows(&query).await? {
            let mut cells = cells.into_iter();
            if let Some((tid, address)) = self.address(&target, cells.next().as_ref())
                && seen.insert(tid)
            {
                addresses.push(address);
                rows.push(cells.map(plain).collect());
            }
        }
        if !addresses.is_empty() {
            let catalog = self.transaction.write(&target.lake).await?;
            Box::pin(moraine_tables::delete(catalog, target.relation, addresses)).await?;
        }
        Ok(("DELETE", target, rows))
    }

    /// The expressions of RETURNING over the rows of a change.
    async fn returned(
        &mut self,
        items: &[SelectItem],
        target: &Changing,
        rows: Rows,
    ) -> Result<(Vec<Output>, Vec<Vec<Cell>>), Failure> {
        let query = template::returning(items, &target.name, &target.alias)?;
        let columns: Vec<SqlColumn> = target
            .source
            .columns()
            .iter()
            .map(super::relations::column)
            .collect();
        let extra = vec![(engine_name(&target.name), columns, rows)];
        let mut kept = Kept::default();
        let (transaction, surroundings) = (&mut *self.transaction, self.surroundings);
        super::run_over(
            &query,
            transaction,
            surroundings,
            self.parameters,
            extra,
            &mut kept,
        )
        .await?;
        Ok((kept.outputs, kept.rows.0))
    }
}

fn engine_name(name: &TableName) -> RelationName {
    RelationName {
        schema: name.schema.clone(),
        name: name.table.clone(),
    }
}

fn plain(cell: Cell) -> Value {
    match cell {
        Cell::Value(value) => value,
        Cell::Tid(_) => Value::Null,
    }
}

/// The columns that are set, and to what.
fn assignments(assignments: &[Assignment], target: &Source) -> Result<(Vec<usize>, Vec<Expr>), SqlError> {
    let mut names = Vec::new();
    let mut values = Vec::new();
    for assignment in assignments {
        match (&assignment.target, &assignment.value) {
            (AssignmentTarget::ColumnName(name), value) => {
                names.push(object_name(name)?.table);
                values.push(value.clone());
            }
            (AssignmentTarget::Tuple(columns), Expr::Tuple(parts)) if columns.len() == parts.len() => {
                for (column, part) in columns.iter().zip(parts) {
                    names.push(object_name(column)?.table);
                    values.push(part.clone());
                }
            }
            _ => return Err(SqlError::unsupported("SET (columns) = this")),
        }
    }
    let columns = positions(target, &names)?;
    let typed = columns
        .iter()
        .zip(values)
        .map(|(column, value)| template::typed(value, target.columns().get(*column)))
        .collect::<Result<_, _>>()?;
    Ok((columns, typed))
}

/// Rows of a query, kept with their columns.
#[derive(Default)]
struct Kept {
    outputs: Vec<Output>,
    rows: Collected,
}

impl QuerySink for Kept {
    fn begin(&mut self, outputs: Vec<Output>) -> Result<&mut dyn RowSink, Failure> {
        self.outputs = outputs;
        Ok(&mut self.rows)
    }
}
