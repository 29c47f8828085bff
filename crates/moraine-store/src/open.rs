//! Opening a store by URL: first a plain question to the object store, so that an unreachable or foreign place is
//! refused soon and with a reason; then the format gate on a read-only handle, so that a refused store is left exactly
//! as it was, its running server included; only then for writing.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use moraine_codec::format::SEGMENT_EXTRACTOR;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::ErrorKind;
use slatedb::admin::Admin;

use crate::gate::{FormatState, check_format};
use crate::location::{Location, Patience, StoreUrl};
use crate::slate::guard::{Failure, Guard};
use crate::slate::{SlateReader, SlateStore};
use crate::{ReadError, Store, error::with_sources};

/// Names shown of what lies where a store was expected.
const NAMES_SHOWN_MAX: usize = 3;
/// The folder that every SlateDB database has.
const MANIFEST_FOLDER: &str = "manifest";

/// How to open a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether a store that is not there is created. Default: no.
    pub create: bool,
    /// The longest time each step of opening may take. Default: 30 s.
    pub open_timeout: Duration,
    /// The longest time a read, a commit or a close may take. A commit that takes longer is
    /// [`crate::CommitError::Unknown`]; it may still land. Default: 60 s.
    pub request_timeout: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            create: false,
            open_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
        }
    }
}

impl OpenOptions {
    /// The defaults, creating a store that is not there.
    #[must_use]
    pub fn create() -> Self {
        OpenOptions {
            create: true,
            ..OpenOptions::default()
        }
    }
}

/// Why a store was not opened, and the way out. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no place a store can be.
    #[error(
        "{url:?} is not the URL of a store: {reason}; use a path such as ./lake, or file:///dir, memory://name, \
         s3://bucket/prefix, gs://bucket/prefix, az://container/prefix"
    )]
    InvalidUrl {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The object store did not answer, or refused.
    #[error(
        "{url} cannot be reached: {detail}; check the address, the network and the credentials in the environment"
    )]
    Unreachable {
        /// The store.
        url: String,
        /// What the object store reported.
        detail: String,
    },
    /// There is nothing there, and creating was not asked for.
    #[error("there is no store at {url}; check the path, or let `moraine serve` create one there")]
    NotFound {
        /// The store.
        url: String,
    },
    /// There is something else there.
    #[error("{url} is not a store: {detail}; choose an empty place, or the path of an existing store")]
    NotAStore {
        /// The place.
        url: String,
        /// What lies there.
        detail: String,
    },
    /// A SlateDB database that moraine did not write, or not in a way this version reads.
    #[error(
        "the database at {at} is not a moraine store that this version reads: {detail}; nothing was changed"
    )]
    Foreign {
        /// The store, or the record.
        at: String,
        /// What differs.
        detail: String,
    },
    /// The store was written by a newer version.
    #[error(
        "the store has format {found}, and this version opens format {newest}; use the newer moraine that wrote it \
         ({writer})"
    )]
    Newer {
        /// The store's format.
        found: u64,
        /// The newest format this version knows.
        newest: u64,
        /// The version that stamped the format, as it named itself.
        writer: String,
    },
    /// The store has an older format.
    #[error(
        "the store has format {found}, and this version opens format {oldest} only; use the moraine that wrote it \
         ({writer}), or migrate the store to format {oldest} first"
    )]
    Older {
        /// The store's format.
        found: u64,
        /// The oldest format this version opens.
        oldest: u64,
        /// The version that stamped the format, as it named itself.
        writer: String,
    },
    /// A migration was begun and has not been finished.
    #[error(
        "a migration of the store from format {from} to {to} has not been finished; finish it with the version that \
         began it, then open the store again"
    )]
    MidMigration {
        /// The format migrated from.
        from: u64,
        /// The format migrated to.
        to: u64,
    },
    /// Another process opened the store at the same moment and has it now.
    #[error("another process has taken over {url}; stop it first, or try again")]
    Fenced {
        /// The store.
        url: String,
    },
    /// Stored bytes are not what was written.
    #[error("the store at {url} is damaged: {detail}; restore it from a checkpoint or a copy of the bucket")]
    Damaged {
        /// The store.
        url: String,
        /// What is damaged, and how.
        detail: String,
    },
    /// A read failed while the store was looked at.
    #[error("the store could not be looked at: {source}")]
    Read {
        /// Why.
        source: ReadError,
    },
}

impl OpenError {
    pub(crate) fn not_found(url: &StoreUrl) -> Self {
        OpenError::NotFound { url: url.to_string() }
    }
}

impl From<ReadError> for OpenError {
    fn from(source: ReadError) -> Self {
        OpenError::Read { source }
    }
}

/// Opens the store at `url` for writing, fencing whoever has it open, or creates an empty one (no lake in it yet) when
/// `options.create` says so. Takes bounded time, and writes nothing before the format gate has passed.
///
/// # Errors
/// See [`OpenError`].
pub async fn open(url: &StoreUrl, options: &OpenOptions) -> Result<Arc<SlateStore>, OpenError> {
    match probe(url, options).await? {
        Found::Nothing if !options.create => return Err(OpenError::not_found(url)),
        Found::Nothing => {}
        Found::Database => {
            look(url, options).await?;
        }
    }
    let location = url.locate(options.create, Patience::Long)?;
    let store = start_writer(url, &location, options).await?;
    // Somebody may have written between the look and the takeover.
    if let Err(error) = check_format(store.view()?.as_ref()).await {
        if let Err(close) = store.close().await {
            tracing::debug!(error = %close, "closing a refused store");
        }
        return Err(error);
    }
    Ok(store)
}

/// Opens the store at `url` for reading only, writing nothing; whoever has it open goes on undisturbed. The format gate
/// is passed first.
///
/// # Errors
/// See [`OpenError`].
pub async fn open_reader(url: &StoreUrl, options: &OpenOptions) -> Result<Arc<SlateReader>, OpenError> {
    match probe(url, options).await? {
        Found::Nothing => Err(OpenError::not_found(url)),
        Found::Database => look(url, options).await.map(|(reader, _)| reader),
    }
}

impl SlateStore {
    /// Opens a store for writing on an object store of the caller's, below `prefix`; for embedders that bring their
    /// own, and for tests that make one fail. Creates it when it is not there; the format gate is the caller's.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_on(
        object_store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: &OpenOptions,
    ) -> Result<Arc<SlateStore>, OpenError> {
        let url = StoreUrl::from_named(prefix);
        // Conditional updates decide it; a store that has them is not a file system to SlateDB.
        let local = object_store.to_string().contains("LocalFileSystem");
        let location = Location {
            store: object_store,
            prefix: Path::from(prefix),
            local,
        };
        start_writer(&url, &location, options).await
    }
}

async fn start_writer(
    url: &StoreUrl,
    location: &Location,
    options: &OpenOptions,
) -> Result<Arc<SlateStore>, OpenError> {
    match SlateStore::start(location, options).await {
        Ok(store) => Ok(Arc::new(store)),
        Err(failure) => Err(refused(url, failure)),
    }
}

/// Looks at an existing database without writing: its extractor, then the format gate.
async fn look(url: &StoreUrl, options: &OpenOptions) -> Result<(Arc<SlateReader>, FormatState), OpenError> {
    let location = url.locate(false, Patience::Short)?;
    check_extractor(url, &location, options).await?;
    let reader = SlateReader::start(&location, options)
        .await
        .map_err(|failure| refused(url, failure))?;
    match check_format(&reader).await {
        Ok(state) => Ok((Arc::new(reader), state)),
        Err(error) => {
            if let Err(close) = reader.close().await {
                tracing::debug!(error = %close, "closing a refused store");
            }
            Err(error)
        }
    }
}

async fn check_extractor(
    url: &StoreUrl,
    location: &Location,
    options: &OpenOptions,
) -> Result<(), OpenError> {
    let admin = Admin::builder(location.prefix.clone(), Arc::clone(&location.store)).build();
    let guard = Guard {
        limit: options.open_timeout,
        seen: Arc::default(),
    };
    let manifest = guard
        .run(admin.read_manifest(None))
        .await
        .map_err(|failure| refused(url, failure))?;
    let Some(manifest) = manifest else {
        return Err(OpenError::NotAStore {
            url: url.to_string(),
            detail: "it has a manifest folder without a manifest".to_owned(),
        });
    };
    match manifest.segment_extractor_name() {
        Some(SEGMENT_EXTRACTOR) => Ok(()),
        other => Err(OpenError::Foreign {
            at: url.to_string(),
            detail: format!(
                "its segment extractor is {}, and a moraine store has {SEGMENT_EXTRACTOR}",
                other.unwrap_or("none")
            ),
        }),
    }
}

fn refused(url: &StoreUrl, failure: Failure) -> OpenError {
    let url = url.to_string();
    match failure {
        Failure::TimedOut(detail) => OpenError::Unreachable { url, detail },
        Failure::Panicked(detail) => OpenError::Damaged {
            url,
            detail: format!("the storage engine panicked on what is stored: {detail}"),
        },
        Failure::Engine(error) => {
            let detail = with_sources(&error);
            match error.kind() {
                ErrorKind::Closed(slatedb::CloseReason::Fenced) => OpenError::Fenced { url },
                ErrorKind::Invalid => OpenError::Foreign { at: url, detail },
                ErrorKind::Unavailable => OpenError::Unreachable { url, detail },
                _ => OpenError::Damaged { url, detail },
            }
        }
    }
}

/// What lies at a place.
enum Found {
    Nothing,
    Database,
}

/// One LIST, under a deadline.
async fn probe(url: &StoreUrl, options: &OpenOptions) -> Result<Found, OpenError> {
    let location = url.locate(options.create, Patience::Short)?;
    let prefix = (!location.prefix.as_ref().is_empty()).then_some(&location.prefix);
    let call = location.store.list_with_delimiter(prefix);
    let unreachable = |detail| OpenError::Unreachable {
        url: url.to_string(),
        detail,
    };
    let listed = tokio::time::timeout(
        options.open_timeout,
        std::panic::AssertUnwindSafe(call).catch_unwind(),
    )
    .await
    .map_err(|_| unreachable(format!("no answer within {:?}", options.open_timeout)))?
    .map_err(|_| unreachable("the object store's client panicked".to_owned()))?
    .map_err(|error| unreachable(with_sources(&error)))?;
    let names = || {
        let folders = listed.common_prefixes.iter().map(Path::filename);
        folders
            .chain(listed.objects.iter().map(|object| object.location.filename()))
            .flatten()
    };
    if listed
        .common_prefixes
        .iter()
        .any(|folder| folder.filename() == Some(MANIFEST_FOLDER))
    {
        return Ok(Found::Database);
    }
    if names().next().is_none() {
        return Ok(Found::Nothing);
    }
    let shown: Vec<&str> = names().take(NAMES_SHOWN_MAX).collect();
    Err(OpenError::NotAStore {
        url: url.to_string(),
        detail: format!(
            "it holds other things ({}{})",
            shown.join(", "),
            if names().count() > shown.len() {
                ", …"
            } else {
                ""
            }
        ),
    })
}

/// The stores at or below `url`, at most `depth` folders down, in order of their paths. Folders within a store are not
/// searched.
///
/// # Errors
/// [`OpenError::Unreachable`], [`OpenError::NotFound`] for a local folder that is not there.
pub async fn list_stores(
    url: &StoreUrl,
    depth: usize,
    options: &OpenOptions,
) -> Result<Vec<StoreUrl>, OpenError> {
    let location = url.locate(false, Patience::Short)?;
    let mut found = Vec::new();
    let mut open = vec![(location.prefix.clone(), url.clone(), 0)];
    while let Some((prefix, at, level)) = open.pop() {
        let call = location
            .store
            .list_with_delimiter((!prefix.as_ref().is_empty()).then_some(&prefix));
        let unreachable = |detail| OpenError::Unreachable {
            url: at.to_string(),
            detail,
        };
        let listed = tokio::time::timeout(options.open_timeout, call)
            .await
            .map_err(|_| unreachable(format!("no answer within {:?}", options.open_timeout)))?
            .map_err(|error| unreachable(with_sources(&error)))?;
        if listed
            .common_prefixes
            .iter()
            .any(|folder| folder.filename() == Some(MANIFEST_FOLDER))
        {
            found.push(at);
            continue;
        }
        if level < depth {
            // The last pushed is searched first, so this keeps the order of paths.
            for folder in listed.common_prefixes.into_iter().rev() {
                let below = folder.filename().map(|name| at.join(name));
                if let Some(below) = below {
                    open.push((folder, below, level + 1));
                }
            }
        }
    }
    Ok(found)
}
