//! A query planned: its columns, its parameters, and what is needed to run it any number of times.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datafusion::common::ParamValues;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan, TableSource};
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use moraine_tables::{ColumnType, Value};
use sqlparser::ast::{Query, Statement};

use crate::coerce;
use crate::dialect::Learned;
use crate::engine::{Engine, Names};
use crate::error::QueryError;
use crate::functions::SessionFacts;
use crate::provider::StoredTable;
use crate::relations::{Relations, Resolved, ScannedRow, SqlColumn};
use crate::rewrite::{self, Mentioned, names};
use crate::types::SqlType;
use crate::values;

/// The hidden column every stored relation has.
const CTID: &str = "ctid";

/// A planned query.
#[derive(Debug)]
pub struct Plan {
    pub(crate) engine: Arc<Engine>,
    logical: LogicalPlan,
    columns: Vec<SqlColumn>,
    parameters: Vec<SqlType>,
}

impl Engine {
    /// Plans a query. `declared` are the types the client gave its parameters; types of the others are found from what
    /// they stand beside, and are text where nothing tells.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn plan(
        self: &Arc<Self>,
        query: &Query,
        relations: &mut dyn Relations,
        facts: &Arc<SessionFacts>,
        declared: &[Option<SqlType>],
    ) -> Result<Plan, QueryError> {
        let mentioned = rewrite::mentioned(query);
        if let Some(other) = mentioned.databases.iter().find(|name| **name != facts.database) {
            return Err(QueryError::unsupported(format!(
                "a reference to another database ({other})"
            )));
        }
        let learned = Arc::new(Learned::default());
        for (index, sql_type) in declared.iter().enumerate() {
            if let Some(sql_type) = sql_type {
                learned.learn(&format!("${}", index + 1), &sql_type.field("", true));
            }
        }
        for (id, sql_type) in &mentioned.typed {
            learned.learn(id, &sql_type.field("", true));
        }
        let mut names = Names::new(self, facts, &learned);
        let hidden = resolve(&mut names, &mentioned, relations).await?;
        let mut rewritten = query.clone();
        rewrite::rewrite(&mut rewritten, &hidden)?;
        let statement = Statement::Query(Box::new(rewritten));
        let count = mentioned.parameters.max(declared.len());
        let (logical, parameters) = planned(&names, &statement, facts, &learned, count)?;
        let fields = logical.schema().fields().iter();
        let columns = fields
            .map(|field| {
                Ok(SqlColumn::new(
                    names::shown(field.name()),
                    SqlType::of_field(field)?,
                ))
            })
            .collect::<Result<Vec<_>, QueryError>>()?;
        Ok(Plan {
            engine: Arc::clone(self),
            logical,
            columns,
            parameters,
        })
    }
}

/// Finds the relations a query names, and the hidden columns it says.
async fn resolve(
    names: &mut Names<'_>,
    mentioned: &Mentioned,
    relations: &mut dyn Relations,
) -> Result<Vec<String>, QueryError> {
    let mut hidden = BTreeSet::new();
    for name in &mentioned.relations {
        let found = relations.resolve(name).await.map_err(QueryError::Relation)?;
        // What is not found may be a common table expression; the planner says so when it is none.
        let Some(resolved) = found else { continue };
        let source = source(resolved, mentioned, &mut hidden)?;
        names.tables.insert(name.clone(), source);
    }
    Ok(hidden.into_iter().collect())
}

fn source(
    resolved: Resolved,
    mentioned: &Mentioned,
    hidden: &mut BTreeSet<String>,
) -> Result<Arc<dyn TableSource>, QueryError> {
    match resolved {
        Resolved::Stored { handle, columns } => {
            let own = columns.iter().any(|column| column.name == CTID);
            let with_ctid = !own && mentioned.columns.contains(CTID);
            if with_ctid {
                hidden.insert(CTID.to_owned());
            }
            Ok(provider_as_source(Arc::new(StoredTable::new(
                handle, columns, with_ctid,
            ))))
        }
        Resolved::Rows { columns, rows } => {
            let said = |column: &SqlColumn| !column.hidden || mentioned.columns.contains(&column.name);
            let kept: Vec<bool> = columns.iter().map(said).collect();
            let columns: Vec<SqlColumn> = columns.into_iter().filter(said).collect();
            hidden.extend(
                columns
                    .iter()
                    .filter(|column| column.hidden)
                    .map(|column| column.name.clone()),
            );
            if rows.is_empty() {
                // The planner leaves out whatever depends on rows that are not there.
                let fields: Vec<_> = columns
                    .iter()
                    .map(|column| column.sql_type.field(&column.name, true))
                    .collect();
                let nothing = EmptyTable::new(Arc::new(Schema::new(fields)));
                return Ok(provider_as_source(Arc::new(nothing)));
            }
            let batch = rows_batch(&columns, &kept, rows)?;
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
            Ok(provider_as_source(Arc::new(table)))
        }
    }
}

fn rows_batch(
    columns: &[SqlColumn],
    kept: &[bool],
    rows: Vec<Vec<Value>>,
) -> Result<RecordBatch, QueryError> {
    let fields: Vec<_> = columns
        .iter()
        .map(|column| column.sql_type.field(&column.name, true))
        .collect();
    let types: Vec<SqlType> = columns.iter().map(|column| column.sql_type).collect();
    let rows = rows.into_iter().map(|row| ScannedRow {
        values: row
            .into_iter()
            .zip(kept)
            .filter(|(_, kept)| **kept)
            .map(|(value, _)| value)
            .collect(),
        ctid: None,
    });
    values::batch(&Arc::new(Schema::new(fields)), &types, rows.collect())
}

/// Plans a statement until the type of every parameter is known.
fn planned(
    names: &Names<'_>,
    statement: &Statement,
    facts: &Arc<SessionFacts>,
    learned: &Learned,
    count: usize,
) -> Result<(LogicalPlan, Vec<SqlType>), QueryError> {
    let known = |index: usize| learned.get(index);
    let first: Vec<Option<SqlType>> = (0..count).map(known).collect();
    if count == 0 {
        return Ok((plan_once(names, statement, facts, &first)?, Vec::new()));
    }
    if first.iter().any(Option::is_none) {
        // What an untyped parameter stands in may not be plannable; what was learned up to there counts.
        if let Ok(plan) = plan_once(names, statement, facts, &first) {
            learn(&plan, learned)?;
        }
    }
    let types: Vec<SqlType> = (0..count)
        .map(|index| known(index).unwrap_or(SqlType::Column(ColumnType::Text)))
        .collect();
    let all: Vec<Option<SqlType>> = types.iter().copied().map(Some).collect();
    Ok((plan_once(names, statement, facts, &all)?, types))
}

fn plan_once(
    names: &Names<'_>,
    statement: &Statement,
    facts: &Arc<SessionFacts>,
    parameters: &[Option<SqlType>],
) -> Result<LogicalPlan, QueryError> {
    let options = ParserOptions {
        parse_float_as_decimal: true,
        enable_ident_normalization: true,
        support_varchar_with_length: true,
        map_string_types_to_utf8view: false,
        ..ParserOptions::default()
    };
    let fields = parameters
        .iter()
        .map(|sql_type| sql_type.map(|sql_type| Arc::new(sql_type.field("", true))));
    let mut context = PlannerContext::new().with_prepare_param_data_types(fields.collect());
    let planner = SqlToRel::new_with_options(names, options);
    let plan = planner.sql_statement_to_plan_with_context(statement.clone(), &mut context)?;
    Ok(coerce::apply(plan, facts)?)
}

/// Takes over the types a plan's parameters have.
fn learn(plan: &LogicalPlan, learned: &Learned) -> Result<(), QueryError> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Placeholder(Placeholder {
                    id,
                    field: Some(field),
                }) = expr
                    && !field.data_type().is_null()
                {
                    learned.learn(id, field);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

impl Plan {
    /// The result's columns.
    #[must_use]
    pub fn columns(&self) -> &[SqlColumn] {
        &self.columns
    }

    /// The parameters' types.
    #[must_use]
    pub fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }

    /// The plan with values in the parameters' places.
    pub(crate) fn bound(&self, parameters: &[Value]) -> Result<LogicalPlan, QueryError> {
        if self.parameters.is_empty() {
            return Ok(self.logical.clone());
        }
        let mut scalars = Vec::with_capacity(self.parameters.len());
        for (index, sql_type) in self.parameters.iter().enumerate() {
            let value = parameters
                .get(index)
                .ok_or(QueryError::Parameter { number: index + 1 })?;
            scalars.push(values::scalar(value, *sql_type)?);
        }
        let bound = self
            .logical
            .clone()
            .replace_params_with_values(&ParamValues::from(scalars))?;
        Ok(coerce::spelled_out(bound)?)
    }
}
