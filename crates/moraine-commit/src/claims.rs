//! Which inlined rows the open transactions of this process remove for good. Two flushes of the same rows cannot both
//! succeed; the second is refused where it removes them, as a DuckDB catalog does and as PostgreSQL does after waiting,
//! and not after it has written its files. A courtesy only: what may be written is decided at the commit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The claims of all open transactions on one lake. Clones are handles to the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    claims: Vec<Claimed>,
    next_owner: u64,
}

#[derive(Debug)]
struct Claimed {
    owner: u64,
    table_id: u64,
    /// (row id, begin snapshot), ascending.
    rows: Vec<(u64, u64)>,
}

/// What one transaction has claimed. Dropping it gives everything back.
#[derive(Debug)]
pub(crate) struct Claimant {
    claims: Claims,
    owner: u64,
}

impl Claims {
    /// A transaction that may claim rows.
    pub(crate) fn claimant(&self) -> Claimant {
        let mut open = self.lock();
        let owner = open.next_owner;
        open.next_owner += 1;
        Claimant {
            claims: self.clone(),
            owner,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claimant {
    /// Claims row versions of a table, unless another transaction has claimed one of them.
    pub(crate) fn claim(&self, table_id: u64, rows: &[(u64, u64)]) -> bool {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        let mut open = self.claims.lock();
        let others = open
            .claims
            .iter()
            .filter(|claimed| claimed.owner != self.owner && claimed.table_id == table_id);
        for claimed in others {
            if overlap(&claimed.rows, &rows) {
                return false;
            }
        }
        open.claims.push(Claimed {
            owner: self.owner,
            table_id,
            rows,
        });
        true
    }
}

impl Drop for Claimant {
    fn drop(&mut self) {
        self.claims
            .lock()
            .claims
            .retain(|claimed| claimed.owner != self.owner);
    }
}

/// Whether two ascending lists have an element in common.
fn overlap(left: &[(u64, u64)], right: &[(u64, u64)]) -> bool {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        match one.cmp(other) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => left.next(),
            std::cmp::Ordering::Greater => right.next(),
        };
    }
    false
}
