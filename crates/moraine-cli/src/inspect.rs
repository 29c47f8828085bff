//! `moraine inspect`: the records of a store, decoded, one after another. What they mean together is `moraine check`'s.

use anyhow::Context;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use comfy_table::{ContentArrangement, Table, presets};
use moraine_codec::{Record, decode_record};
use moraine_keys::{HexBytes, InlineInsertKey, Key, KeyRange};
use moraine_store::{OpenOptions, Read, open_reader_ungated};
use serde_json::{Value, json};

use crate::arguments::InspectOptions;
use crate::places::the_lake;

/// Reads, and prints each record.
pub(crate) async fn run(options: InspectOptions) -> anyhow::Result<()> {
    let url = the_lake(&options.url).await?;
    let range = range(&options)?;
    let reader = open_reader_ungated(&url, &OpenOptions::default()).await?;
    let printed = print(reader.as_ref(), range, &options).await;
    let closed = reader.close().await;
    printed.with_context(|| format!("cannot read {url}"))?;
    closed?;
    Ok(())
}

fn range(options: &InspectOptions) -> anyhow::Result<KeyRange> {
    let from = KeyRange::from_text(options.key.as_deref().unwrap_or_default())?;
    let Some(to) = &options.to else {
        return Ok(from);
    };
    let range = KeyRange {
        start: from.start,
        end: KeyRange::from_text(to)?.end,
    };
    anyhow::ensure!(
        !range.is_empty(),
        "no key lies between {} and {to}; keys are ordered by their bytes, see --hex",
        options.key.as_deref().unwrap_or_default()
    );
    Ok(range)
}

async fn print(read: &dyn Read, range: KeyRange, options: &InspectOptions) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    let mut header = vec!["key", "value"];
    if options.hex {
        header.extend(["key bytes", "value bytes"]);
    }
    table.set_header(header);
    let mut left = options.limit;
    let mut scan = read.scan(range).await?;
    while let Some((key, value)) = scan.next().await? {
        if left == 0 {
            let _ = writeln_stderr("more records follow; see --limit");
            break;
        }
        left -= 1;
        let record = inspect(read, &key, &value).await?;
        if options.json {
            println!("{}", record.json(&key, &value, options.hex));
        } else {
            table.add_row(record.cells(&key, &value, options.hex));
        }
    }
    if !options.json {
        println!("{table}");
    }
    Ok(())
}

fn writeln_stderr(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    writeln!(std::io::stderr(), "{text}")
}

/// A record as people see it.
struct Inspected {
    /// The key as text; `None` where it is none.
    key: Option<String>,
    /// The value, or why there is none.
    value: Result<Value, String>,
}

impl Inspected {
    fn json(&self, key: &Bytes, value: &Bytes, hex: bool) -> Value {
        let mut object = json!({ "key": self.key });
        let fields = match &self.value {
            Ok(value) => ("value", value.clone()),
            Err(error) => ("error", json!(error)),
        };
        if let Some(object) = object.as_object_mut() {
            object.insert(fields.0.to_owned(), fields.1);
            if hex || self.key.is_none() {
                object.insert("key_hex".to_owned(), json!(text_of(key)));
            }
            if hex || self.value.is_err() {
                object.insert("value_hex".to_owned(), json!(text_of(value)));
            }
        }
        object
    }

    fn cells(&self, key: &Bytes, value: &Bytes, hex: bool) -> Vec<String> {
        let name = self.key.clone();
        let mut cells = vec![
            name.unwrap_or_else(|| format!("0x{}", text_of(key))),
            match &self.value {
                Ok(value) => fields(value),
                Err(error) => format!("! {error}"),
            },
        ];
        if hex {
            cells.extend([text_of(key), text_of(value)]);
        }
        cells
    }
}

/// An object as lines of field and value; anything else as it is.
fn fields(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Object(fields) => {
            let lines = fields.iter().map(|(name, value)| format!("{name}: {value}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        value => value.to_string(),
    }
}

fn text_of(bytes: &Bytes) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn inspect(read: &dyn Read, key: &Bytes, value: &Bytes) -> anyhow::Result<Inspected> {
    let name = Key::decode(key).ok().map(|key| key.to_string());
    let record = match decode_record(key, value) {
        Ok(record) => record,
        Err(error) => {
            return Ok(Inspected {
                key: name,
                value: Err(error.to_string()),
            });
        }
    };
    let mut value = moraine_codec::to_json(&record)?;
    explain(read, &record, &mut value).await?;
    Ok(Inspected {
        key: name,
        value: Ok(value),
    })
}

/// Puts what the bytes within a value say in the place of the bytes.
async fn explain(read: &dyn Read, record: &Record, value: &mut Value) -> anyhow::Result<()> {
    match record {
        Record::InlineSchema(_, schema) if !schema.arrow_schema.is_empty() => {
            value["arrow_schema"] = match moraine_inline::decode_schema(&schema.arrow_schema) {
                Ok(schema) => schema
                    .fields()
                    .iter()
                    .map(|field| json!({ "name": field.name(), "type": field.data_type().to_string(), "nullable": field.is_nullable(), "metadata": field.metadata() }))
                    .collect(),
                Err(error) => json!({ "error": error.to_string() }),
            };
        }
        Record::InlineInsert(key, chunk) => {
            value["body"] = match rows(read, key, &chunk.body, chunk.row_count).await? {
                Ok(rows) => rows,
                Err(error) => json!({ "error": error, "bytes": chunk.body.len() }),
            };
        }
        Record::Changelog(_, changelog) => {
            value["keys"] = changelog.keys.iter().map(|key| json!(key_text(key))).collect();
        }
        Record::Migration(_, migration) if !migration.cursor.is_empty() => {
            value["cursor"] = json!(key_text(&migration.cursor));
        }
        _ => {}
    }
    Ok(())
}

fn key_text(key: &[u8]) -> String {
    Key::decode(key).map_or_else(|_| format!("0x{}", HexBytes::from(key)), |key| key.to_string())
}

/// The rows of a chunk, as objects of texts; the reason where they cannot be decoded.
async fn rows(
    read: &dyn Read,
    key: &InlineInsertKey,
    body: &Bytes,
    row_count: u64,
) -> anyhow::Result<Result<Value, String>> {
    let schema = match moraine_inline::schema(read, key.table_id, key.schema_version).await {
        Ok(Some(schema)) => schema,
        Ok(None) => {
            return Ok(Err(format!(
                "there is no schema of version {}",
                key.schema_version
            )));
        }
        Err(error) => return Ok(Err(error.to_string())),
    };
    let batch = match moraine_inline::decode_body(body, schema, row_count) {
        Ok(batch) => batch,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let options = FormatOptions::default().with_display_error(true);
    let schema = batch.schema();
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| {
            Ok((
                field.name().as_str(),
                column,
                ArrayFormatter::try_new(column, &options)?,
            ))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let row = |at: usize| -> Value {
        let cells = columns.iter().map(|(name, column, text)| {
            let cell = if column.is_null(at) {
                Value::Null
            } else {
                json!(text.value(at).to_string())
            };
            ((*name).to_owned(), cell)
        });
        Value::Object(cells.collect())
    };
    Ok(Ok((0..batch.num_rows()).map(row).collect()))
}
