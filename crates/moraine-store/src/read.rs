//! Reading: raw gets and scans ([`Read`], [`Scan`]) and the typed helpers over them ([`ReadExt`]).

use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;
use bytes::Bytes;
use moraine_codec::Stored;
use moraine_keys::{KeyRange, Kind};

use crate::ReadError;

/// Reads at one state of the store.
#[async_trait]
pub trait Read: Send + Sync {
    /// The value of `key`, or `None`.
    ///
    /// # Errors
    /// See [`ReadError`].
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, ReadError>;

    /// All records whose keys lie in `range`, ascending by key bytes. An empty range gives an empty scan.
    ///
    /// # Errors
    /// See [`ReadError`].
    async fn scan(&self, range: KeyRange) -> Result<Box<dyn Scan>, ReadError>;
}

/// A scan in progress.
#[async_trait]
pub trait Scan: Send {
    /// The next record (key, value), or `None` at the end; after the end it stays `None`.
    ///
    /// # Errors
    /// See [`ReadError`]. After an error the scan is over.
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, ReadError>;
}

/// Drains a scan into a vector of (key, value).
///
/// # Errors
/// The scan's first error.
pub async fn collect(mut scan: Box<dyn Scan>) -> Result<Vec<(Bytes, Bytes)>, ReadError> {
    let mut records = Vec::new();
    while let Some(record) = scan.next().await? {
        records.push(record);
    }
    Ok(records)
}

/// Typed reads over any [`Read`]; undecodable or misplaced bytes are [`ReadError::Corruption`] naming the key.
pub trait ReadExt: Read {
    /// The decoded value of `key`, or `None`.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn value<K: Stored>(&self, key: &K) -> impl Future<Output = Result<Option<K::Value>, ReadError>> + Send {
        async move {
            match self.get(&key.encode()).await? {
                Some(bytes) => decode_value(key, &bytes).map(Some),
                None => Ok(None),
            }
        }
    }

    /// All records of kind `K` in `range`, ascending by key, at once. For ranges that may be long use
    /// [`ReadExt::record_scan`].
    ///
    /// # Errors
    /// See [`ReadError`]; a key of another kind within `range` is corruption.
    fn records<K: Stored>(
        &self,
        range: KeyRange,
    ) -> impl Future<Output = Result<Vec<(K, K::Value)>, ReadError>> + Send {
        async move {
            let mut scan = self.record_scan::<K>(range).await?;
            let mut records = Vec::new();
            while let Some(record) = scan.next().await? {
                records.push(record);
            }
            Ok(records)
        }
    }

    /// A typed scan over the records of kind `K` in `range`, ascending by key.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn record_scan<K: Stored>(
        &self,
        range: KeyRange,
    ) -> impl Future<Output = Result<RecordScan<K>, ReadError>> + Send {
        async move {
            Ok(RecordScan {
                scan: self.scan(range).await?,
                kind: PhantomData,
            })
        }
    }

    /// The keys of kind `K` in `range`, ascending, without decoding values.
    ///
    /// # Errors
    /// See [`ReadError`]; a key of another kind within `range` is corruption.
    fn keys<K: Kind>(&self, range: KeyRange) -> impl Future<Output = Result<Vec<K>, ReadError>> + Send {
        async move {
            let mut scan = self.scan(range).await?;
            let mut keys = Vec::new();
            while let Some((key, _)) = scan.next().await? {
                keys.push(decode_key(&key)?);
            }
            Ok(keys)
        }
    }
}

impl<R: Read + ?Sized> ReadExt for R {}

/// A typed scan: see [`ReadExt::record_scan`].
pub struct RecordScan<K> {
    scan: Box<dyn Scan>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Stored> RecordScan<K> {
    /// The next decoded record, or `None` at the end.
    ///
    /// # Errors
    /// See [`ReadError`]; a key of another kind within the range is corruption.
    pub async fn next(&mut self) -> Result<Option<(K, K::Value)>, ReadError> {
        let Some((key, value)) = self.scan.next().await? else {
            return Ok(None);
        };
        let key = decode_key::<K>(&key)?;
        let value = decode_value(&key, &value)?;
        Ok(Some((key, value)))
    }
}

fn decode_key<K: Kind>(key: &[u8]) -> Result<K, ReadError> {
    K::decode(key).map_err(|error| ReadError::corruption(format!("key {}", Hex(key)), error.to_string()))
}

fn decode_value<K: Stored>(key: &K, bytes: &Bytes) -> Result<K::Value, ReadError> {
    moraine_codec::decode(key, bytes)
        .map_err(|error| ReadError::corruption(key.to_key().to_string(), error.to_string()))
}

/// Bytes as lower-case hexadecimal digits, for keys that cannot be named otherwise.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
