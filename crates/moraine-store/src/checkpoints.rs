//! Checkpoints: states of a store that are kept until they expire or are deleted, whatever is written meanwhile. Making one
//! and deleting one goes on beside a running writer, which is asked for it and not fenced.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::ObjectStore;
use slatedb::admin::Admin;
use slatedb::config::CheckpointOptions;

use crate::observed::ObservedStore;
use crate::open::{Place, close_quietly};
use crate::slate::attendant::{Question, is_question};
use crate::slate::guard::Guard;
use crate::{OpenError, OpenOptions, Store, StoreUrl};

/// How long a writer that is there may take to answer. Its process looks once a second.
pub const ANSWER_SECONDS_MAX: u64 = 10;
/// Bytes of a checkpoint's name.
pub const NAME_BYTES_MAX: usize = 200;
/// A question that nobody answers expires by itself.
const QUESTION_LIFETIME: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Names shown of what there is where a checkpoint was not found.
const NAMES_SHOWN_MAX: usize = 5;

/// A kept state of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its id, a UUID as text.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// When it was made, in microseconds since 1970-01-01 UTC, by the clock of who made it.
    pub created_micros: i64,
    /// When it ends, in microseconds since 1970-01-01 UTC; `None` when it stays until it is deleted.
    pub expires_micros: Option<i64>,
    /// The manifest that it keeps.
    pub manifest: u64,
}

impl Checkpoint {
    /// Whether it has ended, by this machine's clock.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.expires_micros.is_some_and(|expires| expires <= now_micros())
    }
}

impl From<&slatedb::Checkpoint> for Checkpoint {
    fn from(checkpoint: &slatedb::Checkpoint) -> Self {
        Checkpoint {
            id: checkpoint.id.to_string(),
            name: checkpoint.name.clone(),
            created_micros: checkpoint.create_time.timestamp_micros(),
            expires_micros: checkpoint.expire_time.map(|time| time.timestamp_micros()),
            manifest: checkpoint.manifest_id,
        }
    }
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// A checkpoint to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheckpoint {
    /// Its name: 1 to [`NAME_BYTES_MAX`] bytes, no control characters. No two of a store have the same.
    pub name: String,
    /// How long it is kept; until it is deleted where there is none. Whole seconds, at least one.
    pub lifetime: Option<Duration>,
    /// Who makes it.
    pub by: MadeBy,
}

/// Who makes a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeBy {
    /// Whoever has the store open for writing; where nobody answers within [`ANSWER_SECONDS_MAX`], this process, which opens
    /// the store for writing then.
    Writer,
    /// This process, which opens the store for writing and fences whoever has it open.
    Takeover,
}

/// Why a checkpoint was not made or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store cannot be opened or written, or there is no such checkpoint.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The name or the lifetime is not one.
    #[error("{what}; choose another")]
    Invalid {
        /// What is wrong.
        what: String,
    },
    /// There is a checkpoint of this name.
    #[error("{url} has a checkpoint {name:?} already ({id}); delete it first, or choose another name")]
    NameTaken {
        /// The store.
        url: String,
        /// The name.
        name: String,
        /// The checkpoint that has it.
        id: String,
    },
    /// The question was answered, and no checkpoint was made.
    #[error("{url} was asked for a checkpoint and made none; the log of its server says why")]
    NotMade {
        /// The store.
        url: String,
    },
}

/// The checkpoints of the store at `url`, oldest first; those that have expired and are still there included.
///
/// # Errors
/// See [`OpenError`].
pub async fn list(url: &StoreUrl, options: &OpenOptions) -> Result<Vec<Checkpoint>, OpenError> {
    let place = Place::at(url, false)?;
    listed(&place, options).await
}

async fn listed(place: &Place, options: &OpenOptions) -> Result<Vec<Checkpoint>, OpenError> {
    let manifest = place.manifest(options).await?;
    let mut found: Vec<Checkpoint> = manifest
        .checkpoints()
        .iter()
        .filter(|checkpoint| !checkpoint.name.as_deref().is_some_and(is_question))
        .map(Checkpoint::from)
        .collect();
    found.sort_by_key(|checkpoint| checkpoint.created_micros);
    Ok(found)
}

/// Makes a checkpoint of everything that has been committed in the store at `url`.
///
/// # Errors
/// See [`CheckpointError`].
pub async fn create(
    url: &StoreUrl,
    options: &OpenOptions,
    new: &NewCheckpoint,
) -> Result<Checkpoint, CheckpointError> {
    create_at(&Place::at(url, false)?, options, new).await
}

/// [`create`] on an object store of the caller's, below `prefix`.
///
/// # Errors
/// See [`CheckpointError`].
pub async fn create_on(
    object_store: Arc<dyn ObjectStore>,
    prefix: &str,
    options: &OpenOptions,
    new: &NewCheckpoint,
) -> Result<Checkpoint, CheckpointError> {
    create_at(&Place::on(object_store, prefix), options, new).await
}

async fn create_at(
    place: &Place,
    options: &OpenOptions,
    new: &NewCheckpoint,
) -> Result<Checkpoint, CheckpointError> {
    check(new)?;
    let before = listed(place, options).await?;
    let named = |checkpoint: &&Checkpoint| checkpoint.name.as_ref() == Some(&new.name);
    if let Some(taken) = before.iter().find(named) {
        return Err(CheckpointError::NameTaken {
            url: place.name.clone(),
            name: new.name.clone(),
            id: taken.id.clone(),
        });
    }
    let asked = match new.by {
        MadeBy::Takeover => false,
        MadeBy::Writer => {
            let question = Question::Checkpoint {
                name: new.name.clone(),
                lifetime: new.lifetime,
            };
            ask(place, options, &question).await?
        }
    };
    if !asked {
        make(place, options, new).await?;
    }
    let after = listed(place, options).await?;
    let made = after.into_iter().find(|checkpoint| named(&checkpoint));
    made.ok_or_else(|| CheckpointError::NotMade {
        url: place.name.clone(),
    })
}

fn check(new: &NewCheckpoint) -> Result<(), CheckpointError> {
    let name = &new.name;
    if name.is_empty()
        || name.len() > NAME_BYTES_MAX
        || name.chars().any(char::is_control)
        || is_question(name)
    {
        return Err(CheckpointError::Invalid {
            what: format!(
                "{name:?} is no name of a checkpoint: it has 1 to {NAME_BYTES_MAX} bytes and no control characters"
            ),
        });
    }
    match new.lifetime {
        Some(lifetime) if lifetime < Duration::from_secs(1) => Err(CheckpointError::Invalid {
            what: format!("a checkpoint that is kept for {lifetime:?} is gone before it can be used"),
        }),
        _ => Ok(()),
    }
}

/// Makes the checkpoint in this process, as the store's writer.
async fn make(place: &Place, options: &OpenOptions, new: &NewCheckpoint) -> Result<(), OpenError> {
    let store = place.open(options).await?;
    let made = store.create_checkpoint(&new.name, new.lifetime).await;
    close_quietly(store.close()).await;
    made?;
    Ok(())
}

/// Whether anybody has the store at `url` open for writing. Takes [`ANSWER_SECONDS_MAX`] where nobody has.
///
/// # Errors
/// See [`OpenError`].
pub async fn is_served(url: &StoreUrl, options: &OpenOptions) -> Result<bool, OpenError> {
    let place = Place::at(url, false)?;
    place.manifest(options).await?;
    ask(&place, options, &Question::Present).await
}

/// Asks whoever has the store open, and takes the question away again where nobody answers.
async fn ask(place: &Place, options: &OpenOptions, question: &Question) -> Result<bool, OpenError> {
    let (admin, guard) = guard(place, options);
    let asking = CheckpointOptions {
        lifetime: Some(QUESTION_LIFETIME),
        source: None,
        name: Some(question.to_name()),
    };
    let refused = |failure| place.refused(failure);
    let asked = guard
        .run(admin.create_detached_checkpoint(&asking))
        .await
        .map_err(refused)?;
    let is_open = async || -> Result<bool, OpenError> {
        let listed = guard.run(admin.list_checkpoints(None)).await.map_err(refused)?;
        Ok(listed.iter().any(|checkpoint| checkpoint.id == asked.id))
    };
    let deadline = tokio::time::Instant::now() + Duration::from_secs(ANSWER_SECONDS_MAX);
    while tokio::time::Instant::now() < deadline {
        tokio::time::sleep(LOOK_INTERVAL).await;
        if !is_open().await? {
            return Ok(true);
        }
    }
    guard
        .run(admin.delete_checkpoint(asked.id))
        .await
        .map_err(refused)?;
    Ok(false)
}

/// What it takes to change the manifest of a place, and the guard of such calls.
fn guard(place: &Place, options: &OpenOptions) -> (Admin, Guard) {
    let observed = ObservedStore::new(Arc::clone(&place.work.store));
    let guard = Guard {
        limit: options.open_timeout,
        seen: observed.observations(),
    };
    let admin = Admin::builder(place.work.prefix.clone(), Arc::new(observed)).build();
    (admin, guard)
}

/// Deletes a checkpoint of the store at `url`, by its id or its name, and gives what it was.
///
/// # Errors
/// [`OpenError::NoSuchCheckpoint`]; see [`OpenError`].
pub async fn delete(
    url: &StoreUrl,
    options: &OpenOptions,
    id_or_name: &str,
) -> Result<Checkpoint, OpenError> {
    let place = Place::at(url, false)?;
    let manifest = place.manifest(options).await?;
    let all = manifest.checkpoints().iter();
    let found = all.clone().find(|checkpoint| is(checkpoint, id_or_name));
    let found = found.ok_or_else(|| no_such(&place.name, manifest.checkpoints(), id_or_name))?;
    let (admin, guard) = guard(&place, options);
    guard
        .run(admin.delete_checkpoint(found.id))
        .await
        .map_err(|failure| place.refused(failure))?;
    Ok(Checkpoint::from(found))
}

/// The live checkpoint of an id or a name.
pub(crate) fn find<'c>(
    url: &str,
    checkpoints: &'c [slatedb::Checkpoint],
    asked: &str,
) -> Result<&'c slatedb::Checkpoint, OpenError> {
    let mut live = checkpoints
        .iter()
        .filter(|checkpoint| !Checkpoint::from(*checkpoint).is_expired());
    let found = live.find(|checkpoint| is(checkpoint, asked));
    found.ok_or_else(|| no_such(url, checkpoints, asked))
}

fn is(checkpoint: &slatedb::Checkpoint, asked: &str) -> bool {
    checkpoint.id.to_string().eq_ignore_ascii_case(asked) || checkpoint.name.as_deref() == Some(asked)
}

fn no_such(url: &str, checkpoints: &[slatedb::Checkpoint], asked: &str) -> OpenError {
    let live: Vec<String> = checkpoints
        .iter()
        .map(Checkpoint::from)
        .filter(|checkpoint| !checkpoint.is_expired() && !checkpoint.name.as_deref().is_some_and(is_question))
        .map(|checkpoint| checkpoint.name.unwrap_or(checkpoint.id))
        .collect();
    let known = match live.as_slice() {
        [] => "is none that has not expired".to_owned(),
        live => {
            let more = if live.len() > NAMES_SHOWN_MAX { ", …" } else { "" };
            let shown = live.iter().take(NAMES_SHOWN_MAX).cloned().collect::<Vec<_>>();
            format!("are {}{more}", shown.join(", "))
        }
    };
    OpenError::NoSuchCheckpoint {
        url: url.to_owned(),
        checkpoint: asked.to_owned(),
        known,
    }
}
