//! Reads of one source: the filter's parts are given to whoever evaluates them best, and rows leave in batches.

use std::cmp::Ordering;

use futures::FutureExt;
use futures::future::BoxFuture;
use moraine_commit::CatalogTransaction;
use moraine_tables::{CompareOp, Comparison, Filter, Relation, Row, RowAddress, Value};

use super::{Cell, Collected, RowSink};
use crate::bind::{Condition, OutputKind, RowFilter, Select, SortKey, Source};
use crate::errors::SqlError;
use crate::tid::{Ledger, TableKey};
use crate::transaction::Transaction;
use crate::values::literal::{self, Target};
use crate::wire::Failure;

/// Runs a read, which may need others; the number of rows that went to the sink.
pub(crate) fn run<'f>(
    transaction: &'f mut Transaction,
    select: &'f Select,
    sink: &'f mut dyn RowSink,
) -> BoxFuture<'f, Result<u64, Failure>> {
    read(transaction, select, sink).boxed()
}

async fn read(
    transaction: &mut Transaction,
    select: &Select,
    sink: &mut dyn RowSink,
) -> Result<u64, Failure> {
    let Some(filter) = resolve(transaction, &select.source, &select.filter).await? else {
        return Output::new(select).finish(sink).await;
    };
    match &select.source {
        Source::Temporary(table) => {
            let mut output = Output::new(select);
            let matching = table.rows.iter().filter(|row| filter.matches_row(row));
            let rows: Vec<(Vec<Value>, Option<u64>)> = matching.map(|row| (row.clone(), None)).collect();
            output.add(rows, sink).await?;
            output.finish(sink).await
        }
        Source::Relation { lake, relation, .. } => {
            let table = TableKey {
                lake: lake.clone(),
                relation: *relation,
            };
            let (catalog, ledger) = transaction.read_with_ledger(lake).await?;
            let catalog = catalog.ok_or_else(|| SqlError::undefined_table(relation))?;
            relation_rows(catalog, ledger, &table, select, filter, sink).await
        }
    }
}

/// The WHERE of one source with everything known that the transaction knows.
pub(super) struct Resolved {
    pub(super) comparisons: Vec<Comparison>,
    pub(super) residual: Vec<Condition>,
}

impl Resolved {
    /// Whether a whole row passes.
    pub(super) fn matches_row(&self, row: &[Value]) -> bool {
        let get = |column: usize| row.get(column).unwrap_or(&Value::Null);
        let plain = self
            .comparisons
            .iter()
            .all(|comparison| Condition::of(comparison).evaluate(&get) == Some(true));
        plain
            && self
                .residual
                .iter()
                .all(|condition| condition.evaluate(&get) == Some(true))
    }
}

/// Resolves subqueries and row numbers of a WHERE; `None` when no row can pass.
pub(super) async fn resolve(
    transaction: &mut Transaction,
    source: &Source,
    filter: &RowFilter,
) -> Result<Option<Resolved>, Failure> {
    let mut comparisons = filter.pushed.clone();
    for scalar in &filter.scalars {
        let Some(value) = scalar_value(transaction, &scalar.select).await? else {
            return Ok(None);
        };
        let Some(column) = source.columns().get(scalar.column) else {
            return Err(SqlError::internal("a comparison with a column beyond the table").into());
        };
        let target = Target {
            column: &column.name,
            column_type: column.column_type,
            now: transaction.started,
        };
        let value = literal::assign(value, target)?;
        comparisons.push(Comparison::Compare {
            column: scalar.column,
            op: scalar.op,
            value,
        });
    }
    if let Some(ctids) = &filter.ctids {
        let Source::Relation { lake, relation, .. } = source else {
            return Ok(None);
        };
        let table = TableKey {
            lake: lake.clone(),
            relation: *relation,
        };
        let addresses: Vec<RowAddress> = ctids
            .iter()
            .filter_map(|tid| transaction.ledger.row(&table, *tid).cloned())
            .collect();
        if addresses.is_empty() {
            return Ok(None);
        }
        comparisons.push(Comparison::Address(addresses));
    }
    Ok(Some(Resolved {
        comparisons,
        residual: filter.residual.clone(),
    }))
}

/// The single value of a subquery: `None` when it has no row or the value is NULL.
async fn scalar_value(transaction: &mut Transaction, select: &Select) -> Result<Option<Value>, Failure> {
    let mut rows = Collected::default();
    run(transaction, select, &mut rows).await?;
    let mut rows = rows.0.into_iter();
    let first = rows.next().and_then(|row| row.into_iter().next());
    if rows.next().is_some() {
        return Err(SqlError::new(
            "21000",
            "more than one row returned by a subquery used as an expression",
        )
        .into());
    }
    Ok(match first {
        Some(Cell::Value(value)) if !value.is_null() => Some(value),
        _ => None,
    })
}

async fn relation_rows(
    catalog: &CatalogTransaction,
    ledger: &mut Ledger,
    table: &TableKey,
    select: &Select,
    filter: Resolved,
    sink: &mut dyn RowSink,
) -> Result<u64, Failure> {
    let Resolved {
        mut comparisons,
        residual,
    } = filter;
    let whole = comparisons.clone();
    let bounded = newest_snapshot_bound(catalog, table.relation, select, &residual, &mut comparisons);
    let projection = projection(select, &residual);
    let mut output = Output::new(select);
    let filter = Filter { all_of: comparisons };
    scan_into(
        catalog,
        ledger,
        table,
        &projection,
        &filter,
        &residual,
        select,
        &mut output,
        sink,
    )
    .await?;
    if bounded && output.seen == 0 {
        // The newest snapshot was deleted by this very transaction: look at the others.
        let filter = Filter { all_of: whole };
        scan_into(
            catalog,
            ledger,
            table,
            &projection,
            &filter,
            &residual,
            select,
            &mut output,
            sink,
        )
        .await?;
    }
    output.finish(sink).await
}

/// `max(snapshot_id)` over all snapshots is the newest one's: DuckLake asks before every statement, and the answer must
/// not cost a read of every snapshot.
fn newest_snapshot_bound(
    catalog: &CatalogTransaction,
    relation: Relation,
    select: &Select,
    residual: &[Condition],
    comparisons: &mut Vec<Comparison>,
) -> bool {
    let is_max = matches!(select.outputs.as_slice(), [output] if output.kind == OutputKind::Max(0));
    if relation != Relation::Snapshot || !is_max || !comparisons.is_empty() || !residual.is_empty() {
        return false;
    }
    let Some(newest) = catalog.newest_snapshot_id().and_then(|id| i64::try_from(id).ok()) else {
        return false;
    };
    comparisons.push(Comparison::Compare {
        column: 0,
        op: CompareOp::Ge,
        value: Value::Int64(newest),
    });
    true
}

/// The source columns a read needs, ascending.
fn projection(select: &Select, residual: &[Condition]) -> Vec<usize> {
    let mut columns: Vec<usize> = select
        .outputs
        .iter()
        .filter_map(|output| output.kind.column())
        .collect();
    columns.extend(select.order.iter().map(|key| key.column));
    residual
        .iter()
        .for_each(|condition| condition.collect_columns(&mut columns));
    columns.sort_unstable();
    columns.dedup();
    columns
}

#[allow(clippy::too_many_arguments)]
async fn scan_into(
    catalog: &CatalogTransaction,
    ledger: &mut Ledger,
    table: &TableKey,
    projection: &[usize],
    filter: &Filter,
    residual: &[Condition],
    select: &Select,
    output: &mut Output<'_>,
    sink: &mut dyn RowSink,
) -> Result<(), Failure> {
    let shows_ctid = select.outputs.iter().any(|shown| shown.kind == OutputKind::Ctid);
    let width = select.source.columns().len();
    let mut scan = Box::pin(moraine_tables::scan(catalog, table.relation, projection, filter)).await?;
    while let Some(batch) = Box::pin(scan.next_batch()).await? {
        let mut rows = Vec::with_capacity(batch.len());
        for row in batch {
            let (values, address) = widened(row, projection, width);
            let get = |column: usize| values.get(column).unwrap_or(&Value::Null);
            if !residual
                .iter()
                .all(|condition| condition.evaluate(&get) == Some(true))
            {
                continue;
            }
            let tid = if shows_ctid {
                Some(ledger.number(table, &address)?)
            } else {
                None
            };
            rows.push((values, tid));
        }
        output.add(rows, sink).await?;
        if output.is_full() {
            break;
        }
        // A scan of memory never waits; a cancel request must get its turn.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// A projected row with its values at the positions of the source's columns.
fn widened(row: Row, projection: &[usize], width: usize) -> (Vec<Value>, RowAddress) {
    if projection.len() == width {
        return (row.values, row.address);
    }
    let mut values = vec![Value::Null; width];
    for (value, column) in row.values.into_iter().zip(projection) {
        if let Some(slot) = values.get_mut(*column) {
            *slot = value;
        }
    }
    (values, row.address)
}

/// The result being made: what is still to be skipped and shown, rows to be sorted, aggregates under way.
struct Output<'a> {
    select: &'a Select,
    skip: usize,
    left: Option<usize>,
    seen: u64,
    shown: u64,
    to_sort: Vec<(Vec<Value>, Option<u64>)>,
    aggregates: Vec<Aggregate>,
}

/// One aggregate over the rows seen so far.
#[derive(Debug, Clone)]
enum Aggregate {
    None,
    Count(i64),
    Extreme(Value),
}

impl<'a> Output<'a> {
    fn new(select: &'a Select) -> Output<'a> {
        let aggregates = select.outputs.iter().map(|output| match output.kind {
            OutputKind::Count(_) => Aggregate::Count(0),
            OutputKind::Min(_) | OutputKind::Max(_) => Aggregate::Extreme(Value::Null),
            _ => Aggregate::None,
        });
        Output {
            select,
            skip: select.offset,
            left: select.limit,
            seen: 0,
            shown: 0,
            to_sort: Vec::new(),
            aggregates: aggregates.collect(),
        }
    }

    /// Whether no further row can change the result.
    fn is_full(&self) -> bool {
        self.left == Some(0) && self.select.order.is_empty() && !self.select.is_aggregate()
    }

    async fn add(
        &mut self,
        rows: Vec<(Vec<Value>, Option<u64>)>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Failure> {
        self.seen += u64::try_from(rows.len()).unwrap_or(u64::MAX);
        if self.select.is_aggregate() {
            rows.iter().for_each(|(row, _)| self.aggregate(row));
            return Ok(());
        }
        if !self.select.order.is_empty() {
            self.to_sort.extend(rows);
            return Ok(());
        }
        self.show(rows, sink).await
    }

    async fn show(
        &mut self,
        rows: Vec<(Vec<Value>, Option<u64>)>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Failure> {
        let skipped = self.skip.min(rows.len());
        self.skip -= skipped;
        let mut take = rows.len() - skipped;
        if let Some(left) = &mut self.left {
            take = take.min(*left);
            *left -= take;
        }
        let mut cells = Vec::with_capacity(take);
        for (row, tid) in rows.into_iter().skip(skipped).take(take) {
            cells.push(self.cells(&row, tid)?);
        }
        self.shown += u64::try_from(cells.len()).unwrap_or(u64::MAX);
        if cells.is_empty() {
            Ok(())
        } else {
            sink.rows(cells).await
        }
    }

    fn cells(&self, row: &[Value], tid: Option<u64>) -> Result<Vec<Cell>, SqlError> {
        let get = |column: &usize| row.get(*column).cloned().unwrap_or(Value::Null);
        self.select
            .outputs
            .iter()
            .map(|output| {
                Ok(match &output.kind {
                    OutputKind::Column(column) => Cell::Value(get(column)),
                    OutputKind::Cast(column, column_type) => {
                        let target = Target {
                            column: &output.name,
                            column_type: *column_type,
                            now: 0,
                        };
                        Cell::Value(literal::Literal::Typed(get(column)).coerce_explicit(target)?)
                    }
                    OutputKind::Ctid => tid.map_or(Cell::Value(Value::Null), Cell::Tid),
                    OutputKind::Constant(value) => Cell::Value(value.clone()),
                    OutputKind::Count(_) | OutputKind::Min(_) | OutputKind::Max(_) => {
                        Cell::Value(Value::Null)
                    }
                })
            })
            .collect()
    }

    fn aggregate(&mut self, row: &[Value]) {
        let get = |column: usize| row.get(column).unwrap_or(&Value::Null);
        for (aggregate, output) in self.aggregates.iter_mut().zip(&self.select.outputs) {
            match (aggregate, &output.kind) {
                (Aggregate::Count(count), OutputKind::Count(None)) => *count += 1,
                (Aggregate::Count(count), OutputKind::Count(Some(column))) => {
                    *count += i64::from(!get(*column).is_null());
                }
                (Aggregate::Extreme(best), OutputKind::Min(column)) => {
                    replace_if(best, get(*column), Ordering::Less);
                }
                (Aggregate::Extreme(best), OutputKind::Max(column)) => {
                    replace_if(best, get(*column), Ordering::Greater);
                }
                _ => {}
            }
        }
    }

    /// Gives out what had to wait for the last row.
    async fn finish(mut self, sink: &mut dyn RowSink) -> Result<u64, Failure> {
        if self.select.is_aggregate() {
            let row = self
                .select
                .outputs
                .iter()
                .zip(&self.aggregates)
                .map(|(output, aggregate)| {
                    Cell::Value(match (aggregate, &output.kind) {
                        (Aggregate::Count(count), _) => Value::Int64(*count),
                        (Aggregate::Extreme(value), _) => value.clone(),
                        (Aggregate::None, OutputKind::Constant(value)) => value.clone(),
                        (Aggregate::None, _) => Value::Null,
                    })
                });
            let shown = self.skip == 0 && self.left != Some(0);
            if shown {
                let row = row.collect();
                sink.rows(vec![row]).await?;
            }
            return Ok(u64::from(shown));
        }
        let mut rows = std::mem::take(&mut self.to_sort);
        let order = &self.select.order;
        rows.sort_by(|(left, _), (right, _)| compare_rows(left, right, order));
        self.show(rows, sink).await?;
        Ok(self.shown)
    }
}

fn replace_if(best: &mut Value, value: &Value, wanted: Ordering) {
    if value.is_null() {
        return;
    }
    if best.is_null() || value.compare(best) == Some(wanted) {
        *best = value.clone();
    }
}

fn compare_rows(left: &[Value], right: &[Value], order: &[SortKey]) -> Ordering {
    for key in order {
        let get = |row: &[Value]| row.get(key.column).cloned().unwrap_or(Value::Null);
        let (left, right) = (get(left), get(right));
        let ordering = match (left.is_null(), right.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let ordering = left.compare(&right).unwrap_or(Ordering::Equal);
                if key.descending {
                    ordering.reverse()
                } else {
                    ordering
                }
            }
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}
