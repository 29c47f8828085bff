//! Damaged lakes, and lakes of no format that there is: refused by name, and nothing changed.

use std::collections::BTreeMap;

use moraine_keys::Key;
use moraine_migrate::units::{MigrateError, MigrateOptions, Unobserved, migrate_store};

use crate::bytes::{Records, key, message};
use crate::lake::{self, SMALL, TINY};
use crate::stores::{in_memory, records_of};
use crate::{FORMATS, whole};

/// What is wrong with a lake, and what its refusal has to say.
pub(crate) struct Damage {
    pub(crate) name: String,
    pub(crate) records: Records,
    pub(crate) says: String,
}

/// One record of each kind, from the middle.
fn samples(records: &Records) -> BTreeMap<&'static str, Vec<u8>> {
    let mut kinds: BTreeMap<&'static str, Vec<&Vec<u8>>> = BTreeMap::new();
    for bytes in records.keys() {
        let kind = Key::decode(bytes).unwrap().kind_name();
        kinds.entry(kind).or_default().push(bytes);
    }
    let middle = |keys: Vec<&Vec<u8>>| keys[keys.len() / 2].clone();
    kinds
        .into_iter()
        .map(|(kind, keys)| (kind, middle(keys)))
        .collect()
}

/// Damages of single records: bytes that are not what was written.
fn of_records(records: &Records) -> Vec<Damage> {
    let mut damages = Vec::new();
    for (kind, sample) in samples(records) {
        let value = records[&sample].clone();
        let is_system = sample[0] == 2;
        let named = Key::decode(&sample).unwrap().to_string();
        let mut damage = |what: &str, key: Vec<u8>, value: Vec<u8>, says: String| {
            let mut records = records.clone();
            records.remove(&sample);
            records.insert(key, value);
            damages.push(Damage {
                name: format!("{kind}: {what}"),
                records,
                says,
            });
        };
        if value.starts_with(b"MRNE") {
            let says = if is_system { String::new() } else { named.clone() };
            let other = [b"MRNX".as_slice(), &value[4..]].concat();
            damage("another magic", sample.clone(), other, says.clone());
            damage("a cut header", sample.clone(), value[..3].to_vec(), says.clone());
            let newer = [b"MRNE\x01".as_slice(), &value[5..]].concat();
            damage("a newer encoding", sample.clone(), newer, says.clone());
            let group = [value.as_slice(), &[0x0b]].concat();
            damage("a field of an unknown wire type", sample.clone(), group, says);
        }
        let longer = [sample.as_slice(), &[0]].concat();
        damage("a longer key", longer, value.clone(), String::new());
        let cut = sample[..sample.len() - 1].to_vec();
        if !is_system {
            damage("a cut key", cut, value, String::new());
        }
    }
    damages
}

/// Values under keys that are not theirs.
fn of_places(records: &Records) -> Vec<Damage> {
    let mut damages = Vec::new();
    for kind in [
        "current/schema",
        "current/table",
        "current/delete_file",
        "current/data_file",
        "snapshot",
    ] {
        let of_kind = records
            .keys()
            .filter(|key| Key::decode(key).unwrap().kind_name() == kind);
        let keys: Vec<&Vec<u8>> = of_kind.take(2).collect();
        let [first, second] = keys[..] else {
            panic!("two records of {kind}")
        };
        let mut records = records.clone();
        records.insert(first.clone(), records[second].clone());
        damages.push(Damage {
            name: format!("{kind}: the value of another"),
            records,
            says: Key::decode(first).unwrap().to_string(),
        });
    }
    damages
}

/// A record put in, put over another or taken away: name, key, value, and what the refusal says.
type State = (&'static str, Vec<u8>, Option<Vec<u8>>, String);

const STAMP: &[u8] = &[2, 2];
const HEAD: &[u8] = &[2, 3];
const MARKER: &[u8] = &[2, 4];

/// Stamps and heads that no version leaves behind.
fn stamps(format: u64) -> Vec<State> {
    let stamp = |name, value: Option<crate::bytes::Message>, says: &str| -> State {
        (
            name,
            STAMP.to_vec(),
            value.map(|value| value.framed()),
            says.to_owned(),
        )
    };
    let logged = message().u(1, format).bytes(3, b"origin");
    let unknown = Some(message().framed());
    vec![
        stamp("format 0", Some(message().u(1, 0)), "format 0"),
        stamp(
            "format 13",
            Some(message().u(1, 13).s(2, "moraine 9.9")),
            "moraine 9.9",
        ),
        stamp(
            "a stamp with a field of other software",
            Some(logged),
            "does not know",
        ),
        stamp("no stamp", None, "system/format"),
        ("no head", HEAD.to_vec(), None, "system/head".to_owned()),
        (
            "a system record of other software",
            vec![2, 6],
            unknown,
            "does not know".to_owned(),
        ),
    ]
}

/// Markers that no migration of this version leaves behind.
fn markers(format: u64) -> Vec<State> {
    let marker = |name, from, to, cursor: &[u8], says: &str| -> State {
        let value = message().u(1, from).u(2, to).bytes(3, cursor).framed();
        (name, MARKER.to_vec(), Some(value), says.to_owned())
    };
    let mut markers = vec![
        marker(
            "a marker of another format",
            format + 1,
            format + 2,
            b"",
            &format!("format {format},"),
        ),
        marker("a marker that leads nowhere", format, 40, b"", "40"),
        marker("a marker of an import", 0, 12, b"x", "import"),
    ];
    let next = match format {
        ..=8 => 9,
        9 | 10 => 11,
        _ => 12,
    };
    if format >= 8 {
        markers.push(marker(
            "a cursor of another kind",
            format,
            next,
            b"\x02\x02",
            "system/format",
        ));
        markers.push(marker(
            "a cursor that is no key",
            format,
            next,
            b"\xff\xff",
            "ffff",
        ));
    }
    markers
}

/// Records that no store of the format has.
fn strangers(format: u64) -> Vec<State> {
    let stranger = |name, key, value, says: &str| -> State { (name, key, Some(value), says.to_owned()) };
    let target = key(&[11], &[1, 2, 3]);
    let mut strangers = vec![stranger(
        "a directory of delete files too early",
        target,
        Vec::new(),
        "directory of delete",
    )];
    if format < 11 {
        let name = [key(&[10], &[0, 0]), b"x\0".to_vec(), key(&[], &[7])].concat();
        strangers.push(stranger(
            "a name directory too early",
            name,
            Vec::new(),
            "name directory",
        ));
    }
    let end = message().u(1, 3).framed();
    strangers.push(match format {
        ..9 => stranger(
            "an end as an event too early",
            key(&[6, 9], &[1, 2, 3]),
            end,
            "as events",
        ),
        _ => stranger(
            "an end of the old kind",
            key(&[6, 3, 3], &[1, 2]),
            end,
            "one record per row",
        ),
    });
    strangers
}

fn of_states(format: u64, records: &Records) -> Vec<Damage> {
    let states = [stamps(format), markers(format), strangers(format)].concat();
    let damage = |(name, at, value, says): State| {
        let mut records = records.clone();
        match value {
            Some(value) => records.insert(at, value),
            None => records.remove(&at),
        };
        Damage {
            name: name.to_owned(),
            records,
            says,
        }
    };
    states.into_iter().map(damage).collect()
}

/// All damages of the lake of a format.
pub(crate) fn all(format: u64, size: lake::Size) -> Vec<Damage> {
    let records = lake::records(format, format, size);
    let mut damages = of_records(&records);
    damages.extend(of_places(&records));
    damages.extend(of_states(format, &records));
    damages
}

#[tokio::test]
async fn a_damaged_lake_is_refused_by_name_and_left_as_it_is() {
    let mut count = 0;
    for format in FORMATS {
        for damage in all(format, if whole() { SMALL } else { TINY }) {
            let store = in_memory(&damage.records).await;
            let refused = migrate_store(&store, &MigrateOptions::default(), &mut Unobserved).await;
            let Err(refused) = refused else {
                panic!("format {format}, {}: it is migrated", damage.name);
            };
            assert!(
                !matches!(
                    refused,
                    MigrateError::DamagedOnTheWay { .. } | MigrateError::Stopped { .. }
                ),
                "format {format}, {}: {refused}",
                damage.name
            );
            assert!(
                refused.to_string().contains(&damage.says),
                "format {format}, {}: {refused}",
                damage.name
            );
            assert!(
                records_of(&store).await == damage.records,
                "format {format}, {}: it was changed",
                damage.name
            );
            count += 1;
        }
    }
    println!("{count} damaged lakes refused");
}

#[tokio::test]
async fn an_empty_store_is_no_lake() {
    let store = in_memory(&Records::new()).await;
    let refused = migrate_store(&store, &MigrateOptions::default(), &mut Unobserved).await;
    assert_eq!(refused, Err(MigrateError::NoLake));
}

#[tokio::test]
async fn every_damaged_record_is_counted_and_the_first_are_named() {
    let mut records = lake::records(9, 9, SMALL);
    for (key, value) in &mut records {
        if key.starts_with(&[4, 2, 7]) {
            value.truncate(3);
        }
    }
    let store = in_memory(&records).await;
    let refused = migrate_store(&store, &MigrateOptions::default(), &mut Unobserved)
        .await
        .unwrap_err();
    let MigrateError::Damaged { found, count } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(found.len(), 8);
    assert!(
        *count > 8 && refused.to_string().contains(&format!("and {} more", count - 8)),
        "{refused}"
    );
}
