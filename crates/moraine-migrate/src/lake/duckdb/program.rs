//! The DuckDB that reads and writes DuckDB files: the one that is named, else one that is found, else one that is installed
//! in an environment of its own. It is told what to do by a script and gives and takes rows in Parquet files.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::lake::{LakeError, literal};

/// The environment variable that names the program of a DuckDB: the `duckdb` command, or a Python that has the module.
pub const DUCKDB_VARIABLE: &str = "MORAINE_DUCKDB";
/// The version that is installed where none is found.
const DUCKDB_VERSION: &str = "1.5.5";
/// Runs what comes on standard input.
const PYTHON_DRIVER: &str = "import sys, duckdb\nduckdb.connect().execute(sys.stdin.read())\n";
/// Memory that DuckDB may use for sorting before it goes to disk.
const MEMORY_LIMIT: &str = "1GB";

/// A DuckDB that runs.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
    is_python: bool,
}

impl Program {
    /// Finds a DuckDB, or installs one.
    pub(crate) async fn find() -> Result<Program, LakeError> {
        let mut tried = Vec::new();
        let named = std::env::var_os(DUCKDB_VARIABLE).map(PathBuf::from);
        let candidates: Vec<PathBuf> = match &named {
            Some(named) => vec![named.clone()],
            None => vec![
                "duckdb".into(),
                installed_python(),
                "python3".into(),
                "python".into(),
            ],
        };
        for path in candidates {
            match Program::at(&path).await {
                Ok(program) => return Ok(program),
                Err(reason) => tried.push(format!("{}: {reason}", path.display())),
            }
        }
        if named.is_none() {
            match install().await {
                Ok(program) => return Ok(program),
                Err(reason) => tried.push(format!("installing it with pip: {reason}")),
            }
        }
        Err(LakeError::NoDuckDb {
            detail: tried.join("; "),
        })
    }

    /// The program at a path, once it has shown that it works.
    async fn at(path: &Path) -> Result<Program, String> {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let program = Program {
            path: path.to_owned(),
            is_python: name.is_some_and(|name| name.starts_with("python")),
        };
        program.execute("SELECT 1;").await?;
        Ok(program)
    }

    /// Runs a script, with `scratch` as the place for what does not fit into memory.
    pub(crate) async fn run(&self, script: &str, scratch: &Path) -> Result<(), String> {
        let settings = format!(
            "SET TimeZone = 'UTC';\nSET memory_limit = '{MEMORY_LIMIT}';\nSET temp_directory = {};\n\
             SET preserve_insertion_order = true;\n",
            literal(&scratch.display().to_string())
        );
        self.execute(&format!("{settings}{script}")).await
    }

    async fn execute(&self, script: &str) -> Result<(), String> {
        let mut command = Command::new(&self.path);
        if self.is_python {
            command.args(["-c", PYTHON_DRIVER]);
        } else {
            command.args(["-batch", "-bail", "-init", "/dev/null"]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        if let Some(mut input) = child.stdin.take() {
            // A program that ends early says why on its standard error.
            let _ = input.write_all(script.as_bytes()).await;
        }
        let output = child
            .wait_with_output()
            .await
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.trim().lines().last().unwrap_or_default();
        // The command's errors take several lines, the first of which says what is wrong.
        let told = text
            .lines()
            .find(|line| line.contains("Error"))
            .filter(|_| !self.is_python)
            .unwrap_or(last);
        Err(if told.is_empty() {
            output.status.to_string()
        } else {
            told.to_owned()
        })
    }
}

/// Where the environment is that a DuckDB is installed in.
fn environment() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))?;
    Some(cache.join("moraine").join(format!("duckdb-{DUCKDB_VERSION}")))
}

fn installed_python() -> PathBuf {
    environment().unwrap_or_default().join("bin").join("python3")
}

async fn install() -> Result<Program, String> {
    let environment = environment().ok_or("neither XDG_CACHE_HOME nor HOME says where to")?;
    tracing::info!(environment = %environment.display(), version = DUCKDB_VERSION, "installing DuckDB with pip");
    let create = Command::new("python3")
        .arg("-m")
        .arg("venv")
        .arg(&environment)
        .output();
    succeeded(create.await)?;
    let package = format!("duckdb=={DUCKDB_VERSION}");
    let pip = environment.join("bin").join("pip");
    succeeded(
        Command::new(pip)
            .args(["install", "--quiet", &package])
            .output()
            .await,
    )?;
    Program::at(&installed_python()).await
}

fn succeeded(output: std::io::Result<std::process::Output>) -> Result<(), String> {
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.trim().lines().last().unwrap_or("it failed").to_owned())
}
