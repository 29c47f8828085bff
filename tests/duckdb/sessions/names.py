"""Names: quoted, non-ASCII, reserved, differing by case only, with anything in them."""

from harness.session import Session

WEIRD = ["My Table", "select", "semi;colon", "quo\"te", "apo'strophe", "ünïcödé☃", "dot.ted", "new\nline", "per%cent", "back\\slash"]


def quoted(name):
    """A SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


SESSIONS = [
    Session(
        "quoted_names_of_columns",
        [
            'CREATE TABLE "My Table"("a b" INT, "select" VARCHAR, "x;y" INT, "ünï" DOUBLE, "q""q" INT, "it\'s" INT)',
            "INSERT INTO \"My Table\" VALUES (1, 'q', 2, 0.5, 3, 4)",
            'FROM "My Table"',
            "INSERT INTO \"My Table\" SELECT i, 'z', i, i, i, i FROM range(100) r(i)",
            'ALTER TABLE "My Table" RENAME "a b" TO "a  b"',
            'UPDATE "My Table" SET "it\'s" = 5 WHERE "q""q" = 3 AND "select" = \'q\'',
        ],
        ["SHOW TABLES", 'DESCRIBE "My Table"', 'SELECT count(*), sum("a  b"), sum("x;y"), sum("ünï"), sum("it\'s") FROM "My Table"'],
    ),
    Session(
        "weird_names_of_tables_and_schemas",
        [
            *[f"CREATE TABLE {quoted(name)}(a INT)" for name in WEIRD],
            *[f"INSERT INTO {quoted(name)} VALUES ({number})" for number, name in enumerate(WEIRD)],
            *[f"CREATE SCHEMA {quoted('s ' + name)}" for name in WEIRD[:6]],
            *[f"CREATE TABLE {quoted('s ' + name)}.t AS SELECT {number} AS a" for number, name in enumerate(WEIRD[:6])],
            *[f"ALTER TABLE {quoted(name)} RENAME TO {quoted(name + ' 2')}" for name in WEIRD],
        ],
        [
            *[f"FROM {quoted(name + ' 2')}" for name in WEIRD],
            *[f"FROM {quoted('s ' + name)}.t" for name in WEIRD[:6]],
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name='lake' ORDER BY ALL",
        ],
    ),
    Session(
        "names_that_differ_by_case",
        [
            "CREATE TABLE Word(Aa INT)",
            "CREATE TABLE word(b INT)",
            "INSERT INTO WORD VALUES (1)",
            "SELECT aA FROM wOrd",
            "CREATE TABLE u(a INT, A INT)",
            "ALTER TABLE Word ADD COLUMN AA INT",
            "ALTER TABLE Word RENAME TO WORD",
            "CREATE SCHEMA Main2",
            "CREATE SCHEMA main2",
            "CREATE TABLE MAIN2.T(x INT)",
            "FROM main2.t",
        ],
        ["SHOW TABLES", "FROM word", "FROM Main2.t", "SELECT schema_name FROM duckdb_schemas() WHERE database_name='lake' ORDER BY 1"],
    ),
    Session(
        "long_names",
        [f'CREATE TABLE "{"t" * 200}"("{"c" * 200}" INT)', f'INSERT INTO "{"t" * 200}" VALUES (1)', f'COMMENT ON TABLE "{"t" * 200}" IS \'{"long " * 2000}\''],
        [f'FROM "{"t" * 200}"', "SELECT length(comment) FROM duckdb_tables() WHERE database_name='lake'"],
    ),
    Session(
        "names_of_the_catalog_itself",
        [
            "CREATE TABLE ducklake_table(a INT)",
            "INSERT INTO ducklake_table VALUES (1)",
            "CREATE TABLE ducklake_inlined_data_1_1(a INT)",
            "INSERT INTO ducklake_inlined_data_1_1 VALUES (2)",
            "CREATE TABLE conflict(\"primary key\" INT, \"unique\" INT, \"concurrent\" INT)",
            "INSERT INTO conflict VALUES (1, 2, 3)",
            "CREATE TABLE system_columns(ctid INT, oid INT, row_id INT, begin_snapshot INT, end_snapshot INT)",
            "INSERT INTO system_columns VALUES (1, 2, 3, 4, 5)",
            "INSERT INTO system_columns SELECT i, i, i, i, i FROM range(100) r(i)",
        ],
        ["FROM ducklake_table", "FROM ducklake_inlined_data_1_1", "FROM conflict", "SELECT count(*), sum(ctid), sum(end_snapshot) FROM system_columns", "SHOW TABLES"],
    ),
]
