//! ON CONFLICT: rows whose primary key is there already are left out, or change the row that has it.

use std::collections::HashSet;

use moraine_tables::Value;
use sqlparser::ast::{ConflictTarget, OnConflict, OnConflictAction};

use super::{Changing, Kept, Rows, Work, assignments, engine_name, plain, template};
use crate::bind::{Source, TableName};
use crate::errors::{SqlError, state};
use crate::execute::Cell;
use crate::wire::Failure;

/// The name under which the rows that were to be inserted are known.
const EXCLUDED: &str = "excluded";

/// What becomes of the rows of an INSERT.
pub(super) struct Resolved {
    pub(super) insert: Rows,
    /// Rows that were there and have been changed, as they are now.
    pub(super) changed: Rows,
}

impl Work<'_> {
    pub(super) async fn on_conflict(
        &mut self,
        conflict: &OnConflict,
        target: &Changing,
        rows: Rows,
    ) -> Result<Resolved, Failure> {
        let key = key(conflict, target)?;
        let Some(key) = key else {
            // Without a primary key nothing can be there already.
            return Ok(Resolved {
                insert: rows,
                changed: Vec::new(),
            });
        };
        let name = target.source.columns().get(key).map(|column| column.name.clone());
        let name = name.unwrap_or_default();
        let excluded = TableName {
            schema: None,
            table: EXCLUDED.to_owned(),
        };
        let columns: Vec<_> = target
            .source
            .columns()
            .iter()
            .map(super::super::relations::column)
            .collect();
        let from = template::tables(template::existing(&target.name, &target.alias, EXCLUDED, &name)?)?;
        let found = template::select(&target.alias, &target.source, Vec::new(), from.clone(), None)?;
        let extra = || vec![(engine_name(&excluded), columns.clone(), rows.clone())];
        let existing = self.over(&found, extra()).await?;
        let existing: HashSet<Value> = existing
            .into_iter()
            .filter_map(|row| row.into_iter().nth(key + 1).map(plain))
            .collect();
        let mut seen = existing.clone();
        let update = matches!(conflict.action, OnConflictAction::DoUpdate(_));
        let mut insert = Vec::new();
        for row in &rows {
            let value = row.get(key).cloned().unwrap_or(Value::Null);
            if seen.insert(value.clone()) {
                insert.push(row.clone());
            } else if update && !existing.contains(&value) {
                let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
                return Err(SqlError::new("21000", message).into());
            }
        }
        let changed = match &conflict.action {
            OnConflictAction::DoNothing => Vec::new(),
            OnConflictAction::DoUpdate(update) => {
                let (set, values) = assignments(&update.assignments, &target.source)?;
                let query = template::select(
                    &target.alias,
                    &target.source,
                    values,
                    from,
                    update.selection.as_ref(),
                )?;
                let found = self.over(&query, extra()).await?;
                self.replace_rows(target, found, &set).await?
            }
        };
        Ok(Resolved { insert, changed })
    }

    async fn over(
        &mut self,
        query: &sqlparser::ast::Query,
        extra: super::super::Extra,
    ) -> Result<Vec<Vec<Cell>>, Failure> {
        let mut kept = Kept::default();
        let (transaction, surroundings) = (&mut *self.transaction, self.surroundings);
        super::super::run_over(
            query,
            transaction,
            surroundings,
            self.parameters,
            extra,
            &mut kept,
        )
        .await?;
        Ok(kept.rows.0)
    }
}

/// The position of the primary key, which is the only constraint a conflict can be about.
fn key(conflict: &OnConflict, target: &Changing) -> Result<Option<usize>, SqlError> {
    let Source::Relation { schema, .. } = &target.source else {
        return Ok(None);
    };
    let primary = schema.primary_key;
    let mismatch = || {
        SqlError::new(
            state::INVALID_COLUMN_REFERENCE,
            "there is no primary key matching the ON CONFLICT specification",
        )
    };
    match &conflict.conflict_target {
        None if matches!(conflict.action, OnConflictAction::DoNothing) => Ok(primary),
        None => Err(SqlError::new(
            state::SYNTAX_ERROR,
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
        )),
        Some(ConflictTarget::Columns(columns)) => {
            let named = match columns.as_slice() {
                [column] => schema.position(&crate::bind::fold(column)),
                _ => None,
            };
            if named.is_some() && named == primary {
                Ok(primary)
            } else {
                Err(mismatch())
            }
        }
        Some(ConflictTarget::OnConstraint(name)) => {
            let expected = format!("{}_pkey", target.relation);
            if primary.is_some() && name.to_string().trim_matches('"') == expected {
                Ok(primary)
            } else {
                Err(mismatch())
            }
        }
    }
}
