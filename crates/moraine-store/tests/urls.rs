//! What the URLs of stores mean, and how places that do not answer are refused.

use std::process::Command;
use std::time::{Duration, Instant};

use moraine_store::{OpenError, OpenOptions, Store, StoreUrl, open};

use crate::support::lake::{genesis, newest, put};
use crate::support::mini_s3::MiniS3;

fn parse(text: &str) -> Result<StoreUrl, OpenError> {
    text.parse()
}

#[test]
fn urls_are_displayed_as_they_are_understood() {
    for (text, shown) in [
        ("./lake", "./lake"),
        ("lake", "lake"),
        ("/var/lake", "/var/lake"),
        ("file:///var/a%20lake", "/var/a lake"),
        ("memory://", "memory://"),
        ("memory://name/a", "memory://name/a"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("az://container/a", "az://container/a"),
    ] {
        assert_eq!(parse(text).unwrap().to_string(), shown, "{text}");
    }
}

#[test]
fn joining_goes_below_and_never_above() {
    for (root, shown) in [
        ("./lake", "./lake/catalog/d/s"),
        ("s3://b/root", "s3://b/root/catalog/d/s"),
    ] {
        assert_eq!(parse(root).unwrap().join("catalog/d/s").to_string(), shown);
    }
    for root in ["/lake", "s3://b/lake"] {
        let root = parse(root).unwrap();
        for escape in ["..", "../other", "a/../../b"] {
            let below = root.join(escape).to_string();
            assert!(
                below.starts_with(&format!("{root}/")) && !below.contains("/../"),
                "{below}"
            );
            assert!(!below.ends_with("/.."), "{below}");
        }
    }
}

#[test]
fn local_folders_are_known_as_such() {
    assert_eq!(parse("./lake").unwrap().is_local(), Some("./lake".into()));
    assert_eq!(parse("file:///lake").unwrap().is_local(), Some("/lake".into()));
    assert_eq!(parse("s3://bucket/lake").unwrap().is_local(), None);
}

#[test]
fn what_is_not_a_url_of_a_store_says_why() {
    for (text, reason) in [
        ("", "empty"),
        ("ftp://host/lake", "ftp"),
        ("postgres://localhost/d", "postgres"),
        ("s3://", "bucket is missing"),
        ("s3:///lake", "bucket is missing"),
        ("s3://key@bucket/lake", "environment"),
        ("s3://bucket/lake?region=x", "environment"),
        ("file://host/lake", "absolute"),
    ] {
        let refused = parse(text).unwrap_err();
        assert!(matches!(refused, OpenError::InvalidUrl { .. }), "{refused:?}");
        assert!(refused.to_string().contains(reason), "{text}: {refused}");
    }
}

#[tokio::test]
async fn the_same_memory_url_is_the_same_store() {
    let url = parse("memory://urls/lake").unwrap();
    let store = open(&url, &OpenOptions::create()).await.unwrap();
    put(store.as_ref(), &genesis(12)).await.unwrap();
    store.close().await.unwrap();
    let again = open(&parse("memory://urls/lake").unwrap(), &OpenOptions::default())
        .await
        .unwrap();
    assert_eq!(newest(&again).await.unwrap(), {
        let mut all = genesis(12);
        all.sort();
        all
    });
    let other = open(&parse("memory://urls2/lake").unwrap(), &OpenOptions::default())
        .await
        .map(|_| ());
    assert!(matches!(other, Err(OpenError::NotFound { .. })), "{other:?}");
}

/// Run by the next tests in a process of its own, with the environment that names the S3 server.
#[test]
#[ignore = "a child process of the tests that follow"]
fn open_s3_by_environment() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let options = OpenOptions {
            open_timeout: Duration::from_secs(8),
            ..OpenOptions::create()
        };
        match open(&parse("s3://bucket/some/lake").unwrap(), &options).await {
            Ok(store) => {
                put(store.as_ref(), &genesis(12)).await.unwrap();
                store.close().await.unwrap();
                println!("opened");
            }
            Err(error) => println!("refused: {error:?}"),
        }
    });
}

fn run_child(endpoint: &str, allow_http: &str) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "urls::open_s3_by_environment",
            "--ignored",
            "--nocapture",
        ])
        .env("AWS_ENDPOINT", endpoint)
        .env("AWS_ALLOW_HTTP", allow_http)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "testtest")
        .output()
        .unwrap();
    String::from_utf8_lossy(&child.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_is_reached_as_the_environment_says() {
    let s3 = MiniS3::start().await;
    let endpoint = s3.endpoint();
    let output = tokio::task::spawn_blocking(move || run_child(&endpoint, "true"))
        .await
        .unwrap();
    assert!(output.contains("opened"), "{output}");
    assert!(!s3.keys("some/lake/manifest/").is_empty());
}

#[test]
fn an_endpoint_that_nobody_listens_at_is_refused_soon() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let start = Instant::now();
    let output = run_child(&format!("http://127.0.0.1:{port}"), "true");
    assert!(output.contains("refused: Unreachable"), "{output}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
