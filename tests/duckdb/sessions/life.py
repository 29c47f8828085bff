"""The life of a lake: everything in one session, and afterwards a look at every moment of it."""

from harness.session import Session

SNAPSHOTS_MAX = 40

STEPS = [
    "CREATE TABLE orders(id INT, customer VARCHAR, amount DECIMAL(12,2), placed TIMESTAMP)",
    "CREATE SCHEMA archive",
    "INSERT INTO orders VALUES (1, 'ann', 10.50, TIMESTAMP '2024-01-01 10:00:00'), (2, 'bob', 20, TIMESTAMP '2024-01-02 11:00:00')",
    "INSERT INTO orders SELECT i, 'c' || i % 10, i * 1.25, TIMESTAMP '2024-02-01' + INTERVAL (i) HOUR FROM range(100, 1100) r(i)",
    "COMMENT ON TABLE orders IS 'what was ordered'",
    "UPDATE orders SET amount = amount + 1 WHERE customer = 'ann'",
    "DELETE FROM orders WHERE customer = 'c3'",
    "CREATE VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
    "ALTER TABLE orders ADD COLUMN note VARCHAR DEFAULT 'none'",
    "INSERT INTO orders VALUES (3, 'cay', 1, TIMESTAMP '2024-03-01', 'it''s ☃')",
    "ALTER TABLE orders RENAME COLUMN customer TO buyer",
    "CREATE OR REPLACE VIEW totals AS SELECT buyer, sum(amount) AS total FROM orders GROUP BY buyer",
    "CREATE TABLE archive.old AS SELECT * FROM orders WHERE id < 300",
    "BEGIN",
    "DELETE FROM orders WHERE id BETWEEN 100 AND 299",
    "INSERT INTO orders VALUES (4, 'dan', 4, NULL, NULL)",
    "COMMIT",
    "CREATE MACRO vat(x) AS x * 1.2",
    "ALTER TABLE orders SET PARTITIONED BY (month(placed))",
    "INSERT INTO orders SELECT i, 'p' || i % 3, i, TIMESTAMP '2024-06-01' + INTERVAL (i) DAY, NULL FROM range(2000, 2100) r(i)",
    "MERGE INTO orders USING (VALUES (1, 'ann'), (9999, 'new')) s(id, buyer) ON orders.id = s.id "
    "WHEN MATCHED THEN UPDATE SET note = 'merged' WHEN NOT MATCHED THEN INSERT (id, buyer) VALUES (s.id, s.buyer)",
    "SELECT count(*) FROM ducklake_flush_inlined_data('lake')",
    "INSERT INTO orders VALUES (5, 'eve', 5, TIMESTAMP '2024-07-01', 'after the flush')",
    "UPDATE orders SET note = upper(note) WHERE id IN (3, 5, 2050)",
    "ALTER TABLE orders ALTER id SET DATA TYPE BIGINT",
    "INSERT INTO orders VALUES (5000000000, 'far', 0.01, NULL, 'big')",
    "SELECT count(*) FROM ducklake_merge_adjacent_files('lake')",
    "SELECT count(*) FROM ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
    "DROP TABLE archive.old",
    "DROP SCHEMA archive",
    "ALTER TABLE orders DROP COLUMN note",
    "INSERT INTO orders VALUES (6, 'fin', 6, TIMESTAMP '2024-08-01')",
    "SELECT count(*) FROM ducklake_cleanup_old_files('lake', cleanup_all => true)",
]

NOW = [
    "SELECT count(*), sum(id), sum(amount), min(placed), max(placed) FROM orders",
    "FROM totals ORDER BY buyer",
    "SELECT lake.vat(total)::DECIMAL(12,2) FROM totals ORDER BY 1",
    "SELECT snapshot_id, schema_version, changes FROM ducklake_snapshots('lake') ORDER BY 1",
    "SELECT change_type, count(*) FROM ducklake_table_changes('lake', 'main', 'orders', 3, 20) GROUP BY ALL ORDER BY ALL",
    "SELECT table_name, comment FROM duckdb_tables() WHERE database_name='lake' ORDER BY 1",
]
PAST = [
    f"SELECT count(*), sum(id), sum(amount), count(COLUMNS(*)) FROM orders AT (VERSION => {version})"
    for version in range(1, SNAPSHOTS_MAX)
]
ROWS = [f"SELECT md5(string_agg(o::VARCHAR, '|' ORDER BY id)) FROM orders AT (VERSION => {version}) o" for version in range(1, SNAPSHOTS_MAX)]

# Settings of DuckDB's postgres extension that change what a server is asked.
WAYS_OF_ASKING = {
    "in_text": "SET GLOBAL pg_use_text_protocol=true",
    "without_binary_copy": "SET GLOBAL pg_use_binary_copy=false",
    "through_the_information_schema": "SET GLOBAL pg_use_information_schema_introspection=true",
    "without_pushed_down_filters": "SET GLOBAL pg_experimental_filter_pushdown=false",
}

SESSIONS = [
    Session("the_life_of_a_lake", STEPS, [*NOW, *PAST, *ROWS]),
    Session(
        "the_life_of_a_lake_that_forgets",
        [*STEPS, "SELECT count(*) FROM ducklake_expire_snapshots('lake', versions => [3, 4, 7, 9, 12, 13, 14, 20])", "SELECT count(*) FROM ducklake_cleanup_old_files('lake', cleanup_all => true)"],
        [*NOW[:3], "SELECT snapshot_id FROM ducklake_snapshots('lake') ORDER BY 1", *PAST],
    ),
    Session("the_life_of_a_lake_without_inlining", STEPS, [*NOW, *PAST[::3]], "DATA_INLINING_ROW_LIMIT 0"),
    *[Session(f"the_life_of_a_lake_{way}", STEPS, [*NOW, *PAST[::5]], before=(setting,)) for way, setting in WAYS_OF_ASKING.items()],
]
