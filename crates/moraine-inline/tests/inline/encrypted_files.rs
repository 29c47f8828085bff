//! Files of encrypted lakes: nothing of them is to be seen without the key, and with it they are read again. That DuckDB reads them
//! is shown by its sessions.

use bytes::Bytes;
use moraine_inline::{
    DataFileStream, DeleteFileFormat, DirectoriesAt, FlushColumn, FlushLayout, InlineError, ParquetOptions,
    RowMultiset, create_table, flushable_rows, read_delete_file, read_row_ids, write_delete_file,
};
use moraine_store::MemoryStore;

use crate::support::{TABLE, VERSION, columns, put, run, staging};

const KEY: &[u8] = b"0123456789abcdef";
const OTHER: &[u8] = b"0123456789abcdee";

/// A file of `rows` rows whose second column has texts such as `v4711`, written with these options.
async fn written(rows: u64, options: ParquetOptions) -> (Vec<u8>, u64) {
    let mut staged = staging(&MemoryStore::new());
    create_table(&mut staged, TABLE, VERSION, &columns(), true)
        .await
        .unwrap();
    put(&mut staged, VERSION, 4, &(0..rows).collect::<Vec<_>>()).await;
    let column = |column_id, name: &str, ducklake_type: &str| FlushColumn {
        name: name.to_owned(),
        column_id,
        ducklake_type: ducklake_type.to_owned(),
        children: Vec::new(),
    };
    let layout = FlushLayout {
        columns: vec![column(1, "n", "int64"), column(2, "s", "varchar")],
        encryption_key: Some(KEY.to_vec()),
        parquet: options,
        ..FlushLayout::default()
    };
    let found = flushable_rows(&staged, &DirectoriesAt::unknown(), TABLE, VERSION, 4)
        .await
        .unwrap();
    let mut stream = DataFileStream::new(found, layout).unwrap();
    let mut content = Vec::new();
    let flushed = stream.next_file(&staged, &mut content).await.unwrap().unwrap();
    assert_eq!((flushed.rows, flushed.file_bytes), (rows, content.len() as u64));
    (content, flushed.footer_bytes)
}

async fn row_ids(content: &[u8], footer_bytes: u64, key: &[u8]) -> Result<RowMultiset, InlineError> {
    let fetch = |range: std::ops::Range<u64>| {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        let part = Bytes::copy_from_slice(content.get(range).unwrap_or_default());
        async { Ok(part) }
    };
    let mut rows = RowMultiset::default();
    let has_column = read_row_ids(content.len() as u64, footer_bytes, Some(key), fetch, &mut rows).await?;
    assert!(has_column);
    Ok(rows)
}

#[test]
fn a_data_file_of_many_pages_shows_nothing_without_its_key_and_its_rows_with_it() {
    const ROWS: u64 = 50_000;
    for version in ["1", "2"] {
        for codec in ["snappy", "uncompressed"] {
            let option = |name: &str| match name {
                "parquet_version" => Some(version.to_owned()),
                "parquet_compression" => Some(codec.to_owned()),
                _ => None,
            };
            let options = ParquetOptions::read(option).unwrap();
            run(async {
                let (content, footer_bytes) = written(ROWS, options).await;
                assert!(content.starts_with(b"PARE") && content.ends_with(b"PARE"));
                for plain in [&b"v4711"[..], b"_ducklake_internal_row_id", b"PAR1"] {
                    assert!(!content.windows(plain.len()).any(|part| part == plain));
                }
                let mut expected = RowMultiset::default();
                expected.add(&(0..=ROWS - 1));
                assert_eq!(row_ids(&content, footer_bytes, KEY).await.unwrap(), expected);
                row_ids(&content, footer_bytes, OTHER).await.unwrap_err();
                row_ids(&content, footer_bytes, b"short").await.unwrap_err();
            });
        }
    }
}

#[test]
fn an_encrypted_file_that_is_damaged_is_refused_or_read_as_it_was() {
    run(async {
        let (content, footer_bytes) = written(3, ParquetOptions::default()).await;
        let whole = row_ids(&content, footer_bytes, KEY).await.unwrap();
        for position in 0..content.len() {
            let mut damaged = content.clone();
            damaged[position] ^= 1;
            if let Ok(rows) = row_ids(&damaged, footer_bytes, KEY).await {
                assert_eq!(rows, whole, "byte {position}");
            }
            let cut = &content[..position];
            if let Ok(rows) = row_ids(cut, footer_bytes.min(position as u64), KEY).await {
                assert_eq!(rows, whole, "cut at {position}");
            }
        }
    });
}

#[test]
fn an_encrypted_delete_file_is_read_with_its_key_only() {
    let ended: Vec<(u64, u64)> = (0..100_000)
        .map(|position| (position * 3, 7 + position % 2))
        .collect();
    let mut content = Vec::new();
    let (file_bytes, _) =
        write_delete_file("main/t/secret.parquet", &ended, Some(KEY), &mut content).unwrap();
    assert_eq!(file_bytes, content.len() as u64);
    assert!(!content.windows(6).any(|part| part == b"secret"));
    let read = |key| read_delete_file(content.clone().into(), DeleteFileFormat::Parquet, Some(key));
    let expected: Vec<_> = ended
        .iter()
        .map(|(position, end)| (*position, Some(*end)))
        .collect();
    assert_eq!(read(KEY).unwrap(), expected);
    read(OTHER).unwrap_err();
    let plain = read_delete_file(content.clone().into(), DeleteFileFormat::Parquet, None);
    plain.unwrap_err();
}
