//! What of Parquet's own Thrift has to be understood to find where parts begin and end: page headers and the encryption of a file.
//! The compact protocol; everything else is skipped.

/// Structs within structs; page headers have three levels.
const DEPTH_MAX: usize = 16;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// The bytes end before it does.
    Short,
    /// It is no such value.
    Malformed,
}

/// A page, as its header (`PageHeader`) tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// Bytes of the header itself.
    pub(super) header_bytes: usize,
    /// Bytes of the page behind it.
    pub(super) page_bytes: usize,
    /// The levels before the values of a page of the second version, which are encrypted for themselves where the values are
    /// compressed.
    pub(super) level_bytes: Option<usize>,
}

/// How a file is encrypted (`FileCryptoMetaData`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileCrypto {
    /// Bytes it takes.
    pub(super) bytes: usize,
    /// AES-GCM for everything.
    pub(super) is_gcm: bool,
    /// Whether parts are bound to their file and place.
    pub(super) has_aad: bool,
}

/// The `FileCryptoMetaData` of a file without additional authenticated data: AES_GCM_V1, with nothing set.
pub(super) const PLAIN_GCM: [u8; 5] = [0x1c, 0x1c, 0, 0, 0];

/// Reads the page header that `bytes` begins with.
pub(super) fn page_header(bytes: &[u8]) -> Result<PageHeader, Unread> {
    let mut input = Input { bytes, at: 0 };
    let mut header = PageHeader::default();
    let (mut levels, mut is_compressed, mut is_second) = (0, true, false);
    input.fields(&mut |input, field, kind| {
        match field {
            3 => header.page_bytes = input.size()?,
            8 if kind == STRUCT => {
                is_second = true;
                input.fields(&mut |input, field, kind| {
                    match field {
                        5 | 6 => levels += input.size()?,
                        7 => is_compressed = kind == TRUE,
                        _ => input.skip(kind, 2)?,
                    }
                    Ok(())
                })?;
            }
            _ => input.skip(kind, 1)?,
        }
        Ok(())
    })?;
    header.header_bytes = input.at;
    header.level_bytes = (is_second && is_compressed).then_some(levels);
    if levels > header.page_bytes {
        return Err(Unread::Malformed);
    }
    Ok(header)
}

/// Reads the `FileCryptoMetaData` that `bytes` begins with.
pub(super) fn file_crypto(bytes: &[u8]) -> Result<FileCrypto, Unread> {
    let mut input = Input { bytes, at: 0 };
    let mut crypto = FileCrypto::default();
    input.fields(&mut |input, field, kind| {
        if (field, kind) != (1, STRUCT) {
            return input.skip(kind, 1);
        }
        input.fields(&mut |input, field, kind| {
            if (field, kind) != (1, STRUCT) {
                return input.skip(kind, 2);
            }
            crypto.is_gcm = true;
            input.fields(&mut |input, _, kind| {
                crypto.has_aad |= kind == BINARY;
                input.skip(kind, 3)
            })
        })
    })?;
    crypto.bytes = input.at;
    Ok(crypto)
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Takes one field by number and type.
type Field<'f> = &'f mut dyn FnMut(&mut Input<'_>, i64, u8) -> Result<(), Unread>;

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, Unread> {
        let byte = self.bytes.get(self.at).copied().ok_or(Unread::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, bytes: usize) -> Result<(), Unread> {
        let end = self.at.checked_add(bytes).ok_or(Unread::Malformed)?;
        if end > self.bytes.len() {
            return Err(Unread::Short);
        }
        self.at = end;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Unread> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Unread::Malformed)
    }

    fn integer(&mut self) -> Result<i64, Unread> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A number of bytes.
    fn size(&mut self) -> Result<usize, Unread> {
        usize::try_from(self.integer()?).map_err(|_| Unread::Malformed)
    }

    fn fields(&mut self, take: Field<'_>) -> Result<(), Unread> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let delta = i64::from(head >> 4);
            field = if delta == 0 {
                self.integer()?
            } else {
                field.checked_add(delta).ok_or(Unread::Malformed)?
            };
            take(self, field, head & 0x0f)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), Unread> {
        if depth > DEPTH_MAX {
            return Err(Unread::Malformed);
        }
        match kind {
            TRUE | FALSE => Ok(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.varint()?;
                self.pass(usize::try_from(length).map_err(|_| Unread::Malformed)?)
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => count.into(),
                };
                (0..count).try_for_each(|_| self.element(head & 0x0f, depth))
            }
            MAP => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 0x0f, depth)
                })
            }
            STRUCT => self.fields(&mut |input, _, kind| input.skip(kind, depth + 1)),
            UUID => self.pass(16),
            _ => Err(Unread::Malformed),
        }
    }

    /// An element of a list, where a boolean takes a byte.
    fn element(&mut self, kind: u8, depth: usize) -> Result<(), Unread> {
        match kind {
            TRUE | FALSE => self.pass(1),
            other => self.skip(other, depth + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FileCrypto, PLAIN_GCM, PageHeader, Unread, file_crypto, page_header};

    /// A data page of the second version: 3 bytes of levels, compressed unless it says otherwise.
    const SECOND: &[u8] = &[
        0x15, 0x06, 0x15, 0x14, 0x15, 0x0e, 0x5c, 0x15, 0x02, 0x15, 0x00, 0x15, 0x02, 0x15, 0x00, 0x15, 0x04,
        0x15, 0x02, 0x00, 0x00,
    ];

    #[test]
    fn a_page_header_tells_where_its_page_ends() {
        let expected = PageHeader {
            header_bytes: SECOND.len(),
            page_bytes: 7,
            level_bytes: Some(3),
        };
        assert_eq!(page_header(&[SECOND, b"page"].concat()), Ok(expected));
        let mut uncompressed = SECOND.to_vec();
        uncompressed.splice(19..19, [0x12]);
        assert_eq!(page_header(&uncompressed).unwrap().level_bytes, None);
        for end in 0..SECOND.len() {
            assert_eq!(page_header(&SECOND[..end]), Err(Unread::Short));
        }
    }

    #[test]
    fn encryption_with_and_without_authenticated_data_is_told_apart() {
        let without = FileCrypto {
            bytes: 5,
            is_gcm: true,
            has_aad: false,
        };
        assert_eq!(file_crypto(&PLAIN_GCM), Ok(without));
        let with = [0x1c, 0x1c, 0x28, 2, b'a', b'b', 0, 0, 0];
        assert!(file_crypto(&with).unwrap().has_aad);
        let other = file_crypto(&[0x1c, 0x2c, 0, 0, 0]).unwrap();
        assert!(!other.is_gcm);
    }
}
