//! Where a lake's Parquet files lie: whole files are put there, read and taken away. What they hold is not known here; a store's own
//! objects are SlateDB's. It is here because this crate alone knows URLs, credentials and object stores.

use std::io::Read;
use std::ops::Range;

use bytes::Bytes;
use futures::TryFutureExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, WriteMultipart};

use crate::error::{ReadError, with_sources};
use crate::location::{Location, Patience};
use crate::{OpenError, StoreUrl};

/// How much of a file is read at once.
const PIECE_BYTES: usize = 1024 * 1024;
/// Parts of one file that are on their way at once.
const PARTS_IN_FLIGHT_MAX: usize = 4;

/// A folder or a place in a bucket that holds data files.
#[derive(Debug)]
pub struct DataFiles {
    location: Location,
    url: StoreUrl,
}

impl DataFiles {
    /// The files below `url`; a local folder is made when it is missing.
    ///
    /// # Errors
    /// [`OpenError::InvalidUrl`], [`OpenError::Unreachable`] and [`OpenError::NotAStore`].
    pub fn open(url: &StoreUrl) -> Result<Self, OpenError> {
        Ok(DataFiles {
            location: url.locate(true, Patience::Long)?,
            url: url.clone(),
        })
    }

    /// The files below `url`, which is there and is only to be read. Waits for an answer for seconds, not for a minute.
    ///
    /// # Errors
    /// See [`DataFiles::open`]; [`OpenError::NotFound`] for a local folder that is missing.
    pub fn open_existing(url: &StoreUrl) -> Result<Self, OpenError> {
        Ok(DataFiles {
            location: url.locate(false, Patience::Short)?,
            url: url.clone(),
        })
    }

    /// Puts everything that `content` still gives as the file `path` (segments separated by `/`). It is there as a whole and durable,
    /// or not at all, when this returns. Holds a few megabytes of it at a time.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] naming the file.
    pub async fn put(&self, path: &str, content: &mut (impl Read + Send)) -> Result<(), ReadError> {
        let place = self.place(path)?;
        let unavailable = |error: object_store::Error| self.unavailable(path, &error);
        let upload = self
            .location
            .store
            .put_multipart(&place)
            .map_err(unavailable)
            .await?;
        let mut writer = WriteMultipart::new(upload);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = content.read(&mut piece).map_err(|error| ReadError::Unavailable {
                doing: format!("reading the file to be put at {path} below {}", self.url),
                detail: error.to_string(),
            })?;
            let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            writer
                .wait_for_capacity(PARTS_IN_FLIGHT_MAX)
                .map_err(unavailable)
                .await?;
            writer.write(bytes);
        }
        writer.finish().map_err(unavailable).await?;
        Ok(())
    }

    /// All of the file `path`.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] naming the file, one that is not there too.
    pub async fn get(&self, path: &str) -> Result<Bytes, ReadError> {
        let place = self.place(path)?;
        let unavailable = |error: object_store::Error| self.unavailable(path, &error);
        let found = self.location.store.get(&place).map_err(unavailable).await?;
        found.bytes().map_err(unavailable).await
    }

    /// The bytes `range` of the file `path`.
    ///
    /// # Errors
    /// See [`DataFiles::get`].
    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes, ReadError> {
        let place = self.place(path)?;
        let unavailable = |error: object_store::Error| self.unavailable(path, &error);
        self.location
            .store
            .get_range(&place, range)
            .map_err(unavailable)
            .await
    }

    /// Takes the file `path` away. One that is not there is no error.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] naming the file.
    pub async fn remove(&self, path: &str) -> Result<(), ReadError> {
        match self.location.store.delete(&self.place(path)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.unavailable(path, &error)),
        }
    }

    /// Names are taken as they are: percent signs in them are part of the name.
    fn place(&self, path: &str) -> Result<Path, ReadError> {
        let below = Path::parse(path).map_err(|error| ReadError::Unavailable {
            doing: format!("naming {path} below {}", self.url),
            detail: error.to_string(),
        })?;
        Ok(self.location.prefix.parts().chain(below.parts()).collect())
    }

    fn unavailable(&self, path: &str, error: &object_store::Error) -> ReadError {
        ReadError::Unavailable {
            doing: format!("reaching {path} below {}", self.url),
            detail: with_sources(error),
        }
    }
}
