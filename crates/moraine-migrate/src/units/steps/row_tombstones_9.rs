//! Format 8 to 9: ends of inlined rows become events. Before, there was one record per table and row, overwritten when
//! the row ended again; since, each end is a record of its own, with the end in the key. The value stays as it is.
//! An end that was overwritten cannot come back. Source: RFC 0005, unit `version-inline-tombstones`.

use bytes::Bytes;

use crate::units::frozen::{Damage, Message, ids, key};
use crate::units::step::{Action, Source, Unit, Walk, nothing_beside};

/// `inline/live/delete`: table, row.
const INLINE_DELETE: &[u8] = &[6, 3, 3];
/// `inline/row_tombstone`: table, row, end snapshot.
const ROW_TOMBSTONE: &[u8] = &[6, 9];
/// Field of the value: the end snapshot.
const END_SNAPSHOT: u64 = 1;

pub(crate) const UNIT: Unit = Unit {
    name: "ends of inlined rows become events",
    from: 8,
    to: 9,
    walks: &[Walk {
        of: "ends of inlined rows",
        completes: false,
        prefix: INLINE_DELETE,
        beside: nothing_beside,
        act,
    }],
};

fn act(source: Source<'_>, _: &[Option<Bytes>]) -> Result<Vec<Action>, Damage> {
    let [table, row] = ids(source.key, INLINE_DELETE)?;
    let end = Message::read(source.value)?.integer(END_SNAPSHOT)?;
    let put = Action::Put {
        key: key(ROW_TOMBSTONE, &[table, row, end]),
        value: source.value.clone(),
    };
    let delete = Action::Delete {
        key: source.key.clone(),
    };
    Ok(vec![put, delete])
}

#[cfg(test)]
mod tests {
    use super::{Action, INLINE_DELETE, Source, act};
    use crate::units::frozen::{integers_message, key};

    #[test]
    fn an_end_moves_with_its_value_as_it_is() {
        let (old, value) = (key(INLINE_DELETE, &[7, 9]), integers_message(&[(1, 12)]));
        let source = Source {
            key: &old,
            value: &value,
        };
        let new = key(&[6, 9], &[7, 9, 12]);
        let expected = [
            Action::Put {
                key: new,
                value: value.clone(),
            },
            Action::Delete { key: old.clone() },
        ];
        assert_eq!(act(source, &[]).unwrap(), expected);
    }
}
