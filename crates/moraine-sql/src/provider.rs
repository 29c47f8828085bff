//! A stored relation as DataFusion's table: conditions that the tables evaluate themselves are handed to them, so that ids
//! become key ranges, and rows come through a channel, because a plan may outlive what a transaction lends.

use std::fmt;
use std::sync::Arc;

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

use crate::pushdown;
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
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        let schema = Arc::new(self.schema.project(wanted)?);
        // The plan evaluates no condition again that was promised to be evaluated here.
        let comparisons = filters.iter().map(|filter| {
            pushdown::comparison(filter, &self.columns).ok_or_else(|| {
                let construct = format!("the condition {filter} in this form");
                crate::error::QueryError::unsupported(construct).wrapped()
            })
        });
        let filter = Filter {
            all_of: comparisons.collect::<Result<_>>()?,
        };
        let request = ScanRequest {
            handle: self.handle,
            projection: wanted
                .iter()
                .copied()
                .filter(|column| *column < self.columns.len())
                .collect(),
            with_ctid: self.with_ctid && wanted.contains(&self.columns.len()),
            filter,
            limit,
        };
        Ok(Arc::new(RelationExec::new(request, wanted, schema)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| match pushdown::comparison(filter, &self.columns) {
                Some(_) => TableProviderFilterPushDown::Exact,
                None => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }
}

/// The scan of a stored relation.
#[derive(Debug)]
struct RelationExec {
    request: ScanRequest,
    types: Vec<SqlType>,
    /// The plan's columns, by their position in what the scan gives: values in order, the row's number last.
    order: Vec<usize>,
    scanned: SchemaRef,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl RelationExec {
    fn new(mut request: ScanRequest, wanted: &[usize], schema: SchemaRef) -> Result<Self> {
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
            types,
            order,
            scanned: Arc::new(Schema::new(fields)),
            schema,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for RelationExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "RelationExec: relation={} projection={:?} filter={:?} limit={:?}",
            self.request.handle, self.request.projection, self.request.filter, self.request.limit
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
        let door = context.session_config().get_extension::<Door>();
        let door = door.ok_or_else(|| DataFusionError::Internal("a scan without a door".to_owned()))?;
        let (batches, incoming) = mpsc::channel(BATCHES_AHEAD);
        let task = ScanTask {
            request: self.request.clone(),
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
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream,
        )))
    }
}
