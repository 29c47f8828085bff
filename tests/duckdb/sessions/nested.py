"""Lists, structs and maps, nested twice; inlined, in Parquet, and altered.

To a Postgres catalog DuckLake writes an inlined nested value as text, and scalars that need a cast (dates, times,
UUIDs, not-a-number) go into a struct's text as that cast, which its own reader then cannot read. Two sessions
pin what comes of it; the others keep to what can be read.
"""

from harness.session import REOPEN, Session, differs, fails

NESTED = [
    "CREATE TABLE t(id INT, l INT[], s STRUCT(x INT, y VARCHAR), m MAP(VARCHAR, INT), ll VARCHAR[][], "
    "ls STRUCT(p INT, q INT[])[], sl STRUCT(a STRUCT(b DOUBLE, c VARCHAR[]), d BOOLEAN), ld DATE[], mm MAP(INT, STRUCT(k VARCHAR, v DECIMAL(9,2))))",
    "INSERT INTO t VALUES (1, [1, 2, 3], {'x': 1, 'y': 'q'}, MAP {'k': 1}, [['a', 'b'], ['c']], [{'p': 1, 'q': [1, 2]}, {'p': 2, 'q': []}], "
    "{'a': {'b': 1.5, 'c': ['x', 'y']}, 'd': true}, [DATE '2024-02-29', NULL], MAP {1: {'k': 'one', 'v': 1.25}, 2: {'k': 'two', 'v': -0.01}})",
    "INSERT INTO t VALUES (2, [], {'x': NULL, 'y': NULL}, MAP {}, [[], NULL, ['', NULL]], [], {'a': NULL, 'd': NULL}, [], MAP {})",
    "INSERT INTO t VALUES (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO t VALUES (4, [NULL, -1], {'x': -1, 'y': 'comma, brace } bracket ] equals = \"double\"'}, MAP {'a, b': 1, 'c=d': 2}, "
    "[['snöw☃', 'a,b', '[x]', 'NULL']], [{'p': NULL, 'q': NULL}, NULL], {'a': {'b': 1e300, 'c': [NULL]}, 'd': false}, ['infinity'], MAP {0: NULL})",
]
NESTED_READS = [
    *[f"SELECT id, {column} FROM t ORDER BY id" for column in ["l", "s", "m", "ll", "ls", "sl", "ld", "mm"]],
    "SELECT id, s.x, s.y, l[1], m['k'], ll[1][2], ls[1].q[2], sl.a.c[1], mm[1].v FROM t ORDER BY id",
    "SELECT count(l), count(s), count(m), count(ll), count(ls), count(sl), count(ld), count(mm) FROM t",
    "DESCRIBE t",
]

SESSIONS = [
    Session("nested_types_inlined", NESTED, NESTED_READS),
    Session("nested_types_in_parquet", NESTED, NESTED_READS, "DATA_INLINING_ROW_LIMIT 0"),
    Session("nested_types_flushed", [*NESTED, "SELECT count(*) FROM ducklake_flush_inlined_data('lake')"], NESTED_READS),
    Session(
        "nested_types_inlined_updated",
        [
            *NESTED,
            "UPDATE t SET l = [9] WHERE id = 1",
            "UPDATE t SET s = {'x': 7, 'y': 'seven'} WHERE s IS NULL",
            "DELETE FROM t WHERE len(l) = 0",
        ],
        NESTED_READS,
    ),
    Session(
        "apostrophe_in_an_inlined_struct",
        [
            "CREATE TABLE t(id INT, s STRUCT(y VARCHAR), l VARCHAR[])",
            "INSERT INTO t VALUES (1, {'y': 'it''s'}, ['plain'])",
            differs(
                "SELECT s.y FROM t",
                "[('its',)]",
                "DuckLake's client writes an inlined struct to a Postgres catalog as text without escaping the apostrophe, "
                "and its own reader drops it",
            ),
        ],
        ["SELECT id, l FROM t"],
    ),
    Session(
        "date_in_an_inlined_struct",
        [
            "CREATE TABLE t(id INT, s STRUCT(d DATE))",
            "INSERT INTO t VALUES (1, {'d': DATE '2024-02-29'})",
            fails(
                "SELECT s.d FROM t",
                "InternalException: INTERNAL Error: Attempted to access index 0 within vector of size 0",
                "DuckLake's client cannot read the cast that it wrote, and its DuckDB must be restarted",
            ),
            REOPEN,
            "SELECT count(*) FROM ducklake_list_files('lake', 't')",
            "INSERT INTO t SELECT i, {'d': DATE '2024-02-29'} FROM range(100) r(i)",
        ],
        ["SELECT count(*) FROM ducklake_list_files('lake', 't')"],
    ),
    Session(
        "nested_columns_are_altered",
        [
            "CREATE TABLE t(a INT[], s STRUCT(x INT, y STRUCT(z VARCHAR)), m MAP(VARCHAR, INT))",
            "INSERT INTO t SELECT [i, i + 1], {'x': i, 'y': {'z': 'q' || i}}, MAP {'k': i} FROM range(100) r(i)",
            "SELECT count(*), sum(s.x), sum(a[1]), sum(m['k']), max(s.y.z) FROM t",
            "ALTER TABLE t ADD COLUMN s.w INT",
            "SELECT count(s.w) FROM t",
            "INSERT INTO t VALUES ([1], {'x': 1, 'y': {'z': 'few'}, 'w': 5}, MAP {'k': 1})",
            "ALTER TABLE t RENAME s.x TO xx",
            "SELECT sum(s.xx), sum(s.w) FROM t",
            "ALTER TABLE t ADD COLUMN s.y.deep BIGINT",
            "ALTER TABLE t DROP COLUMN s.w",
            "ALTER TABLE t ALTER s.xx SET DATA TYPE BIGINT",
        ],
        [
            "DESCRIBE t",
            "SELECT count(*), sum(s.xx), sum(a[1]), sum(m['k']), max(s.y.z), count(s.y.deep) FROM t",
            "SELECT sum(s.x) FROM t AT (VERSION => 2)",
        ],
    ),
]
