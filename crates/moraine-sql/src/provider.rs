//! A stored relation as DataFusion's table: conditions that the tables evaluate themselves are handed to them, so that ids
//! become key ranges, and rows come through a channel, because a plan may outlive what a transaction lends.

use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use moraine_tables::Filter;
use tokio::sync::mpsc;

use crate::kept::KeptScans;
use crate::pushdown::{self, RunComparison};
use crate::relations::{ScanRequest, ScanSink, SqlColumn};
use crate::types::SqlType;

/// Batches that wait between a scan and the plan that reads them.
const BATCHES_AHEAD: usize = 2;

/// A scan that a running plan asks for.
#[derive(Debug)]
pub(crate) struct ScanTask {
    pub(crate) request: ScanRequest,
    pub(crate) sink: ScanSink,
}

/// Where a running plan asks for its scans. Whoever runs the plan listens.
#[derive(Debug)]
pub(crate) struct Door(pub(crate) mpsc::UnboundedSender<ScanTask>);

/// A stored relation.
#[derive(Debug)]
pub(crate) struct StoredTable {
    handle: usize,
    columns: Arc<Vec<SqlColumn>>,
    /// Whether `ctid` is a column for this query; it is the last one.
    with_ctid: bool,
    schema: SchemaRef,
}

impl StoredTable {
    pub(crate) fn new(handle: usize, columns: Vec<SqlColumn>, with_ctid: bool) -> Self {
        let mut fields: Vec<_> = columns
            .iter()
            .map(|column| column.sql_type.field(&column.name, true))
            .collect();
        if with_ctid {
            fields.push(SqlType::Tid.field("ctid", false));
        }
        Self {
            handle,
            columns: Arc::new(columns),
            with_ctid,
            schema: Arc::new(Schema::new(fields)),
        }
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        let schema = Arc::new(self.schema.project(wanted)?);
        let mut all_of = Vec::with_capacity(filters.len());
        let mut of_run = Vec::new();
        for filter in filters {
            if let Some(comparison) = pushdown::comparison(filter, &self.columns) {
                all_of.push(comparison);
            } else if let Some(comparison) = pushdown::run_comparison(filter, &self.columns, state)? {
                of_run.push(comparison);
            } else {
                // The plan evaluates no condition again that was promised to be evaluated here.
                let construct = format!("the condition {filter} in this form");
                return Err(crate::error::QueryError::unsupported(construct).wrapped());
            }
        }
        let request = ScanRequest {
            handle: self.handle,
            projection: wanted
                .iter()
                .copied()
                .filter(|column| *column < self.columns.len())
                .collect(),
            with_ctid: self.with_ctid && wanted.contains(&self.columns.len()),
            filter: Filter { all_of },
            limit,
        };
        Ok(Arc::new(RelationExec::new(request, of_run, wanted, schema)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| {
                let known = pushdown::comparison(filter, &self.columns).is_some();
                if known || pushdown::is_run_comparison(filter, &self.columns) {
                    TableProviderFilterPushDown::Exact
                } else {
                    TableProviderFilterPushDown::Unsupported
                }
            })
            .collect())
    }
}

/// The scan of a stored relation.
#[derive(Clone, Debug)]
pub(crate) struct RelationExec {
    request: ScanRequest,
    /// The conditions beside those of the request, whose values each run of the plan has anew.
    of_run: Vec<RunComparison>,
    /// What the rows are kept under once they have been read, where the plan is run again and again.
    kept_as: Option<Arc<str>>,
    types: Vec<SqlType>,
    /// The plan's columns, by their position in what the scan gives: values in order, the row's number last.
    order: Vec<usize>,
    scanned: SchemaRef,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl RelationExec {
    fn new(
        mut request: ScanRequest,
        of_run: Vec<RunComparison>,
        wanted: &[usize],
        schema: SchemaRef,
    ) -> Result<Self> {
        // The scan gives each column once and the row's number last; the plan may want another order.
        let mut given: Vec<usize> = wanted.to_vec();
        given.sort_unstable();
        given.dedup();
        let order: Vec<usize> = wanted
            .iter()
            .filter_map(|column| given.iter().position(|other| other == column))
            .collect();
        let mut fields = Vec::with_capacity(given.len());
        for column in &given {
            let at = wanted.iter().position(|other| other == column);
            fields.extend(at.and_then(|at| schema.fields().get(at).cloned()));
        }
        let types = fields
            .iter()
            .map(|field| SqlType::of_field(field))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(crate::error::QueryError::wrapped)?;
        request.projection.sort_unstable();
        request.projection.dedup();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            request,
            of_run,
            kept_as: None,
            types,
            order,
            scanned: Arc::new(Schema::new(fields)),
            schema,
            properties: Arc::new(properties),
        })
    }

    /// Whether the rows of one run may be others than those of the next.
    pub(crate) fn depends_on_run(&self) -> bool {
        !self.of_run.is_empty()
    }

    /// The same scan, whose rows are read once for all runs of a query.
    pub(crate) fn kept(&self) -> Self {
        Self {
            kept_as: Some(format!("{:?} {:?}", self.request, self.order).into()),
            ..self.clone()
        }
    }

    /// The request of this run.
    fn request(&self) -> Result<ScanRequest> {
        let mut request = self.request.clone();
        if self.depends_on_run() {
            let options = RecordBatchOptions::new().with_row_count(Some(1));
            let no_columns =
                RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
            for comparison in &self.of_run {
                request.filter.all_of.push(comparison.of_run(&no_columns)?);
            }
        }
        Ok(request)
    }
}

impl DisplayAs for RelationExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "RelationExec: relation={} projection={:?} filter={:?} limit={:?} of_run={}",
            self.request.handle,
            self.request.projection,
            self.request.filter,
            self.request.limit,
            self.of_run.len()
        )
    }
}

impl ExecutionPlan for RelationExec {
    fn name(&self) -> &str {
        "RelationExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let config = context.session_config();
        let kept = match &self.kept_as {
            Some(name) => config.get_extension::<KeptScans>().map(|kept| kept.scan(name)),
            None => None,
        };
        let schema = Arc::clone(&self.schema);
        if let Some(batches) = kept.as_ref().and_then(|kept| kept.batches()) {
            let batches = (0..batches.len()).filter_map(move |index| batches.get(index).cloned().map(Ok));
            let stream = futures::stream::iter(batches);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)));
        }
        let door = config.get_extension::<Door>();
        let door = door.ok_or_else(|| DataFusionError::Internal("a scan without a door".to_owned()))?;
        let (batches, incoming) = mpsc::channel(BATCHES_AHEAD);
        let task = ScanTask {
            request: self.request()?,
            sink: ScanSink {
                schema: Arc::clone(&self.scanned),
                types: self.types.clone(),
                batches,
            },
        };
        door.0
            .send(task)
            .map_err(|_| DataFusionError::Execution("the query was given up".to_owned()))?;
        let order = self.order.clone();
        let in_order = order.iter().copied().eq(0..self.scanned.fields().len());
        let stream = futures::stream::unfold(incoming, move |mut incoming| {
            let order = order.clone();
            async move {
                let batch = incoming.recv().await?;
                let batch = if in_order {
                    Ok(batch)
                } else {
                    batch.project(&order).map_err(DataFusionError::from)
                };
                Some((batch, incoming))
            }
        });
        Ok(match kept {
            Some(kept) => Box::pin(RecordBatchStreamAdapter::new(schema, kept.reading(stream))),
            None => Box::pin(RecordBatchStreamAdapter::new(schema, stream)),
        })
    }
}
