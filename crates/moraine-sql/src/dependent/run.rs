//! Subqueries that depend on a row, run for each row that differs from those before it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::arrow::compute::{cast, concat_batches, take_record_batch};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, execute_stream,
};
use futures::{StreamExt, stream};

use super::node::Wanted;
use super::{planned, references};
use crate::error::QueryError;

/// Rows of the input that are answered at once. Each may have many rows of a subquery beside it.
const ROWS_AT_ONCE: usize = 256;

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
            known: self.questions.iter().map(|_| HashMap::new()).collect(),
            memory: consumer.register(context.memory_pool()),
            state: Arc::clone(&self.state),
            schema: Arc::clone(&self.schema),
            context: Arc::clone(&context),
        };
        let portions = self
            .input
            .execute(partition, context)?
            .flat_map(|batch| match batch {
                Ok(batch) => {
                    let starts = (0..batch.num_rows()).step_by(ROWS_AT_ONCE);
                    let portions = starts.map(|start| {
                        let rows = ROWS_AT_ONCE.min(batch.num_rows() - start);
                        Ok(batch.slice(start, rows))
                    });
                    stream::iter(portions.collect::<Vec<Result<RecordBatch>>>())
                }
                Err(error) => stream::iter(vec![Err(error)]),
            });
        let answered = stream::try_unfold((portions, running), |(mut portions, mut running)| async move {
            let Some(portion) = portions.next().await else {
                return Ok::<_, DataFusionError>(None);
            };
            let answered = running.answered(portion?).await?;
            Ok(Some((answered, (portions, running))))
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
}

struct Running {
    questions: Arc<Vec<Question>>,
    /// For each question the answers so far, by the values that it refers to.
    known: Vec<HashMap<Vec<ScalarValue>, Answer>>,
    memory: MemoryReservation,
    state: Arc<SessionState>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
}

impl Running {
    async fn answered(&mut self, portion: RecordBatch) -> Result<RecordBatch> {
        let mut columns = portion.columns().to_vec();
        let questions = Arc::clone(&self.questions);
        for (index, question) in questions.iter().enumerate() {
            let answers = self.answers(index, question, &portion).await?;
            if let Wanted::Rows { keep } = question.wanted {
                return beside(&portion, &answers, question, keep, &self.schema);
            }
            columns.push(column(&answers, question)?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// The answer for each row; `None` where nothing is asked.
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
        for row in 0..rows {
            if asked.is_some_and(|asked: &BooleanArray| asked.is_null(row) || !asked.value(row)) {
                answers.push(None);
                continue;
            }
            let key = values.iter().map(|array| ScalarValue::try_from_array(array, row));
            let key = key.collect::<Result<Vec<_>>>()?;
            let known = self.known.get(index).and_then(|known| known.get(&key)).cloned();
            if let Some(known) = known {
                answers.push(Some(known));
                continue;
            }
            let answer = self.run(question, &key).await?;
            let size = answer.size() + key.iter().map(ScalarValue::size).sum::<usize>();
            self.memory.try_grow(size)?;
            if let Some(known) = self.known.get_mut(index) {
                known.insert(key, answer.clone());
            }
            answers.push(Some(answer));
        }
        Ok(answers)
    }

    async fn run(&self, question: &Question, key: &[ScalarValue]) -> Result<Answer> {
        let values: references::Values = question
            .references
            .iter()
            .cloned()
            .zip(key.iter().cloned())
            .collect();
        let mut plan = references::bound(question.plan.as_ref().clone(), &values)?;
        let rows_wanted = match question.wanted {
            Wanted::Existence => Some(1),
            // One more than there may be.
            Wanted::Value => Some(2),
            Wanted::Elements | Wanted::Rows { .. } => None,
        };
        if rows_wanted.is_some() {
            plan = LogicalPlanBuilder::from(plan).limit(0, rows_wanted)?.build()?;
        }
        let physical = planned(&self.state, &plan).await?;
        let mut stream = execute_stream(physical, Arc::clone(&self.context))?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
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
