//! Catalogs in DuckDB files, read and written by a DuckDB of the machine: what is asked for is written to Parquet files by one
//! script, in one transaction, and read from there; what is written goes the same way back.

mod program;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use async_trait::async_trait;
use moraine_tables::ColumnType;
use tempfile::TempDir;

use crate::lake::parquet_files::{Cells, RowFile, read};
use crate::lake::{
    CatalogLocation, LakeError, Query, QueryColumn, Raw, Rows, Source, SourceColumn, TABLE_PREFIX, Target,
    TargetColumn, TargetTable, literal, quoted, raw_interval,
};
pub use program::DUCKDB_VARIABLE;
use program::Program;

/// What the file is attached as.
const ATTACHED: &str = "moraine_lake";

/// A catalog that is read.
pub(crate) struct DuckDbSource {
    name: String,
    path: PathBuf,
    schema: String,
    program: Program,
    scratch: TempDir,
    tables: BTreeMap<String, Vec<SourceColumn>>,
    counts: HashMap<String, u64>,
    /// The file of each query that has been answered.
    answers: HashMap<Query, PathBuf>,
    /// Size and time of the file and its log at the beginning.
    stamp: Vec<Option<(u64, SystemTime)>>,
}

impl DuckDbSource {
    /// Opens the catalog in a file.
    pub(crate) async fn open(path: &Path, schema: &str) -> Result<DuckDbSource, LakeError> {
        let name = words(path, schema);
        if !path.is_file() {
            return Err(LakeError::NotFound {
                catalog: name,
                detail: "there is no such file".to_owned(),
            });
        }
        let stamp = stamp(path);
        let program = Program::find().await?;
        let scratch = scratch(&name)?;
        let tables = list(&program, &scratch, &name, path, schema).await?;
        Ok(DuckDbSource {
            name,
            path: path.to_owned(),
            schema: schema.to_owned(),
            program,
            scratch,
            tables,
            counts: HashMap::new(),
            answers: HashMap::new(),
            stamp,
        })
    }

    fn table(&self, name: &str) -> String {
        format!("{ATTACHED}.{}.{}", quoted(&self.schema), quoted(name))
    }

    async fn run(&self, doing: &str, script: &str) -> Result<(), LakeError> {
        let ran = self.program.run(script, self.scratch.path()).await;
        ran.map_err(|detail| LakeError::database(&self.name, doing, detail))
    }

    fn select(&self, query: &Query) -> String {
        let declared = self.tables.get(&query.table);
        let columns: Vec<String> = query
            .columns
            .iter()
            .map(|column| {
                let found =
                    declared.and_then(|columns| columns.iter().find(|found| found.name == column.name));
                expression(column, found.map_or("", |found| found.declared.as_str()))
            })
            .collect();
        let filter = query.not_null.as_ref();
        let filter = filter.map_or_else(String::new, |column| {
            format!(" WHERE {} IS NOT NULL", quoted(column))
        });
        let order: Vec<String> = query.order.iter().map(|column| quoted(column)).collect();
        let order = order.iter().map(String::as_str).chain(["rowid"]);
        format!(
            "SELECT {} FROM {}{filter} ORDER BY {}",
            columns.join(", "),
            self.table(&query.table),
            order.collect::<Vec<_>>().join(", ")
        )
    }
}

fn words(path: &Path, schema: &str) -> String {
    CatalogLocation::DuckDb {
        path: path.to_owned(),
        schema: schema.to_owned(),
    }
    .to_string()
}

fn scratch(name: &str) -> Result<TempDir, LakeError> {
    tempfile::tempdir().map_err(|error| LakeError::database(name, "making a folder for its rows", error))
}

fn stamp(path: &Path) -> Vec<Option<(u64, SystemTime)>> {
    let mut log = path.as_os_str().to_owned();
    log.push(".wal");
    [path.to_owned(), log.into()]
        .iter()
        .map(|file| {
            let metadata = std::fs::metadata(file).ok()?;
            Some((metadata.len(), metadata.modified().ok()?))
        })
        .collect()
}

fn attach(path: &Path, options: &str) -> String {
    format!(
        "ATTACH {} AS {ATTACHED}{options};\n",
        literal(&path.display().to_string())
    )
}

fn copy(select: &str, file: &Path) -> String {
    format!(
        "COPY ({select}) TO {} (FORMAT parquet);\n",
        literal(&file.display().to_string())
    )
}

/// The column as a number, as bytes or as text.
fn expression(column: &QueryColumn, declared: &str) -> String {
    let name = quoted(&column.name);
    match column.column_type {
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => format!("CAST({name} AS BIGINT)"),
        ColumnType::Bytes if declared == "BLOB" => name,
        ColumnType::Interval => raw_interval(&name),
        _ => format!("CAST({name} AS VARCHAR)"),
    }
}

async fn list(
    program: &Program,
    scratch: &TempDir,
    name: &str,
    path: &Path,
    schema: &str,
) -> Result<BTreeMap<String, Vec<SourceColumn>>, LakeError> {
    let file = scratch.path().join("columns.parquet");
    let select = format!(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE database_name = '{ATTACHED}' \
         AND schema_name = {} AND NOT internal ORDER BY table_name, column_index",
        literal(schema)
    );
    let script = attach(path, " (READ_ONLY)") + &copy(&select, &file);
    let ran = program.run(&script, scratch.path()).await;
    ran.map_err(|detail| LakeError::database(name, "reading its tables", detail))?;
    let mut tables: BTreeMap<String, Vec<SourceColumn>> = BTreeMap::new();
    let mut rows = read(file);
    while let Some(batch) = rows.next().await? {
        for row in batch {
            if let [Raw::Text(table), Raw::Text(column), Raw::Text(declared)] = row.as_slice()
                && table.starts_with(TABLE_PREFIX)
            {
                tables.entry(table.clone()).or_default().push(SourceColumn {
                    name: column.clone(),
                    declared: declared.clone(),
                });
            }
        }
    }
    Ok(tables)
}

#[async_trait]
impl Source for DuckDbSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn tables(&self) -> &BTreeMap<String, Vec<SourceColumn>> {
        &self.tables
    }

    async fn prepare(&mut self, queries: &[Query]) -> Result<(), LakeError> {
        let mut script = attach(&self.path, " (READ_ONLY)") + "BEGIN;\n";
        let mut answers = HashMap::new();
        for query in queries {
            if self.answers.contains_key(query) || answers.contains_key(query) {
                continue;
            }
            let number = self.answers.len() + answers.len();
            let file = self.scratch.path().join(format!("rows{number}.parquet"));
            script += &copy(&self.select(query), &file);
            answers.insert(query.clone(), file);
        }
        let counts: Vec<String> = self
            .tables
            .keys()
            .map(|table| format!("SELECT {}, count(*) FROM {}", literal(table), self.table(table)))
            .collect();
        let counts_file = self.scratch.path().join("counts.parquet");
        if !counts.is_empty() {
            script += &copy(&counts.join(" UNION ALL "), &counts_file);
        }
        script += "COMMIT;\n";
        self.run("reading its rows", &script).await?;
        self.answers.extend(answers);
        if !counts.is_empty() {
            let mut rows = read(counts_file);
            while let Some(batch) = rows.next().await? {
                for row in batch {
                    if let [Raw::Text(table), Raw::Int(count)] = row.as_slice() {
                        let count = u64::try_from(*count).unwrap_or_default();
                        self.counts.insert(table.clone(), count);
                    }
                }
            }
        }
        Ok(())
    }

    async fn rows(&self, query: &Query) -> Result<Box<dyn Rows>, LakeError> {
        match self.answers.get(query) {
            Some(file) => Ok(Box::new(read(file.clone()))),
            None => Err(LakeError::database(
                &self.name,
                &format!("reading {}", query.table),
                "the query was not announced",
            )),
        }
    }

    async fn count(&self, table: &str) -> Result<u64, LakeError> {
        self.counts
            .get(table)
            .copied()
            .ok_or_else(|| LakeError::database(&self.name, "counting rows", format!("{table} is not there")))
    }

    async fn normalised(
        &self,
        native_type: &str,
        texts: &[Option<String>],
    ) -> Result<Option<Vec<Option<String>>>, LakeError> {
        let (input, output) = (
            self.scratch.path().join("texts.parquet"),
            self.scratch.path().join("normalised.parquet"),
        );
        let mut file = RowFile::create(&input, &[Cells::Ints, Cells::Texts])?;
        let mut number = 0;
        let rows: Vec<Vec<Raw>> = texts
            .iter()
            .map(|text| {
                number += 1;
                vec![Raw::Int(number), text.clone().map_or(Raw::Null, Raw::Text)]
            })
            .collect();
        file.write(&rows)?;
        file.finish()?;
        let select = format!(
            "SELECT CAST(CAST(c1 AS {native_type}) AS VARCHAR) FROM read_parquet({}) ORDER BY c0",
            literal(&input.display().to_string())
        );
        self.run("comparing nested values", &copy(&select, &output))
            .await?;
        let mut normalised = Vec::with_capacity(texts.len());
        let mut rows = read(output);
        while let Some(batch) = rows.next().await? {
            normalised.extend(batch.into_iter().map(|row| match row.into_iter().next() {
                Some(Raw::Text(text)) => Some(text),
                _ => None,
            }));
        }
        Ok(Some(normalised))
    }

    async fn is_unchanged(&self) -> Result<bool, LakeError> {
        Ok(stamp(&self.path) == self.stamp)
    }
}

/// A catalog that is written: the rows wait in files until all of them are there, then one transaction takes them in.
pub(crate) struct DuckDbTarget {
    name: String,
    path: PathBuf,
    schema: String,
    program: Program,
    scratch: TempDir,
    is_new: bool,
    tables: Vec<(TargetTable, PathBuf)>,
    file: Option<RowFile>,
}

impl DuckDbTarget {
    /// Prepares for a file that has no lake.
    pub(crate) async fn open(path: &Path, schema: &str) -> Result<DuckDbTarget, LakeError> {
        let name = words(path, schema);
        let program = Program::find().await?;
        let scratch = scratch(&name)?;
        let is_new = !path.exists();
        if !is_new {
            let tables = list(&program, &scratch, &name, path, schema).await?;
            if let Some(table) = tables.into_keys().next() {
                return Err(LakeError::NotEmpty {
                    catalog: name,
                    detail: format!("it has a table {table}"),
                });
            }
        }
        Ok(DuckDbTarget {
            name,
            path: path.to_owned(),
            schema: schema.to_owned(),
            program,
            scratch,
            is_new,
            tables: Vec::new(),
            file: None,
        })
    }

    fn script(&self) -> String {
        let mut script = attach(&self.path, "");
        script += "BEGIN;\n";
        script += &format!(
            "CREATE SCHEMA IF NOT EXISTS {ATTACHED}.{};\n",
            quoted(&self.schema)
        );
        for (table, file) in &self.tables {
            let place = format!("{ATTACHED}.{}.{}", quoted(&self.schema), quoted(&table.name));
            let column = |(position, column): (usize, &TargetColumn)| {
                let suffix = match (table.primary_key == Some(position), column.not_null) {
                    (true, _) => " PRIMARY KEY",
                    (false, true) => " NOT NULL",
                    (false, false) => "",
                };
                format!("{} {}{suffix}", quoted(&column.name), duckdb_type(column))
            };
            let columns: Vec<String> = table.columns.iter().enumerate().map(column).collect();
            script += &format!("CREATE TABLE {place}({});\n", columns.join(", "));
            let cast = |(position, column): (usize, &TargetColumn)| {
                format!("CAST(c{position} AS {})", duckdb_type(column))
            };
            let casts: Vec<String> = table.columns.iter().enumerate().map(cast).collect();
            script += &format!(
                "INSERT INTO {place} SELECT {} FROM read_parquet({});\n",
                casts.join(", "),
                literal(&file.display().to_string())
            );
        }
        script + "COMMIT;\nDETACH " + ATTACHED + ";\n"
    }

    fn remove_new_file(&self) {
        let mut log = self.path.as_os_str().to_owned();
        log.push(".wal");
        for file in [self.path.clone(), log.into()] {
            if self.is_new && file.exists() {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

fn duckdb_type(column: &TargetColumn) -> String {
    if let Some(native) = &column.native_type {
        return native.clone();
    }
    match column.column_type {
        ColumnType::Bytes => "BLOB".to_owned(),
        other => other.sql_name(),
    }
}

fn cells(column: &TargetColumn) -> Cells {
    match column.column_type {
        ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 => Cells::Ints,
        ColumnType::Bytes if duckdb_type(column) == "BLOB" => Cells::Blobs,
        _ => Cells::Texts,
    }
}

#[async_trait]
impl Target for DuckDbTarget {
    fn name(&self) -> &str {
        &self.name
    }

    async fn create(&mut self, table: &TargetTable) -> Result<(), LakeError> {
        if let Some(file) = self.file.take() {
            file.finish()?;
        }
        let path = self
            .scratch
            .path()
            .join(format!("table{}.parquet", self.tables.len()));
        let cells: Vec<Cells> = table.columns.iter().map(cells).collect();
        self.file = Some(RowFile::create(&path, &cells)?);
        self.tables.push((table.clone(), path));
        Ok(())
    }

    async fn write(&mut self, rows: Vec<Vec<Raw>>) -> Result<(), LakeError> {
        match &mut self.file {
            Some(file) => file.write(&rows),
            None => Ok(()),
        }
    }

    async fn commit(mut self: Box<Self>) -> Result<(), LakeError> {
        if let Some(file) = self.file.take() {
            file.finish()?;
        }
        let ran = self.program.run(&self.script(), self.scratch.path()).await;
        ran.map_err(|detail| {
            self.remove_new_file();
            LakeError::database(&self.name, "writing it", detail)
        })
    }

    /// Nothing was written to the file yet.
    async fn abort(self: Box<Self>) {
        self.remove_new_file();
    }
}
