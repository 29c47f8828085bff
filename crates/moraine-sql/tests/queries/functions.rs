//! The functions Postgres clients use.

use crate::support::Lake;

macro_rules! gives {
    ($($name:ident: $expr:expr => $value:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let query = format!("SELECT {}", $expr);
                assert_eq!(Lake::empty().await.text(&query).await, [$value], "{query}");
            }
        )*
    };
}

gives! {
    version: "version()" => "PostgreSQL 15.0 (moraine)";
    names_of_the_session: "current_database(), current_schema(), current_schema, current_user, session_user" => "lake|main|main|somebody|somebody";
    schemas: "current_schemas(false), current_schemas(true)" => "{main}|{pg_catalog,main}";
    pid: "pg_backend_pid()" => "42";
    now: "now(), current_timestamp, current_date, localtimestamp" => "2093-11-14 22:13:20+00|2093-11-14 22:13:20+00|2093-11-14|2093-11-14 22:13:20";
    setting: "current_setting('server_encoding'), current_setting('none', true)" => "UTF8|~";
    regprocedure: "to_regprocedure('pg_input_is_valid(text,text)')" => "~";
    regclass: "'ducklake_table'::regclass::oid, to_regclass('ducklake_table')::oid, to_regclass('none')" => "16400|16400|~";
    regclass_text: "16400::oid::regclass::text, 'other.\"Ducklake Table\"'::regclass::text" => "ducklake_table|other.\"Ducklake Table\"";
    regtype: "'int8'::regtype::text, 20::oid::regtype::text, 'character varying'::regtype::oid" => "bigint|bigint|1043";
    format_type: "format_type(20, -1), format_type(1700, 655366), format_type(1043::oid, NULL)" => "bigint|numeric(10,2)|character varying";
    visibility: "pg_table_is_visible(16400), pg_table_is_visible(16401), pg_type_is_visible(20)" => "t|f|t";
    comments: "obj_description(1, 'pg_class'), col_description(1, 2), pg_get_expr('x', 1)" => "~|~|~";
    owner: "pg_get_userbyid(10)" => "moraine";
    privileges: "has_table_privilege('x', 'select'), has_schema_privilege('main', 'usage')" => "t|t";
    quoting: "quote_ident('a b'), quote_ident('ab'), quote_literal('it''s'), quote_nullable(NULL)" => "\"a b\"|ab|'it''s'|NULL";
    pretty: "pg_size_pretty(20971520::bigint)" => "20 MB";
    encoding: "pg_encoding_to_char(6), pg_client_encoding()" => "UTF8|UTF8";
    joined: "array_to_string(ARRAY['a', NULL, 'b'], ','), concat('a', NULL, 'b'), concat_ws('-', 'a', 'b')" => "a,b|ab|a-b";
    strings: "upper('a'), substring('hello' from 2 for 3), position('l' in 'hello'), split_part('a.b', '.', 2), length('äb')" => "A|ell|3|b|2";
    replaced: "replace('aXb', 'X', '-'), regexp_replace('foo123', '[0-9]+', ''), btrim(' x '), left('abc', 2)" => "a-b|foo|x|ab";
    choices: "coalesce(NULL, 2), nullif(1, 1), greatest(1, 3), least(1, 3)" => "2|~|3|1";
    numbers: "abs(-1), 7 / 2, 7 % 4, -7 / 2, round(2.5), 0.1 + 0.2" => "1|3|3|-3|3|0.3";
    casts_round: "2.5::int, 3.5::double precision::int, 2.5::double precision::int, -2.5::int" => "3|4|2|-3";
    bool_text: "true::text, 't'::boolean, 'off'::boolean" => "true|t|f";
    bytes: "'\\x4142'::bytea, '\\x4142'::bytea::text, encode('\\x4142'::bytea, 'hex')" => "\\x4142|\\x4142|4142";
    uuid_text: "'00010203-0405-0607-0809-0a0b0c0d0e0f'::uuid::text" => "00010203-0405-0607-0809-0a0b0c0d0e0f";
    time_text: "'2024-01-02 03:04:05.5'::timestamp::text, '2024-01-02'::date::text, '1 day 2 hours'::interval::text" => "2024-01-02 03:04:05.5|2024-01-02|1 day 02:00:00";
    time_zone: "'12:30:00+02'::timetz, '12:30'::time" => "12:30:00+02|12:30:00";
}
