//! Stores in the repository: a good one and a damaged one of each format, as they were written once. Today's software opens,
//! migrates or refuses them; `SHA256SUMS` says that they are what they were.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use moraine_migrate::units::{MigrateOptions, Unobserved, migrate};
use moraine_store::{OpenError, OpenOptions, StoreUrl, open, open_reader};
use sha2::{Digest, Sha256};

use crate::lake::{self, TINY};
use crate::stores::{check_migrated, load};
use crate::{FORMATS, NEWEST, damages, whole};

/// The environment variable that asks for stores that are not there yet to be written.
const WRITE: &str = "MORAINE_WRITE_FIXTURES";
const SUMS: &str = "SHA256SUMS";
/// Which damage the damaged store of each format has: one of each sort.
const DAMAGES: [(u64, &str); 11] = [
    (1, "inline/live/delete: another magic"),
    (2, "index/unique: a longer key"),
    (3, "current/index: a cut header"),
    (4, "a marker that leads nowhere"),
    (5, "no head"),
    (6, "inline/chunk_range: a cut key"),
    (7, "format 0"),
    (8, "a cursor that is no key"),
    (9, "a name directory too early"),
    (10, "a stamp with a field of other software"),
    (11, "current/delete_file: the value of another"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/formats")
}

fn place(format: u64, state: &str) -> PathBuf {
    folder().join(format!("{format:02}-{state}"))
}

fn url(path: &Path) -> StoreUrl {
    path.to_str().unwrap().parse().unwrap()
}

/// All files below a folder, by their paths within it.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// A copy that may be written to.
pub(crate) fn copy(from: &Path, to: &Path) {
    for (name, bytes) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn damaged(format: u64) -> damages::Damage {
    let (_, wanted) = DAMAGES.iter().find(|(of, _)| *of == format).unwrap();
    let found = damages::all(format, TINY)
        .into_iter()
        .find(|damage| damage.name == *wanted);
    found.unwrap_or_else(|| panic!("format {format} has no damage {wanted}"))
}

fn sums() -> String {
    let mut text = String::new();
    for (name, bytes) in files(&folder()).into_iter().filter(|(name, _)| name != SUMS) {
        let digest: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        text.push_str(&format!("{digest}  {name}\n"));
    }
    text
}

/// Writes the stores that are not there, and the list. What is there is never written again.
async fn write_missing() {
    for format in FORMATS {
        let good = lake::records(format, format, TINY);
        for (state, records) in [("good", good), ("damaged", damaged(format).records)] {
            let place = place(format, state);
            if place.exists() {
                continue;
            }
            let store = open(&url(&place), &OpenOptions::create()).await.unwrap();
            load(store.as_ref(), &records).await;
            moraine_store::Store::close(store.as_ref()).await.unwrap();
        }
    }
    fs::write(folder().join(SUMS), sums()).unwrap();
}

#[tokio::test]
async fn stores_in_the_repository_are_migrated_or_refused_by_name() {
    if std::env::var_os(WRITE).is_some() {
        write_missing().await;
    }
    assert_eq!(
        fs::read_to_string(folder().join(SUMS)).unwrap(),
        sums(),
        "the stores are what they were"
    );
    for format in FORMATS {
        let scratch = tempfile::tempdir().unwrap();
        copy(&place(format, "good"), scratch.path());
        let url = url(scratch.path());
        let opened = open_reader(&url, &OpenOptions::default()).await.map(|_| ());
        match format {
            ..9 => assert!(matches!(opened, Err(OpenError::Older { .. })), "{opened:?}"),
            _ => assert_eq!(opened, Ok(())),
        }
        let options = MigrateOptions {
            checkpoint: true,
            ..MigrateOptions::default()
        };
        let before = files(scratch.path());
        let dry = MigrateOptions {
            dry_run: true,
            ..options.clone()
        };
        let report = migrate(&url, &dry, &mut Unobserved).await.unwrap();
        assert_eq!((report.from_format, report.to_format), (format, NEWEST));
        assert!(
            files(scratch.path()) == before,
            "a dry run of format {format} writes nothing"
        );
        let report = migrate(&url, &options, &mut Unobserved).await.unwrap();
        assert!(report.checkpoint.is_some());
        let store = open(&url, &OpenOptions::default()).await.unwrap();
        check_migrated(store.as_ref(), format, TINY).await.unwrap();
        moraine_store::Store::close(store.as_ref()).await.unwrap();
    }
}

#[tokio::test]
async fn damaged_stores_in_the_repository_are_refused_and_no_file_is_touched() {
    for format in FORMATS {
        let scratch = tempfile::tempdir().unwrap();
        copy(&place(format, "damaged"), scratch.path());
        let before = files(scratch.path());
        let refused = migrate(&url(scratch.path()), &MigrateOptions::default(), &mut Unobserved).await;
        let refused = refused.expect_err("a damaged store").to_string();
        let damage = damaged(format);
        assert!(
            refused.contains(&damage.says),
            "format {format}, {}: {refused}",
            damage.name
        );
        assert!(
            files(scratch.path()) == before,
            "format {format}, {}: a file was touched",
            damage.name
        );
    }
}

#[tokio::test]
async fn stores_with_damaged_objects_are_refused_and_no_file_is_touched() {
    for format in FORMATS.filter(|format| whole() || *format == 8) {
        let good = files(&place(format, "good"));
        let largest = good
            .iter()
            .filter(|(name, _)| name.starts_with("wal/"))
            .max_by_key(|(_, bytes)| bytes.len());
        let newest = good.keys().rfind(|name| name.starts_with("manifest/"));
        for name in [largest.unwrap().0, newest.unwrap()] {
            for cut in [true, false] {
                let scratch = tempfile::tempdir().unwrap();
                copy(&place(format, "good"), scratch.path());
                let mut bytes = good[name].clone();
                let middle = bytes.len() / 2;
                match cut {
                    true => bytes.truncate(middle),
                    false => bytes[middle..middle + 8]
                        .iter_mut()
                        .for_each(|byte| *byte ^= 0xff),
                }
                fs::write(scratch.path().join(name), &bytes).unwrap();
                let before = files(scratch.path());
                let outcome =
                    migrate(&url(scratch.path()), &MigrateOptions::default(), &mut Unobserved).await;
                // A manifest has parts that nothing is read from; what is read from others must not be believed.
                if let Err(refused) = outcome {
                    assert!(
                        files(scratch.path()) == before,
                        "format {format}, {name}: {refused}"
                    );
                } else {
                    assert!(
                        name.starts_with("manifest/") && !cut,
                        "format {format}: a damaged {name} is believed"
                    );
                }
            }
        }
    }
}
