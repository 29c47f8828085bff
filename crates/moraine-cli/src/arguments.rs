//! The command line: what can be asked for, with the help texts.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use moraine_store::StoreUrl;
use tracing_subscriber::EnvFilter;

const URL_HELP: &str = "Where the lakes are: a folder (./lake, /srv/lake, file:///srv/lake), a bucket (s3://bucket/prefix, \
    gs://bucket/prefix, az://container/prefix; credentials come from the usual AWS_*, GOOGLE_* and AZURE_* variables), or \
    memory://name, which is gone when the server ends";

/// Source: PostgreSQL (NAMEDATALEN - 1).
const DATABASE_NAME_BYTES_MAX: usize = 63;

/// DuckLake catalogs kept in object storage.
#[derive(Debug, Parser)]
#[command(name = "moraine", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// What is logged to standard error: error, warn, info, debug or trace, or a filter such as
    /// `info,moraine_server=debug`
    #[arg(long, global = true, default_value = "warn", env = "MORAINE_LOG", value_parser = filter)]
    pub(crate) log_level: EnvFilter,
}

/// What `moraine` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the lakes below a URL to DuckDB and every other DuckLake client that speaks to a Postgres catalog
    ///
    /// Prints the ATTACH statement to paste into DuckDB. A lake that does not exist yet is made by the first ATTACH;
    /// the database name in it, and the METADATA_SCHEMA if one is given, choose the lake. Ctrl-C ends the server.
    Serve(ServeOptions),

    /// Show what a store, or each store below a URL, holds
    ///
    /// Reads only: a server that runs on the store goes on undisturbed.
    Info(InfoOptions),

    /// Move a lake's inlined rows to Parquet files, in one commit
    ///
    /// Does what DuckLake's ducklake_flush_inlined_data does, without DuckDB: every snapshot shows the same rows before and
    /// after, and inlined deletions become delete files. Opens the lake as its one writer, so it first asks for ten seconds
    /// whether a server has it open, and refuses if one has. Partitionings, sort orders by columns, options and encryption of
    /// the lake are followed. Sort orders by expressions, and values that Parquet does not hold as they are, are refused by name.
    Flush(FlushArguments),

    /// Bring a store of an older format to the newest, or go on with a migration that was interrupted
    ///
    /// First looks at every record, and refuses a store that is damaged or of a format it does not know, leaving it as it
    /// is. Then opens the store as its one writer; where a server has it open, it says so and does nothing. Until the
    /// migration is done every reader and writer refuses the store; whatever interrupts it, run the same command again.
    /// There is no way back, but --checkpoint keeps the state before.
    Migrate(MigrateArguments),

    /// Check every invariant of the format on a store, or on each store below a URL
    ///
    /// Reads only, at one state: a server that runs on the store goes on undisturbed. Prints each record that breaks an
    /// invariant, with what mends it. Ends with 0 where all hold or nothing but leftovers was found, with 3 where one does not
    /// hold, and with 1 where a store could not be read.
    Check(CheckOptions),

    /// Show records of a store, decoded
    ///
    /// Reads only. Keys are named as other commands print them: a subspace (current), a kind (current/column), a kind with its
    /// first components ('current/column{table_id=7}'), or bytes in hexadecimal (0x0402).
    Inspect(InspectOptions),

    /// Make, list and delete checkpoints: states of a lake that are kept, whatever is written meanwhile
    ///
    /// `moraine serve --checkpoint` shows one. A checkpoint keeps the catalog: the Parquet files that it names are kept only
    /// as long as DuckLake's clean-up does not delete them.
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),

    /// Drop indexes that other software made, with their entries
    ///
    /// Entries are not kept up to date here, so while a table has such an index its rows cannot change. Opens the lake as its
    /// one writer; where a server has it open, it says so and does nothing.
    DropIndex(DropIndexArguments),

    /// Bring a lake in from another catalog: PostgreSQL, a SQLite file, a DuckDB file, or a RockLake store
    ///
    /// Copies the catalog, history, ids and times as they are; the data files stay where they are. The lake must not be there
    /// yet. Until the import is done every reader and writer refuses the store; when it was interrupted, the same command
    /// resumes it. A catalog that is broken is reported with table and row, and imported only with --repair. Catalogs of
    /// other versions of the DuckLake specification than 1.0 are refused.
    Import(ImportArguments),

    /// Take a lake out to another catalog: PostgreSQL, a SQLite file or a DuckDB file
    ///
    /// Copies the catalog in one transaction, history, ids and times as they are; the data files stay where they are. Reads
    /// only: a server that runs on the lake goes on undisturbed, and commits meanwhile are not exported.
    Export(ExportArguments),

    /// Compare a lake with another catalog, table by table: the numbers of rows, and sums over the hashes of the rows
    ///
    /// Exit status 0 only when all tables are the same.
    Verify(VerifyArguments),
}

/// What can be done with checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Make a checkpoint of everything that has been committed, of each lake at or below a URL
    ///
    /// A server that has the lake open is asked for it and goes on. Where none answers within ten seconds, this command opens
    /// the lake itself.
    Create(CreateCheckpoint),

    /// List the checkpoints of each lake at or below a URL
    List(ListCheckpoints),

    /// Delete a checkpoint from each lake at or below a URL that has it
    Delete(DeleteCheckpoint),
}

/// Arguments of `moraine checkpoint create`.
#[derive(Debug, Args)]
pub(crate) struct CreateCheckpoint {
    #[arg(value_name = "URL", help = "The lakes' URL, or that of one lake", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// The checkpoint's name; no two of a lake have the same [default: the time]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// How long it is kept: a number with s, m, h or d, or `forever`
    #[arg(long, value_name = "TIME", default_value = "forever", value_parser = lifetime)]
    pub(crate) lifetime: Lifetime,

    /// Do not ask for a server: open the lake here, and shut out whoever has it open
    #[arg(long)]
    pub(crate) take_over: bool,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `moraine checkpoint list`.
#[derive(Debug, Args)]
pub(crate) struct ListCheckpoints {
    #[arg(value_name = "URL", help = "The lakes' URL, or that of one lake", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `moraine checkpoint delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteCheckpoint {
    #[arg(value_name = "URL", help = "The lakes' URL, or that of one lake", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// The checkpoint, by its id or its name
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) checkpoint: String,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long a checkpoint is kept; `None` is until it is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime(pub(crate) Option<Duration>);

/// Arguments of `moraine serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    #[arg(value_name = "URL", help = "Where the lakes are", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// Address and port to listen on; port 0 takes a free one. Only loopback addresses: clients are not asked for a
    /// password yet
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5433", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// The DATA_PATH of the printed ATTACH statement, where DuckDB keeps the lake's Parquet files
    /// [default: <URL>/data/<DATABASE>/public/]
    #[arg(long, value_name = "PATH")]
    pub(crate) data_path: Option<String>,

    /// Only read: any number of such servers run beside the one that writes, which goes on undisturbed. Credentials that
    /// cannot write are enough
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Show the lakes as they were at this checkpoint, by its id or its name, instead of following the writer
    #[arg(long, value_name = "CHECKPOINT", requires = "read_only")]
    pub(crate) checkpoint: Option<String>,

    /// How often a server that only reads looks for new commits: it is behind by at most this, and a few requests
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration, requires = "read_only")]
    pub(crate) poll_interval: Duration,

    /// How long a lake stays open that no session uses, or `never`; the next use opens it again
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = idle)]
    pub(crate) close_idle: Lifetime,

    /// The database name in the printed ATTACH statement; each name is a lake of its own
    #[arg(long, value_name = "NAME", default_value = "lake", value_parser = database_name)]
    pub(crate) database: String,

    /// Commit appends that have lost a race where the lake is now, instead of asking their client to try again
    ///
    /// A transaction that only adds rows is shifted to the newest snapshot when nothing that was committed meanwhile is in
    /// its way. Many clients that append then commit faster; but ducklake_last_committed_snapshot() tells them the snapshot
    /// that they had asked for, which may be another's.
    #[arg(long)]
    pub(crate) rebase_appends: bool,

    /// How long others wait for a client that updates or deletes, from one of its statements to the next
    ///
    /// Clients that write take turns. One that dies is noticed at once; one that falls silent in its turn delays the others
    /// by this long. An update that takes longer may fail because others have changed the table meanwhile.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) turn_seconds: Duration,

    /// How long others wait for a client that has sent its commit and falls silent before the COMMIT
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) commit_seconds: Duration,
}

/// Arguments of `moraine info`.
#[derive(Debug, Args)]
pub(crate) struct InfoOptions {
    #[arg(value_name = "URL", help = "The lakes' URL, or that of one store", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `moraine flush`.
#[derive(Debug, Args)]
pub(crate) struct FlushArguments {
    #[arg(value_name = "URL", help = "The lake's URL, or a place with one lake below it", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// Tables to flush, as <table> or <schema>.<table> [default: all of the lake's]
    #[arg(value_name = "TABLE")]
    pub(crate) tables: Vec<String>,

    /// Where the lake's Parquet files are, if not where the lake says [default: the lake's data_path]
    #[arg(long, value_name = "PATH")]
    pub(crate) data_path: Option<String>,

    /// Do not ask whether a server has the lake open; one that has is shut out
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// Arguments of `moraine migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    #[arg(value_name = "URL", help = "The store's URL, or a place with one store below it", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// Look at every record and say what would be done, but change nothing and disturb nobody
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Make a checkpoint of the database first, and keep it
    #[arg(long)]
    pub(crate) checkpoint: bool,

    /// Migrate every store below the URL, one after the other
    #[arg(long)]
    pub(crate) all: bool,

    /// Do not ask whether a server has the store open, and shut it out if one has
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// Arguments of `moraine check`.
#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    #[arg(value_name = "URL", help = "The lakes' URL, or that of one store", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// Findings shown of each invariant; the others are counted
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: u64,

    /// Print one JSON object a line: each finding, then a summary of the store
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `moraine inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectOptions {
    #[arg(value_name = "URL", help = "The lake's URL, or a place with one lake below it", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// The keys to show, or where to begin [default: all]
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Where to end: the last keys to show, after everything that KEY stands for
    #[arg(long, value_name = "KEY")]
    pub(crate) to: Option<String>,

    /// Records to show
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub(crate) limit: u64,

    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the bytes of keys and values too, in hexadecimal
    #[arg(long)]
    pub(crate) hex: bool,
}

/// Arguments of `moraine drop-index`.
#[derive(Debug, Args)]
pub(crate) struct DropIndexArguments {
    #[arg(value_name = "URL", help = "The lake's URL, or a place with one lake below it", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    /// The indexes' names
    #[arg(value_name = "INDEX", required = true)]
    pub(crate) names: Vec<String>,

    /// Do not ask whether a server has the lake open, and shut it out if one has
    #[arg(long)]
    pub(crate) take_over: bool,
}

const CATALOG_HELP: &str = "The other catalog, as an ATTACH names it: postgres:dbname=lake host=localhost, \
    postgres://user@host/lake, sqlite:meta.sqlite, duckdb:meta.ducklake (read and written by the DuckDB that is found; \
    MORAINE_DUCKDB names one), or rocklake:s3://bucket/prefix (import only); a file alone is told by what it holds";

/// Which lake below a URL is meant.
#[derive(Debug, Args)]
pub(crate) struct LakeChoice {
    /// The database name of the lake, as clients attach to it
    /// [default: lake for an import, else the one lake that is there]
    #[arg(long, value_name = "NAME", value_parser = database_name)]
    pub(crate) database: Option<String>,

    /// The schema of the lake in that database, what an ATTACH calls METADATA_SCHEMA [default: public]
    #[arg(long, value_name = "NAME", value_parser = database_name)]
    pub(crate) schema: Option<String>,
}

/// Arguments of `moraine import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    #[arg(value_name = "URL", help = "Where the lakes are, as for `moraine serve`", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    #[arg(long, value_name = "CATALOG", help = CATALOG_HELP)]
    pub(crate) from: String,

    /// The schema that the other catalog's tables are in [default: public, or main in a DuckDB file]
    #[arg(long, value_name = "NAME")]
    pub(crate) from_schema: Option<String>,

    #[command(flatten)]
    pub(crate) lake: LakeChoice,

    /// Record this as the lake's data path, instead of the one it has
    #[arg(long, value_name = "PATH")]
    pub(crate) data_path: Option<String>,

    /// Import what is broken as far as it goes, and say what was repaired
    #[arg(long)]
    pub(crate) repair: bool,

    /// Remove what an interrupted import left, and begin anew
    #[arg(long)]
    pub(crate) restart: bool,

    /// Compare both sides afterwards, as `moraine verify` does
    #[arg(long)]
    pub(crate) verify: bool,
}

/// Arguments of `moraine export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[arg(value_name = "URL", help = "The lake's URL, or a place with one lake below it", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    #[arg(long, value_name = "CATALOG", help = CATALOG_HELP)]
    pub(crate) to: String,

    /// The schema of the other catalog that the tables are made in [default: public, or main in a DuckDB file]
    #[arg(long, value_name = "NAME")]
    pub(crate) to_schema: Option<String>,

    #[command(flatten)]
    pub(crate) lake: LakeChoice,

    /// Record this as the data path in the other catalog, instead of the one the lake has
    #[arg(long, value_name = "PATH")]
    pub(crate) data_path: Option<String>,

    /// Compare both sides afterwards, as `moraine verify` does
    #[arg(long)]
    pub(crate) verify: bool,
}

/// Arguments of `moraine verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    #[arg(value_name = "URL", help = "The lake's URL, or a place with one lake below it", long_help = URL_HELP)]
    pub(crate) url: StoreUrl,

    #[arg(long, value_name = "CATALOG", help = CATALOG_HELP)]
    pub(crate) against: String,

    /// The schema that the other catalog's tables are in [default: public, or main in a DuckDB file]
    #[arg(long, value_name = "NAME")]
    pub(crate) against_schema: Option<String>,

    #[command(flatten)]
    pub(crate) lake: LakeChoice,

    /// Do not compare the data paths that are recorded
    #[arg(long)]
    pub(crate) ignore_data_path: bool,
}

fn filter(text: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}

/// A time that is neither nothing nor for ever.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| (0.001..=3600.0).contains(seconds));
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "seconds are needed, from 0.001 to 3600".to_owned())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "an IP address and a port are needed, such as 127.0.0.1:5433 or [::1]:5433".to_owned())
}

/// A time with its unit, such as 90s, 30m, 12h or 7d.
fn duration(text: &str) -> Result<Duration, String> {
    let needed =
        || format!("{text:?} is no time: a number with ms, s, m, h or d is needed, such as 90s or 7d");
    let digits = text.trim_end_matches(|sign: char| sign.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| needed())?;
    let milliseconds = match text.get(digits.len()..) {
        Some("ms") => 1,
        Some("s") => 1_000,
        Some("m") => 60_000,
        Some("h") => 3_600_000,
        Some("d") => 86_400_000,
        _ => return Err(needed()),
    };
    match number.checked_mul(milliseconds) {
        None | Some(0) => Err(needed()),
        Some(time) => Ok(Duration::from_millis(time)),
    }
}

fn lifetime(text: &str) -> Result<Lifetime, String> {
    match text {
        "forever" => Ok(Lifetime(None)),
        text => Ok(Lifetime(Some(duration(text)?))),
    }
}

fn idle(text: &str) -> Result<Lifetime, String> {
    match text {
        "never" => Ok(Lifetime(None)),
        text => Ok(Lifetime(Some(duration(text)?))),
    }
}

fn database_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > DATABASE_NAME_BYTES_MAX {
        return Err(format!(
            "a database name has 1 to {DATABASE_NAME_BYTES_MAX} bytes"
        ));
    }
    Ok(text.to_owned())
}
