//! Comparisons over one relation, compiled once per statement: checked against the column types, literals sorted, and the
//! part that speaks about ids turned into sets of ids from which key ranges are made.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::error::TableError;
use crate::relation::Relation;
use crate::row::RowAddress;
use crate::schema::RelationSchema;
use crate::value::{ColumnType, Value};

/// How a column is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// One condition on a row. `column` is a position in the relation's schema; a value is of the column's type or `NULL`.
#[derive(Clone, Debug)]
pub enum Comparison {
    /// `column op value`; never true when either side is `NULL`.
    Compare {
        /// The column's position.
        column: usize,
        /// The operator.
        op: CompareOp,
        /// The literal.
        value: Value,
    },
    /// `column IN (values)`; never true when the column is `NULL`.
    In {
        /// The column's position.
        column: usize,
        /// The literals.
        values: Vec<Value>,
    },
    /// `column IS NULL`
    IsNull {
        /// The column's position.
        column: usize,
    },
    /// `column IS NOT NULL`
    IsNotNull {
        /// The column's position.
        column: usize,
    },
    /// `ctid IN (addresses)`: only these rows, as far as they are still there.
    Address(Vec<RowAddress>),
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The conditions.
    pub all_of: Vec<Comparison>,
}

impl Filter {
    /// No condition: every row.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// One condition.
    #[must_use]
    pub fn only(comparison: Comparison) -> Self {
        Self {
            all_of: vec![comparison],
        }
    }
}

/// A [`Filter`] checked against a schema and ready to be evaluated.
#[derive(Debug)]
pub(crate) struct CompiledFilter {
    tests: Vec<Test>,
    addresses: Option<HashSet<RowAddress>>,
}

#[derive(Debug)]
struct Test {
    column: usize,
    kind: TestKind,
}

#[derive(Debug)]
enum TestKind {
    Compare(CompareOp, Value),
    /// Sorted, without `NULL`.
    In(Vec<Value>),
    IsNull,
    IsNotNull,
}

/// The ids a column can have under a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// Any.
    All,
    /// From the first to the last, both included.
    Range(u64, u64),
    /// These, ascending and distinct. Empty: none.
    Points(Vec<u64>),
}

impl CompiledFilter {
    pub(crate) fn compile(
        relation: Relation,
        schema: &RelationSchema,
        filter: &Filter,
    ) -> Result<Self, TableError> {
        let mut tests = Vec::with_capacity(filter.all_of.len());
        let mut addresses: Option<HashSet<RowAddress>> = None;
        for comparison in &filter.all_of {
            let (column, kind) = match comparison {
                Comparison::Address(rows) => {
                    let rows: HashSet<RowAddress> = rows.iter().cloned().collect();
                    addresses = Some(match addresses {
                        None => rows,
                        Some(earlier) => earlier.intersection(&rows).cloned().collect(),
                    });
                    continue;
                }
                Comparison::Compare { column, op, value } => (*column, TestKind::Compare(*op, value.clone())),
                Comparison::In { column, values } => (*column, sorted_list(values)),
                Comparison::IsNull { column } => (*column, TestKind::IsNull),
                Comparison::IsNotNull { column } => (*column, TestKind::IsNotNull),
            };
            check_types(relation, schema, column, &kind)?;
            tests.push(Test { column, kind });
        }
        Ok(Self { tests, addresses })
    }

    /// The rows the filter is confined to by address, if it is.
    pub(crate) fn addresses(&self) -> Option<&HashSet<RowAddress>> {
        self.addresses.as_ref()
    }

    /// Whether a row passes; `get` reads one of its columns. Addresses are not looked at.
    pub(crate) fn matches<E>(&self, mut get: impl FnMut(usize) -> Result<Value, E>) -> Result<bool, E> {
        for test in &self.tests {
            if !test.kind.passes(&get(test.column)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Like [`CompiledFilter::matches`], looking only at conditions on columns for which `known` holds.
    pub(crate) fn matches_where(
        &self,
        known: impl Fn(usize) -> bool,
        mut get: impl FnMut(usize) -> Value,
    ) -> bool {
        self.tests
            .iter()
            .filter(|test| known(test.column))
            .all(|test| test.kind.passes(&get(test.column)))
    }

    /// The columns that conditions speak about.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.tests.iter().map(|test| test.column)
    }

    /// The ids that the `BIGINT` column may have; conditions that say nothing about ids leave it open.
    pub(crate) fn ids(&self, column: usize) -> Ids {
        self.tests
            .iter()
            .filter(|test| test.column == column)
            .fold(Ids::All, |ids, test| ids.intersect(test.kind.ids()))
    }

    /// Whether only rows in which the column is `NULL` can pass.
    pub(crate) fn requires_null(&self, column: usize) -> bool {
        self.tests
            .iter()
            .any(|test| test.column == column && matches!(test.kind, TestKind::IsNull))
    }

    /// Whether no row in which the column is `NULL` can pass.
    pub(crate) fn refuses_null(&self, column: usize) -> bool {
        self.tests
            .iter()
            .any(|test| test.column == column && !matches!(test.kind, TestKind::IsNull))
    }
}

fn sorted_list(values: &[Value]) -> TestKind {
    let mut values: Vec<Value> = values.iter().filter(|value| !value.is_null()).cloned().collect();
    values.sort_by(|a, b| a.compare(b).unwrap_or(Ordering::Equal));
    TestKind::In(values)
}

fn check_types(
    relation: Relation,
    schema: &RelationSchema,
    column: usize,
    kind: &TestKind,
) -> Result<(), TableError> {
    let Some(declared) = schema.columns.get(column) else {
        return Err(TableError::Width {
            relation,
            expected: schema.columns.len(),
            found: column + 1,
        });
    };
    let literals = match kind {
        TestKind::Compare(_, value) => std::slice::from_ref(value),
        TestKind::In(values) => values.as_slice(),
        TestKind::IsNull | TestKind::IsNotNull => &[],
    };
    match literals
        .iter()
        .find(|value| !comparable(value, declared.column_type))
    {
        None => Ok(()),
        Some(value) => Err(TableError::Type {
            relation,
            column: declared.name.clone(),
            expected: declared.column_type.sql_name(),
            found: value.type_name(),
        }),
    }
}

fn comparable(value: &Value, column_type: ColumnType) -> bool {
    let integer = |t| matches!(t, ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64);
    value.has_type(column_type)
        || (integer(column_type) && matches!(value, Value::Int16(_) | Value::Int32(_) | Value::Int64(_)))
}

impl TestKind {
    fn passes(&self, value: &Value) -> bool {
        match self {
            Self::IsNull => value.is_null(),
            Self::IsNotNull => !value.is_null(),
            Self::Compare(op, literal) => value.compare(literal).is_some_and(|ordering| op.holds(ordering)),
            Self::In(values) => {
                !value.is_null()
                    && values
                        .binary_search_by(|literal| literal.compare(value).unwrap_or(Ordering::Less))
                        .is_ok()
            }
        }
    }

    fn ids(&self) -> Ids {
        match self {
            Self::IsNull => Ids::Points(Vec::new()),
            Self::IsNotNull => Ids::All,
            Self::In(values) => {
                let mut points: Vec<u64> = values.iter().filter_map(as_id).collect();
                points.dedup();
                Ids::Points(points)
            }
            Self::Compare(op, value) => match as_integer(value) {
                None => Ids::Points(Vec::new()),
                Some(literal) => op.ids(literal),
            },
        }
    }
}

fn as_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int16(v) => Some(i64::from(*v)),
        Value::Int32(v) => Some(i64::from(*v)),
        Value::Int64(v) => Some(*v),
        _ => None,
    }
}

fn as_id(value: &Value) -> Option<u64> {
    as_integer(value).and_then(|id| u64::try_from(id).ok())
}

impl CompareOp {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::Le => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Ge => ordering.is_ge(),
        }
    }

    fn ids(self, literal: i64) -> Ids {
        let none = Ids::Points(Vec::new());
        let up_to = |last: i64| u64::try_from(last).map_or(none.clone(), |last| Ids::Range(0, last));
        let from = |first: i64| Ids::Range(u64::try_from(first).unwrap_or(0), u64::MAX);
        match self {
            Self::Ne => Ids::All,
            Self::Eq => u64::try_from(literal).map_or(none.clone(), |id| Ids::Points(vec![id])),
            Self::Lt => literal.checked_sub(1).map_or(none.clone(), up_to),
            Self::Le => up_to(literal),
            Self::Gt => literal.checked_add(1).map_or(none.clone(), from),
            Self::Ge => from(literal),
        }
    }
}

impl Ids {
    /// The ids in both sets.
    pub(crate) fn intersect(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, ids) | (ids, Self::All) => ids,
            (Self::Range(a, b), Self::Range(c, d)) => {
                let (first, last) = (a.max(c), b.min(d));
                if first > last {
                    Self::Points(Vec::new())
                } else {
                    Self::Range(first, last)
                }
            }
            (Self::Points(points), ids) | (ids, Self::Points(points)) => {
                Self::Points(points.into_iter().filter(|id| ids.contains(*id)).collect())
            }
        }
    }

    /// Whether `id` is in the set.
    pub(crate) fn contains(&self, id: u64) -> bool {
        match self {
            Self::All => true,
            Self::Range(first, last) => (*first..=*last).contains(&id),
            Self::Points(points) => points.binary_search(&id).is_ok(),
        }
    }

    /// The least and the greatest id of the set; `None` when it is empty.
    pub(crate) fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Self::All => Some((0, u64::MAX)),
            Self::Range(first, last) => Some((*first, *last)),
            Self::Points(points) => Some((*points.first()?, *points.last()?)),
        }
    }
}
