//! An S3 server in this process: path-style, one bucket namespace, no signatures, atomic conditional PUTs. It counts
//! requests and fails on demand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ETAG, LAST_MODIFIED};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use object_store::aws::AmazonS3Builder;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const BUCKET: &str = "bucket";
const DATE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
const ISO_DATE: &str = "2026-01-01T00:00:00.000Z";

type Reply = Response<Full<Bytes>>;

/// What goes wrong from now on, until another fault is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// That many requests of any kind are refused with 503.
    Refuse { requests: u32 },
    /// That many PUTs are applied and then answered with 503.
    LoseAcknowledgements { puts: u32 },
    /// Every PUT is applied only after that time.
    DelayPuts { by: Duration },
    /// Every change is refused with 403.
    ReadOnly,
    /// Every request is refused with 503.
    Outage,
}

#[derive(Clone)]
struct Object {
    body: Bytes,
    etag: String,
    metadata: Vec<(String, String)>,
}

#[derive(Default)]
struct Upload {
    parts: BTreeMap<u32, Bytes>,
    metadata: Vec<(String, String)>,
}

struct State {
    objects: BTreeMap<String, Object>,
    uploads: HashMap<String, Upload>,
    sequence: u64,
    requests: BTreeMap<String, u64>,
    fault: Fault,
}

/// The server; it stops when dropped.
pub(crate) struct MiniS3 {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl MiniS3 {
    /// Starts a server without objects on a free local port.
    pub(crate) async fn start() -> MiniS3 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            objects: BTreeMap::new(),
            uploads: HashMap::new(),
            sequence: 0,
            requests: BTreeMap::new(),
            fault: Fault::None,
        }));
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        MiniS3 { address, state, task }
    }

    /// `http://host:port`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client of the server that gives up soon.
    pub(crate) fn client(&self) -> Arc<dyn ObjectStore> {
        let store = AmazonS3Builder::new()
            .with_endpoint(self.endpoint())
            .with_bucket_name(BUCKET)
            .with_allow_http(true)
            .with_region("us-east-1")
            .with_access_key_id("test")
            .with_secret_access_key("testtest")
            .with_retry(RetryConfig {
                backoff: BackoffConfig {
                    init_backoff: Duration::from_millis(10),
                    ..BackoffConfig::default()
                },
                max_retries: 2,
                retry_timeout: Duration::from_secs(5),
            })
            .build()
            .unwrap();
        Arc::new(store)
    }

    /// Sets what goes wrong from now on.
    pub(crate) fn fail(&self, fault: Fault) {
        self.state().fault = fault;
    }

    /// Requests of `method` (`PUT`, `GET`, `HEAD`, `LIST`, `DELETE`, `POST`) whose key contains `part`, so far.
    pub(crate) fn requests(&self, method: &str, part: &str) -> u64 {
        let state = self.state();
        let matching = state.requests.iter().filter(|(request, _)| {
            request
                .split_once(' ')
                .is_some_and(|(m, key)| m == method && key.contains(part))
        });
        matching.map(|(_, count)| count).sum()
    }

    /// The keys of all objects with `part` in them, ascending.
    pub(crate) fn keys(&self, part: &str) -> Vec<String> {
        self.state()
            .objects
            .keys()
            .filter(|key| key.contains(part))
            .cloned()
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Drop for MiniS3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| handle(Arc::clone(&state), request));
            let http = hyper::server::conn::http1::Builder::new();
            http.serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

async fn handle(state: Arc<Mutex<State>>, request: Request<Incoming>) -> Result<Reply, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let call = Call::new(parts, body);
    let delay = match state.lock().unwrap().fault {
        Fault::DelayPuts { by } if call.method == Method::PUT => Some(by),
        _ => None,
    };
    if let Some(by) = delay {
        tokio::time::sleep(by).await;
    }
    // One critical section per request: that makes conditional PUTs atomic.
    let mut state = state.lock().unwrap();
    *state
        .requests
        .entry(format!("{} {}", call.name(), call.key))
        .or_default() += 1;
    Ok(state.answer(&call))
}

/// One request, taken apart.
struct Call {
    method: Method,
    key: String,
    query: HashMap<String, String>,
    parts: Parts,
    body: Bytes,
}

impl Call {
    fn new(parts: Parts, body: Bytes) -> Call {
        let path = parts.uri.path().trim_start_matches('/');
        let key = decode(path.split_once('/').map_or("", |(_, key)| key));
        let pairs = parts
            .uri
            .query()
            .unwrap_or("")
            .split('&')
            .filter(|pair| !pair.is_empty());
        let query = pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (decode(name), decode(value)))
            .collect();
        Call {
            method: parts.method.clone(),
            key,
            query,
            parts,
            body,
        }
    }

    fn name(&self) -> &str {
        if self.method == Method::GET && self.key.is_empty() {
            "LIST"
        } else {
            self.method.as_str()
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn argument(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    fn metadata(&self) -> Vec<(String, String)> {
        let headers = self.parts.headers.iter();
        let own = headers.filter(|(name, _)| name.as_str().starts_with("x-amz-meta-"));
        own.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("").to_owned()))
            .collect()
    }

    fn changes(&self) -> bool {
        self.method != Method::GET && self.method != Method::HEAD
    }
}

impl State {
    /// Answers one request, under the fault that is set.
    fn answer(&mut self, call: &Call) -> Reply {
        match self.fault {
            Fault::Outage => return error(503, "SlowDown"),
            Fault::ReadOnly if call.changes() => return error(403, "AccessDenied"),
            Fault::Refuse { requests } => {
                self.fault = requests
                    .checked_sub(1)
                    .map_or(Fault::None, |requests| Fault::Refuse { requests });
                if requests > 0 {
                    return error(503, "SlowDown");
                }
            }
            Fault::LoseAcknowledgements { puts } if call.method == Method::PUT && puts > 0 => {
                self.fault = Fault::LoseAcknowledgements { puts: puts - 1 };
                self.apply(call);
                return error(503, "SlowDown");
            }
            _ => {}
        }
        self.apply(call)
    }

    fn apply(&mut self, call: &Call) -> Reply {
        let bucket = call.key.is_empty();
        if call.method == Method::GET && bucket {
            self.list(call)
        } else if call.method == Method::GET || call.method == Method::HEAD {
            self.get(call)
        } else if call.method == Method::PUT {
            self.put(call)
        } else if call.method == Method::POST && bucket {
            self.delete_many(call)
        } else if call.method == Method::POST {
            self.multipart(call)
        } else if call.method == Method::DELETE {
            self.objects.remove(&call.key);
            plain(204)
        } else {
            error(501, "NotImplemented")
        }
    }

    fn put(&mut self, call: &Call) -> Reply {
        if let (Some(upload), Some(part)) = (call.argument("uploadId"), call.argument("partNumber")) {
            let (Some(upload), Ok(part)) = (self.uploads.get_mut(upload), part.parse()) else {
                return error(404, "NoSuchUpload");
            };
            upload.parts.insert(part, call.body.clone());
            return reply(200)
                .header(ETAG, format!("\"part{part}\""))
                .body(Full::default())
                .unwrap();
        }
        if let Some(refused) = self.precondition(call) {
            return refused;
        }
        let etag = self.store(call, call.body.clone(), call.metadata());
        reply(200).header(ETAG, etag).body(Full::default()).unwrap()
    }

    fn precondition(&self, call: &Call) -> Option<Reply> {
        let current = self.objects.get(&call.key);
        if call.header("if-none-match") == Some("*") && current.is_some() {
            return Some(error(412, "PreconditionFailed"));
        }
        match (call.header("if-match"), current) {
            (Some(_), None) => Some(error(404, "NoSuchKey")),
            (Some(wanted), Some(object)) if object.etag != wanted => Some(error(412, "PreconditionFailed")),
            _ => None,
        }
    }

    fn store(&mut self, call: &Call, body: Bytes, metadata: Vec<(String, String)>) -> String {
        self.sequence += 1;
        let etag = format!("\"e{}\"", self.sequence);
        self.objects.insert(
            call.key.clone(),
            Object {
                body,
                etag: etag.clone(),
                metadata,
            },
        );
        etag
    }

    fn multipart(&mut self, call: &Call) -> Reply {
        if let Some(upload) = call.argument("uploadId") {
            if let Some(refused) = self.precondition(call) {
                return refused;
            }
            let Some(upload) = self.uploads.remove(upload) else {
                return error(404, "NoSuchUpload");
            };
            let body: Vec<u8> = upload.parts.values().flatten().copied().collect();
            let etag = self.store(call, body.into(), upload.metadata);
            let (key, etag) = (escape(&call.key), escape(&etag));
            return xml(&format!(
                "<CompleteMultipartUploadResult><Key>{key}</Key><ETag>{etag}</ETag></CompleteMultipartUploadResult>"
            ));
        }
        self.sequence += 1;
        let id = format!("u{}", self.sequence);
        self.uploads.insert(
            id.clone(),
            Upload {
                parts: BTreeMap::new(),
                metadata: call.metadata(),
            },
        );
        let key = escape(&call.key);
        xml(&format!(
            "<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{key}</Key><UploadId>{id}</UploadId>\
             </InitiateMultipartUploadResult>"
        ))
    }

    fn delete_many(&mut self, call: &Call) -> Reply {
        let request = String::from_utf8_lossy(&call.body).into_owned();
        let keys = request
            .split("<Key>")
            .skip(1)
            .filter_map(|rest| rest.split_once("</Key>"));
        let mut deleted = String::new();
        for (key, _) in keys {
            self.objects.remove(&key.replace("&amp;", "&"));
            deleted += &format!("<Deleted><Key>{key}</Key></Deleted>");
        }
        xml(&format!("<DeleteResult>{deleted}</DeleteResult>"))
    }

    fn get(&self, call: &Call) -> Reply {
        let head = call.method == Method::HEAD;
        let Some(object) = self.objects.get(&call.key) else {
            return if head { plain(404) } else { error(404, "NoSuchKey") };
        };
        let total = object.body.len();
        let wanted = call.header("range").and_then(|range| parse_range(range, total));
        let (status, range) = match (call.header("range"), wanted) {
            (Some(_), None) => return error(416, "InvalidRange"),
            (_, Some(range)) => (206, range),
            (None, None) => (200, 0..total),
        };
        let mut builder = reply(status)
            .header(ETAG, &object.etag)
            .header(LAST_MODIFIED, DATE)
            .header("accept-ranges", "bytes")
            .header("content-length", range.len());
        if status == 206 {
            builder = builder.header(
                "content-range",
                format!("bytes {}-{}/{total}", range.start, range.end - 1),
            );
        }
        for (name, value) in &object.metadata {
            builder = builder.header(name, value);
        }
        let body = if head {
            Bytes::new()
        } else {
            object.body.slice(range)
        };
        builder.body(Full::from(body)).unwrap()
    }

    fn list(&self, call: &Call) -> Reply {
        let prefix = call.argument("prefix").unwrap_or("");
        let delimiter = call
            .argument("delimiter")
            .filter(|delimiter| !delimiter.is_empty());
        let after = call
            .argument("continuation-token")
            .or(call.argument("start-after"))
            .unwrap_or("");
        let limit = call
            .argument("max-keys")
            .and_then(|max| max.parse().ok())
            .unwrap_or(1000);
        let (mut contents, mut folders, mut listed, mut next) = (String::new(), BTreeSet::new(), 0, None);
        let mut last = "";
        for (key, object) in self.objects.range(prefix.to_owned()..) {
            let Some(rest) = key.strip_prefix(prefix) else {
                break;
            };
            if key.as_str() <= after {
                continue;
            }
            if let Some(end) =
                delimiter.and_then(|delimiter| rest.find(delimiter).map(|at| at + delimiter.len()))
            {
                folders.insert(&key[..prefix.len() + end]);
                continue;
            }
            if listed == limit {
                next = Some(last);
                break;
            }
            listed += 1;
            last = key;
            contents += &format!(
                "<Contents><Key>{}</Key><LastModified>{ISO_DATE}</LastModified><ETag>{}</ETag><Size>{}</Size>\
                 <StorageClass>STANDARD</StorageClass></Contents>",
                escape(key),
                escape(&object.etag),
                object.body.len()
            );
        }
        let folders: String = folders
            .into_iter()
            .map(|folder| {
                format!(
                    "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>",
                    escape(folder)
                )
            })
            .collect();
        let token = next.map_or(String::new(), |next| {
            format!("<NextContinuationToken>{}</NextContinuationToken>", escape(next))
        });
        xml(&format!(
            "<ListBucketResult><Name>{BUCKET}</Name><Prefix>{}</Prefix><KeyCount>{listed}</KeyCount>\
             <MaxKeys>{limit}</MaxKeys><IsTruncated>{}</IsTruncated>{token}{contents}{folders}</ListBucketResult>",
            escape(prefix),
            next.is_some()
        ))
    }
}

/// A `bytes=` range as positions within `total` bytes; `None` when it lies outside.
fn parse_range(header: &str, total: usize) -> Option<Range<usize>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let range = if first.is_empty() {
        total.saturating_sub(last.parse().ok()?)..total
    } else {
        let end = if last.is_empty() {
            total
        } else {
            total.min(last.parse::<usize>().ok()? + 1)
        };
        first.parse().ok()?..end
    };
    (range.start < range.end).then_some(range)
}

fn reply(status: u16) -> hyper::http::response::Builder {
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header("x-amz-request-id", "0")
}

fn plain(status: u16) -> Reply {
    reply(status).body(Full::default()).unwrap()
}

fn xml(body: &str) -> Reply {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{body}");
    reply(200)
        .header("content-type", "application/xml")
        .body(Full::from(body))
        .unwrap()
}

fn error(status: u16, code: &str) -> Reply {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{code}</Message></Error>");
    reply(status)
        .header("content-type", "application/xml")
        .body(Full::from(body))
        .unwrap()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Undoes percent-encoding and `+`.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let hex = text
            .get(at + 1..at + 3)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 2;
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8(decoded).unwrap()
}
