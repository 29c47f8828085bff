//! What software of formats 1 to 8 left undone in the directory of inlined chunks: chunks without a locator, locators
//! without their chunk, and the entries of format 6, which nothing reads any more. Readers get by without (they walk the
//! chunks), so this is no unit of its own, but part of the last one. Source: RFC 0005.

use bytes::Bytes;

use crate::units::frozen::{Damage, Message, ids, integers_message, key};
use crate::units::step::{Action, Source, Walk, nothing_beside};

/// `inline/live/insert`: table, schema version, begin snapshot, sequence.
const CHUNK: &[u8] = &[6, 3, 2];
/// `inline/chunk_range`: table, last row.
const CHUNK_RANGE: &[u8] = &[6, 6];
/// `inline/chunk_locator`: table, last row, schema version, begin snapshot, sequence.
const CHUNK_LOCATOR: &[u8] = &[6, 8];
/// Fields of a chunk's value.
const ROW_ID_START: u64 = 2;
const ROW_COUNT: u64 = 3;

pub(crate) const LOCATE_CHUNKS: Walk = Walk {
    of: "inlined chunks",
    completes: true,
    prefix: CHUNK,
    beside: locator_beside,
    act: locate_chunk,
};

pub(crate) const DROP_OLD_ENTRIES: Walk = Walk {
    of: "directory entries of format 6",
    completes: true,
    prefix: CHUNK_RANGE,
    beside: nothing_beside,
    act: drop_record,
};

pub(crate) const DROP_DANGLING_ENTRIES: Walk = Walk {
    of: "directory entries of chunks",
    completes: true,
    prefix: CHUNK_LOCATOR,
    beside: chunk_beside,
    act: drop_dangling,
};

/// The locator that a chunk should have.
fn locator(key_bytes: &[u8], value: &[u8]) -> Result<(Bytes, Bytes), Damage> {
    let [table, version, begin, sequence] = ids(key_bytes, CHUNK)?;
    let value = Message::read(value)?;
    let (start, rows) = (value.integer(ROW_ID_START)?, value.integer(ROW_COUNT)?);
    let end = rows.checked_sub(1).and_then(|after| start.checked_add(after));
    let Some(end) = end else {
        return Err(Damage(format!("it holds {rows} rows from row id {start} on")));
    };
    Ok((
        key(CHUNK_LOCATOR, &[table, end, version, begin, sequence]),
        integers_message(&[(1, start), (2, version), (3, begin), (4, sequence)]),
    ))
}

fn locator_beside(source: Source<'_>) -> Result<Vec<Bytes>, Damage> {
    Ok(vec![locator(source.key, source.value)?.0])
}

fn locate_chunk(source: Source<'_>, beside: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    let (key, value) = locator(source.key, source.value)?;
    if let [Some(found)] = beside
        && *found == value
    {
        return Ok(Vec::new());
    }
    Ok(vec![Action::Put { key, value }])
}

fn chunk_beside(source: Source<'_>) -> Result<Vec<Bytes>, Damage> {
    let [table, _, version, begin, sequence] = ids(source.key, CHUNK_LOCATOR)?;
    Ok(vec![key(CHUNK, &[table, version, begin, sequence])])
}

fn drop_dangling(source: Source<'_>, beside: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    let [table, _, version, begin, sequence] = ids(source.key, CHUNK_LOCATOR)?;
    if let [Some(chunk)] = beside
        && locator(&key(CHUNK, &[table, version, begin, sequence]), chunk)?.0 == *source.key
    {
        return Ok(Vec::new());
    }
    drop_record(source, beside)
}

fn drop_record(source: Source<'_>, _: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    Ok(vec![Action::Delete {
        key: source.key.clone(),
    }])
}

#[cfg(test)]
mod tests {
    use super::{Action, CHUNK, Source, chunk_beside, drop_dangling, locate_chunk, locator_beside};
    use crate::units::frozen::{integers_message, key};

    #[test]
    fn a_chunk_gets_its_locator_once_and_a_locator_needs_its_chunk() {
        let chunk = key(CHUNK, &[7, 3, 11, 2]);
        let rows = integers_message(&[(2, 20), (3, 10)]);
        let source = Source {
            key: &chunk,
            value: &rows,
        };
        let locator = key(&[6, 8], &[7, 29, 3, 11, 2]);
        let entry = integers_message(&[(1, 20), (2, 3), (3, 11), (4, 2)]);
        assert_eq!(locator_beside(source).unwrap(), std::slice::from_ref(&locator));
        let put = Action::Put {
            key: locator.clone(),
            value: entry.clone(),
        };
        assert_eq!(locate_chunk(source, &[None]).unwrap(), [put]);
        assert_eq!(locate_chunk(source, &[Some(entry.clone())]).unwrap(), []);

        let found = Source {
            key: &locator,
            value: &entry,
        };
        assert_eq!(chunk_beside(found).unwrap(), [chunk]);
        assert_eq!(drop_dangling(found, &[Some(rows)]).unwrap(), []);
        let shorter = integers_message(&[(2, 20), (3, 9)]);
        for other in [None, Some(shorter)] {
            let delete = Action::Delete { key: locator.clone() };
            assert_eq!(drop_dangling(found, &[other]).unwrap(), [delete]);
        }
    }

    #[test]
    fn a_chunk_without_rows_is_damaged() {
        let chunk = key(CHUNK, &[7, 3, 11, 2]);
        let rows = integers_message(&[(2, 20)]);
        let source = Source {
            key: &chunk,
            value: &rows,
        };
        assert!(locate_chunk(source, &[None]).is_err());
    }
}
