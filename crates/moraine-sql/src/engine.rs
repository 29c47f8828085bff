//! DataFusion set up once: its functions, its optimizer, the memory a query may have. Cloned by reference per statement.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::SessionConfig;

use crate::dialect::{Learned, PostgresTypes, UnknownOperands};
use crate::error::QueryError;
use crate::functions::{self, Functions, SessionFacts};
use crate::relations::RelationName;

/// Bytes all running queries of an engine may hold in sorts, joins and aggregates.
pub const QUERY_MEMORY_BYTES_MAX: usize = 1 << 30;
/// Rows of one batch inside a plan.
const BATCH_ROWS: usize = 4096;

/// The query engine. One serves any number of sessions.
pub struct Engine {
    pub(crate) state: Arc<SessionState>,
    pub(crate) runtime: Arc<RuntimeEnv>,
    functions: Functions,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Sets the engine up.
    ///
    /// # Errors
    /// [`QueryError::Internal`] when DataFusion refuses its settings.
    pub fn new() -> std::result::Result<Self, QueryError> {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(QUERY_MEMORY_BYTES_MAX));
        // A server without state writes nothing to a local disk.
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(pool)
            .with_disk_manager_builder(disk)
            .build_arc()?;
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config())
            .with_runtime_env(Arc::clone(&runtime))
            .with_query_planner(Arc::new(crate::dependent::Planner))
            .build();
        Ok(Self {
            state: Arc::new(state),
            runtime,
            functions: functions::shared(),
        })
    }
}

fn config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(1)
        .with_batch_size(BATCH_ROWS)
        .with_collect_statistics(false)
        .with_information_schema(false);
    let options = config.options_mut();
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.support_varchar_with_length = true;
    options.execution.time_zone = Some("+00:00".to_owned());
    options.optimizer.enable_round_robin_repartition = false;
    // The tables take none, and a plan that has them cannot be run twice.
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    options.optimizer.repartition_joins = false;
    options.optimizer.repartition_aggregations = false;
    options.optimizer.repartition_windows = false;
    options.optimizer.repartition_sorts = false;
    config
}

/// What one query can name.
pub(crate) struct Names<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) tables: BTreeMap<RelationName, Arc<dyn TableSource>>,
    session: Functions,
    planners: Vec<Arc<dyn ExprPlanner>>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(engine: &'a Engine, facts: &Arc<SessionFacts>, learned: &Arc<Learned>) -> Self {
        let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(UnknownOperands(Arc::clone(learned)))];
        planners.extend(engine.state.expr_planners().iter().cloned());
        Self {
            engine,
            tables: BTreeMap::new(),
            session: functions::of_session(facts),
            planners,
        }
    }
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let wanted = RelationName {
            schema: name.schema().map(str::to_owned),
            name: name.table().to_owned(),
        };
        let found = self.tables.get(&wanted).cloned();
        found.ok_or_else(|| {
            QueryError::UndefinedTable {
                name: wanted.to_string(),
            }
            .wrapped()
        })
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        use datafusion::catalog::TableFunctionArgs;
        let function = self.engine.state.table_functions().get(name).ok_or_else(|| {
            QueryError::UndefinedFunction {
                name: name.to_owned(),
            }
            .wrapped()
        })?;
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.engine.state.config_options()))
            .build();
        let simplifier = ExprSimplifier::new(context);
        let schema = DFSchema::empty();
        let args = args
            .into_iter()
            .map(|arg| {
                simplifier
                    .coerce(arg, &schema)
                    .and_then(|arg| simplifier.simplify(arg))
            })
            .collect::<Result<Vec<_>>>()?;
        let provider = function
            .create_table_provider_with_args(TableFunctionArgs::new(&args, self.engine.state.as_ref()))?;
        Ok(provider_as_source(provider))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(PostgresTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if let Some(character) = functions::character(name) {
            return Some(character);
        }
        let own = self.session.get(name).or_else(|| self.engine.functions.get(name));
        if own.is_some() || functions::is_otherwise(name) {
            return own.cloned();
        }
        self.engine.state.scalar_functions().get(name).cloned()
    }

    // What `ARRAY(SELECT … FROM unnest(…))` is rewritten to.
    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.engine.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.engine.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.engine.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.engine.state.config_options()
    }

    // For the suggestions in an error, which are not shown.
    fn udf_names(&self) -> Vec<String> {
        self.session.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}
