//! Which lakes there are: one per database and schema, each in a store of its own below the server's root, opened once at
//! first use. What is in a lake is not known here.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moraine_commit::{Catalog, CatalogOptions, OpenError, OpenOptions, StoreUrl, list_stores};

use crate::errors::{SqlError, state};
use crate::turns::Losses;

/// The schema of a lake whose client names none. Source: PostgreSQL.
pub(crate) const DEFAULT_SCHEMA: &str = "public";
/// Bytes of a database or schema name. Source: PostgreSQL (NAMEDATALEN - 1).
const NAME_BYTES_MAX: usize = 63;
/// Lakes that one server keeps open: each holds an open store.
const LAKES_MAX: usize = 4_096;

/// The lakes below one root.
pub(crate) struct Lakes {
    root: StoreUrl,
    options: CatalogOptions,
    known: Mutex<HashMap<(String, String), Arc<Lake>>>,
    /// Schemas made by CREATE SCHEMA that have no store yet, by database.
    announced: Mutex<HashMap<String, BTreeSet<String>>>,
}

/// One lake's place, and its catalog once it is open.
pub(crate) struct Lake {
    pub(crate) schema: String,
    url: StoreUrl,
    options: CatalogOptions,
    /// Failures to open are not kept: the next use tries again.
    catalog: tokio::sync::Mutex<Option<Arc<Catalog>>>,
    losses: Mutex<Losses>,
    /// Whether another process has fenced this one's store.
    taken_over: AtomicBool,
}

impl Lakes {
    pub(crate) fn new(root: StoreUrl, options: CatalogOptions) -> Lakes {
        Lakes {
            root,
            options,
            known: Mutex::default(),
            announced: Mutex::default(),
        }
    }

    /// The lake of a database and schema, whether or not it exists.
    pub(crate) fn lake(&self, database: &str, schema: &str) -> Result<Arc<Lake>, SqlError> {
        check_name(database, "database", state::INVALID_CATALOG_NAME)?;
        check_name(schema, "schema", state::INVALID_SCHEMA_NAME)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
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
            catalog: tokio::sync::Mutex::new(None),
            losses: Mutex::default(),
            taken_over: AtomicBool::new(false),
        });
        known.insert(key, Arc::clone(&lake));
        Ok(lake)
    }

    fn catalog_root(&self, database: &str) -> StoreUrl {
        self.root.join("catalog").join(database)
    }

    /// The schemas of a database: the default one, those with a store, and those announced. In order of their names.
    pub(crate) async fn schemas(&self, database: &str) -> Result<BTreeSet<String>, SqlError> {
        check_name(database, "database", state::INVALID_CATALOG_NAME)?;
        let mut schemas = BTreeSet::from([DEFAULT_SCHEMA.to_owned()]);
        let announced = self
            .announced
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(database)
            .cloned();
        schemas.extend(announced.unwrap_or_default());
        let root = self.catalog_root(database);
        let stores = match Box::pin(list_stores(&root, 1, &self.options.store)).await {
            Ok(stores) => stores,
            Err(OpenError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(SqlError::from(error)),
        };
        for store in stores {
            let place = store.to_string();
            schemas.extend(place.rsplit(['/', '\\']).next().map(decode_segment));
        }
        Ok(schemas)
    }

    /// Makes a schema known before it has tables. Whether it was not known before.
    pub(crate) async fn announce(&self, database: &str, schema: &str) -> Result<bool, SqlError> {
        check_name(schema, "schema", state::INVALID_SCHEMA_NAME)?;
        if self.schemas(database).await?.contains(schema) {
            return Ok(false);
        }
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(announced
            .entry(database.to_owned())
            .or_default()
            .insert(schema.to_owned()))
    }

    /// Closes every open lake, so that all that was committed is durable.
    pub(crate) async fn close(&self) {
        let lakes: Vec<Arc<Lake>> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.values().cloned().collect()
        };
        for lake in lakes {
            if let Some(catalog) = lake.catalog.lock().await.take()
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
        let mut catalog = self.catalog.lock().await;
        if let Some(open) = catalog.as_ref() {
            return Ok(Arc::clone(open));
        }
        let options = CatalogOptions {
            store,
            ..self.options.clone()
        };
        // The future of an opening store is tens of kilobytes, and would be part of every caller's.
        let opened = Box::pin(Catalog::open(&self.url, &options)).await?;
        tracing::debug!(lake = %self.url, "lake opened");
        *catalog = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// The races for snapshots of this lake that were lost and not yet made good.
    pub(crate) fn losses(&self) -> MutexGuard<'_, Losses> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a catalog whose storage engine has stopped, so that the next use opens the store again, or, when another
    /// process has `taken_over` the store, is told so.
    pub(crate) async fn forget(&self, stopped: &Arc<Catalog>, taken_over: bool) {
        let mut catalog = self.catalog.lock().await;
        if catalog.as_ref().is_some_and(|open| Arc::ptr_eq(open, stopped)) {
            *catalog = None;
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

    #[test]
    fn folder_names_are_read_back() {
        assert_eq!(decode_segment("a%20b%C3%A4%"), "a bä%");
    }
}
