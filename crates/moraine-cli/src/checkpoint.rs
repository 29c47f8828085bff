//! `moraine checkpoint`: makes, lists and deletes kept states of lakes, beside their servers.

use anyhow::Context;
use chrono::{DateTime, SecondsFormat};
use moraine_store::checkpoints::{self, Checkpoint, MadeBy, NewCheckpoint};
use moraine_store::{OpenError, OpenOptions, StoreUrl};
use serde_json::{Value, json};

use crate::arguments::{CheckpointCommand, CreateCheckpoint, DeleteCheckpoint, ListCheckpoints};
use crate::places::lakes;
use crate::report::plain_table;

/// A checkpoint and the store it is of.
type Kept = (StoreUrl, Checkpoint);

/// Does what is asked, and prints which checkpoints it was about.
pub(crate) async fn run(command: CheckpointCommand) -> anyhow::Result<()> {
    match command {
        CheckpointCommand::Create(options) => create(options).await,
        CheckpointCommand::List(options) => list(options).await,
        CheckpointCommand::Delete(options) => delete(options).await,
    }
}

async fn create(options: CreateCheckpoint) -> anyhow::Result<()> {
    let new = NewCheckpoint {
        name: options.name.unwrap_or_else(default_name),
        lifetime: options.lifetime.0,
        by: if options.take_over {
            MadeBy::Takeover
        } else {
            MadeBy::Writer
        },
    };
    let mut made = Vec::new();
    for url in lakes(&options.url).await? {
        let checkpoint = checkpoints::create(&url, &OpenOptions::default(), &new)
            .await
            .with_context(|| format!("cannot make a checkpoint of {url}"))?;
        made.push((url, checkpoint));
    }
    print(&made, options.json, "")
}

async fn list(options: ListCheckpoints) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for url in lakes(&options.url).await? {
        let checkpoints = checkpoints::list(&url, &OpenOptions::default())
            .await
            .with_context(|| format!("cannot list the checkpoints of {url}"))?;
        found.extend(
            checkpoints
                .into_iter()
                .map(|checkpoint| (url.clone(), checkpoint)),
        );
    }
    print(&found, options.json, "no checkpoints")
}

async fn delete(options: DeleteCheckpoint) -> anyhow::Result<()> {
    let mut deleted = Vec::new();
    let mut missing = None;
    for url in lakes(&options.url).await? {
        match checkpoints::delete(&url, &OpenOptions::default(), &options.checkpoint).await {
            Ok(checkpoint) => deleted.push((url, checkpoint)),
            Err(error @ OpenError::NoSuchCheckpoint { .. }) => missing = Some(error),
            Err(error) => return Err(error).with_context(|| format!("cannot delete a checkpoint of {url}")),
        }
    }
    match missing {
        Some(missing) if deleted.is_empty() => Err(missing.into()),
        _ => print(&deleted, options.json, ""),
    }
}

/// A name that says when.
fn default_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = i64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(i64::MAX);
    time(micros)
}

fn print(kept: &[Kept], as_json: bool, none: &str) -> anyhow::Result<()> {
    if as_json {
        let array: Vec<Value> = kept.iter().map(|(url, kept)| json_of(url, kept)).collect();
        println!("{}", serde_json::to_string_pretty(&array)?);
    } else if kept.is_empty() {
        println!("{none}");
    } else {
        let mut table = plain_table(&["store", "name", "id", "made", "expires"]);
        for (url, checkpoint) in kept {
            table.add_row([
                url.to_string(),
                checkpoint.name.clone().unwrap_or_default(),
                checkpoint.id.clone(),
                time(checkpoint.created_micros),
                expiry(checkpoint),
            ]);
        }
        println!("{table}");
    }
    Ok(())
}

/// A checkpoint for programs.
pub(crate) fn json_of(url: &StoreUrl, checkpoint: &Checkpoint) -> Value {
    json!({
        "store": url.to_string(),
        "id": checkpoint.id,
        "name": checkpoint.name,
        "created": time(checkpoint.created_micros),
        "expires": checkpoint.expires_micros.map(time),
        "expired": checkpoint.is_expired(),
    })
}

/// When a checkpoint ends, for people.
pub(crate) fn expiry(checkpoint: &Checkpoint) -> String {
    match checkpoint.expires_micros {
        None => "never".to_owned(),
        Some(_) if checkpoint.is_expired() => "has expired".to_owned(),
        Some(expires) => time(expires),
    }
}

/// A time in UTC, to the second.
fn time(micros: i64) -> String {
    let time = DateTime::from_timestamp_micros(micros);
    time.map_or_else(
        || micros.to_string(),
        |time| time.to_rfc3339_opts(SecondsFormat::Secs, true),
    )
}
