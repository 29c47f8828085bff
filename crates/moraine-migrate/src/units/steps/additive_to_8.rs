//! Formats 1 to 7 to 8. Each of these formats only added kinds of records, which software that knows format 8 reads as
//! they are, so raising the stamp is all there is to do, and no marker is needed. Source: RFC 0015.

/// The oldest format there ever was.
pub(crate) const OLDEST: u64 = 1;
/// The format that the stamp is raised to.
pub(crate) const TO: u64 = 8;
