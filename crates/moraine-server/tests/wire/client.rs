//! A Postgres client that shows every message: what a driver would hide is what these tests are about.

use std::sync::atomic::{AtomicUsize, Ordering};

use moraine_server::{CatalogOptions, Server, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server on a free port that ends with the test.
pub(crate) struct TestServer {
    pub(crate) address: std::net::SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
}

impl TestServer {
    /// A server on a fresh store in memory.
    pub(crate) async fn start() -> TestServer {
        TestServer::start_with(CatalogOptions::default()).await
    }

    /// A server on a fresh store in memory, with its lakes opened so.
    pub(crate) async fn start_with(catalog: CatalogOptions) -> TestServer {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let root = format!("memory://wire-{}-{number}", std::process::id());
        TestServer::start_as(&root, catalog).await
    }

    pub(crate) async fn start_at(root: &str) -> TestServer {
        TestServer::start_as(root, CatalogOptions::default()).await
    }

    pub(crate) async fn start_as(root: &str, catalog: CatalogOptions) -> TestServer {
        let mut options = ServerOptions::new("127.0.0.1:0".parse().unwrap(), root.parse().unwrap());
        options.catalog = catalog;
        TestServer::start_so(options).await
    }

    /// A server that closes lakes which nobody has used for `idle`.
    pub(crate) async fn start_idle(root: &str, idle: std::time::Duration) -> TestServer {
        let mut options = ServerOptions::new("127.0.0.1:0".parse().unwrap(), root.parse().unwrap());
        options.idle_close = Some(idle);
        TestServer::start_so(options).await
    }

    async fn start_so(options: ServerOptions) -> TestServer {
        let (server, address) = Server::bind(options).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            server
                .run(async {
                    let _ = stopped.await;
                })
                .await
                .unwrap();
        });
        TestServer {
            address,
            stop: Some(stop),
            running: Some(running),
        }
    }

    /// Asks the server to stop, and waits until it has.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.running.take().unwrap().await.unwrap();
    }

    /// Asks the server to stop.
    pub(crate) fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn wait(mut self) {
        self.running.take().unwrap().await.unwrap();
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address, "lake").await
    }

    /// A connection to database `lake` in which there is a lake.
    pub(crate) async fn connect_to_lake(&self) -> Client {
        let mut client = self.connect().await;
        client.create_lake("public").await;
        client
    }
}

/// One message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: char,
    pub(crate) body: Vec<u8>,
}

/// All messages up to `ReadyForQuery`.
#[derive(Debug, Clone)]
pub(crate) struct Answer(pub(crate) Vec<Message>);

impl Answer {
    /// The kinds of the messages, in order.
    pub(crate) fn kinds(&self) -> String {
        self.0.iter().map(|message| message.kind).collect()
    }

    pub(crate) fn of_kind(&self, kind: char) -> Vec<&Message> {
        self.0.iter().filter(|message| message.kind == kind).collect()
    }

    /// The command tags.
    pub(crate) fn tags(&self) -> Vec<String> {
        self.of_kind('C')
            .into_iter()
            .map(|message| text(&message.body))
            .collect()
    }

    /// The rows of all results, as text.
    pub(crate) fn rows(&self) -> Vec<Vec<Option<String>>> {
        let fields = |message: &Message| {
            fields(&message.body)
                .into_iter()
                .map(|field| field.map(|f| lossy(&f)))
        };
        self.of_kind('D')
            .into_iter()
            .map(|message| fields(message).collect())
            .collect()
    }

    /// The rows with NULL written as `NULL`.
    pub(crate) fn table(&self) -> Vec<Vec<String>> {
        let shown = |field: Option<String>| field.unwrap_or_else(|| "NULL".to_owned());
        self.rows()
            .into_iter()
            .map(|row| row.into_iter().map(shown).collect())
            .collect()
    }

    /// SQLSTATE and text of the one error.
    pub(crate) fn error(&self) -> (String, String) {
        let errors = self.of_kind('E');
        assert_eq!(errors.len(), 1, "one error expected in {self:?}");
        (
            error_field(&errors[0].body, b'C'),
            error_field(&errors[0].body, b'M'),
        )
    }

    pub(crate) fn state(&self) -> String {
        self.error().0
    }

    /// What `ReadyForQuery` says: I, T or E.
    pub(crate) fn status(&self) -> char {
        let last = self.0.last().expect("an answer");
        assert_eq!(last.kind, 'Z');
        char::from(last.body[0])
    }

    /// The data of a COPY OUT, message by message.
    pub(crate) fn copy_data(&self) -> Vec<Vec<u8>> {
        self.of_kind('d')
            .into_iter()
            .map(|message| message.body.clone())
            .collect()
    }

    /// Nothing went wrong.
    pub(crate) fn ok(self) -> Answer {
        assert!(
            self.of_kind('E').is_empty(),
            "no error expected: {:?}",
            self.error()
        );
        self
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text(body: &[u8]) -> String {
    lossy(body.split(|byte| *byte == 0).next().unwrap_or_default())
}

fn error_field(body: &[u8], wanted: u8) -> String {
    let mut parts = body.split(|byte| *byte == 0);
    parts
        .find(|part| part.first() == Some(&wanted))
        .map(|part| lossy(&part[1..]))
        .unwrap_or_default()
}

/// The fields of a `DataRow`, or of a tuple of a binary COPY.
pub(crate) fn fields(mut body: &[u8]) -> Vec<Option<Vec<u8>>> {
    let count = i16::from_be_bytes(body[..2].try_into().unwrap());
    body = &body[2..];
    (0..count)
        .map(|_| {
            let length = i32::from_be_bytes(body[..4].try_into().unwrap());
            body = &body[4..];
            let length = usize::try_from(length).ok()?;
            let (field, rest) = body.split_at(length);
            body = rest;
            Some(field.to_vec())
        })
        .collect()
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) pid: i32,
    pub(crate) secret: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: std::net::SocketAddr, database: &str) -> Client {
        Client::try_connect(address, database).await.expect("a session")
    }

    /// Connects as libpq does: asks for TLS, is told no, and goes on without.
    pub(crate) async fn try_connect(address: std::net::SocketAddr, database: &str) -> Result<Client, Answer> {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'N');
        let mut client = Client {
            stream,
            address,
            pid: 0,
            secret: Vec::new(),
        };
        let mut body = 196_608i32.to_be_bytes().to_vec();
        for part in ["user", "tester", "database", database] {
            body.extend(part.as_bytes());
            body.push(0);
        }
        body.push(0);
        let length = i32::try_from(body.len() + 4).unwrap();
        client.stream.write_all(&length.to_be_bytes()).await.unwrap();
        client.stream.write_all(&body).await.unwrap();
        let mut messages = Vec::new();
        loop {
            let message = client.message().await.expect("a message");
            match message.kind {
                'K' => {
                    client.pid = i32::from_be_bytes(message.body[..4].try_into().unwrap());
                    client.secret = message.body[4..].to_vec();
                }
                'Z' => return Ok(client),
                'E' => {
                    messages.push(message);
                    return Err(Answer(messages));
                }
                _ => messages.push(message),
            }
        }
    }

    pub(crate) async fn send(&mut self, kind: char, body: &[u8]) {
        let mut bytes = vec![u8::try_from(kind).unwrap()];
        bytes.extend(i32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend(body);
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next message, or `None` when the server has closed.
    pub(crate) async fn message(&mut self) -> Option<Message> {
        let kind = self.stream.read_u8().await.ok()?;
        let length = usize::try_from(self.stream.read_i32().await.ok()?).unwrap();
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).await.ok()?;
        Some(Message {
            kind: char::from(kind),
            body,
        })
    }

    /// All messages up to one of these kinds.
    pub(crate) async fn until(&mut self, kinds: &str) -> Answer {
        let mut messages = Vec::new();
        loop {
            let message = self.message().await.expect("the server closed the connection");
            let kind = message.kind;
            messages.push(message);
            if kinds.contains(kind) {
                return Answer(messages);
            }
        }
    }

    pub(crate) async fn start_query(&mut self, sql: &str) {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.send('Q', &body).await;
    }

    pub(crate) async fn query(&mut self, sql: &str) -> Answer {
        self.start_query(sql).await;
        self.until("Z").await
    }

    /// A query that must succeed.
    pub(crate) async fn run(&mut self, sql: &str) -> Answer {
        let answer = self.query(sql).await;
        assert!(answer.of_kind('E').is_empty(), "{sql}: {:?}", answer.error());
        answer
    }

    /// Parse, with the types the client says.
    pub(crate) async fn parse(&mut self, name: &str, sql: &str, types: &[u32]) {
        let mut body = [name.as_bytes(), b"\0", sql.as_bytes(), b"\0"].concat();
        body.extend(i16::try_from(types.len()).unwrap().to_be_bytes());
        types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
        self.send('P', &body).await;
    }

    /// Bind; `parameters` in the binary form where `binary`, and so the results.
    pub(crate) async fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        parameters: &[Option<&[u8]>],
        binary: bool,
    ) {
        let code = i16::from(binary).to_be_bytes();
        let mut body = [
            portal.as_bytes(),
            b"\0",
            statement.as_bytes(),
            b"\0",
            &[0, 1],
            &code,
        ]
        .concat();
        body.extend(i16::try_from(parameters.len()).unwrap().to_be_bytes());
        for parameter in parameters {
            match parameter {
                Some(bytes) => {
                    body.extend(i32::try_from(bytes.len()).unwrap().to_be_bytes());
                    body.extend(*bytes);
                }
                None => body.extend((-1i32).to_be_bytes()),
            }
        }
        body.extend([0, 1]);
        body.extend(code);
        self.send('B', &body).await;
    }

    /// Execute; 0 rows are all.
    pub(crate) async fn execute(&mut self, portal: &str, rows_max: i32) {
        let body = [portal.as_bytes(), b"\0", &rows_max.to_be_bytes()].concat();
        self.send('E', &body).await;
    }

    pub(crate) async fn sync(&mut self) -> Answer {
        self.send('S', &[]).await;
        self.until("Z").await
    }

    /// Parse, Bind and Execute of the unnamed statement, without Sync.
    pub(crate) async fn step(&mut self, sql: &str) {
        self.parse("", sql, &[]).await;
        self.bind("", "", &[], false).await;
        self.execute("", 0).await;
    }

    /// Starts a COPY FROM STDIN, sends the pieces, and reads the answer.
    pub(crate) async fn copy_in(&mut self, sql: &str, pieces: &[&[u8]]) -> Answer {
        self.start_query(sql).await;
        let started = self.until("GZ").await;
        assert_eq!(started.0.last().unwrap().kind, 'G', "{sql}: {started:?}");
        for piece in pieces {
            self.send('d', piece).await;
        }
        self.send('c', &[]).await;
        self.until("Z").await
    }

    /// Sends a cancel request for this session on a connection of its own.
    pub(crate) async fn cancel(&self, secret: &[u8]) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut bytes = 16i32.to_be_bytes().to_vec();
        bytes.extend(80_877_102i32.to_be_bytes());
        bytes.extend(self.pid.to_be_bytes());
        bytes.extend(secret);
        stream.write_all(&bytes).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty());
    }

    /// Whether the server has closed the connection.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.message().await.is_none()
    }

    /// Creates a lake with schema `main`, as DuckLake does.
    pub(crate) async fn create_lake(&mut self, schema: &str) {
        self.begin_lake(schema).await;
        self.run("COMMIT").await;
    }

    /// Everything of the creation of a lake but its COMMIT.
    pub(crate) async fn begin_lake(&mut self, schema: &str) {
        self.run("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            .await;
        for table in CREATE_TABLES {
            self.run(&format!("CREATE TABLE \"{schema}\".{table};")).await;
        }
        self.run(&format!(
            "INSERT INTO \"{schema}\".ducklake_snapshot VALUES (0, NOW(), 0, 1, 0);
             INSERT INTO \"{schema}\".ducklake_snapshot_changes VALUES (0, 'created_schema:\"main\"', NULL, NULL, NULL);
             INSERT INTO \"{schema}\".ducklake_metadata (key, value) VALUES ('version', '1.0'), ('created_by', 'test'),
                 ('data_path', '/nowhere/data/'), ('encrypted', 'false');
             INSERT INTO \"{schema}\".ducklake_schema VALUES
                 (0, 'b4b2f3c0-0000-4000-8000-000000000000', 0, NULL, 'main', 'main/', true)"
        ))
        .await;
    }

    /// The statements of one commit that creates a table: snapshot `id` on top of `id - 1`.
    pub(crate) async fn create_table(&mut self, id: u64, name: &str) {
        self.run("BEGIN").await;
        self.run(&create_table(id, name)).await;
        self.run("COMMIT").await;
    }
}

/// A session that waits: it has lost a race against `holder`, which has not committed, and its next statement of the lake
/// is answered when its turn comes.
pub(crate) async fn waiting(server: &TestServer, holder: &mut Client) -> Client {
    let mut waiter = server.connect().await;
    holder.run("BEGIN").await;
    holder.run(&create_table(1, "a")).await;
    waiter.run("BEGIN").await;
    assert_eq!(waiter.query(&create_table(1, "b")).await.state(), "40001");
    waiter.run("ROLLBACK").await;
    waiter
}

/// The commit batch of DuckLake's CREATE TABLE; the table's id is the snapshot's.
pub(crate) fn create_table(id: u64, name: &str) -> String {
    format!(
        "INSERT INTO ducklake_snapshot VALUES ({id}, NOW(), {id}, {}, 0);
         INSERT INTO ducklake_table VALUES
            ({id}, 'b4b2f3c0-0000-4000-8000-{id:012}', {id}, NULL, 0, '{name}', '{name}/', true);
         INSERT INTO ducklake_column VALUES
            (1, {id}, NULL, {id}, 1, 'a', 'int64', NULL, 'NULL', true, NULL, 'literal', NULL),
            (2, {id}, NULL, {id}, 2, 'b', 'varchar', NULL, 'NULL', true, NULL, 'literal', NULL);
         INSERT INTO ducklake_snapshot_changes VALUES ({id}, 'created_table:\"main\".\"{name}\"', NULL, NULL, NULL);
         INSERT INTO ducklake_schema_versions VALUES ({id}, {id}, {id})",
        id + 1
    )
}

/// The 28 tables of a lake as DuckLake 1.5.5 creates them.
const CREATE_TABLES: [&str; 28] = [
    "ducklake_metadata(key VARCHAR NOT NULL, value VARCHAR NOT NULL, scope VARCHAR, scope_id BIGINT)",
    "ducklake_snapshot(snapshot_id BIGINT PRIMARY KEY, snapshot_time TIMESTAMP WITH TIME ZONE, schema_version BIGINT, next_catalog_id BIGINT, next_file_id BIGINT)",
    "ducklake_snapshot_changes(snapshot_id BIGINT PRIMARY KEY, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR, commit_extra_info VARCHAR)",
    "ducklake_schema(schema_id BIGINT PRIMARY KEY, schema_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN)",
    "ducklake_table(table_id BIGINT, table_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, table_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN)",
    "ducklake_view(view_id BIGINT, view_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT, view_name VARCHAR, dialect VARCHAR, sql VARCHAR, column_aliases VARCHAR)",
    "ducklake_tag(object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, value VARCHAR)",
    "ducklake_column_tag(table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, value VARCHAR)",
    "ducklake_data_file(data_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, file_order BIGINT, path VARCHAR, path_is_relative BOOLEAN, file_format VARCHAR, record_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, row_id_start BIGINT, partition_id BIGINT, encryption_key VARCHAR, mapping_id BIGINT, partial_max BIGINT)",
    "ducklake_file_column_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BOOLEAN, extra_stats VARCHAR)",
    "ducklake_file_variant_stats(data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR, shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR, contains_nan BOOLEAN, extra_stats VARCHAR)",
    "ducklake_delete_file(delete_file_id BIGINT PRIMARY KEY, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, format VARCHAR, delete_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, encryption_key VARCHAR, partial_max BIGINT)",
    "ducklake_column(column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT, column_order BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR, default_value VARCHAR, nulls_allowed BOOLEAN, parent_column BIGINT, default_value_type VARCHAR, default_value_dialect VARCHAR)",
    "ducklake_table_stats(table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT)",
    "ducklake_table_column_stats(table_id BIGINT, column_id BIGINT, contains_null BOOLEAN, contains_nan BOOLEAN, min_value VARCHAR, max_value VARCHAR, extra_stats VARCHAR)",
    "ducklake_partition_info(partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT)",
    "ducklake_partition_column(partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT, transform VARCHAR)",
    "ducklake_file_partition_value(data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR)",
    "ducklake_files_scheduled_for_deletion(data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, schedule_start TIMESTAMP WITH TIME ZONE)",
    "ducklake_inlined_data_tables(table_id BIGINT, table_name VARCHAR, schema_version BIGINT)",
    "ducklake_column_mapping(mapping_id BIGINT, table_id BIGINT, type VARCHAR)",
    "ducklake_name_mapping(mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT, parent_column BIGINT, is_partition BOOLEAN)",
    "ducklake_schema_versions(begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT)",
    "ducklake_macro(schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT, end_snapshot BIGINT)",
    "ducklake_macro_impl(macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, sql VARCHAR, type VARCHAR)",
    "ducklake_macro_parameters(macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR, parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR)",
    "ducklake_sort_info(sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT)",
    "ducklake_sort_expression(sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect VARCHAR, sort_direction VARCHAR, null_order VARCHAR)",
];
