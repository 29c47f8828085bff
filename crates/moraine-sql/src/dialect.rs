//! Where Postgres and DataFusion plan an expression differently: the names of types, and what a literal or a parameter
//! without a type means beside something that has one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions::expr_fn::substring;
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr, TypePlanner,
};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, lit};
use moraine_tables::ColumnType;
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType as SqlDataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};

use crate::error::QueryError;
use crate::functions;
use crate::types::{Element, SqlType};
use crate::values;

/// The schema of operators over whole arrays, which no query can write.
pub(crate) const QUANTIFIED: &str = "\u{1}quantified";
/// The operators in it that make one value of the columns of the table that its left side names.
pub(crate) const OF_TABLE: &[(&str, OfTable)] = &[
    ("row_of", OfTable::Json),
    ("row_or_null_of", OfTable::JsonOrNull),
    ("record_of", OfTable::Record),
    ("record_or_null_of", OfTable::RecordOrNull),
    ("nothing_of", OfTable::Nothing),
    ("everything_of", OfTable::Everything),
];

/// What is made of the columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfTable {
    /// The row as JSON.
    Json,
    /// The same of a table whose row a join may lack: NULL without a row.
    JsonOrNull,
    /// The row as a value.
    Record,
    /// The same of a table whose row a join may lack.
    RecordOrNull,
    /// Whether all columns are NULL.
    Nothing,
    /// Whether no column is NULL.
    Everything,
}

/// Types by the names Postgres gives them.
#[derive(Debug)]
pub(crate) struct PostgresTypes;

impl TypePlanner for PostgresTypes {
    fn plan_type_field(&self, sql_type: &SqlDataType) -> Result<Option<FieldRef>> {
        Ok(named(sql_type).map(|sql_type| Arc::new(sql_type.field("", true))))
    }
}

/// The type a name of SQL stands for, where DataFusion reads it otherwise or not at all.
fn named(sql_type: &SqlDataType) -> Option<SqlType> {
    let with_zone = |zone: &TimezoneInfo| matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
    Some(SqlType::Column(match sql_type {
        SqlDataType::Uuid => ColumnType::Uuid,
        SqlDataType::Bytea => ColumnType::Bytes,
        SqlDataType::JSON => return Some(SqlType::Json),
        SqlDataType::JSONB => return Some(SqlType::Jsonb),
        SqlDataType::Array(of) => return array(of),
        SqlDataType::Text
        | SqlDataType::Varchar(None)
        | SqlDataType::CharVarying(None)
        | SqlDataType::CharacterVarying(None) => ColumnType::Text,
        SqlDataType::Timestamp(_, zone) if with_zone(zone) => ColumnType::TimestampTz,
        SqlDataType::Timestamp(..) => ColumnType::Timestamp,
        SqlDataType::Time(_, zone) if with_zone(zone) => ColumnType::TimeTz,
        SqlDataType::Time(..) => ColumnType::Time,
        SqlDataType::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => ColumnType::Float32,
        SqlDataType::Float(_) => ColumnType::Float64,
        SqlDataType::Numeric(ExactNumberInfo::None)
        | SqlDataType::Decimal(ExactNumberInfo::None)
        | SqlDataType::Dec(ExactNumberInfo::None) => return Some(SqlType::Numeric),
        SqlDataType::Regclass => return Some(SqlType::RegClass),
        SqlDataType::Custom(name, _) => return custom(&unquoted(name)),
        _ => return None,
    }))
}

/// The type a name of SQL stands for.
pub(crate) fn sql_type(written: &SqlDataType) -> Option<SqlType> {
    let plain = match written {
        SqlDataType::Bool | SqlDataType::Boolean => ColumnType::Bool,
        SqlDataType::SmallInt(_) | SqlDataType::Int2(_) => ColumnType::Int16,
        SqlDataType::Int(_) | SqlDataType::Integer(_) | SqlDataType::Int4(_) => ColumnType::Int32,
        SqlDataType::BigInt(_) | SqlDataType::Int8(_) => ColumnType::Int64,
        SqlDataType::Real | SqlDataType::Float4 => ColumnType::Float32,
        SqlDataType::DoublePrecision | SqlDataType::Double(_) | SqlDataType::Float8 => ColumnType::Float64,
        SqlDataType::Date => ColumnType::Date,
        SqlDataType::Interval { .. } => ColumnType::Interval,
        SqlDataType::Varchar(_) | SqlDataType::CharacterVarying(_) | SqlDataType::CharVarying(_) => {
            ColumnType::Text
        }
        SqlDataType::Numeric(ExactNumberInfo::PrecisionAndScale(precision, scale))
        | SqlDataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale)) => ColumnType::Numeric {
            precision: u8::try_from(*precision).ok()?,
            scale: i8::try_from(*scale).ok()?,
        },
        other => return named(other),
    };
    Some(SqlType::Column(plain))
}

fn array(of: &ArrayElemTypeDef) -> Option<SqlType> {
    let (ArrayElemTypeDef::SquareBracket(element, _)
    | ArrayElemTypeDef::AngleBracket(element)
    | ArrayElemTypeDef::Parenthesis(element)) = of
    else {
        return None;
    };
    Some(SqlType::Array(Element::of(sql_type(element)?)?))
}

/// The name of a type, whichever of its parts are in quotes.
fn unquoted(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| match part.as_ident() {
        Some(ident) => crate::rewrite::names::fold(ident),
        None => part.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}

fn custom(name: &str) -> Option<SqlType> {
    let name = name.to_lowercase();
    let bare = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    Some(match bare {
        "oid" | "regnamespace" | "regrole" | "xid" => SqlType::Oid,
        "regproc" | "regprocedure" => SqlType::RegProc,
        "regclass" => SqlType::RegClass,
        "regtype" => SqlType::RegType,
        "name" => SqlType::Name,
        "char" => SqlType::Char,
        "tid" => SqlType::Tid,
        "text" | "varchar" | "bpchar" => SqlType::Column(ColumnType::Text),
        "uuid" => SqlType::Column(ColumnType::Uuid),
        "int2" => SqlType::Column(ColumnType::Int16),
        "int4" => SqlType::Column(ColumnType::Int32),
        "int8" => SqlType::Column(ColumnType::Int64),
        "float4" => SqlType::Column(ColumnType::Float32),
        "float8" => SqlType::Column(ColumnType::Float64),
        "bool" => SqlType::Column(ColumnType::Bool),
        "timestamptz" => SqlType::Column(ColumnType::TimestampTz),
        "timestamp" => SqlType::Column(ColumnType::Timestamp),
        "timetz" => SqlType::Column(ColumnType::TimeTz),
        "time" => SqlType::Column(ColumnType::Time),
        "date" => SqlType::Column(ColumnType::Date),
        "interval" => SqlType::Column(ColumnType::Interval),
        "bytea" => SqlType::Column(ColumnType::Bytes),
        "numeric" => SqlType::Numeric,
        "json" => SqlType::Json,
        "jsonb" => SqlType::Jsonb,
        "int2vector" => SqlType::Vector(Element::Column(ColumnType::Int16)),
        "oidvector" => SqlType::Vector(Element::Oid),
        array if array.starts_with('_') => {
            SqlType::Array(Element::of(custom(array.trim_start_matches('_'))?)?)
        }
        _ => return None,
    })
}

/// The types parameters were found to have, by their number from 0.
#[derive(Debug, Default)]
pub(crate) struct Learned(Mutex<BTreeMap<usize, SqlType>>);

impl Learned {
    /// Remembers the first type a parameter is found to have.
    pub(crate) fn learn(&self, id: &str, field: &Field) {
        if let (Some(index), Ok(sql_type)) = (parameter_index(id), SqlType::of_field(field)) {
            let mut learned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            learned.entry(index).or_insert(sql_type);
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<SqlType> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&index)
            .copied()
    }
}

/// The position of the parameter `$n`, from 0.
pub(crate) fn parameter_index(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// Plans operators between something with a type and something without.
#[derive(Debug)]
pub(crate) struct UnknownOperands(pub(crate) Arc<Learned>);

impl ExprPlanner for UnknownOperands {
    // A `name` has its characters by position, from 0.
    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let is_name = match expr.expr.to_field(schema) {
            Ok((_, field)) => matches!(SqlType::of_field(&field), Ok(SqlType::Name)),
            Err(_) => false,
        };
        match expr.field_access {
            GetFieldAccess::ListIndex { key } if is_name => {
                let first = *key + lit(1_i64);
                Ok(PlannerResult::Planned(substring(expr.expr, first, lit(1_i64))))
            }
            field_access => Ok(PlannerResult::Original(RawFieldAccessExpr {
                field_access,
                ..expr
            })),
        }
    }

    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if let BinaryOperator::PGCustomBinaryOperator(parts) = &expr.op
            && let [schema_name, function] = parts.as_slice()
            && schema_name == QUANTIFIED
            && let Some((_, wanted)) = OF_TABLE.iter().find(|(name, _)| name == function)
            && let Expr::Literal(ScalarValue::Utf8(Some(name)), _) = &expr.left
        {
            return Ok(PlannerResult::Planned(of_table(name, *wanted, schema)?));
        }
        if let BinaryOperator::PGCustomBinaryOperator(parts) = &expr.op
            && let [schema_name, function] = parts.as_slice()
            && schema_name == QUANTIFIED
            && let Some(function) = functions::quantified(function)
        {
            let RawBinaryExpr { left, right, .. } = expr;
            let (left, right) = self.quantified(left, right, schema)?;
            return Ok(PlannerResult::Planned(function.call(vec![left, right])));
        }
        if matches!(
            expr.op,
            BinaryOperator::And | BinaryOperator::Or | BinaryOperator::StringConcat
        ) {
            return Ok(PlannerResult::Original(expr));
        }
        if is_unknown(&expr.left) {
            if let Ok((_, field)) = expr.right.to_field(schema) {
                expr.left = self.typed(expr.left, &beside(&expr.op, &field, true))?;
            }
        } else if is_unknown(&expr.right)
            && let Ok((_, field)) = expr.left.to_field(schema)
        {
            expr.right = self.typed(expr.right, &beside(&expr.op, &field, false))?;
        }
        refuse_mixed(&expr, schema)?;
        if let Some(scaled) = scaled_interval(&expr, schema) {
            return Ok(PlannerResult::Planned(scaled));
        }
        Ok(PlannerResult::Original(expr))
    }
}

impl UnknownOperands {
    /// A value and an array of such values, of which one may say the other's type.
    fn quantified(&self, left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
        if is_unknown(&right) {
            let (_, field) = left.to_field(schema)?;
            let of = SqlType::of_field(&field).map_err(QueryError::wrapped)?;
            let element = Element::of(of).unwrap_or(Element::Column(ColumnType::Text));
            let array = Arc::new(SqlType::Array(element).field("", true));
            return Ok((left, self.typed(right, &array)?));
        }
        if is_unknown(&left)
            && let Ok((_, field)) = right.to_field(schema)
            && let DataType::List(item) = field.data_type()
        {
            return Ok((self.typed(left, item)?, right));
        }
        Ok((left, right))
    }

    fn typed(&self, expr: Expr, field: &FieldRef) -> Result<Expr> {
        if let Expr::Placeholder(Placeholder { id, .. }) = &expr {
            if field.data_type() != &DataType::Null {
                self.0.learn(id, field);
            }
            let known = parameter_index(id).and_then(|index| self.0.get(index));
            let field = known.map(|known| Arc::new(known.field("", true)));
            return Ok(Expr::Placeholder(Placeholder::new_with_field(id.clone(), field)));
        }
        typed_literal(expr, field)
    }
}

/// The column of a name, or else what is wanted of the table that has it.
fn of_table(name: &str, wanted: OfTable, schema: &DFSchema) -> Result<Expr> {
    if let Ok((qualifier, field)) = schema.qualified_field_with_unqualified_name(name) {
        let column = Expr::Column(Column::from((qualifier, field)));
        return Ok(match wanted {
            OfTable::Nothing => column.is_null(),
            OfTable::Everything => column.is_not_null(),
            _ => column,
        });
    }
    let columns = schema.iter().filter_map(|(qualifier, field)| match qualifier {
        Some(table) if table.table() == name => {
            let shown = crate::rewrite::names::shown(field.name());
            Some((shown, Expr::Column(Column::from((qualifier, field)))))
        }
        _ => None,
    });
    let columns: Vec<(&str, Expr)> = columns.collect();
    if columns.is_empty() {
        return Err(QueryError::UndefinedColumn {
            name: name.to_owned(),
        }
        .wrapped());
    }
    let nothing = || conjunction(columns.iter().map(|(_, column)| column.clone().is_null()));
    let everything = || conjunction(columns.iter().map(|(_, column)| column.clone().is_not_null()));
    let record = |may_lack: bool| {
        let values = columns.iter().map(|(_, column)| column.clone());
        functions::record(may_lack).call(values.collect())
    };
    let json = |may_lack: bool| {
        let pairs = columns
            .iter()
            .flat_map(|(name, column)| [lit(*name), column.clone()]);
        functions::json_row(may_lack).call(pairs.collect())
    };
    match wanted {
        OfTable::Json => Ok(json(false)),
        OfTable::JsonOrNull => Ok(json(true)),
        OfTable::Record => Ok(record(false)),
        OfTable::RecordOrNull => Ok(record(true)),
        OfTable::Nothing => Ok(nothing().unwrap_or_else(|| lit(true))),
        OfTable::Everything => Ok(everything().unwrap_or_else(|| lit(true))),
    }
}

/// An interval times or over a number.
fn scaled_interval(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let (left, right) = (
        expr.left.get_type(schema).ok()?,
        expr.right.get_type(schema).ok()?,
    );
    let span = |data_type: &DataType| matches!(data_type, DataType::Interval(_));
    let float = |expr: &Expr| Expr::Cast(Cast::new(Box::new(expr.clone()), DataType::Float64));
    let (function, interval, number) = match expr.op {
        BinaryOperator::Multiply if span(&left) && right.is_numeric() => {
            (functions::interval_times(), &expr.left, &expr.right)
        }
        BinaryOperator::Multiply if left.is_numeric() && span(&right) => {
            (functions::interval_times(), &expr.right, &expr.left)
        }
        BinaryOperator::Divide if span(&left) && right.is_numeric() => {
            (functions::interval_over(), &expr.left, &expr.right)
        }
        _ => return None,
    };
    Some(function.call(vec![interval.clone(), float(number)]))
}

/// Postgres has no comparison of text with anything else, and neither coerces to the other.
fn refuse_mixed(expr: &RawBinaryExpr, schema: &DFSchema) -> Result<()> {
    let compares = matches!(
        expr.op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    );
    let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
        return Ok(());
    };
    let text = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    };
    let plain = |data_type: &DataType| {
        data_type.is_numeric() || data_type.is_temporal() || *data_type == DataType::Boolean
    };
    if compares && ((text(&left) && plain(&right)) || (plain(&left) && text(&right))) {
        let name = |data_type: &DataType| {
            SqlType::of_arrow(data_type).map_or_else(|_| data_type.to_string(), SqlType::sql_name)
        };
        let call = format!("\"{} {} {}\"", name(&left), expr.op, name(&right));
        return Err(QueryError::UndefinedFunction { name: call }.wrapped());
    }
    Ok(())
}

/// The type something without one takes beside an operand: its own, but an interval is what is added to an instant.
fn beside(op: &BinaryOperator, field: &FieldRef, left: bool) -> FieldRef {
    let instant = matches!(
        field.data_type(),
        DataType::Timestamp(..) | DataType::Date32 | DataType::Time64(_)
    );
    let adds = matches!(op, BinaryOperator::Plus) || (matches!(op, BinaryOperator::Minus) && left);
    if instant && adds {
        return Arc::new(SqlType::Column(ColumnType::Interval).field("", true));
    }
    Arc::clone(field)
}

/// A quoted literal, or a parameter of which nothing is known yet.
pub(crate) fn is_unknown(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Literal(ScalarValue::Utf8(Some(_)), None) | Expr::Placeholder(Placeholder { field: None, .. })
    )
}

/// A quoted literal as a value of the field's type; 22P02 when it is none. Anything else is left alone.
pub(crate) fn typed_literal(expr: Expr, field: &FieldRef) -> Result<Expr> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), None) = &expr else {
        return Ok(expr);
    };
    let Ok(sql_type) = SqlType::of_field(field) else {
        return Ok(expr);
    };
    if matches!(sql_type, SqlType::Character(_)) {
        return Ok(lit(text.trim_end_matches(' ')));
    }
    let is_array = matches!(sql_type, SqlType::Array(_) | SqlType::Vector(_));
    if matches!(sql_type.column_type(), ColumnType::Text) && !is_array {
        return Ok(expr);
    }
    let parsed = match sql_type {
        SqlType::Column(ColumnType::Numeric { .. }) | SqlType::Numeric => {
            // Beside a decimal a literal keeps the digits it has.
            let scale = text
                .split_once('.')
                .map_or(0, |(_, fraction)| fraction.trim_end().len());
            let wide = SqlType::Column(ColumnType::Numeric {
                precision: 38,
                scale: i8::try_from(scale.min(38)).unwrap_or(38),
            });
            functions::parsed(text, wide).and_then(|value| values::scalar(&value, wide))
        }
        sql_type => functions::parsed(text, sql_type).and_then(|value| values::scalar(&value, sql_type)),
    };
    let scalar = parsed.map_err(QueryError::wrapped)?;
    Ok(Expr::Literal(scalar, None))
}
