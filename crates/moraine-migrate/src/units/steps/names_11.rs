//! Formats 9 and 10 to 11: the name directory, one entry for each current schema and table. Both formats lead here
//! directly: 10 only says that a catalog has a commit log. Source: RFC 0002, "Current-entity name entries".

use bytes::Bytes;

use crate::units::frozen::{Damage, Message, ids, key_with_text};
use crate::units::step::{Action, Source, Unit, Walk, nothing_beside};

/// `current/schema`: schema.
const SCHEMA: &[u8] = &[4, 2, 2];
/// `current/table`: table.
const TABLE: &[u8] = &[4, 2, 3];
/// `name`: kind, parent, name, entity.
const NAME: &[u8] = &[10];
const KIND_SCHEMA: u64 = 0;
const KIND_TABLE: u64 = 1;
/// Field of both values: where it is set, the version has ended.
const END_SNAPSHOT: u64 = 4;

const WALKS: &[Walk] = &[
    Walk {
        of: "schemas",
        completes: false,
        prefix: SCHEMA,
        beside: nothing_beside,
        act: name_schema,
    },
    Walk {
        of: "tables",
        completes: false,
        prefix: TABLE,
        beside: nothing_beside,
        act: name_table,
    },
];

pub(crate) const FROM_9: Unit = Unit {
    name: "the name directory",
    from: 9,
    to: 11,
    walks: WALKS,
};

pub(crate) const FROM_10: Unit = Unit { from: 10, ..FROM_9 };

fn name_schema(source: Source<'_>, _: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    let [schema] = ids(source.key, SCHEMA)?;
    let value = Message::read(source.value)?;
    value.expect(1, "schema_id", schema)?;
    check_live(&value)?;
    Ok(entry(KIND_SCHEMA, 0, value.text(5)?, schema))
}

fn name_table(source: Source<'_>, _: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    let [table] = ids(source.key, TABLE)?;
    let value = Message::read(source.value)?;
    value.expect(1, "table_id", table)?;
    check_live(&value)?;
    Ok(entry(KIND_TABLE, value.integer(5)?, value.text(6)?, table))
}

fn check_live(value: &Message<'_>) -> Result<(), Damage> {
    if value.has(END_SNAPSHOT) {
        return Err(Damage("it is current and has an end_snapshot".to_owned()));
    }
    Ok(())
}

fn entry(kind: u64, parent: u64, name: &str, entity: u64) -> Vec<Action> {
    vec![Action::Put {
        key: key_with_text(NAME, &[kind, parent], name, entity),
        value: Bytes::new(),
    }]
}
