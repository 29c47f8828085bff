//! Opening a store by URL: first a plain question to the object store, so that an unreachable or foreign place is
//! refused soon and with a reason; then the format gate on a read-only handle, so that a refused store is left exactly
//! as it was, its running server included; only then for writing.

use std::sync::Arc;
use std::time::Duration;

use moraine_codec::format::SEGMENT_EXTRACTOR;
use object_store::path::Path;
use object_store::{ListResult, ObjectStore};
use slatedb::admin::Admin;
use slatedb::manifest::VersionedManifest;
use slatedb::{CloseReason, ErrorKind};

use crate::checkpoints::find;
use crate::gate::check_format;
use crate::location::{Location, Patience, StoreUrl};
use crate::observed::ObservedStore;
use crate::slate::guard::{Failure, Guard};
use crate::slate::read_only::Point;
use crate::slate::{ReadOnlyStore, SlateReader, SlateStore};
use crate::{Read, ReadError, Store, error::with_sources};

/// Names shown of what lies where a store was expected.
const NAMES_SHOWN_MAX: usize = 3;
/// The folder that every SlateDB database has.
const MANIFEST_FOLDER: &str = "manifest";
/// What SlateDB says when another opener wrote the next manifest first.
const MANIFEST_WRITTEN_FIRST: &str = "version already exists";

/// How to open a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether a store that is not there is created. Default: no.
    pub create: bool,
    /// Whether a store whose import was interrupted is opened, for who resumes it. Default: no.
    pub resume_import: bool,
    /// Whether it is opened to write much at once that nobody reads meanwhile, as an import and a migration do. The memory it
    /// takes then stays the same however much is written: nothing written is cached, and less is compacted at a time.
    /// Default: no.
    pub bulk: bool,
    /// The longest time each step of opening may take. Default: 30 s.
    pub open_timeout: Duration,
    /// The longest time a read, a commit or a close may take. A commit that takes longer is
    /// [`crate::CommitError::Unknown`]; it may still land. Default: 60 s.
    pub request_timeout: Duration,
    /// The number of the last writer that may have opened the store, as [`SlateStore::writer_epoch`] gave it: where there has
    /// been another since, opening for writing is [`OpenError::Fenced`], and nobody is fenced. Default: any.
    pub expected_writer_epoch: Option<u64>,
    /// How long ago a writer may have been sure that nobody has taken its store over, for [`Store::confirm`] not to ask the
    /// object store. Default: 1 s.
    pub ownership_age_max: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            create: false,
            resume_import: false,
            bulk: false,
            open_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            expected_writer_epoch: None,
            ownership_age_max: Duration::from_secs(1),
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
        "the store has format {found} ({writer} wrote it), and this version opens formats from {oldest} on; run \
         `moraine migrate {url}` first, which makes it one of the newest format"
    )]
    Older {
        /// The store.
        url: String,
        /// The store's format.
        found: u64,
        /// The oldest format this version opens.
        oldest: u64,
        /// The version that stamped the format, as it named itself.
        writer: String,
    },
    /// A migration was begun and has not been finished.
    #[error(
        "a migration of the store from format {from} to {to} is under way or was interrupted; where no process is at it, \
         run `moraine migrate {url}`, which goes on where it stopped, then open the store again"
    )]
    MidMigration {
        /// The store.
        url: String,
        /// The format migrated from.
        from: u64,
        /// The format migrated to.
        to: u64,
    },
    /// A lake was being imported here, and the import has not been finished.
    #[error(
        "an import of {source_catalog} into this store was interrupted; run the same `moraine import` again to resume it, \
         or with --restart to begin it anew"
    )]
    MidImport {
        /// The catalog that was being imported, in words.
        source_catalog: String,
    },
    /// Another process opened the store at the same moment and has it now.
    #[error("another process has taken over {url}; stop it first, or try again")]
    Fenced {
        /// The store.
        url: String,
    },
    /// There is no such checkpoint.
    #[error(
        "{url} has no checkpoint {checkpoint:?}, by id or by name: there {known}; `moraine checkpoint list` shows them"
    )]
    NoSuchCheckpoint {
        /// The store.
        url: String,
        /// The id or name asked for.
        checkpoint: String,
        /// What there is instead.
        known: String,
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
    Place::at(url, options.create)?.open(options).await
}

/// Opens the store at `url` for reading only, writing nothing; whoever has it open goes on undisturbed. The format gate
/// is passed first.
///
/// # Errors
/// See [`OpenError`].
pub async fn open_reader(url: &StoreUrl, options: &OpenOptions) -> Result<Arc<SlateReader>, OpenError> {
    Place::at(url, false)?.open_reader(options).await
}

/// [`open`] without the format gate and without creating anything: for who migrates a store, whatever its format. The
/// caller looks first, with [`open_reader_ungated`], and writes nothing that the format does not allow.
///
/// # Errors
/// See [`OpenError`].
pub async fn open_ungated(url: &StoreUrl, options: &OpenOptions) -> Result<Arc<SlateStore>, OpenError> {
    Place::at(url, false)?.open_ungated(options).await
}

/// [`open_reader`] without the format gate: for who looks into a store that may be older, half migrated or damaged.
///
/// # Errors
/// See [`OpenError`].
pub async fn open_reader_ungated(
    url: &StoreUrl,
    options: &OpenOptions,
) -> Result<Arc<SlateReader>, OpenError> {
    Place::at(url, false)?.open_reader_ungated(options).await
}

/// Which state a store that is opened for reading only shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadPoint {
    /// The newest, looked for every so often.
    Newest {
        /// How often. A commit that is acknowledged is seen by views that are taken this much later, and the time of a few
        /// requests to the object store.
        poll_interval: Duration,
    },
    /// That of a checkpoint, by its id or its name.
    Checkpoint(String),
}

/// Opens the store at `url` for reading only, writing nothing: whoever has it open goes on undisturbed, and credentials that
/// cannot write are enough. The format gate is passed first, at the state that is shown.
///
/// # Errors
/// See [`OpenError`].
pub async fn open_read_only(
    url: &StoreUrl,
    options: &OpenOptions,
    point: &ReadPoint,
) -> Result<Arc<ReadOnlyStore>, OpenError> {
    Place::at(url, false)?.open_read_only(options, point).await
}

impl ReadOnlyStore {
    /// [`open_read_only`] on an object store of the caller's, below `prefix`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_on(
        object_store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: &OpenOptions,
        point: &ReadPoint,
    ) -> Result<Arc<ReadOnlyStore>, OpenError> {
        Place::on(object_store, prefix)
            .open_read_only(options, point)
            .await
    }
}

/// Opens a SlateDB database that another program wrote, for reading only, whatever its records are: the format gate is not
/// asked. Keys and values are that program's.
///
/// # Errors
/// See [`OpenError`].
pub async fn open_foreign_reader(
    url: &StoreUrl,
    options: &OpenOptions,
) -> Result<Arc<SlateReader>, OpenError> {
    let place = Place::at(url, false)?;
    if matches!(place.probe(options).await?, Found::Nothing) {
        return Err(OpenError::not_found(url));
    }
    let opened = SlateReader::start_foreign(&place.question, options).await;
    opened.map(Arc::new).map_err(|failure| place.refused(failure))
}

impl SlateStore {
    /// [`open`] on an object store of the caller's, below `prefix`; for embedders that bring their own, and for tests
    /// that make one fail.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_on(
        object_store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: &OpenOptions,
    ) -> Result<Arc<SlateStore>, OpenError> {
        Place::on(object_store, prefix).open(options).await
    }

    /// [`open_ungated`] on an object store of the caller's, below `prefix`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_ungated_on(
        object_store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: &OpenOptions,
    ) -> Result<Arc<SlateStore>, OpenError> {
        Place::on(object_store, prefix).open_ungated(options).await
    }
}

impl SlateReader {
    /// [`open_reader`] on an object store of the caller's, below `prefix`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_on(
        object_store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: &OpenOptions,
    ) -> Result<Arc<SlateReader>, OpenError> {
        Place::on(object_store, prefix).open_reader(options).await
    }

    /// [`open_reader_ungated`] on an object store of the caller's, below `prefix`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_ungated_on(
        object_store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: &OpenOptions,
    ) -> Result<Arc<SlateReader>, OpenError> {
        Place::on(object_store, prefix).open_reader_ungated(options).await
    }
}

/// A place to open a store at: by its name in errors, for a first question, and for work.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) question: Location,
    pub(crate) work: Location,
}

impl Place {
    pub(crate) fn at(url: &StoreUrl, create: bool) -> Result<Place, OpenError> {
        Ok(Place {
            name: url.to_string(),
            question: url.locate(create, Patience::Short)?,
            work: url.locate(create, Patience::Long)?,
        })
    }

    pub(crate) fn on(object_store: Arc<dyn ObjectStore>, prefix: &str) -> Place {
        let name = format!("{object_store}/{prefix}");
        // Object stores do not say what they can do; file systems are the ones that take no conditional updates.
        let local = object_store.to_string().contains("LocalFileSystem");
        let work = Location {
            store: object_store,
            prefix: Path::from(prefix),
            local,
        };
        Place {
            name,
            question: work.clone(),
            work,
        }
    }

    pub(crate) async fn open(&self, options: &OpenOptions) -> Result<Arc<SlateStore>, OpenError> {
        match self.probe(options).await? {
            Found::Nothing if !options.create => {
                return Err(OpenError::NotFound {
                    url: self.name.clone(),
                });
            }
            Found::Nothing => {}
            Found::Database => {
                let reader = self.look(options).await?;
                close_quietly(reader.close()).await;
            }
        }
        let store = SlateStore::start(&self.work, options)
            .await
            .map_err(|failure| self.refused(failure))?;
        // Somebody may have written between the look and the takeover.
        if let Err(error) = check_taken(&store, options).await {
            close_quietly(store.close()).await;
            return Err(self.taken_over(error));
        }
        Ok(Arc::new(store))
    }

    async fn open_reader(&self, options: &OpenOptions) -> Result<Arc<SlateReader>, OpenError> {
        self.find_database(options).await?;
        Ok(Arc::new(self.look(options).await?))
    }

    async fn open_ungated(&self, options: &OpenOptions) -> Result<Arc<SlateStore>, OpenError> {
        self.find_database(options).await?;
        self.check_extractor(options).await?;
        let store = SlateStore::start(&self.work, options)
            .await
            .map_err(|failure| self.refused(failure))?;
        Ok(Arc::new(store))
    }

    async fn open_reader_ungated(&self, options: &OpenOptions) -> Result<Arc<SlateReader>, OpenError> {
        self.find_database(options).await?;
        Ok(Arc::new(self.look_ungated(options).await?))
    }

    async fn find_database(&self, options: &OpenOptions) -> Result<(), OpenError> {
        match self.probe(options).await? {
            Found::Nothing => Err(OpenError::NotFound {
                url: self.name.clone(),
            }),
            Found::Database => Ok(()),
        }
    }

    async fn open_read_only(
        &self,
        options: &OpenOptions,
        point: &ReadPoint,
    ) -> Result<Arc<ReadOnlyStore>, OpenError> {
        let manifest = self.manifest(options).await?;
        let point = match point {
            ReadPoint::Newest { poll_interval } => Point::Newest {
                poll_interval: *poll_interval,
            },
            ReadPoint::Checkpoint(asked) => {
                Point::Checkpoint(find(&self.name, manifest.checkpoints(), asked)?.clone())
            }
        };
        let store = ReadOnlyStore::start(&self.work, options, point)
            .await
            .map_err(|failure| self.refused(failure))?;
        if let Err(error) = check_format(store.view()?.as_ref()).await {
            close_quietly(store.close()).await;
            return Err(self.named(error));
        }
        Ok(Arc::new(store))
    }

    /// The newest manifest of an existing store, its extractor checked.
    pub(crate) async fn manifest(&self, options: &OpenOptions) -> Result<VersionedManifest, OpenError> {
        self.find_database(options).await?;
        self.check_extractor(options).await
    }

    /// One LIST, under a deadline.
    async fn probe(&self, options: &OpenOptions) -> Result<Found, OpenError> {
        let listed = list_folder(&self.question.store, &self.question.prefix, options)
            .await
            .map_err(|detail| OpenError::Unreachable {
                url: self.name.clone(),
                detail,
            })?;
        if holds_database(&listed) {
            return Ok(Found::Database);
        }
        let folders = listed.common_prefixes.iter().filter_map(Path::filename);
        let names: Vec<&str> = folders
            .chain(
                listed
                    .objects
                    .iter()
                    .filter_map(|object| object.location.filename()),
            )
            .collect();
        if names.is_empty() {
            return Ok(Found::Nothing);
        }
        let shown = names
            .iter()
            .take(NAMES_SHOWN_MAX)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let more = if names.len() > NAMES_SHOWN_MAX {
            ", …"
        } else {
            ""
        };
        Err(OpenError::NotAStore {
            url: self.name.clone(),
            detail: format!("it holds other things ({shown}{more})"),
        })
    }

    /// Looks at an existing database without writing: its extractor, then the format gate.
    async fn look(&self, options: &OpenOptions) -> Result<SlateReader, OpenError> {
        let reader = self.look_ungated(options).await?;
        match check_openable(&reader, options).await {
            Ok(()) => Ok(reader),
            Err(error) => {
                close_quietly(reader.close()).await;
                Err(self.named(error))
            }
        }
    }

    async fn look_ungated(&self, options: &OpenOptions) -> Result<SlateReader, OpenError> {
        self.check_extractor(options).await?;
        SlateReader::start(&self.question, options)
            .await
            .map_err(|failure| self.refused(failure))
    }

    /// What the gate says, with the store's own name in the command to run.
    fn named(&self, error: OpenError) -> OpenError {
        let mut error = error;
        if let OpenError::Older { url, .. } | OpenError::MidMigration { url, .. } = &mut error {
            url.clone_from(&self.name);
        }
        error
    }

    async fn check_extractor(&self, options: &OpenOptions) -> Result<VersionedManifest, OpenError> {
        let observed = ObservedStore::new(Arc::clone(&self.question.store));
        let guard = Guard {
            limit: options.open_timeout,
            seen: observed.observations(),
        };
        let admin = Admin::builder(self.question.prefix.clone(), Arc::new(observed)).build();
        let manifest = guard
            .run(admin.read_manifest(None))
            .await
            .map_err(|failure| self.refused(failure))?;
        let Some(manifest) = manifest else {
            return Err(OpenError::NotAStore {
                url: self.name.clone(),
                detail: "it has a manifest folder without a manifest".to_owned(),
            });
        };
        match manifest.segment_extractor_name() {
            Some(SEGMENT_EXTRACTOR) => Ok(manifest),
            other => Err(OpenError::Foreign {
                at: self.name.clone(),
                detail: format!(
                    "its segment extractor is {}, and a moraine store has {SEGMENT_EXTRACTOR}",
                    other.unwrap_or("none")
                ),
            }),
        }
    }

    /// An opener that lost the store to another one before it was done says so, whatever it was doing.
    fn taken_over(&self, error: OpenError) -> OpenError {
        match error {
            OpenError::Read {
                source: ReadError::Fenced { .. },
            } => OpenError::Fenced {
                url: self.name.clone(),
            },
            error => self.named(error),
        }
    }

    pub(crate) fn refused(&self, failure: Failure) -> OpenError {
        let url = self.name.clone();
        match failure {
            Failure::TimedOut(detail) => OpenError::Unreachable { url, detail },
            Failure::Panicked(detail) => OpenError::Damaged {
                url,
                detail: format!("the storage engine panicked on what is stored: {detail}"),
            },
            Failure::Engine(kind, detail) => match kind {
                ErrorKind::Closed(CloseReason::Fenced) => OpenError::Fenced { url },
                ErrorKind::Invalid => OpenError::Foreign { at: url, detail },
                ErrorKind::Unavailable => OpenError::Unreachable { url, detail },
                // SlateDB has no kind for this: two openers wrote the same manifest, and the other one was first.
                _ if detail.contains(MANIFEST_WRITTEN_FIRST) => OpenError::Fenced { url },
                _ => OpenError::Damaged { url, detail },
            },
        }
    }
}

/// The format gate on a store that has been taken over.
async fn check_taken(store: &SlateStore, options: &OpenOptions) -> Result<(), OpenError> {
    check_openable(store.view()?.as_ref(), options).await
}

/// The format gate, and what passes it only because it was asked for.
async fn check_openable(read: &dyn Read, options: &OpenOptions) -> Result<(), OpenError> {
    match check_format(read).await {
        Err(OpenError::MidImport { .. }) if options.resume_import => Ok(()),
        checked => checked.map(|_| ()),
    }
}

/// What lies at a place.
enum Found {
    Nothing,
    Database,
}

pub(crate) async fn close_quietly(close: impl Future<Output = Result<(), ReadError>>) {
    if let Err(error) = close.await {
        tracing::debug!(%error, "closing a store that was only looked at");
    }
}

fn holds_database(listed: &ListResult) -> bool {
    listed
        .common_prefixes
        .iter()
        .any(|folder| folder.filename() == Some(MANIFEST_FOLDER))
}

/// Lists one folder under a deadline, or says why not.
async fn list_folder(
    store: &Arc<dyn ObjectStore>,
    folder: &Path,
    options: &OpenOptions,
) -> Result<ListResult, String> {
    let folder = (!folder.as_ref().is_empty()).then_some(folder);
    match tokio::time::timeout(options.open_timeout, store.list_with_delimiter(folder)).await {
        Ok(listed) => listed.map_err(|error| with_sources(&error)),
        Err(_) => Err(format!("no answer within {:?}", options.open_timeout)),
    }
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
    let mut unsearched = vec![(location.prefix.clone(), url.clone(), 0)];
    while let Some((folder, at, level)) = unsearched.pop() {
        let listed = list_folder(&location.store, &folder, options)
            .await
            .map_err(|detail| OpenError::Unreachable {
                url: at.to_string(),
                detail,
            })?;
        if holds_database(&listed) {
            found.push(at);
        } else if level < depth {
            // The last one pushed is searched first; reversed, this keeps the order of paths.
            for below in listed.common_prefixes.into_iter().rev() {
                if let Some(name) = below.filename() {
                    let at = at.join(name);
                    unsearched.push((below, at, level + 1));
                }
            }
        }
    }
    Ok(found)
}
