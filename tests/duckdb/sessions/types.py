"""Every scalar type with its ordinary values, NULL, extremes and oddities; inlined, in Parquet, and flushed."""

from harness.session import Session

# Type name -> literals. Each family is one session for each way of storing, each type a table of its own.
FAMILIES = {
    "integers": {
        "BOOLEAN": ["true", "false"],
        "TINYINT": ["0", "-128", "127"],
        "SMALLINT": ["-1", "-32768", "32767"],
        "INTEGER": ["7", "-2147483648", "2147483647"],
        "BIGINT": ["42", "-9223372036854775808", "9223372036854775807"],
        "HUGEINT": ["1", "-9007199254740993000", "10000000000000000000"],
        "UTINYINT": ["0", "255"],
        "USMALLINT": ["1", "65535"],
        "UINTEGER": ["2", "4294967295"],
        "UBIGINT": ["3", "18446744073709551615", "9223372036854775808"],
        "UHUGEINT": ["4", "10000000000000000000"],
    },
    "fractions": {
        "FLOAT": ["1.5", "0.1", "-0.0", "'inf'::FLOAT", "'-inf'::FLOAT", "'nan'::FLOAT", "3.4028235e38", "1.4e-45"],
        "DOUBLE": [
            "2.25", "0.1", "-0.0", "'inf'::DOUBLE", "'-inf'::DOUBLE", "'nan'::DOUBLE",
            "1.7976931348623157e308", "5e-324", "123456789.12345679",
        ],
        "DECIMAL(4,1)": ["0", "999.9", "-999.9", "0.1"],
        "DECIMAL(9,3)": ["123456.789", "-0.001"],
        "DECIMAL(18,6)": ["999999999999.999999", "-999999999999.999999", "0.000001"],
        "DECIMAL(38,10)": ["1234567890123456789012345678.0123456789", "-0.0000000001", "9999999999999999999999999999.9999999999"],
        "DECIMAL(38,0)": ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"],
    },
    "texts": {
        "VARCHAR": ["''", "'plain'", "'it''s \"quoted\"'", "'null'", "'snöw☃'", "'back\\slash'", "'line\nbreak'", "' '"],
        "BLOB": ["''::BLOB", "'\\x00\\x01\\xFF'::BLOB", "'text'::BLOB", "'it''s'::BLOB", "'\\x5C\\x27'::BLOB"],
        "JSON": ["'{\"a\": [1, null, \"x''y\"]}'", "'null'", "'[]'", "'\"\"'"],
        "UUID": [
            "'11111111-2222-3333-4444-555555555555'::UUID",
            "'00000000-0000-0000-0000-000000000000'::UUID",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID",
        ],
    },
    "times": {
        "DATE": ["DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1969-12-31'", "DATE '0044-03-15 (BC)'", "'infinity'::DATE", "'-infinity'::DATE"],
        "TIME": ["TIME '12:34:56.789'", "TIME '00:00:00'", "TIME '23:59:59.999999'"],
        "TIMETZ": ["TIMETZ '12:34:56+02'", "TIMETZ '00:00:00-11:30'"],
        "TIMESTAMP": [
            "TIMESTAMP '2024-01-02 03:04:05.678901'", "TIMESTAMP '1969-12-31 23:59:59.5'",
            "TIMESTAMP '0001-01-01 00:00:00'", "'infinity'::TIMESTAMP", "'-infinity'::TIMESTAMP",
        ],
        "TIMESTAMP_S": ["TIMESTAMP_S '2024-01-02 03:04:05'"],
        "TIMESTAMP_MS": ["TIMESTAMP_MS '2024-01-02 03:04:05.678'"],
        "TIMESTAMP_NS": ["TIMESTAMP_NS '2024-01-02 03:04:05.678901234'", "TIMESTAMP_NS '1969-12-31 23:59:59.999999999'"],
        "TIMESTAMPTZ": ["TIMESTAMPTZ '2024-01-02 03:04:05+02'", "TIMESTAMPTZ '1900-01-01 00:00:00.000001-08'", "'infinity'::TIMESTAMPTZ"],
        "INTERVAL": [
            "INTERVAL '1 day 2 hours'", "INTERVAL '-3 months 5 days'", "INTERVAL '0 seconds'",
            "INTERVAL '1 year 2 months 3 days 04:05:06.789'", "INTERVAL '-00:00:00.000001'",
        ],
    },
}

# Parquet has no integers of 128 bits: DuckDB writes them as doubles, and cannot read back the largest.
INLINED_ONLY = {
    "HUGEINT": ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"],
    "UHUGEINT": ["0", "340282366920938463463374607431768211455"],
}


def table_of(type_name):
    """The name of the table that holds one type."""
    return "t_" + "".join(c if c.isalnum() else "_" for c in type_name).strip("_").lower()


def writes(types):
    """One table for each type, one insert for each value, and one row of NULL."""
    for type_name, values in types.items():
        table = table_of(type_name)
        yield f"CREATE TABLE {table}(id INTEGER, v {type_name})"
        for number, value in enumerate(values):
            yield f"INSERT INTO {table} VALUES ({number}, {value})"
        yield f"INSERT INTO {table} VALUES (100, NULL)"


def reads(types):
    """All values as text (which no client's own types can blur), by equality, and by their extremes."""
    for type_name, values in types.items():
        table = table_of(type_name)
        yield f"SELECT id, typeof(v), v::VARCHAR FROM {table} ORDER BY id"
        yield f"SELECT count(*), count(v), min(v)::VARCHAR, max(v)::VARCHAR FROM {table}"
        for value in values:
            yield f"SELECT id FROM {table} WHERE v = {value} ORDER BY id"
        yield f"SELECT id FROM {table} WHERE v IS NULL"


def changes(types):
    """An update of each value to itself, and the deletion of the first, which both find rows by value."""
    for type_name, values in types.items():
        table = table_of(type_name)
        yield f"UPDATE {table} SET v = v WHERE id = 1"
        yield f"DELETE FROM {table} WHERE v = {values[0]}"


SESSIONS = [Session("the_largest_integers_inlined", [*writes(INLINED_ONLY), *changes(INLINED_ONLY)], [*reads(INLINED_ONLY)])]
for family, types in FAMILIES.items():
    SESSIONS += [
        Session(f"{family}_inlined", [*writes(types), *changes(types)], [*reads(types)]),
        Session(f"{family}_in_parquet", [*writes(types), *changes(types)], [*reads(types)], "DATA_INLINING_ROW_LIMIT 0"),
        Session(
            f"{family}_flushed",
            [*writes(types), *changes(types), "SELECT count(*) FROM ducklake_flush_inlined_data('lake')"],
            [*reads(types)],
        ),
    ]

SESSIONS += [
    Session(
        "one_table_of_many_types",
        [
            "CREATE TABLE t(i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, u64 UBIGINT, h HUGEINT, f FLOAT, d DOUBLE, "
            "n DECIMAL(18,4), bo BOOLEAN, vc VARCHAR, bl BLOB, dt DATE, tm TIME, ts TIMESTAMP, tz TIMESTAMPTZ, uu UUID, "
            "iv INTERVAL, js JSON)",
            "INSERT INTO t VALUES (1, 2, 3, 4, 18446744073709551615, 170141183460469231731687303715884105727, 1.5, 2.25, "
            "123.4567, true, 'hé''llo;world', '\\x00\\xFFab'::BLOB, DATE '2024-02-29', TIME '12:34:56.789', "
            "TIMESTAMP '2024-01-02 03:04:05.678901', TIMESTAMPTZ '2024-01-02 03:04:05+02', "
            "'11111111-2222-3333-4444-555555555555', INTERVAL '1 day 2 hours', '{\"a\":1}')",
            "INSERT INTO t(i8, f, d, dt, ts) VALUES (-1, 'inf'::FLOAT, 'nan'::DOUBLE, DATE '0001-01-01', TIMESTAMP '1969-12-31 23:59:59.5')",
            "INSERT INTO t(i8) VALUES (0)",
        ],
        ["FROM t ORDER BY i8", "SELECT epoch(tz), iv, js FROM t ORDER BY i8", "DESCRIBE t"],
    ),
    Session(
        "variants",
        [
            "CREATE TABLE t(v VARIANT)",
            "INSERT INTO t SELECT {'a': i}::VARIANT FROM range(100) r(i)",
            "SELECT sum(v.a::INT) FROM t",
            "INSERT INTO t VALUES (5::VARIANT)",
        ],
        ["SELECT count(*), count(v) FROM t", "SELECT sum(v.a::INT) FROM t AT (VERSION => 2)"],
    ),
    Session(
        "geometries",
        ["CREATE TABLE t(a INT, g GEOMETRY)", "INSERT INTO t SELECT i, 'POINT(1 2)'::GEOMETRY FROM range(100) r(i)", "INSERT INTO t VALUES (1, 'POINT(3 4)'::GEOMETRY)"],
        ["SELECT count(*), count(g) FROM t"],
    ),
    Session(
        "types_that_a_lake_does_not_have",
        ["CREATE TABLE t(a BIT)", "CREATE TABLE u(a INT[3])", "CREATE TABLE w(a UNION(x INT, y VARCHAR))", "CREATE TYPE mood AS ENUM ('sad', 'ok')"],
        ["SHOW TABLES"],
    ),
]
