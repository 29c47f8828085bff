//! Format 11 to 12: the directory of delete files by data file, one entry for each current delete file. Source: RFC 0002,
//! "Delete-file target directory". With it goes what older software left out or behind: after this unit a lake is, record by
//! record, one that was born at format 12.

use bytes::Bytes;

use crate::units::frozen::{Damage, Message, ids, key};
use crate::units::step::{Action, Source, Unit, Walk, nothing_beside};
use crate::units::steps::{chunk_directory, schema_versions};

/// `current/delete_file`: table, delete file.
const DELETE_FILE: &[u8] = &[4, 2, 8];
/// `delete_target`: table, data file, delete file.
const DELETE_TARGET: &[u8] = &[11];

pub(crate) const UNIT: Unit = Unit {
    name: "the directory of delete files by data file",
    from: 11,
    to: 12,
    walks: &[
        schema_versions::FROM_SNAPSHOTS,
        Walk {
            of: "delete files",
            completes: false,
            prefix: DELETE_FILE,
            beside: nothing_beside,
            act,
        },
        chunk_directory::LOCATE_CHUNKS,
        chunk_directory::DROP_OLD_ENTRIES,
        chunk_directory::DROP_DANGLING_ENTRIES,
    ],
};

fn act(source: Source<'_>, _: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    let [table, delete_file] = ids(source.key, DELETE_FILE)?;
    let value = Message::read(source.value)?;
    value.expect(1, "delete_file_id", delete_file)?;
    value.expect(2, "table_id", table)?;
    if value.has(4) {
        return Err(Damage("it is current and has an end_snapshot".to_owned()));
    }
    Ok(vec![Action::Put {
        key: key(DELETE_TARGET, &[table, value.integer(5)?, delete_file]),
        value: Bytes::new(),
    }])
}
