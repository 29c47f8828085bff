//! Which changes of a column's type are widenings: what DuckDB 1.5.5 answers to `ALTER … SET DATA TYPE` on a DuckLake.

use moraine_commit::lake::ColumnType;

/// Each type, and all that it may become, among those that are in the list.
const WIDENINGS: &str = "\
boolean: int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 json variant
int8: int16 int32 int64 int128 float32 float64 decimal(4,1) decimal(10,2) decimal(18,3) decimal(38,10) decimal(20,0) json variant
int16: int32 int64 int128 float32 float64 decimal(10,2) decimal(18,3) decimal(38,10) decimal(20,0) json variant
int32: int64 int128 float32 float64 decimal(18,3) decimal(38,10) decimal(20,0) json variant
int64: int128 float32 float64 decimal(38,10) decimal(20,0) json variant
int128: float32 float64 decimal(38,10) json variant
uint8: int16 int32 int64 int128 uint16 uint32 uint64 uint128 float32 float64 decimal(4,1) decimal(10,2) decimal(18,3) decimal(38,10) decimal(20,0) json variant
uint16: int32 int64 int128 uint32 uint64 uint128 float32 float64 decimal(10,2) decimal(18,3) decimal(38,10) decimal(20,0) json variant
uint32: int64 int128 uint64 uint128 float32 float64 decimal(18,3) decimal(38,10) decimal(20,0) json variant
uint64: int128 uint128 float32 float64 decimal(38,10) decimal(20,0) json variant
uint128: float32 float64 decimal(38,10) json variant
float32: float64 json variant
float64: json variant
decimal(4,1): float32 float64 decimal(10,2) decimal(18,3) decimal(38,10) json variant
decimal(10,2): float32 float64 decimal(18,3) decimal(38,10) json variant
decimal(18,3): float32 float64 decimal(38,10) json variant
decimal(38,10): float32 float64 json variant
decimal(20,0): float32 float64 decimal(38,10) json variant
time: json variant
time_ns: json variant
timetz: json variant
date: timestamp timestamp_s timestamp_ms timestamp_ns timestamptz json variant
timestamp: timestamp_ns timestamptz json variant
timestamp_s: timestamp timestamp_ms timestamp_ns json variant
timestamp_ms: timestamp timestamp_ns json variant
timestamp_ns: json variant
timestamptz: json variant
interval: json variant
varchar: json variant
json:
blob: json variant
uuid: json variant
variant: json
geometry: json variant
";

#[test]
fn types_widen_as_duckdb_widens_them() {
    let lines: Vec<(&str, Vec<&str>)> = WIDENINGS
        .lines()
        .map(|line| {
            let (from, to) = line.split_once(':').unwrap();
            (from, to.split_whitespace().collect())
        })
        .collect();
    for (from, to) in &lines {
        let source = ColumnType::from_text(from, Vec::new());
        assert_eq!(source.to_string(), *from);
        for (target, _) in &lines {
            let widens = source.widens_to(&ColumnType::from_text(target, Vec::new()));
            assert_eq!(widens, to.contains(target), "{from} to {target}");
        }
    }
}

#[test]
fn nested_types_are_put_together_from_their_fields() {
    let point = ColumnType::Struct(vec![
        ("x".into(), ColumnType::Int32),
        ("y".into(), ColumnType::Int32),
    ]);
    let fields = vec![("x".into(), ColumnType::Int32), ("y".into(), ColumnType::Int32)];
    assert_eq!(ColumnType::from_text("struct", fields), point);
    let list = ColumnType::from_text("list", vec![("element".into(), point.clone())]);
    assert_eq!(list, ColumnType::List(Box::new(point)));
    assert_eq!(list.to_string(), "list");
    assert_eq!(
        ColumnType::from_text("list", Vec::new()),
        ColumnType::Unknown("list".into())
    );
}
