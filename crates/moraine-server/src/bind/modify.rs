//! INSERT, UPDATE and DELETE of one relation.

use moraine_tables::{ColumnType, Value};
use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Delete as SqlDelete, Expr, FromTable, Insert as SqlInsert, Query,
    SetExpr, TableFactor, TableObject, TableWithJoins, Update as SqlUpdate, UpdateTableFromKind, With,
};

use super::expr::is_tid;
use super::filter::{conjuncts, construct};
use super::names::{fold, parts};
use super::scope::{Reference, Scope, ambiguous};
use super::{
    AssignedValue, Assignment, Binder, Bound, Delete, Insert, Join, OutputKind, RowFilter, Scalar, Source,
    TableName, Update,
};
use crate::errors::{SqlError, state};
use crate::insert_values::InsertValues;
use crate::values::literal::Literal;
use crate::values::types;

impl Binder<'_> {
    /// An insert that its own reader has read.
    pub(super) async fn insert_values(&mut self, insert: &InsertValues) -> Result<Bound, SqlError> {
        let name = TableName {
            schema: insert.schema.clone(),
            table: insert.table.clone(),
        };
        self.insert_rows(&name, &insert.columns, &insert.rows).await
    }

    /// An insert that went through the parser.
    pub(super) async fn insert(&mut self, insert: &SqlInsert) -> Result<Bound, SqlError> {
        for (present, clause) in [
            (insert.on.is_some(), "ON CONFLICT"),
            (insert.returning.is_some(), "RETURNING"),
            (insert.table_alias.is_some(), "an alias of an INSERT's table"),
            (!insert.assignments.is_empty(), "INSERT … SET"),
        ] {
            if present {
                return Err(SqlError::unsupported(clause));
            }
        }
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("INSERT into a function"));
        };
        let name = self.table_name(name)?;
        let mut columns = Vec::with_capacity(insert.columns.len());
        for column in &insert.columns {
            columns.extend(parts(column)?.pop());
        }
        let rows = match insert.source.as_deref() {
            Some(query) => self.values(query)?,
            None => return Err(SqlError::unsupported("INSERT … DEFAULT VALUES")),
        };
        self.insert_rows(&name, &columns, &rows).await
    }

    /// The rows of a VALUES list.
    fn values(&self, query: &Query) -> Result<Vec<Vec<Literal>>, SqlError> {
        let SetExpr::Values(values) = query.body.as_ref() else {
            return Err(SqlError::unsupported("INSERT … SELECT"));
        };
        if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() {
            return Err(SqlError::unsupported("WITH, ORDER BY or LIMIT on VALUES"));
        }
        let row = |row: &Vec<Expr>| row.iter().map(|expr| self.value_literal(expr)).collect();
        values.rows.iter().map(|parens| row(&parens.content)).collect()
    }

    fn value_literal(&self, expr: &Expr) -> Result<Literal, SqlError> {
        self.constant(expr)?
            .ok_or_else(|| SqlError::unsupported(format!("the value {}", construct(expr))))
    }

    async fn insert_rows(
        &mut self,
        name: &TableName,
        columns: &[String],
        rows: &[Vec<Literal>],
    ) -> Result<Bound, SqlError> {
        let target = self.table(name).await?;
        let positions = positions(&target, columns)?;
        let width = target.columns().len();
        let mut typed = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() > positions.len() || (!columns.is_empty() && row.len() < positions.len()) {
                let (more, fewer) = if row.len() > positions.len() {
                    ("expressions", "target columns")
                } else {
                    ("target columns", "expressions")
                };
                let message = format!("INSERT has more {more} than {fewer}");
                return Err(SqlError::new(state::SYNTAX_ERROR, message));
            }
            let mut values = vec![Value::Null; width];
            for (literal, position) in row.iter().zip(&positions) {
                let (Some(column), Some(slot)) = (target.columns().get(*position), values.get_mut(*position))
                else {
                    return Err(SqlError::internal("a column position beyond the table"));
                };
                *slot = self.coerce(literal, &column.name, column.column_type)?;
            }
            typed.push(values);
        }
        Ok(Bound::Insert(Insert { target, rows: typed }))
    }

    pub(super) async fn delete(&mut self, delete: &SqlDelete) -> Result<Bound, SqlError> {
        for (present, clause) in [
            (delete.using.is_some(), "DELETE … USING"),
            (delete.returning.is_some(), "RETURNING"),
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
        let (target, scope) = self.target(table).await?;
        let filter = self.row_filter(delete.selection.as_ref(), &scope).await?;
        Ok(Bound::Delete(Delete { target, filter }))
    }

    /// The one table a change is made to.
    async fn target(&mut self, table: &TableWithJoins) -> Result<(Source, Scope), SqlError> {
        if !table.joins.is_empty() {
            return Err(SqlError::unsupported("JOIN"));
        }
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = &table.relation
        else {
            return Err(SqlError::unsupported(format!("a change of {}", table.relation)));
        };
        let source = self.table(&self.table_name(name)?).await?;
        let scope = Scope::of_source(&source, alias.as_ref().map(|alias| fold(&alias.name)));
        Ok((source, scope))
    }

    pub(super) async fn update(
        &mut self,
        update: &SqlUpdate,
        with: Option<&With>,
    ) -> Result<Bound, SqlError> {
        refuse_update_clauses(update)?;
        let (target, scope) = self.target(&update.table).await?;
        let partner = match &update.from {
            None if with.is_some() => return Err(SqlError::unsupported("WITH without FROM")),
            None => None,
            Some(UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from)) => {
                Some(self.partner(from, with).await?)
            }
        };
        let partner_scope = partner.as_ref().map(|(_, scope)| scope);
        let mut assignments = Vec::with_capacity(update.assignments.len());
        for assignment in &update.assignments {
            assignments.push(self.assignment(assignment, &target, &scope, partner_scope)?);
        }
        let mut filter = RowFilter::default();
        let mut join = partner.map(|(rows, scope)| {
            (
                Join {
                    rows,
                    on: Vec::new(),
                    ctid: None,
                },
                scope,
            )
        });
        for expr in update.selection.as_ref().map(conjuncts).unwrap_or_default() {
            if let Some((join, partner)) = &mut join
                && join_condition(expr, &scope, partner, join)?
            {
                continue;
            }
            self.add_conjunct(expr, &scope, &mut filter).await?;
        }
        let join = join.map(|(join, _)| join);
        match &join {
            Some(join) if join.on.is_empty() && join.ctid.is_none() => {
                return Err(SqlError::unsupported(
                    "UPDATE … FROM without an equality between both tables",
                ));
            }
            Some(join) if !join.on.is_empty() && join.ctid.is_some() => {
                return Err(SqlError::unsupported(
                    "UPDATE … FROM by ctid and by other columns",
                ));
            }
            _ => {}
        }
        Ok(Bound::Update(Box::new(Update {
            target,
            assignments,
            filter,
            join,
        })))
    }

    /// The rows of FROM: a common table expression of VALUES, or a temporary table.
    async fn partner(
        &mut self,
        from: &[TableWithJoins],
        with: Option<&With>,
    ) -> Result<(Vec<Vec<Literal>>, Scope), SqlError> {
        let [
            TableWithJoins {
                relation:
                    TableFactor::Table {
                        name,
                        alias,
                        args: None,
                        ..
                    },
                joins,
            },
        ] = from
        else {
            return Err(SqlError::unsupported("UPDATE … FROM anything but one table"));
        };
        if !joins.is_empty() {
            return Err(SqlError::unsupported("JOIN"));
        }
        let name = self.table_name(name)?;
        let alias = alias
            .as_ref()
            .map_or_else(|| name.table.clone(), |alias| fold(&alias.name));
        if let Some(with) = with {
            return self.common_table(with, &name, alias);
        }
        match self.table(&name).await? {
            Source::Temporary(table) => {
                let names = table.columns.iter().map(|column| column.name.clone()).collect();
                let rows = table
                    .rows
                    .iter()
                    .map(|row| row.iter().cloned().map(Literal::Typed).collect());
                Ok((rows.collect(), Scope::of_names(names, alias)))
            }
            Source::Relation { relation, .. } => Err(SqlError::unsupported(format!(
                "UPDATE … FROM {relation} (a join of two stored tables)"
            ))),
        }
    }

    fn common_table(
        &self,
        with: &With,
        name: &TableName,
        alias: String,
    ) -> Result<(Vec<Vec<Literal>>, Scope), SqlError> {
        let [cte] = with.cte_tables.as_slice() else {
            return Err(SqlError::unsupported("WITH of several tables"));
        };
        if with.recursive || name.schema.is_some() || fold(&cte.alias.name) != name.table {
            return Err(SqlError::unsupported(
                "UPDATE … FROM a table other than the one of WITH",
            ));
        }
        let SetExpr::Values(_) = cte.query.body.as_ref() else {
            return Err(SqlError::unsupported("WITH of anything but VALUES"));
        };
        let rows = self.values(&cte.query)?;
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(SqlError::new(
                state::SYNTAX_ERROR,
                "VALUES lists must all be the same length",
            ));
        }
        let mut names: Vec<String> = cte
            .alias
            .columns
            .iter()
            .map(|column| fold(&column.name))
            .collect();
        if names.len() > width {
            let message = format!(
                "table \"{}\" has {width} columns available but {} columns specified",
                name,
                names.len()
            );
            return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, message));
        }
        names.extend((names.len()..width).map(|index| format!("column{}", index + 1)));
        Ok((rows, Scope::of_names(names, alias)))
    }

    fn assignment(
        &self,
        assignment: &sqlparser::ast::Assignment,
        target: &Source,
        scope: &Scope,
        partner: Option<&Scope>,
    ) -> Result<Assignment, SqlError> {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err(SqlError::unsupported("SET (columns) = …"));
        };
        let name = parts(name)?.pop().unwrap_or_default();
        let position = target.columns().iter().position(|column| column.name == name);
        let Some((column, declared)) = position.and_then(|at| Some((at, target.columns().get(at)?))) else {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                target.name()
            );
            return Err(SqlError::new(state::UNDEFINED_COLUMN, message));
        };
        let value = match self.scalar(&assignment.value, scope, partner)? {
            Scalar::Literal(literal) => {
                AssignedValue::Constant(self.coerce(&literal, &declared.name, declared.column_type)?)
            }
            scalar => AssignedValue::Scalar(scalar),
        };
        Ok(Assignment { column, value })
    }

    /// An expression over the updated row and its partner: a column of either, a literal, a cast of those.
    fn scalar(&self, expr: &Expr, target: &Scope, partner: Option<&Scope>) -> Result<Scalar, SqlError> {
        if let Some(literal) = self.constant(expr)? {
            return Ok(Scalar::Literal(literal));
        }
        if let Some(reference) = Reference::of(expr) {
            return match find_side(&reference, target, partner)? {
                Some((Side::Target, OutputKind::Column(column))) => Ok(Scalar::Target(column)),
                Some((Side::Partner, OutputKind::Column(column))) => Ok(Scalar::Partner(column)),
                Some(_) => Err(SqlError::unsupported(format!("SET to {}", reference.column))),
                None => target
                    .resolve(&reference)
                    .and(Err(SqlError::undefined_column(&reference.column))),
            };
        }
        match expr {
            Expr::Nested(inner) => self.scalar(inner, target, partner),
            Expr::Cast { expr, data_type, .. } => {
                let column_type: ColumnType = types::from_sql(data_type)?;
                Ok(Scalar::Cast(
                    Box::new(self.scalar(expr, target, partner)?),
                    column_type,
                ))
            }
            other => Err(SqlError::unsupported(format!("SET to {}", construct(other)))),
        }
    }
}

fn refuse_update_clauses(update: &SqlUpdate) -> Result<(), SqlError> {
    for (present, clause) in [
        (update.returning.is_some(), "RETURNING"),
        (!update.order_by.is_empty(), "ORDER BY of an UPDATE"),
        (update.limit.is_some(), "LIMIT of an UPDATE"),
        (update.or.is_some(), "UPDATE OR"),
    ] {
        if present {
            return Err(SqlError::unsupported(clause));
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Target,
    Partner,
}

/// Which of the two tables a reference means; 42702 when both have such a column.
fn find_side(
    reference: &Reference,
    target: &Scope,
    partner: Option<&Scope>,
) -> Result<Option<(Side, OutputKind)>, SqlError> {
    let in_target = target.find(reference)?;
    let in_partner = match partner {
        Some(partner) => partner.find(reference)?,
        None => None,
    };
    match (in_target, in_partner) {
        (Some(_), Some(_)) => Err(ambiguous(reference)),
        (Some(kind), None) => Ok(Some((Side::Target, kind.clone()))),
        (None, Some(kind)) => Ok(Some((Side::Partner, kind.clone()))),
        (None, None) => Ok(None),
    }
}

/// Takes `target.a = partner.b` and `target.ctid = partner.c::TID` into the join; false for any other condition.
fn join_condition(expr: &Expr, target: &Scope, partner: &Scope, join: &mut Join) -> Result<bool, SqlError> {
    let Expr::BinaryOp {
        left,
        op: BinaryOperator::Eq,
        right,
    } = expr
    else {
        return Ok(false);
    };
    let side = |expr: &Expr| -> Result<Option<(Side, OutputKind)>, SqlError> {
        match expr {
            Expr::Cast { expr, data_type, .. } if is_tid(data_type) => match Reference::of(expr) {
                Some(reference) => find_side(&reference, target, Some(partner)),
                None => Ok(None),
            },
            other => match Reference::of(other) {
                Some(reference) => find_side(&reference, target, Some(partner)),
                None => Ok(None),
            },
        }
    };
    match (side(left)?, side(right)?) {
        (Some((Side::Target, kind)), Some((Side::Partner, OutputKind::Column(partner))))
        | (Some((Side::Partner, OutputKind::Column(partner))), Some((Side::Target, kind))) => match kind {
            OutputKind::Column(column) => join.on.push((column, partner)),
            OutputKind::Ctid if join.ctid.is_none() => join.ctid = Some(partner),
            _ => return Err(SqlError::unsupported(format!("the join {expr}"))),
        },
        (Some((Side::Partner, _)), _) | (_, Some((Side::Partner, _))) => {
            return Err(SqlError::unsupported(format!("the join condition {expr}")));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The positions of the named columns; all of them when none is named.
pub(crate) fn positions(target: &Source, columns: &[String]) -> Result<Vec<usize>, SqlError> {
    if columns.is_empty() {
        return Ok((0..target.columns().len()).collect());
    }
    let mut positions = Vec::with_capacity(columns.len());
    for name in columns {
        let found = target.columns().iter().position(|column| column.name == *name);
        let position = found.ok_or_else(|| {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                target.name()
            );
            SqlError::new(state::UNDEFINED_COLUMN, message)
        })?;
        if positions.contains(&position) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new("42701", message));
        }
        positions.push(position);
    }
    Ok(positions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use proptest::prelude::*;
    use sqlparser::ast::Statement;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;
    use crate::bind::{SessionNames, Tables};
    use crate::insert_values;
    use crate::values::parameters::Parameters;

    struct NoTables;

    #[async_trait]
    impl Tables for NoTables {
        async fn find(&mut self, _: &TableName) -> Result<Option<Source>, SqlError> {
            Ok(None)
        }
    }

    /// The rows of an insert as the general parser reads them.
    fn parsed(sql: &str) -> Vec<Vec<Literal>> {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        let Some(Statement::Insert(insert)) = statements.pop() else {
            panic!("{sql}")
        };
        let names = SessionNames {
            database: "d".into(),
            schema: "s".into(),
        };
        let mut tables = NoTables;
        let binder = Binder::new(&mut tables, Arc::new(Parameters::none()), names, 0);
        binder.values(&insert.source.unwrap()).unwrap()
    }

    fn literal() -> impl Strategy<Value = String> {
        let quoted = "[a-zA-Z0-9 ,();'\\\\\"$/*ä🦆\u{1}-]{0,12}"
            .prop_map(|text| format!("'{}'", text.replace('\'', "''")));
        let number = prop_oneof![
            any::<i64>().prop_map(|number| number.to_string()),
            "-?[0-9]{1,30}(\\.[0-9]{1,12})?(e-?[0-9]{1,2})?",
        ];
        let plain = prop_oneof![
            quoted.clone(),
            number,
            Just("NULL".to_owned()),
            Just("true".to_owned()),
            Just("FALSE".to_owned()),
            Just("NOW()".to_owned()),
        ];
        let column_type = prop_oneof![
            Just("VARCHAR"),
            Just("double precision"),
            Just("BIGINT"),
            Just("bytea")
        ];
        prop_oneof![
            4 => plain.clone(),
            1 => (plain, column_type.clone()).prop_map(|(inner, column_type)| format!("CAST({inner} AS {column_type})")),
            1 => (quoted, column_type).prop_map(|(inner, column_type)| format!("{inner}::{column_type}")),
        ]
    }

    proptest! {
        #[test]
        fn both_readers_of_inserts_agree(rows in prop::collection::vec(prop::collection::vec(literal(), 1..6), 1..5)) {
            let rows: Vec<String> = rows.into_iter().map(|row| format!("({})", row.join(", "))).collect();
            let sql = format!("INSERT INTO \"public\".t VALUES {}", rows.join(","));
            let read = insert_values::read(&sql).unwrap().expect("plain literals");
            prop_assert_eq!(read.rows, parsed(&sql));
        }

        #[test]
        fn damaged_text_never_panics(text in ".{0,60}") {
            let _ = crate::parse::statements(&text);
            let _ = insert_values::read(&format!("INSERT INTO t VALUES ({text}"));
        }
    }
}
