//! Subqueries that depend on a row, run for each row that differs from those before it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::arrow::compute::{cast, concat_batches, take_record_batch};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, execute_stream,
};
use futures::{StreamExt, stream};

use super::node::Wanted;
use super::prepared::Prepared;
use crate::error::QueryError;
use crate::kept::KeptScans;

/// Rows of the input that are answered at once.
const ROWS_AT_ONCE: usize = 256;
/// Rows of a subquery beside rows of the input that make a batch; more only where a single row has more.
const GIVEN_ROWS_MAX: usize = 8192;
/// Bytes of answers that are remembered.
const KNOWN_BYTES_MAX: usize = 64 << 20;
/// How long subqueries are run without a pause.
const BETWEEN_RESTS: Duration = Duration::from_millis(5);

/// A subquery, and what it needs to know of a row.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) wanted: Wanted,
    pub(super) plan: Arc<LogicalPlan>,
    pub(super) references: Vec<Column>,
    pub(super) values: Vec<Arc<dyn PhysicalExpr>>,
    pub(super) guard: Option<Arc<dyn PhysicalExpr>>,
    /// The columns that hold the answer; any may be NULL.
    pub(super) columns: SchemaRef,
}

/// The rows of the input with the answers beside them.
pub(super) struct DependentExec {
    input: Arc<dyn ExecutionPlan>,
    questions: Arc<Vec<Question>>,
    state: Arc<SessionState>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl DependentExec {
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        questions: Vec<Question>,
        state: Arc<SessionState>,
    ) -> Self {
        Self::over(input, Arc::new(questions), state)
    }

    fn over(input: Arc<dyn ExecutionPlan>, questions: Arc<Vec<Question>>, state: Arc<SessionState>) -> Self {
        let mut fields: Vec<_> = input.schema().fields().iter().cloned().collect();
        for question in questions.iter() {
            fields.extend(question.columns.fields().iter().cloned());
        }
        let schema = Arc::new(Schema::new(fields));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            input.boundedness(),
        );
        Self {
            input,
            questions,
            state,
            schema,
            properties: Arc::new(properties),
        }
    }
}

impl fmt::Debug for DependentExec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DependentExec")
            .field("questions", &self.questions)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for DependentExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "DependentExec: questions={}", self.questions.len())
    }
}

impl ExecutionPlan for DependentExec {
    fn name(&self) -> &str {
        "DependentExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        let over = Self::over(input, Arc::clone(&self.questions), Arc::clone(&self.state));
        Ok(Arc::new(over))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        let over = Self::over(input, Arc::clone(&self.questions), Arc::clone(&self.state));
        Ok(Arc::new(over))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for question in self.questions.iter() {
            for expr in question.values.iter().chain(&question.guard) {
                if visit(expr)? == TreeNodeRecursion::Stop {
                    return Ok(TreeNodeRecursion::Stop);
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new("answers of subqueries");
        let running = Running {
            questions: Arc::clone(&self.questions),
            prepared: self.questions.iter().map(|_| None).collect(),
            known: self.questions.iter().map(|_| HashMap::new()).collect(),
            memory: consumer.register(context.memory_pool()),
            state: Arc::clone(&self.state),
            schema: Arc::clone(&self.schema),
            context: Arc::clone(&context),
            rested: Instant::now(),
        };
        let input = self.input.execute(partition, context)?;
        let portions = (input, RecordBatch::new_empty(self.input.schema()), running);
        let answered = stream::try_unfold(portions, |(mut input, mut left, mut running)| async move {
            while left.num_rows() == 0 {
                match input.next().await {
                    Some(batch) => left = batch?,
                    None => return Ok::<_, DataFusionError>(None),
                }
            }
            let portion = left.slice(0, ROWS_AT_ONCE.min(left.num_rows()));
            let (rows, answered) = running.answered(portion).await?;
            let left = left.slice(rows, left.num_rows() - rows);
            Ok(Some((answered, (input, left, running))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            Box::pin(answered),
        )))
    }
}

/// What a subquery gave.
#[derive(Clone, Debug)]
enum Answer {
    Value(ScalarValue),
    Rows(RecordBatch),
}

impl Answer {
    fn size(&self) -> usize {
        match self {
            Self::Value(value) => value.size(),
            Self::Rows(rows) => rows.get_array_memory_size(),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Value(_) => 1,
            Self::Rows(rows) => rows.num_rows(),
        }
    }
}

struct Running {
    questions: Arc<Vec<Question>>,
    /// For each question how it is run, once that is known.
    prepared: Vec<Option<Prepared>>,
    /// For each question the answers so far, by the values that it refers to.
    known: Vec<HashMap<Arc<[ScalarValue]>, Answer>>,
    /// What `known` takes.
    memory: MemoryReservation,
    state: Arc<SessionState>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
    /// When others last had their turn.
    rested: Instant,
}

impl Running {
    /// The first rows of a portion with their answers, and how many they are.
    async fn answered(&mut self, portion: RecordBatch) -> Result<(usize, RecordBatch)> {
        let mut columns = portion.columns().to_vec();
        let questions = Arc::clone(&self.questions);
        for (index, question) in questions.iter().enumerate() {
            let answers = self.answers(index, question, &portion).await?;
            if let Wanted::Rows { keep } = question.wanted {
                let portion = portion.slice(0, answers.len());
                let beside = beside(&portion, &answers, question, keep, &self.schema)?;
                return Ok((answers.len(), beside));
            }
            columns.push(column(&answers, question)?);
        }
        let answered = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        Ok((portion.num_rows(), answered))
    }

    /// The answer for each row; `None` where nothing is asked. Of rows that have many rows beside them only the first
    /// are answered.
    async fn answers(
        &mut self,
        index: usize,
        question: &Question,
        portion: &RecordBatch,
    ) -> Result<Vec<Option<Answer>>> {
        let rows = portion.num_rows();
        let asked = match &question.guard {
            Some(guard) => Some(guard.evaluate(portion)?.into_array(rows)?),
            None => None,
        };
        let asked = asked.as_ref().map(|asked| as_boolean_array(asked)).transpose()?;
        let values = question
            .values
            .iter()
            .map(|expr| expr.evaluate(portion)?.into_array(rows));
        let values: Vec<ArrayRef> = values.collect::<Result<_>>()?;
        let mut answers = Vec::with_capacity(rows);
        let mut given = 0;
        for row in 0..rows {
            if asked.is_some_and(|asked: &BooleanArray| asked.is_null(row) || !asked.value(row)) {
                answers.push(None);
                continue;
            }
            let key = values.iter().map(|array| ScalarValue::try_from_array(array, row));
            let key: Arc<[ScalarValue]> = key.collect::<Result<Vec<_>>>()?.into();
            let answer = self.answer(index, question, key).await?;
            given += answer.rows();
            answers.push(Some(answer));
            if given >= GIVEN_ROWS_MAX && matches!(question.wanted, Wanted::Rows { .. }) {
                break;
            }
        }
        Ok(answers)
    }

    async fn answer(&mut self, index: usize, question: &Question, key: Arc<[ScalarValue]>) -> Result<Answer> {
        let known = self.known.get(index).and_then(|known| known.get(&key)).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // A plan over rows in memory never waits by itself; who wants to cancel it must get a turn.
        if self.rested.elapsed() > BETWEEN_RESTS {
            tokio::task::yield_now().await;
            self.rested = Instant::now();
        }
        let answer = self.run(index, question, Arc::clone(&key)).await?;
        let size = answer.size() + key.iter().map(ScalarValue::size).sum::<usize>();
        if size > KNOWN_BYTES_MAX / 2 {
            return Ok(answer);
        }
        if self.memory.size() + size > KNOWN_BYTES_MAX || self.memory.try_grow(size).is_err() {
            self.known.iter_mut().for_each(HashMap::clear);
            self.memory.free();
            self.memory.try_grow(size)?;
        }
        if let Some(known) = self.known.get_mut(index) {
            known.insert(key, answer.clone());
        }
        Ok(answer)
    }

    async fn run(&mut self, index: usize, question: &Question, key: Arc<[ScalarValue]>) -> Result<Answer> {
        let started = Instant::now();
        let known = self.prepared.get_mut(index).and_then(Option::take);
        let mut prepared = match known {
            Some(prepared) => prepared,
            None => Prepared::of(question, &self.state).await,
        };
        let physical = prepared.plan(question, &self.state, key).await?;
        let mut stream = execute_stream(physical, Arc::clone(&self.context))?;
        let mut batches = Vec::new();
        let held = self.memory.new_empty();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                held.try_grow(batch.get_array_memory_size())?;
                batches.push(batch);
            }
        }
        let kept = self.context.session_config().get_extension::<KeptScans>();
        prepared.ran(started, !kept.is_some_and(|kept| kept.is_full()));
        if let Some(slot) = self.prepared.get_mut(index) {
            *slot = Some(prepared);
        }
        answer(question, &batches)
    }
}

/// The type of the one column of a question's answer.
fn answer_type(question: &Question) -> &DataType {
    question
        .columns
        .fields()
        .first()
        .map_or(&DataType::Null, |field| field.data_type())
}

fn answer(question: &Question, batches: &[RecordBatch]) -> Result<Answer> {
    let first_column = || batches.iter().filter_map(|batch| batch.columns().first());
    match question.wanted {
        Wanted::Existence => Ok(Answer::Value(ScalarValue::Boolean(Some(!batches.is_empty())))),
        Wanted::Value => {
            if batches.iter().map(RecordBatch::num_rows).sum::<usize>() > 1 {
                return Err(QueryError::Cardinality.wrapped());
            }
            let wanted = answer_type(question);
            let value = match first_column().next() {
                Some(array) => ScalarValue::try_from_array(array, 0)?.cast_to(wanted)?,
                None => ScalarValue::try_from(wanted)?,
            };
            Ok(Answer::Value(value))
        }
        Wanted::Elements => {
            let DataType::List(item) = answer_type(question) else {
                return Err(QueryError::Internal {
                    detail: "the rows of a subquery are no array".to_owned(),
                }
                .wrapped());
            };
            let mut elements = Vec::new();
            for array in first_column() {
                let array = cast(array, item.data_type())?;
                for row in 0..array.len() {
                    elements.push(ScalarValue::try_from_array(&array, row)?);
                }
            }
            let list = ScalarValue::new_list(&elements, item.data_type(), true);
            Ok(Answer::Value(ScalarValue::List(list)))
        }
        Wanted::Rows { .. } => {
            let alike = batches.iter().map(|batch| {
                let pairs = batch.columns().iter().zip(question.columns.fields());
                let columns = pairs.map(|(array, field)| cast(array, field.data_type()));
                let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
                with_rows(&question.columns, columns, batch.num_rows())
            });
            let alike = alike.collect::<Result<Vec<_>>>()?;
            Ok(Answer::Rows(concat_batches(&question.columns, &alike)?))
        }
    }
}

fn with_rows(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

fn column(answers: &[Option<Answer>], question: &Question) -> Result<ArrayRef> {
    let none = ScalarValue::try_from(answer_type(question))?;
    let values = answers.iter().map(|answer| match answer {
        Some(Answer::Value(value)) => value.clone(),
        _ => none.clone(),
    });
    ScalarValue::iter_to_array(values)
}

/// Each row as often as its subquery has rows, with these beside it.
fn beside(
    portion: &RecordBatch,
    answers: &[Option<Answer>],
    question: &Question,
    keep: bool,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let columns = &question.columns;
    let nothing = with_rows(
        columns,
        columns
            .fields()
            .iter()
            .map(|field| new_null_array(field.data_type(), 1))
            .collect(),
        1,
    )?;
    let mut left = Vec::new();
    let mut right = Vec::new();
    for (row, answer) in (0_u32..).zip(answers) {
        let rows = match answer {
            Some(Answer::Rows(rows)) if rows.num_rows() > 0 => rows,
            _ if keep => &nothing,
            _ => continue,
        };
        left.extend(std::iter::repeat_n(row, rows.num_rows()));
        right.push(rows);
    }
    let left = take_record_batch(portion, &UInt32Array::from(left))?;
    let right = concat_batches(columns, right)?;
    let rows = left.num_rows();
    let columns = left.columns().iter().chain(right.columns()).cloned().collect();
    with_rows(schema, columns, rows)
}
