//! Where a store is: URLs, and the object stores they name. Credentials and endpoints come from the usual environment
//! of each service (`AWS_*`, `GOOGLE_*`, `AZURE_*`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::OpenError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Where a store, or a root with stores below it, is.
///
/// `./dir`, `dir`, `/dir` and `file:///dir` are local folders, `memory://name/prefix` lives as long as the process (the
/// same name is the same store), `s3://bucket/prefix`, `gs://bucket/prefix` and `az://container/prefix` are buckets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreUrl {
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Local(PathBuf),
    Remote {
        scheme: Scheme,
        bucket: String,
        prefix: Path,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scheme {
    Memory,
    S3,
    Gcs,
    Azure,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Scheme::Memory => "memory",
            Scheme::S3 => "s3",
            Scheme::Gcs => "gs",
            Scheme::Azure => "az",
        }
    }
}

impl FromStr for StoreUrl {
    type Err = OpenError;

    fn from_str(text: &str) -> Result<Self, OpenError> {
        let invalid = |reason: String| OpenError::InvalidUrl {
            url: text.to_owned(),
            reason,
        };
        let Some((scheme, rest)) = text.split_once("://") else {
            if text.is_empty() {
                return Err(invalid("it is empty".to_owned()));
            }
            return Ok(StoreUrl {
                place: Place::Local(PathBuf::from(text)),
            });
        };
        let scheme = match scheme {
            "file" => return local(text).map_err(invalid),
            "memory" => Scheme::Memory,
            "s3" => Scheme::S3,
            "gs" => Scheme::Gcs,
            "az" => Scheme::Azure,
            other => return Err(invalid(format!("the scheme {other} is not known"))),
        };
        if let Some(sign) = rest.chars().find(|c| matches!(c, '?' | '#' | '@')) {
            return Err(invalid(format!(
                "it contains {sign}; credentials and options come from the environment"
            )));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() && scheme != Scheme::Memory {
            return Err(invalid("the name of the bucket is missing".to_owned()));
        }
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(|error| invalid(error.to_string()))?;
        Ok(StoreUrl {
            place: Place::Remote {
                scheme,
                bucket: bucket.to_owned(),
                prefix,
            },
        })
    }
}

fn local(text: &str) -> Result<StoreUrl, String> {
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    let path = url
        .to_file_path()
        .map_err(|()| "a file URL names an absolute path: file:///path".to_owned())?;
    Ok(StoreUrl {
        place: Place::Local(path),
    })
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Local(path) => write!(f, "{}", path.display()),
            Place::Remote {
                scheme,
                bucket,
                prefix,
            } if prefix.as_ref().is_empty() => {
                write!(f, "{}://{bucket}", scheme.name())
            }
            Place::Remote {
                scheme,
                bucket,
                prefix,
            } => write!(f, "{}://{bucket}/{prefix}", scheme.name()),
        }
    }
}

impl StoreUrl {
    /// The place `path` (segments separated by `/`) below this one. Characters that a bucket or a file system does not
    /// take in names are percent-encoded, so `..` stays within.
    #[must_use]
    pub fn join(&self, path: &str) -> StoreUrl {
        let below = Path::from(path);
        let place = match &self.place {
            Place::Local(folder) => Place::Local(
                below
                    .parts()
                    .fold(folder.clone(), |folder, part| folder.join(part.as_ref())),
            ),
            Place::Remote {
                scheme,
                bucket,
                prefix,
            } => Place::Remote {
                scheme: *scheme,
                bucket: bucket.clone(),
                prefix: prefix.parts().chain(below.parts()).collect(),
            },
        };
        StoreUrl { place }
    }

    /// The local folder, when this is one.
    #[must_use]
    pub fn is_local(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Local(path) => Some(path.clone()),
            Place::Remote { .. } => None,
        }
    }

    /// The object store and the prefix within it. A missing local folder is made when `create` is set.
    pub(crate) fn locate(&self, create: bool, patience: Patience) -> Result<Location, OpenError> {
        let (scheme, bucket, prefix) = match &self.place {
            Place::Local(folder) => return self.locate_local(folder, create),
            Place::Remote {
                scheme,
                bucket,
                prefix,
            } => (*scheme, bucket, prefix),
        };
        let (client, retry) = (client_options(), patience.retry());
        let built: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
            Scheme::Memory => Ok(memory(bucket)),
            Scheme::S3 => AmazonS3Builder::from_env()
                .with_client_options(with_environment(client, "AWS_ALLOW_HTTP"))
                .with_retry(retry)
                .with_bucket_name(bucket)
                .build()
                .map(|store| Arc::new(store) as _),
            Scheme::Gcs => GoogleCloudStorageBuilder::from_env()
                .with_client_options(client)
                .with_retry(retry)
                .with_bucket_name(bucket)
                .build()
                .map(|store| Arc::new(store) as _),
            Scheme::Azure => MicrosoftAzureBuilder::from_env()
                .with_client_options(with_environment(client, "AZURE_ALLOW_HTTP"))
                .with_retry(retry)
                .with_container_name(bucket)
                .build()
                .map(|store| Arc::new(store) as _),
        };
        let store = built.map_err(|error| OpenError::InvalidUrl {
            url: self.to_string(),
            reason: crate::error::with_sources(&error),
        })?;
        Ok(Location {
            store,
            prefix: prefix.clone(),
            local: false,
        })
    }

    fn locate_local(&self, folder: &FilePath, create: bool) -> Result<Location, OpenError> {
        if !folder.exists() {
            if !create {
                return Err(OpenError::not_found(self));
            }
            std::fs::create_dir_all(folder).map_err(|error| OpenError::Unreachable {
                url: self.to_string(),
                detail: format!("the folder cannot be made: {error}"),
            })?;
        }
        if !folder.is_dir() {
            return Err(OpenError::NotAStore {
                url: self.to_string(),
                detail: "it is a file, and a store is a folder".to_owned(),
            });
        }
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| OpenError::Unreachable {
            url: self.to_string(),
            detail: crate::error::with_sources(&error),
        })?;
        // Without fsync a machine that stops can leave the newest object filled with zeros.
        Ok(Location {
            store: Arc::new(store.with_fsync(true)),
            prefix: Path::default(),
            local: true,
        })
    }
}

/// An object store and the prefix of a store within it.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) prefix: Path,
    /// Local file systems take no conditional updates.
    pub(crate) local: bool,
}

/// How long an object-store client goes on after a failed request before it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// For the first question to a store that may not be there.
    Short,
    /// For a store at work; SlateDB goes on above this.
    Long,
}

impl Patience {
    fn retry(self) -> RetryConfig {
        let (max_retries, retry_timeout) = match self {
            Patience::Short => (1, Duration::from_secs(10)),
            Patience::Long => (3, Duration::from_secs(60)),
        };
        RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries,
            retry_timeout,
        }
    }
}

fn client_options() -> ClientOptions {
    ClientOptions::new()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(REQUEST_TIMEOUT)
}

/// `from_env` keeps `variable` in client options, which setting our own would lose.
fn with_environment(client: ClientOptions, variable: &str) -> ClientOptions {
    let allow =
        std::env::var(variable).is_ok_and(|value| matches!(value.to_lowercase().as_str(), "true" | "1"));
    client.with_allow_http(allow)
}

/// The object store behind `memory://name`, the same one every time.
fn memory(name: &str) -> Arc<dyn ObjectStore> {
    static STORES: OnceLock<Mutex<BTreeMap<String, Arc<InMemory>>>> = OnceLock::new();
    let mut stores = STORES
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    Arc::clone(stores.entry(name.to_owned()).or_default()) as _
}
