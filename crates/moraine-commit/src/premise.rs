//! The premise of a commit: whether what a batch was built on still stands. Pure; the reads are done in
//! [`crate::commit`].

use moraine_codec::proto::HeadValue;

/// What is to be done with a batch, given the head it was built on and the head there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing has moved: write it.
    Apply,
    /// Something has moved that may not concern this batch: write it if no record it writes has changed.
    CompareRecords,
    /// The lake this batch creates is there: accept the commit if it is the same lake.
    Adopt,
    /// Another snapshot came first.
    Conflict {
        /// What moved.
        detail: String,
    },
}

/// Judges a batch that was built on `premise` (`None`: it creates the lake), mints the snapshot `minted` (if any), and
/// finds `head`.
pub(crate) fn judge(premise: Option<&HeadValue>, head: Option<&HeadValue>, minted: Option<u64>) -> Verdict {
    match (premise, head) {
        (None, Some(_)) => Verdict::Adopt,
        (premise, head) if premise == head => Verdict::Apply,
        (Some(premise), Some(head)) => match minted {
            Some(minted) if head.snapshot_id != premise.snapshot_id => Verdict::Conflict {
                detail: format!(
                    "snapshot {} was committed while snapshot {minted} was being built on {}",
                    head.snapshot_id, premise.snapshot_id
                ),
            },
            _ => Verdict::CompareRecords,
        },
        (_, None) => Verdict::Conflict {
            detail: "the lake vanished meanwhile".to_owned(),
        },
    }
}

/// The head a batch leaves behind: every batch moves it, so that it is the one anchor of every commit.
pub(crate) fn next_head(head: Option<&HeadValue>, minted: Option<u64>) -> HeadValue {
    match head {
        Some(head) => HeadValue {
            snapshot_id: minted.unwrap_or(head.snapshot_id),
            batch_seq: head.batch_seq.saturating_add(1),
        },
        None => HeadValue {
            snapshot_id: minted.unwrap_or_default(),
            batch_seq: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, judge, next_head};
    use moraine_codec::proto::HeadValue;

    fn head(snapshot_id: u64, batch_seq: u64) -> HeadValue {
        HeadValue {
            snapshot_id,
            batch_seq,
        }
    }

    #[test]
    fn a_moved_snapshot_refuses_a_snapshot_and_a_moved_batch_asks_for_a_comparison() {
        let premise = head(4, 9);
        let judged = |head: &HeadValue, minted| judge(Some(&premise), Some(head), minted);
        assert_eq!(judged(&head(4, 9), Some(5)), Verdict::Apply);
        assert_eq!(judged(&head(4, 10), Some(5)), Verdict::CompareRecords);
        assert_eq!(judged(&head(5, 10), None), Verdict::CompareRecords);
        assert!(matches!(judged(&head(5, 10), Some(5)), Verdict::Conflict { .. }));
    }

    #[test]
    fn a_lake_that_is_there_is_adopted_by_who_wanted_to_create_it() {
        let there = head(0, 0);
        assert_eq!(judge(None, None, Some(0)), Verdict::Apply);
        assert_eq!(judge(None, Some(&there), Some(0)), Verdict::Adopt);
    }

    #[test]
    fn every_batch_moves_the_head() {
        assert_eq!(next_head(None, Some(0)), head(0, 0));
        assert_eq!(next_head(Some(&head(4, 9)), Some(5)), head(5, 10));
        assert_eq!(next_head(Some(&head(4, 9)), None), head(4, 10));
    }
}
