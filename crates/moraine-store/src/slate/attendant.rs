//! What another process may ask of the one that has a store open: whether it is there, and for a checkpoint that holds
//! everything committed. The question is a short-lived checkpoint with a certain name, because the manifest is what every
//! process can write to without fencing another; the answer is that the question is taken away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use slatedb::admin::Admin;
use slatedb::config::{CheckpointOptions, CheckpointScope};
use slatedb::{Checkpoint, Db};
use tokio::task::JoinHandle;

use crate::location::Location;

/// How every question begins; no checkpoint of a user does.
const QUESTION: &str = "moraine-question:";
const PRESENT: &str = "present";
const CHECKPOINT: &str = "checkpoint:";
const FOREVER: &str = "forever";
/// How often the newest known manifest is looked at. It is itself read once a second.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Whether anybody has the store open for writing.
    Present,
    /// For a checkpoint of everything that is durable.
    Checkpoint {
        name: String,
        lifetime: Option<Duration>,
    },
}

impl Question {
    /// The question as the name of a checkpoint.
    pub(crate) fn to_name(&self) -> String {
        match self {
            Question::Present => format!("{QUESTION}{PRESENT}"),
            Question::Checkpoint { name, lifetime } => {
                let lifetime =
                    lifetime.map_or_else(|| FOREVER.to_owned(), |lifetime| lifetime.as_secs().to_string());
                format!("{QUESTION}{CHECKPOINT}{lifetime}:{name}")
            }
        }
    }

    /// The question that a checkpoint is; `None` for one that is a checkpoint, or asks what this version does not know.
    pub(crate) fn of(checkpoint: &Checkpoint) -> Option<Question> {
        let question = checkpoint.name.as_deref()?.strip_prefix(QUESTION)?;
        if question == PRESENT {
            return Some(Question::Present);
        }
        let (lifetime, name) = question.strip_prefix(CHECKPOINT)?.split_once(':')?;
        let lifetime = match lifetime {
            FOREVER => None,
            seconds => Some(Duration::from_secs(seconds.parse().ok()?)),
        };
        Some(Question::Checkpoint {
            name: name.to_owned(),
            lifetime,
        })
    }
}

/// Whether a name is kept for questions.
pub(crate) fn is_question(name: &str) -> bool {
    name.starts_with(QUESTION)
}

/// Handle of the task that answers; the task ends with it.
pub(crate) struct Attendant(JoinHandle<()>);

impl Attendant {
    pub(crate) fn start(db: Db, location: &Location) -> Self {
        let admin = Admin::builder(location.prefix.clone(), Arc::clone(&location.store)).build();
        Attendant(tokio::spawn(run(db, admin)))
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run(db: Db, admin: Admin) {
    let mut answered = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let questions: Vec<(Checkpoint, Question)> = {
            let status = db.subscribe();
            let status = status.borrow();
            if status.close_reason.is_some() {
                return;
            }
            let checkpoints = status.current_manifest.checkpoints().iter();
            let asked =
                checkpoints.filter_map(|checkpoint| Some((checkpoint.clone(), Question::of(checkpoint)?)));
            asked.collect()
        };
        answered.retain(|id| questions.iter().any(|(asked, _)| asked.id == *id));
        for (asked, question) in questions {
            if answered.insert(asked.id)
                && let Err(error) = answer(&db, &admin, &asked, question).await
            {
                tracing::warn!(%error, "a question of another process could not be answered");
            }
        }
    }
}

async fn answer(
    db: &Db,
    admin: &Admin,
    asked: &Checkpoint,
    question: Question,
) -> Result<(), slatedb::Error> {
    if let Question::Checkpoint { name, lifetime } = question {
        create(db, name, lifetime).await?;
    }
    admin.delete_checkpoint(asked.id).await
}

/// Makes a checkpoint of everything that is durable; the log's part of it is named in the manifest.
async fn create(db: &Db, name: String, lifetime: Option<Duration>) -> Result<(), slatedb::Error> {
    let options = CheckpointOptions {
        lifetime,
        source: None,
        name: Some(name),
    };
    let created = db.create_checkpoint(CheckpointScope::Durable, &options).await?;
    tracing::info!(id = %created.id, name = options.name, "checkpoint created");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(question: &Question) {
        assert!(is_question(&question.to_name()));
    }

    #[test]
    fn questions_are_names_that_no_checkpoint_has() {
        round_trip(&Question::Present);
        let asked = Question::Checkpoint {
            name: "before: the change".to_owned(),
            lifetime: Some(Duration::from_secs(90)),
        };
        round_trip(&asked);
        assert_eq!(
            asked.to_name(),
            "moraine-question:checkpoint:90:before: the change"
        );
        assert!(!is_question("nightly"));
    }
}
