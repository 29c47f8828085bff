//! What a session knows of itself, and the functions that tell it.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use moraine_tables::{ColumnType, Value};

use super::row::{constant, function, whole};
use crate::error::InputError;
use crate::text::temporal::MICROS_PER_DAY;
use crate::types::{Element, SqlType};

/// A relation with its number, for `regclass` and visibility.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRelation {
    /// Its number.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The number of its primary key's constraint and the key's column, of a table and of the key's index.
    pub key: Option<(u32, String)>,
    /// The table it is an index of.
    pub index_of: Option<String>,
}

/// What the functions about the session answer.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    /// What `version()` says.
    pub version: String,
    /// The database.
    pub database: String,
    /// The schemas in which unqualified names are looked for, the first being the current one.
    pub search_path: Vec<String>,
    /// The user.
    pub user: String,
    /// The number of the server process.
    pub pid: i32,
    /// The start of the transaction, in microseconds since 1970.
    pub now: i64,
    /// The settings by name.
    pub settings: Vec<(String, String)>,
    /// The relations there are. Only looked at by queries that say `regclass` or ask for visibility.
    pub relations: Vec<NamedRelation>,
}

impl SessionFacts {
    /// The relation that a text names, as `regclass` reads it.
    pub(crate) fn relation(&self, text: &str) -> Option<&NamedRelation> {
        let (schema, name) = qualified(text);
        self.relations.iter().find(|relation| {
            relation.name == name
                && match &schema {
                    Some(schema) => relation.schema == *schema,
                    None => self.is_searched(&relation.schema),
                }
        })
    }

    /// Whether names of the schema need no qualification.
    pub(crate) fn is_searched(&self, schema: &str) -> bool {
        schema == "pg_catalog" || self.search_path.iter().any(|searched| searched == schema)
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let found = self
            .settings
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Schema and name of a relation's text; each part may be quoted.
fn qualified(text: &str) -> (Option<String>, String) {
    let mut parts: Vec<String> = vec![String::new()];
    let mut quoted = false;
    for c in text.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            c => {
                if let Some(part) = parts.last_mut() {
                    part.push(if quoted { c } else { c.to_ascii_lowercase() });
                }
            }
        }
    }
    let name = parts.pop().unwrap_or_default();
    (parts.pop(), name)
}

/// The first argument as text.
fn text(arguments: &[Value], index: usize) -> Option<String> {
    arguments.get(index).and_then(crate::text::format)
}

pub(super) fn functions(facts: &Arc<SessionFacts>) -> Vec<Arc<ScalarUDF>> {
    let mut functions = Vec::new();
    let texts = [
        (
            "version",
            facts.version.as_str(),
            SqlType::Column(ColumnType::Text),
        ),
        ("current_database", facts.database.as_str(), SqlType::Name),
        ("current_catalog", facts.database.as_str(), SqlType::Name),
        ("current_user", facts.user.as_str(), SqlType::Name),
        ("session_user", facts.user.as_str(), SqlType::Name),
        ("current_role", facts.user.as_str(), SqlType::Name),
        ("user", facts.user.as_str(), SqlType::Name),
    ];
    functions.extend(texts.map(|(name, value, result)| constant(name, result, Value::text(value))));
    let schema = facts.search_path.first().map_or(Value::Null, Value::text);
    functions.push(constant("current_schema", SqlType::Name, schema));
    functions.push(constant(
        "pg_backend_pid",
        ColumnType::Int32,
        Value::Int32(facts.pid),
    ));
    functions.extend(times(facts.now));
    functions.extend(about_relations(facts));
    let known = Arc::clone(facts);
    functions.push(function(
        "current_schemas",
        SqlType::Array(Element::Column(ColumnType::Text)),
        (1, 1),
        move |arguments| {
            let implicit =
                matches!(arguments.first(), Some(Value::Bool(true))).then(|| "pg_catalog".to_owned());
            let names: Vec<String> = implicit
                .into_iter()
                .chain(known.search_path.iter().cloned())
                .collect();
            Ok(Value::text(format!("{{{}}}", names.join(","))))
        },
    ));
    let known = Arc::clone(facts);
    functions.push(function(
        "current_setting",
        ColumnType::Text,
        (1, 2),
        move |arguments| {
            let Some(name) = text(arguments, 0) else {
                return Ok(Value::Null);
            };
            match known.setting(&name) {
                Some(value) => Ok(Value::text(value)),
                None if matches!(arguments.get(1), Some(Value::Bool(true))) => Ok(Value::Null),
                None => Err(InputError::Setting { name }.into()),
            }
        },
    ));
    functions
}

fn times(now: i64) -> Vec<Arc<ScalarUDF>> {
    let mut functions = Vec::new();
    for name in [
        "now",
        "current_timestamp",
        "transaction_timestamp",
        "statement_timestamp",
        "clock_timestamp",
        "pg_postmaster_start_time",
        "pg_conf_load_time",
    ] {
        functions.push(constant(name, ColumnType::TimestampTz, Value::TimestampTz(now)));
    }
    let days = i32::try_from(now.div_euclid(MICROS_PER_DAY)).unwrap_or(i32::MAX);
    let of_day = now.rem_euclid(MICROS_PER_DAY);
    functions.push(constant(
        "localtimestamp",
        ColumnType::Timestamp,
        Value::Timestamp(now),
    ));
    functions.push(constant("current_date", ColumnType::Date, Value::Date(days)));
    functions.push(constant("localtime", ColumnType::Time, Value::Time(of_day)));
    let zoned = Value::TimeTz {
        micros: of_day,
        offset_seconds: 0,
    };
    functions.push(constant("current_time", ColumnType::TimeTz, zoned));
    functions
}

fn about_relations(facts: &Arc<SessionFacts>) -> Vec<Arc<ScalarUDF>> {
    let known = Arc::clone(facts);
    let to_regclass = function("to_regclass", SqlType::RegClass, (1, 1), move |arguments| {
        let found = text(arguments, 0).and_then(|name| known.relation(&name).map(|relation| relation.oid));
        Ok(found.map_or(Value::Null, |oid| Value::Int64(i64::from(oid))))
    });
    let known = Arc::clone(facts);
    let constraint = function(
        "pg_get_constraintdef",
        ColumnType::Text,
        (1, 2),
        move |arguments| {
            let oid = whole(arguments.first());
            let mut keys = known
                .relations
                .iter()
                .filter_map(|relation| relation.key.as_ref());
            let key = keys.find(|(constraint, _)| Some(i64::from(*constraint)) == oid);
            Ok(key.map_or(Value::Null, |(_, column)| {
                Value::text(format!("PRIMARY KEY ({})", super::texts::quote_ident(column)))
            }))
        },
    );
    let known = Arc::clone(facts);
    let index = function("pg_get_indexdef", ColumnType::Text, (1, 3), move |arguments| {
        let oid = whole(arguments.first());
        let found = known
            .relations
            .iter()
            .find(|relation| Some(i64::from(relation.oid)) == oid);
        Ok(match found {
            Some(NamedRelation {
                schema,
                name,
                key: Some((_, column)),
                index_of: Some(table),
                ..
            }) => Value::text(match whole(arguments.get(1)) {
                Some(1) => super::texts::quote_ident(column),
                Some(position) if position != 0 => String::new(),
                _ => index_definition(schema, name, table, column),
            }),
            _ => Value::Null,
        })
    });
    vec![
        to_regclass,
        super::texts::to_regtype(),
        super::texts::to_regprocedure(),
        visibility(facts),
        constraint,
        index,
    ]
}

fn visibility(facts: &Arc<SessionFacts>) -> Arc<ScalarUDF> {
    let known = Arc::clone(facts);
    function(
        "pg_table_is_visible",
        ColumnType::Bool,
        (1, 1),
        move |arguments| {
            let Some(oid) = whole(arguments.first()) else {
                return Ok(Value::Null);
            };
            let found = known
                .relations
                .iter()
                .find(|relation| i64::from(relation.oid) == oid);
            Ok(Value::Bool(
                found.is_none_or(|relation| known.is_searched(&relation.schema)),
            ))
        },
    )
}

fn index_definition(schema: &str, name: &str, table: &str, column: &str) -> String {
    let quoted = super::texts::quote_ident;
    format!(
        "CREATE UNIQUE INDEX {} ON {}.{} USING btree ({})",
        quoted(name),
        quoted(schema),
        quoted(table),
        quoted(column)
    )
}
