//! Checkpoints of the database: a state that the storage engine keeps until the checkpoint is deleted or expires.

use std::time::Duration;

use slatedb::config::{CheckpointOptions, CheckpointScope};

use super::SlateStore;
use crate::ReadError;

impl SlateStore {
    /// Makes a checkpoint named `name` of everything that is durable, and returns its id. It keeps the objects of this
    /// state until it is deleted, or for `lifetime`.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn create_checkpoint(
        &self,
        name: &str,
        lifetime: Option<Duration>,
    ) -> Result<String, ReadError> {
        let options = CheckpointOptions {
            lifetime,
            name: Some(name.to_owned()),
            ..CheckpointOptions::default()
        };
        let call = self
            .inner
            .db
            .create_checkpoint(CheckpointScope::Durable, &options);
        let checkpoint = self.inner.guard.read("the checkpoint", call).await?;
        Ok(checkpoint.id.to_string())
    }
}
