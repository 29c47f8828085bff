//! Functions about things that no lake has, or that are the same for every object: ownership, privileges, comments,
//! definitions, sizes.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use moraine_tables::{ColumnType, Value};

use super::row::{constant, function, whole};
use crate::types::SqlType;

/// The greatest number of arguments any of these takes.
const ARGUMENTS_MAX: usize = 8;
/// The number of UTF-8 among Postgres's encodings. Source: PostgreSQL, `pg_wchar.h`.
const UTF8_ENCODING: i32 = 6;
/// The role everything belongs to.
const OWNER: &str = "moraine";

/// Functions whose answer is NULL for every object of a lake: it has no comments, defaults, views or rules.
const NOTHING: &[&str] = &[
    "acldefault",
    "col_description",
    "inet_client_addr",
    "inet_server_addr",
    "inet_server_port",
    "obj_description",
    "pg_get_expr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_functiondef",
    "pg_get_partition_constraintdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_get_viewdef",
    "pg_tablespace_location",
    "shobj_description",
];

/// Privileges: whoever is connected may do everything.
const ALLOWED: &[&str] = &[
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_function_privilege",
    "has_language_privilege",
    "has_schema_privilege",
    "has_sequence_privilege",
    "has_table_privilege",
    "has_tablespace_privilege",
    "has_type_privilege",
    "pg_has_role",
    "pg_collation_is_visible",
    "pg_function_is_visible",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_type_is_visible",
];

/// The number a procedure is known by: the same for its name wherever it is told.
#[must_use]
pub fn procedure_oid(name: &str) -> u32 {
    // FNV-1a, kept below the numbers that Postgres gives to objects of users.
    const FIRST_USER_OID: u32 = 16_384;
    let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let hash = bare.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    1 + hash % (FIRST_USER_OID - 1)
}

/// What is not the case.
const NOT_SO: &[&str] = &[
    "pg_is_in_recovery",
    "pg_is_other_temp_schema",
    "pg_relation_is_publishable",
    "row_security_active",
];

/// Sizes: the store counts bytes per lake, not per relation.
const SIZES: &[&str] = &[
    "pg_indexes_size",
    "pg_relation_size",
    "pg_table_size",
    "pg_tablespace_size",
    "pg_total_relation_size",
];

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let mut functions = Vec::new();
    let text = SqlType::Column(ColumnType::Text);
    for name in NOTHING {
        functions.push(function(*name, text, (0, ARGUMENTS_MAX), |_| Ok(Value::Null)));
    }
    for name in ALLOWED {
        functions.push(function(*name, ColumnType::Bool, (1, ARGUMENTS_MAX), |_| {
            Ok(Value::Bool(true))
        }));
    }
    for name in NOT_SO {
        functions.push(function(*name, ColumnType::Bool, (0, ARGUMENTS_MAX), |_| {
            Ok(Value::Bool(false))
        }));
    }
    for name in SIZES {
        functions.push(function(*name, ColumnType::Int64, (1, 2), |_| Ok(Value::Null)));
    }
    functions.push(function("pg_database_size", ColumnType::Int64, (1, 1), |_| {
        Ok(Value::Int64(0))
    }));
    // Nobody has taken any, because nobody can.
    functions.push(constant("pg_advisory_unlock_all", text, Value::text("")));
    functions.push(constant("pg_my_temp_schema", SqlType::Oid, Value::Int64(0)));
    functions.push(constant("pg_client_encoding", SqlType::Name, Value::text("UTF8")));
    functions.push(function("pg_get_userbyid", SqlType::Name, (1, 1), |_| {
        Ok(Value::text(OWNER))
    }));
    functions.push(function(
        "pg_encoding_to_char",
        SqlType::Name,
        (1, 1),
        |arguments| {
            let utf8 = whole(arguments.first()) == Some(i64::from(UTF8_ENCODING));
            Ok(Value::text(if utf8 { "UTF8" } else { "" }))
        },
    ));
    functions.push(function(
        "pg_char_to_encoding",
        ColumnType::Int32,
        (1, 1),
        |arguments| {
            let utf8 =
                matches!(arguments.first(), Some(Value::Text(name)) if name.eq_ignore_ascii_case("utf8"));
            Ok(Value::Int32(if utf8 { UTF8_ENCODING } else { -1 }))
        },
    ));
    functions.push(function("pg_size_pretty", text, (1, 1), |arguments| {
        let bytes = match arguments.first() {
            Some(Value::Numeric(bytes)) => crate::text::numeric::rescale(*bytes, 38, 0)
                .and_then(|bytes| i64::try_from(bytes.unscaled).ok()),
            other => whole(other),
        };
        Ok(bytes.map_or(Value::Null, |bytes| Value::text(pretty(bytes))))
    }));
    functions
}

/// Postgres's words for a number of bytes: the unit changes at ten times the next one, and half rounds up.
fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    const CHANGE: i128 = 10 * 1024;
    let mut size = i128::from(bytes);
    let mut doubled = false;
    for (index, unit) in UNITS.iter().enumerate() {
        // From the second unit on, one bit more is kept for rounding.
        let limit = if doubled { CHANGE * 2 - 1 } else { CHANGE };
        if size.abs() < limit || index + 1 == UNITS.len() {
            let shown = if doubled { (size + size.signum()) / 2 } else { size };
            return format!("{shown} {unit}");
        }
        size /= if doubled { 1024 } else { 512 };
        doubled = true;
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn sizes_are_said_as_postgres_says_them() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_752, "11 kB"),
            (20_971_520, "20 MB"),
            (-20_480, "-20 kB"),
        ] {
            assert_eq!(pretty(bytes), expected, "{bytes}");
        }
    }
}
