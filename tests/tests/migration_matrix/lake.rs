//! A lake with records of all kinds, as software of each format wrote it. Frozen: what a format is does not change any
//! more, so these writers do not either; a new format gets a new condition here and nothing else.
//!
//! What a lake of format `features` can hold is written as format `layout` lays it out. The lake of format 8, say, as
//! format 8 is `records(8, 8, …)`; the same lake as format 12 would have it is `records(8, 12, …)`.

use crate::bytes::{Message, Records, hex, key, key_with_bytes, message};

const ARROW_SCHEMA: &[&str] = &[
    "ffffffffa80000001000000000000a000c000a00090004000a00000010000000000104000800080000000400080000000400",
    "0000020000004000000004000000d8ffffff180000000c000000000001051000000000000000040004000400000002000000",
    "633100001000140010000e000f00040000000800100000001800000020000000000001021c00000008000c0004000b000800",
    "0000400000000000000100000000020000006330000000000000ffffffff00000000",
];
/// Three rows of [`ARROW_SCHEMA`].
const ARROW_BODY: &[&str] = &[
    "c8000000100000000c001a0018001700040008000c000000200000004000000000000000000000000000000304000a001800",
    "0c00080004000a0000003c000000100000000300000000000000000000000200000003000000000000000100000000000000",
    "0300000000000000010000000000000000000000050000000000000000000000010000000000000008000000000000001800",
    "0000000000002000000000000000010000000000000028000000000000001000000000000000380000000000000003000000",
    "00000000050000000000000001000000000000000000000000000000fdffffffffffffff0600000000000000000000000000",
    "000002000000030000006162630000000000",
];
const CHUNK_ROWS: u64 = 3;

/// How large a lake is: tables, and files, chunks and so on of each table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) tables: u64,
    pub(crate) each: u64,
}

/// A few hundred bytes of each kind, for stores in the repository.
pub(crate) const TINY: Size = Size { tables: 3, each: 2 };
/// Some hundreds of records.
pub(crate) const SMALL: Size = Size { tables: 8, each: 4 };
/// Some thousands.
pub(crate) const LARGE: Size = Size { tables: 40, each: 12 };

/// The lake being written.
pub(crate) struct Lake {
    features: u64,
    layout: u64,
    size: Size,
    records: Records,
}

/// The records of the lake that format `features` can hold, laid out as `layout`.
pub(crate) fn records(features: u64, layout: u64, size: Size) -> Records {
    let mut lake = Lake {
        features,
        layout,
        size,
        records: Records::new(),
    };
    lake.system();
    lake.snapshots();
    lake.schemas();
    for table in 1..=size.tables {
        lake.table(table);
        lake.columns(table);
        lake.files(table);
        lake.layouts(table);
        lake.inlined(table);
    }
    lake.others();
    lake.indexes();
    lake.records
}

impl Lake {
    /// Snapshots 0 to this one; a third of those between have expired.
    fn newest(&self) -> u64 {
        self.size.tables + 2 * self.size.each + 3
    }

    fn expired(&self, snapshot: u64) -> bool {
        snapshot % 3 == 1 && snapshot < self.newest()
    }

    fn put(&mut self, key: Vec<u8>, value: Message) {
        self.records.insert(key, value.framed());
    }

    /// A current version, or an ended one where `end` is set. `kind` is the third byte of current keys.
    fn version(&mut self, kind: u8, ids: &[u64], end: Option<u64>, value: Message) {
        let key = match end {
            None => key(&[4, 2, kind], ids),
            Some(end) => key(&[5, kind], &[ids, &[end]].concat()),
        };
        self.put(key, value);
    }

    fn system(&mut self) {
        let writer = format!("moraine of format {}", self.layout);
        self.put(vec![2, 2], message().u(1, self.layout).s(2, &writer));
        self.put(vec![2, 3], message().u(1, self.newest()).u(2, self.newest() + 5));
        if self.features >= 5 {
            let step = message().s(1, "sweep").s(2, "ran").s(3, "3 entries");
            let pass = message().u(1, 1_700_000_000_000_000).s(2, "scheduled").m(3, step);
            self.put(vec![2, 5], message().m(1, pass));
        }
    }

    fn snapshots(&mut self) {
        for snapshot in (0..=self.newest())
            .filter(|id| !self.expired(*id))
            .collect::<Vec<_>>()
        {
            // Snapshot n makes table n.
            let made = (1..=self.size.tables).contains(&snapshot).then_some(snapshot);
            let changes = match made {
                Some(table) => format!("created_table:\"main\".\"t{table}\""),
                None => "inserted_into_table:1".to_owned(),
            };
            let value = message()
                .u(1, snapshot)
                .u(2, 1_700_000_000_000_000 + snapshot)
                .u(3, snapshot)
                .u(4, self.size.tables + 100)
                .u(5, 10_000)
                .s(7, &changes)
                .os(8, (snapshot % 2 == 0).then_some("Ada"))
                .os(9, (snapshot % 2 == 0).then_some(""))
                .packed(11, made.as_slice());
            self.put(key(&[3], &[snapshot]), value);
            if self.features >= 2 {
                let changed = message().bytes(1, &key(&[4, 2, 3], &[snapshot]));
                self.put(key(&[9], &[snapshot]), changed);
            }
        }
    }

    fn schemas(&mut self) {
        let names: [(u64, &str, Option<u64>); 4] = [
            (0, "main", None),
            (101, "été \u{0}\u{1}", None),
            (102, "main", None),
            (103, "gone", Some(4)),
        ];
        for (id, name, end) in names {
            let value = message()
                .u(1, id)
                .s(2, &format!("00000000-0000-4000-8000-{id:012}"))
                .ou(4, end)
                .s(5, name)
                .s(6, "main/")
                .flag(7, true);
            self.version(2, &[id], end, value);
            if self.layout >= 11 && end.is_none() {
                self.name(0, 0, name, id);
            }
        }
    }

    fn name(&mut self, kind: u64, parent: u64, name: &str, id: u64) {
        let key = key_with_bytes(&[10], &[kind, parent], name.as_bytes(), &[id]);
        self.records.insert(key, Vec::new());
    }

    /// Every table has a former version, under another name; every fifth has ended.
    fn table(&mut self, table: u64) {
        let ended = (table.is_multiple_of(5)).then_some(self.newest());
        let (former, name) = (format!("former {table}"), format!("t{}", table % 4));
        let schema = if table.is_multiple_of(2) { 0 } else { 101 };
        let versions = [
            (former.as_str(), table, Some(table + 1)),
            (&name, table + 1, ended),
        ];
        for (name, begin, end) in versions {
            let value = message()
                .u(1, table)
                .s(2, &format!("10000000-0000-4000-8000-{table:012}"))
                .u(3, begin)
                .ou(4, end)
                .u(5, schema)
                .s(6, name)
                .s(7, "t/")
                .flag(8, true)
                .u(9, 4);
            self.version(3, &[table], end, value);
        }
        if self.layout >= 11 && ended.is_none() {
            self.name(1, schema, &name, table);
        }
        self.schema_version(table);
        let stats = message().u(1, table).u(2, 1000).u(3, 5000).u(4, 1 << 20);
        self.version(10, &[table], None, stats);
    }

    /// The row of `ducklake_schema_versions` that table `n` got with snapshot `n`. Early software had it within the
    /// snapshot only; where that has expired, the oldest file of the table stands in for it.
    fn schema_version(&mut self, table: u64) {
        let early = self.features == 1;
        if early && self.layout == 1 {
            return;
        }
        let (begin, version) = match early && self.expired(table) {
            true => (self.file_begin(table, 1), self.newest()),
            false => (table, table),
        };
        self.put(key(&[8], &[table, begin]), message().u(1, version));
    }

    fn columns(&mut self, table: u64) {
        for column in 1..=3 {
            for end in [None, Some(table + 1)] {
                let begin = if end.is_some() { table } else { table + 1 };
                let tag = message().u(1, table).ou(2, end).s(3, "comment").s(4, "a tag");
                let mut value = message()
                    .u(1, column)
                    .u(2, begin)
                    .ou(3, end)
                    .u(4, table)
                    .u(5, column)
                    .s(6, &format!("c{column}"))
                    .s(7, if column == 2 { "struct" } else { "int64" })
                    .os(9, (column == 1).then_some("7"))
                    .flag(10, true)
                    .ou(11, (column == 3).then_some(2));
                if column == 1 {
                    value = value.m(14, tag);
                }
                self.version(5, &[table, column], end, value);
            }
        }
        let stats = message()
            .u(1, table)
            .u(2, 1)
            .ou(3, Some(0))
            .os(5, Some("1"))
            .os(6, Some("99"));
        self.version(11, &[table, 1], None, stats);
    }

    fn file_begin(&self, table: u64, file: u64) -> u64 {
        (table + file).min(self.newest() - 1)
    }

    fn files(&mut self, table: u64) {
        for file in 1..=self.size.each {
            let id = table * 100 + file;
            let end = (file % 4 == 0).then_some(self.newest());
            let partition = message().u(1, 0).s(2, "eu");
            let value = message()
                .u(1, id)
                .u(2, table)
                .u(3, self.file_begin(table, file))
                .ou(4, end)
                .s(6, &format!("file-{id}.parquet"))
                .flag(7, true)
                .s(8, "parquet")
                .u(9, 100)
                .u(10, 4096)
                .u(11, 200)
                .ou(12, Some(file * 100))
                .ou(13, Some(table + 500))
                .m(17, partition);
            self.version(7, &[table, id], end, value);
            for column in 1..=2 {
                let variant = message().s(1, "$.a").s(2, "int64").u(4, 100);
                let value = message()
                    .u(1, id)
                    .u(2, table)
                    .u(3, column)
                    .u(4, 300)
                    .u(5, 100)
                    .os(7, Some("1"))
                    .os(8, Some("99"))
                    .m(11, variant);
                self.version(9, &[table, id, column], None, value);
            }
            self.delete_file(table, id, end);
        }
        let scheduled = message()
            .u(1, table + 9000)
            .s(2, "old.parquet")
            .flag(3, true)
            .u(4, 17);
        self.put(key(&[4, 3], &[table + 9000]), scheduled);
    }

    /// Every data file has a delete file, and one that it took the place of.
    fn delete_file(&mut self, table: u64, file: u64, file_end: Option<u64>) {
        for (id, end) in [(file + 5000, Some(self.newest())), (file + 6000, file_end)] {
            let value = message()
                .u(1, id)
                .u(2, table)
                .u(3, self.newest() - 1)
                .ou(4, end)
                .u(5, file)
                .s(6, &format!("delete-{id}.parquet"))
                .flag(7, true)
                .s(8, "parquet")
                .u(9, 3)
                .u(10, 512)
                .u(11, 100);
            self.version(8, &[table, id], end, value);
            if self.layout >= 12 && end.is_none() {
                self.records.insert(key(&[11], &[table, file, id]), Vec::new());
            }
        }
    }

    /// Partitioning, sort order, column mapping, tags, options.
    fn layouts(&mut self, table: u64) {
        for end in [None, Some(table + 2)] {
            let id = if end.is_some() { table + 400 } else { table + 500 };
            let column = message().u(2, 1).s(3, "identity");
            let value = message().u(1, id).u(2, table).u(3, table).ou(4, end).m(5, column);
            self.version(6, &[table, id], end, value);
            let expression = message().s(2, "c1").s(3, "duckdb").s(4, "ASC").s(5, "NULLS LAST");
            let value = message()
                .u(1, id + 200)
                .u(2, table)
                .u(3, table)
                .ou(4, end)
                .m(5, expression);
            self.version(14, &[table, id + 200], end, value);
        }
        let renamed = message().u(1, 0).s(2, "source").u(3, 1);
        let mapping = message()
            .u(1, table + 800)
            .u(2, table)
            .s(3, "map_by_name")
            .m(4, renamed);
        self.version(16, &[table, table + 800], None, mapping);
        let entry = |end| message().u(1, table).ou(2, end).s(3, "owner").s(4, "Ada");
        let tags = message()
            .u(1, table)
            .m(2, entry(Some(table + 1)))
            .m(2, entry(None));
        self.version(12, &[table], None, tags);
        if table == 1 {
            for (kind, id) in [(0, 0), (1, 101), (2, 1)] {
                let option = message().s(1, "data_inlining_row_limit").s(2, "20");
                self.version(13, &[kind, id], None, message().m(1, option));
            }
        }
    }

    fn others(&mut self) {
        for end in [None, Some(5)] {
            let id = if end.is_some() { 900 } else { 901 };
            let view = message()
                .u(1, id)
                .s(2, "20000000-0000-4000-8000-000000000000")
                .u(3, 2)
                .ou(4, end)
                .s(6, "v")
                .s(7, "duckdb")
                .s(8, "SELECT 1");
            self.version(4, &[id], end, view);
            let parameter = message().s(2, "x").s(3, "unknown").os(4, Some("1")).s(5, "int64");
            let body = message()
                .s(2, "duckdb")
                .s(3, "x + 1")
                .s(4, "scalar")
                .m(5, parameter);
            let value = message().u(1, id + 10).u(2, 2).ou(3, end).s(5, "plus").m(6, body);
            self.version(15, &[id + 10], end, value);
        }
    }

    /// Inlined rows: two schema versions, chunks of three rows, ends, and deletions from files.
    fn inlined(&mut self, table: u64) {
        self.inline_schemas(table);
        for chunk in 0..self.size.each {
            let begin = (table + chunk).min(self.newest() - 2);
            let (start, sequence) = (chunk * CHUNK_ROWS, chunk % 2);
            let identity = [1, begin, sequence];
            let value = message()
                .bytes(1, &hex(&ARROW_BODY.concat()))
                .u(2, start)
                .u(3, CHUNK_ROWS);
            self.put(key(&[6, 3, 2], &[&[table], &identity[..]].concat()), value);
            self.chunk_directory(table, chunk, start, identity);
            self.row_end(table, start, begin + 1);
            if self.features >= 9 {
                // Only since format 9 can a row have ended twice.
                self.row_end(table, start, begin + 2);
            }
        }
        for file in 1..=self.size.each {
            let target = [table, table * 100 + file, 7];
            self.put(key(&[6, 3, 4], &target), message().u(1, self.newest()));
        }
        self.put(key(&[6, 5], &[table]), message());
    }

    fn inline_schemas(&mut self, table: u64) {
        let schema = message().bytes(1, &hex(&ARROW_SCHEMA.concat()));
        self.put(key(&[6, 2], &[table, 1]), schema);
        if self.features >= 7 {
            self.put(key(&[6, 2], &[table, 2]), message().ou(2, Some(1)));
            self.put(key(&[6, 7], &[table, 2]), message());
        }
    }

    /// Formats 6 and 7 had entries by last row alone; from 8 on entries know their chunk, and old chunks kept theirs.
    fn chunk_directory(&mut self, table: u64, chunk: u64, start: u64, identity: [u64; 3]) {
        let end = start + CHUNK_ROWS - 1;
        let [version, begin, sequence] = identity;
        let entry = message().u(1, start).u(2, version).u(3, begin).u(4, sequence);
        let is_old = self.features < 8 || chunk.is_multiple_of(2);
        let migrated = self.layout == 12 && self.features < 12;
        if (self.features >= 8 && !is_old) || migrated || self.features == 12 {
            let locator = [&[table, end], &identity[..]].concat();
            self.put(key(&[6, 8], &locator), entry);
        } else if self.features >= 6 {
            self.put(key(&[6, 6], &[table, end]), entry);
        }
    }

    fn row_end(&mut self, table: u64, row: u64, end: u64) {
        let value = message().u(1, end);
        if self.layout >= 9 {
            self.put(key(&[6, 9], &[table, row, end]), value);
        } else {
            self.put(key(&[6, 3, 3], &[table, row]), value);
        }
    }

    fn indexes(&mut self) {
        if self.features < 2 {
            return;
        }
        let definition = |id, state: Option<&str>| {
            message()
                .u(1, id)
                .u(2, 1)
                .u(3, 3)
                .s(5, &format!("index {id}"))
                .packed(6, &[1])
                .flag(7, id == 701)
                .os(8, state)
        };
        self.version(17, &[1, 701], None, definition(701, None));
        self.version(17, &[1, 700], Some(6), definition(700, None).ou(4, Some(6)));
        if self.features >= 3 {
            let building = definition(702, Some("building")).ou(9, Some(101)).ou(10, Some(5));
            self.version(17, &[1, 702], None, building);
        }
        if self.features >= 4 {
            let maintaining = definition(703, Some("maintaining")).ou(17, Some(1));
            self.version(17, &[1, 703], None, maintaining);
        }
        for row in 0..self.size.each {
            let canon = key(&[0, 1, 0x80], &[row]);
            let unique = key_with_bytes(&[7, 2], &[701], &canon, &[]);
            self.records.insert(unique, row.to_be_bytes().to_vec());
            let multi = key_with_bytes(&[7, 3], &[703], &canon, &[row]);
            self.records.insert(multi, Vec::new());
        }
    }
}
