//! Which lakes there are: one per database and schema, each in a store of its own below the server's root, opened once at
//! first use. What is in a lake is not known here.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moraine_commit::{
    Access, Catalog, CatalogOptions, OpenError, OpenOptions, StoreUrl, is_served, list_stores,
};

use crate::errors::{SqlError, state};
use crate::turns::Losses;

/// The schema of a lake whose client names none. Source: PostgreSQL.
pub(crate) const DEFAULT_SCHEMA: &str = "public";
/// Bytes of a database or schema name. Source: PostgreSQL (NAMEDATALEN - 1).
const NAME_BYTES_MAX: usize = 63;
/// Lakes that one server keeps open: each holds an open store.
const LAKES_MAX: usize = 4_096;
/// How old a listing of the root may be. DuckLake asks for the schemas in each transaction that reads inlined rows, and a
/// listing is a request to the object store.
const LISTING_AGE_MAX: Duration = Duration::from_secs(1);

/// The lakes below one root.
pub(crate) struct Lakes {
    root: StoreUrl,
    options: CatalogOptions,
    known: Mutex<HashMap<(String, String), Arc<Lake>>>,
    /// Schemas made by CREATE SCHEMA that have no store yet, by database.
    announced: Mutex<HashMap<String, BTreeSet<String>>>,
    /// The schemas that had a store when the root was last listed, by database.
    listed: Mutex<HashMap<String, (Instant, BTreeSet<String>)>>,
}

/// One lake's place, and its catalog once it is open.
pub(crate) struct Lake {
    pub(crate) schema: String,
    url: StoreUrl,
    options: CatalogOptions,
    /// Failures to open are not kept: the next use tries again.
    catalog: tokio::sync::Mutex<Opened>,
    losses: Mutex<Losses>,
    /// Whether its store has been seen.
    exists: AtomicBool,
    /// Whether another process has fenced this one's store.
    taken_over: AtomicBool,
}

/// A lake's catalog, while it is open.
#[derive(Default)]
struct Opened {
    catalog: Option<Arc<Catalog>>,
    /// When it was last asked for.
    used: Option<Instant>,
    /// The writer that this process was when it closed the lake because nobody used it.
    left: Option<u64>,
}

impl Lakes {
    pub(crate) fn new(root: StoreUrl, options: CatalogOptions) -> Lakes {
        Lakes {
            root,
            options,
            known: Mutex::default(),
            announced: Mutex::default(),
            listed: Mutex::default(),
        }
    }

    /// The lake of a database and schema, whether or not it exists.
    pub(crate) fn lake(&self, database: &str, schema: &str) -> Result<Arc<Lake>, SqlError> {
        check_name(database, "database", state::INVALID_CATALOG_NAME)?;
        check_name(schema, "schema", state::INVALID_SCHEMA_NAME)?;
        let mut known = lock(&self.known);
        let key = (database.to_owned(), schema.to_owned());
        if let Some(lake) = known.get(&key) {
            return Ok(Arc::clone(lake));
        }
        if known.len() >= LAKES_MAX {
            let message = format!("this server has {LAKES_MAX} lakes open, as many as it may; restart it");
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message));
        }
        let lake = Arc::new(Lake {
            schema: schema.to_owned(),
            url: self.catalog_root(database).join(schema),
            options: self.options.clone(),
            catalog: tokio::sync::Mutex::default(),
            losses: Mutex::default(),
            exists: AtomicBool::new(false),
            taken_over: AtomicBool::new(false),
        });
        known.insert(key, Arc::clone(&lake));
        Ok(lake)
    }

    fn catalog_root(&self, database: &str) -> StoreUrl {
        self.root.join("catalog").join(database)
    }

    /// The schemas of a database: the default one, those with a store, and those announced. In order of their names. A
    /// store that another server made is among them within [`LISTING_AGE_MAX`].
    pub(crate) async fn schemas(&self, database: &str) -> Result<BTreeSet<String>, SqlError> {
        self.schemas_listed_within(database, LISTING_AGE_MAX).await
    }

    async fn schemas_listed_within(
        &self,
        database: &str,
        age: Duration,
    ) -> Result<BTreeSet<String>, SqlError> {
        check_name(database, "database", state::INVALID_CATALOG_NAME)?;
        let mut schemas = match self.listed(database, age) {
            Some(listed) => listed,
            None => self.list(database).await?,
        };
        schemas.insert(DEFAULT_SCHEMA.to_owned());
        let announced = lock(&self.announced).get(database).cloned();
        schemas.extend(announced.unwrap_or_default());
        for ((of, schema), lake) in lock(&self.known).iter() {
            if of == database && lake.exists.load(Ordering::Relaxed) {
                schemas.insert(schema.clone());
            }
        }
        Ok(schemas)
    }

    fn listed(&self, database: &str, age: Duration) -> Option<BTreeSet<String>> {
        let listed = lock(&self.listed);
        let (at, schemas) = listed.get(database)?;
        (at.elapsed() < age).then(|| schemas.clone())
    }

    async fn list(&self, database: &str) -> Result<BTreeSet<String>, SqlError> {
        let began = Instant::now();
        let root = self.catalog_root(database);
        let stores = match Box::pin(list_stores(&root, 1, &self.options.store)).await {
            Ok(stores) => stores,
            Err(OpenError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(SqlError::from(error)),
        };
        let places = stores.iter().map(StoreUrl::to_string);
        let schemas: BTreeSet<String> = places
            .filter_map(|place| place.rsplit(['/', '\\']).next().map(decode_segment))
            .collect();
        lock(&self.listed).insert(database.to_owned(), (began, schemas.clone()));
        Ok(schemas)
    }

    /// Whether nothing can be changed here.
    pub(crate) fn only_reads(&self) -> bool {
        self.options.access != Access::Write
    }

    /// Makes a schema known before it has tables. Whether it was not known before.
    pub(crate) async fn announce(&self, database: &str, schema: &str) -> Result<bool, SqlError> {
        if self.only_reads() {
            return Err(SqlError::only_reads());
        }
        check_name(schema, "schema", state::INVALID_SCHEMA_NAME)?;
        let there = self.schemas_listed_within(database, Duration::ZERO).await?;
        if there.contains(schema) {
            return Ok(false);
        }
        let mut announced = lock(&self.announced);
        Ok(announced
            .entry(database.to_owned())
            .or_default()
            .insert(schema.to_owned()))
    }

    fn all(&self) -> Vec<Arc<Lake>> {
        let known = lock(&self.known);
        known.values().cloned().collect()
    }

    /// Closes the lakes that nobody has used for `idle`: an open store asks the object store a few things every second. The
    /// next use opens them again.
    pub(crate) async fn close_idle(&self, idle: Duration) {
        for lake in self.all() {
            lake.close_idle(idle).await;
        }
    }

    /// Closes every open lake, so that all that was committed is durable.
    pub(crate) async fn close(&self) {
        for lake in self.all() {
            if let Some(catalog) = lake.catalog.lock().await.catalog.take()
                && let Err(error) = Box::pin(catalog.close()).await
            {
                tracing::error!(lake = %lake.url, %error, "a lake did not close cleanly");
            }
        }
    }
}

impl Lake {
    /// The catalog, when there is a store. Looking for it creates nothing. 57P03 when another process has taken it over.
    pub(crate) async fn existing(&self) -> Result<Option<Arc<Catalog>>, SqlError> {
        if self.taken_over.load(Ordering::Relaxed) {
            return Err(SqlError::taken_over(&self.schema));
        }
        match self.open(self.options.store.clone()).await {
            Ok(catalog) => Ok(Some(catalog)),
            Err(OpenError::NotFound { .. }) => Ok(None),
            Err(OpenError::Fenced { .. }) if self.taken_over.load(Ordering::Relaxed) => {
                Err(SqlError::taken_over(&self.schema))
            }
            Err(error) => Err(SqlError::from(error)),
        }
    }

    /// The catalog, in a new store if there is none.
    pub(crate) async fn created(&self) -> Result<Arc<Catalog>, SqlError> {
        let options = OpenOptions {
            create: true,
            ..self.options.store.clone()
        };
        self.open(options).await.map_err(SqlError::from)
    }

    async fn open(&self, store: OpenOptions) -> Result<Arc<Catalog>, OpenError> {
        let mut opened = self.catalog.lock().await;
        opened.used = Some(Instant::now());
        if let Some(open) = &opened.catalog {
            return Ok(Arc::clone(open));
        }
        let store = OpenOptions {
            expected_writer_epoch: opened.left,
            ..store
        };
        // The future of an opening store is tens of kilobytes, and would be part of every caller's.
        let mut catalog = Box::pin(self.open_store(&store)).await;
        if opened.left.is_some() && matches!(catalog, Err(OpenError::Fenced { .. })) {
            catalog = Box::pin(self.open_after_another()).await;
        }
        let catalog = catalog?;
        tracing::debug!(lake = %self.url, "lake opened");
        opened.left = None;
        self.exists.store(true, Ordering::Relaxed);
        opened.catalog = Some(Arc::clone(&catalog));
        Ok(catalog)
    }

    async fn open_store(&self, store: &OpenOptions) -> Result<Arc<Catalog>, OpenError> {
        let options = CatalogOptions {
            store: store.clone(),
            ..self.options.clone()
        };
        Catalog::open(&self.url, &options).await
    }

    /// Opens a lake that another process has had open since this one closed it: unless that one still has it.
    async fn open_after_another(&self) -> Result<Arc<Catalog>, OpenError> {
        if is_served(&self.url, &self.options.store).await? {
            self.taken_over.store(true, Ordering::Relaxed);
            return Err(OpenError::Fenced {
                url: self.url.to_string(),
            });
        }
        self.open_store(&self.options.store).await
    }

    /// Closes the lake if nobody has asked for it for `idle`, and nobody has it.
    async fn close_idle(&self, idle: Duration) {
        // Whoever opens it at this moment uses it.
        let Ok(mut opened) = self.catalog.try_lock() else {
            return;
        };
        let unused = opened.used.is_none_or(|used| used.elapsed() >= idle);
        let Some(catalog) = opened
            .catalog
            .take_if(|catalog| unused && Arc::strong_count(catalog) == 1)
        else {
            return;
        };
        opened.left = catalog.writer_epoch();
        match Box::pin(catalog.close()).await {
            Ok(()) => tracing::debug!(lake = %self.url, "closed: nobody has used it for a while"),
            Err(error) => tracing::warn!(lake = %self.url, %error, "an unused lake did not close cleanly"),
        }
    }

    /// The races for snapshots of this lake that were lost and not yet made good.
    pub(crate) fn losses(&self) -> MutexGuard<'_, Losses> {
        lock(&self.losses)
    }

    /// Forgets a catalog whose storage engine has stopped, so that the next use opens the store again, or, when another
    /// process has `taken_over` the store, is told so.
    pub(crate) async fn forget(&self, stopped: &Arc<Catalog>, taken_over: bool) {
        let mut opened = self.catalog.lock().await;
        if opened
            .catalog
            .as_ref()
            .is_some_and(|open| Arc::ptr_eq(open, stopped))
        {
            opened.catalog = None;
            self.taken_over.store(taken_over, Ordering::Relaxed);
        }
    }

    /// Refuses data files in the catalog's own folder, or the catalog among the data files: DuckLake's clean-up of
    /// orphaned files deletes whatever it does not know below the data path.
    pub(crate) fn check_data_path(&self, data_path: &str) -> Result<(), SqlError> {
        let Some(catalog) = self.url.is_local() else {
            return Ok(());
        };
        let Some(data) = local_path(data_path) else {
            return Ok(());
        };
        let (catalog, data) = (absolute(&catalog), absolute(&data));
        if !catalog.starts_with(&data) && !data.starts_with(&catalog) {
            return Ok(());
        }
        let message = format!(
            "the data path {} and the catalog's folder {} lie within each other, so a clean-up of orphaned files \
             would delete the catalog",
            data.display(),
            catalog.display()
        );
        Err(SqlError::new(state::INVALID_PARAMETER, message)
            .hint("Attach with a DATA_PATH next to the catalog."))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folder a data path means, when it is on a local disk.
fn local_path(data_path: &str) -> Option<PathBuf> {
    match data_path.split_once("://") {
        Some(("file", rest)) => Some(PathBuf::from(rest)),
        Some(_) => None,
        None => Some(PathBuf::from(data_path)),
    }
}

/// The absolute form with links resolved as far as the folders exist, and without `.` and `..`.
fn absolute(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut plain = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    let existing = plain
        .ancestors()
        .find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    match existing {
        Some((ancestor, resolved)) => match plain.strip_prefix(ancestor) {
            Ok(rest) => resolved.join(rest),
            Err(_) => plain,
        },
        None => plain,
    }
}

/// A name that is one folder below the root and nothing else.
fn check_name(name: &str, kind: &str, state: &'static str) -> Result<(), SqlError> {
    let forbidden = name.is_empty()
        || name.len() > NAME_BYTES_MAX
        || name == "."
        || name == ".."
        || name
            .chars()
            .any(|sign| matches!(sign, '/' | '\\') || sign.is_control());
    if !forbidden {
        return Ok(());
    }
    let message = format!(
        "{kind} name {name:?} cannot be served: a name has 1 to {NAME_BYTES_MAX} bytes, no slash, backslash or control \
         character, and is neither . nor .."
    );
    Err(SqlError::new(state, message))
}

/// Undoes the percent-encoding of one folder name.
fn decode_segment(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .filter(|_| *first == b'%')
        {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lakes(root: &str) -> Lakes {
        Lakes::new(root.parse().unwrap(), CatalogOptions::default())
    }

    #[test]
    fn names_that_leave_their_folder_are_refused() {
        let lakes = lakes("memory://lakes-names");
        for bad in ["", ".", "..", "a/b", "a\\b", "a\0b", &"x".repeat(64)] {
            assert_eq!(
                lakes.lake(bad, "public").err().map(|error| error.state),
                Some("3D000"),
                "{bad:?}"
            );
            assert_eq!(
                lakes.lake("lake", bad).err().map(|error| error.state),
                Some("3F000"),
                "{bad:?}"
            );
        }
        assert!(lakes.lake("my lake ä %", "Ünïcode.schema").is_ok());
    }

    #[test]
    fn data_and_catalog_do_not_lie_within_each_other() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_str().unwrap();
        let lake = lakes(root).lake("lake", "public").unwrap();
        let path = |below: &str| format!("{root}/{below}");
        for bad in [
            "",
            "catalog",
            "catalog/lake/",
            "catalog/lake/public/data",
            "data/../catalog",
        ] {
            assert!(lake.check_data_path(&path(bad)).is_err(), "{bad}");
        }
        for good in ["data/lake/public/", "catalogs", "catalog/lake2"] {
            assert_eq!(lake.check_data_path(&path(good)), Ok(()), "{good}");
        }
        assert_eq!(lake.check_data_path("s3://bucket/catalog"), Ok(()));
    }

    #[tokio::test]
    async fn a_schema_that_another_server_has_made_is_there_within_the_age_of_a_listing() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_str().unwrap();
        let (here, elsewhere) = (lakes(root), lakes(root));
        let schemas = async || Vec::from_iter(here.schemas("lake").await.unwrap());
        // The present listing becomes so old, as time does it.
        let listed = |age: Duration| {
            let mut listed = lock(&here.listed);
            let (at, _) = listed.get_mut("lake").unwrap();
            *at = Instant::now().checked_sub(age).unwrap();
            *at
        };
        assert_eq!(schemas().await, ["public"]);
        elsewhere.lake("lake", "annex").unwrap().created().await.unwrap();

        // Far into the future: however slow this is, the listing is not old yet.
        let fresh = Instant::now() + Duration::from_secs(3600);
        lock(&here.listed).get_mut("lake").unwrap().0 = fresh;
        assert_eq!(schemas().await, ["public"]);
        assert_eq!(lock(&here.listed)["lake"].0, fresh, "nobody was asked again");

        let old = listed(LISTING_AGE_MAX);
        assert_eq!(schemas().await, ["annex", "public"]);
        assert!(lock(&here.listed)["lake"].0 > old, "this is another listing");
        elsewhere.close().await;
    }

    #[test]
    fn folder_names_are_read_back() {
        assert_eq!(decode_segment("a%20b%C3%A4%"), "a bä%");
    }
}
