//! Encrypted Parquet files as DuckDB writes them: every page header, page and footer is encrypted for itself with the file's key, and
//! without the additional authenticated data of Parquet's specification. Files that have it DuckDB reads only as far as their columns
//! are flat and of one page to a row group, so what a flush writes has none. Sealing is what happens on the way out, opening on the
//! way in; what the pages hold is arrow-rs's.

mod open;
mod seal;
mod thrift;

use parquet::errors::ParquetError;
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::InlineError;

pub(super) use open::SealedFooter;
pub(super) use seal::ParquetOutput;

/// Bytes of the length that stands before each encrypted part.
const LENGTH_BYTES: usize = 4;
/// Source: the Parquet encryption specification, as the tag is.
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
/// What an encrypted file begins and ends with.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";
/// The length of the footer and the magic number at the end of a Parquet file.
const TRAILER_BYTES: usize = 8;

/// The key of a file.
pub(super) struct FileKey {
    key: LessSafeKey,
    random: SystemRandom,
}

impl FileKey {
    /// A key of 16 or 32 bytes.
    pub(super) fn new(key: &[u8]) -> Result<Self, InlineError> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            other => {
                return Err(invalid(format!(
                    "a key has {other} bytes, and 16 or 32 are understood"
                )));
            }
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| invalid("a key is not one"))?;
        Ok(Self {
            key: LessSafeKey::new(key),
            random: SystemRandom::new(),
        })
    }

    /// Length, nonce, what is encrypted of `plain`, tag.
    fn seal(&self, plain: &[u8]) -> Result<Vec<u8>, InlineError> {
        let mut nonce = [0; NONCE_BYTES];
        let failed = |_| invalid("a part could not be encrypted");
        self.random.fill(&mut nonce).map_err(failed)?;
        let mut body = plain.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(unique, Aad::empty(), &mut body);
        let tag = tag.map_err(failed)?;
        let length = NONCE_BYTES + body.len() + TAG_BYTES;
        let length = u32::try_from(length).map_err(|_| invalid(format!("a part has {length} bytes")))?;
        let mut sealed = Vec::with_capacity(LENGTH_BYTES + NONCE_BYTES + body.len() + TAG_BYTES);
        sealed.extend_from_slice(&length.to_le_bytes());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&body);
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// The plain bytes of the part that `sealed` begins with, and what is behind it.
    fn open<'a>(&self, sealed: &'a [u8]) -> Result<(Vec<u8>, &'a [u8]), InlineError> {
        let short = || invalid("an encrypted part is longer than its file");
        let (length, rest) = sealed.split_first_chunk::<LENGTH_BYTES>().ok_or_else(short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| short())?;
        let (part, rest) = rest.split_at_checked(length).ok_or_else(short)?;
        let (nonce, body) = part.split_first_chunk::<NONCE_BYTES>().ok_or_else(short)?;
        let mut body = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::empty(), &mut body);
        let plain = opened.map_err(|_| invalid("the key does not open the file, or it is damaged"))?;
        let plain_bytes = plain.len();
        body.truncate(plain_bytes);
        Ok((body, rest))
    }
}

fn invalid(detail: impl Into<String>) -> InlineError {
    let detail = detail.into();
    InlineError::Parquet {
        detail: format!("encryption: {detail}"),
    }
}

/// On its way through arrow-rs, which carries the reasons of others.
fn external(error: InlineError) -> ParquetError {
    ParquetError::External(Box::new(error))
}
