//! What every [`Store`] must do, as functions that any implementation's tests call with a way to make an empty store.
//! A new store is held to all of it by one line: `conformance::run_all(make).await`.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use moraine_keys::KeyRange;

use crate::{CommitError, Read, ReadError, Staging, Store, Transaction, WriteSet, collect};

/// Records in the tests of long scans: more than any implementation fetches at once.
const MANY_RECORDS: u32 = 700;
/// Often enough that an implementation which treats such keys otherwise does so.
const REWRITES: usize = 100;
/// Batches in the test of atomicity.
const BATCHES: u8 = 50;

/// What a conformance function returns; a broken promise panics with what was expected and got.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

type Function = fn(&Arc<dyn Store>) -> Pin<Box<dyn Future<Output = Outcome> + '_>>;

/// Runs every function of this module, each on a fresh empty store from `make`.
///
/// # Errors
/// The first error, with the name of the function.
pub async fn run_all(make: impl AsyncFn() -> Arc<dyn Store>) -> Outcome {
    macro_rules! each {
        ($($name:ident),* $(,)?) => {
            // A future of all of them would be too large for the stack of a test.
            [$((stringify!($name), (|store| Box::pin($name(store))) as Function)),*]
        };
    }
    let functions = each!(
        a_new_store_is_empty,
        pinned_views_do_not_move,
        scans_are_ordered_and_bounded,
        empty_ranges_give_empty_scans,
        long_scans_are_complete,
        transactions_read_their_own_writes,
        rewritten_keys_read_like_others,
        staging_reads_like_a_transaction,
        write_write_conflicts_are_detected,
        disjoint_writes_do_not_conflict,
        a_conflict_writes_nothing,
        dropped_transactions_write_nothing,
        batches_are_atomic,
        written_data_is_visible_before_it_is_durable,
        empty_commits_succeed,
        empty_keys_are_refused,
        reads_are_counted,
        closed_stores_say_so,
    );
    for (name, function) in functions {
        let store = make().await;
        function(&store)
            .await
            .map_err(|error| format!("{name}: {error}"))?;
        store
            .close()
            .await
            .map_err(|error| format!("closing after {name}: {error}"))?;
    }
    Ok(())
}

fn key(subspace: u8, id: u32) -> Bytes {
    let mut key = vec![subspace];
    key.extend_from_slice(&id.to_be_bytes());
    key.into()
}

fn range(start: Bytes, end: Option<Bytes>) -> KeyRange {
    KeyRange { start, end }
}

async fn commit(
    store: &Arc<dyn Store>,
    changes: &[(Bytes, Option<&'static str>)],
) -> Result<(), CommitError> {
    let mut transaction = store.begin()?;
    stage(transaction.as_mut(), changes)?;
    transaction.commit().await?.durable().await
}

fn stage(
    transaction: &mut dyn Transaction,
    changes: &[(Bytes, Option<&'static str>)],
) -> Result<(), ReadError> {
    for (key, change) in changes {
        match change {
            Some(value) => transaction.put(key.clone(), Bytes::from_static(value.as_bytes()))?,
            None => transaction.delete(key.clone())?,
        }
    }
    Ok(())
}

async fn get(read: &dyn Read, key: &Bytes) -> Result<Option<String>, ReadError> {
    Ok(read
        .get(key)
        .await?
        .map(|value| String::from_utf8_lossy(&value).into_owned()))
}

async fn keys(read: &dyn Read, range: KeyRange) -> Result<Vec<Bytes>, ReadError> {
    Ok(collect(read.scan(range).await?)
        .await?
        .into_iter()
        .map(|(key, _)| key)
        .collect())
}

/// Nothing is read from a new store, and its views settle.
///
/// # Errors
/// The store's.
pub async fn a_new_store_is_empty(store: &Arc<dyn Store>) -> Outcome {
    let view = store.view()?;
    assert_eq!(view.get(&key(2, 1)).await?, None);
    assert_eq!(keys(view.as_ref(), KeyRange::all()).await?, Vec::<Bytes>::new());
    view.settled().await?;
    Ok(())
}

/// A view and a scan begun on it keep seeing the state at which the view was taken, through puts, overwrites, deletes.
///
/// # Errors
/// The store's.
pub async fn pinned_views_do_not_move(store: &Arc<dyn Store>) -> Outcome {
    let (kept, changed, removed, added) = (key(4, 1), key(4, 2), key(4, 3), key(4, 4));
    let first = [
        (kept.clone(), Some("a")),
        (changed.clone(), Some("b")),
        (removed.clone(), Some("c")),
    ];
    commit(store, &first).await?;
    let before = store.view()?;
    let mut scan = before.scan(KeyRange::all()).await?;
    commit(
        store,
        &[
            (changed.clone(), Some("B")),
            (removed.clone(), None),
            (added.clone(), Some("d")),
        ],
    )
    .await?;
    let after = store.view()?;

    assert_eq!(get(before.as_ref(), &changed).await?.as_deref(), Some("b"));
    assert_eq!(get(before.as_ref(), &removed).await?.as_deref(), Some("c"));
    assert_eq!(get(before.as_ref(), &added).await?, None);
    let mut seen = Vec::new();
    while let Some((key, _)) = scan.next().await? {
        seen.push(key);
    }
    assert_eq!(seen, [kept.clone(), changed.clone(), removed.clone()]);
    assert_eq!(keys(before.as_ref(), KeyRange::all()).await?, seen);

    assert_eq!(get(after.as_ref(), &changed).await?.as_deref(), Some("B"));
    assert_eq!(get(after.as_ref(), &removed).await?, None);
    assert_eq!(
        keys(after.as_ref(), KeyRange::all()).await?,
        [kept, changed, added]
    );
    Ok(())
}

/// Scans ascend by key bytes across subspaces; the start is included, the end is not.
///
/// # Errors
/// The store's.
pub async fn scans_are_ordered_and_bounded(store: &Arc<dyn Store>) -> Outcome {
    let all = [
        key(2, 9),
        key(4, 0),
        key(4, 1),
        key(4, 2),
        key(4, 256),
        key(5, 0),
        Bytes::from_static(&[11, 255]),
    ];
    let shuffled = [3, 0, 6, 1, 5, 2, 4].map(|i| (all[i].clone(), Some("v")));
    commit(store, &shuffled).await?;
    let view = store.view()?;
    assert_eq!(keys(view.as_ref(), KeyRange::all()).await?, all);
    assert_eq!(
        keys(view.as_ref(), range(key(4, 0), Some(key(4, 2)))).await?,
        all[1..3]
    );
    assert_eq!(keys(view.as_ref(), range(key(4, 1), None)).await?, all[2..]);
    assert_eq!(
        keys(
            view.as_ref(),
            range(Bytes::from_static(&[4]), Some(Bytes::from_static(&[5])))
        )
        .await?,
        all[1..5]
    );
    assert_eq!(
        keys(view.as_ref(), range(Bytes::new(), Some(key(4, 0)))).await?,
        all[..1]
    );
    let records = collect(view.scan(range(key(5, 0), Some(key(5, 1)))).await?).await?;
    assert_eq!(records, [(key(5, 0), Bytes::from_static(b"v"))]);
    Ok(())
}

/// Ranges in which no key can lie, or none does, give empty scans; a scan that has ended stays ended.
///
/// # Errors
/// The store's.
pub async fn empty_ranges_give_empty_scans(store: &Arc<dyn Store>) -> Outcome {
    commit(store, &[(key(4, 5), Some("v"))]).await?;
    let view = store.view()?;
    let transaction = store.begin()?;
    let ranges = [
        range(key(4, 5), Some(key(4, 5))),
        range(key(4, 9), Some(key(4, 1))),
        range(Bytes::new(), Some(Bytes::new())),
        range(key(4, 6), Some(key(4, 8))),
        range(key(9, 0), None),
    ];
    for empty in ranges {
        for read in [view.as_ref() as &dyn Read, transaction.as_ref()] {
            let mut scan = read.scan(empty.clone()).await?;
            assert_eq!(scan.next().await?, None, "{empty:?}");
            assert_eq!(scan.next().await?, None, "{empty:?}, asked again");
        }
    }
    Ok(())
}

/// A scan of many records returns each once, in order.
///
/// # Errors
/// The store's.
pub async fn long_scans_are_complete(store: &Arc<dyn Store>) -> Outcome {
    let all: Vec<Bytes> = (0..MANY_RECORDS).map(|id| key(4, id)).collect();
    let puts: Vec<_> = all.iter().map(|key| (key.clone(), Some("value"))).collect();
    commit(store, &puts).await?;
    assert_eq!(keys(store.view()?.as_ref(), KeyRange::all()).await?, all);
    Ok(())
}

/// Gets and scans of a transaction see its own puts and deletes, and nobody else does.
///
/// # Errors
/// The store's.
pub async fn transactions_read_their_own_writes(store: &Arc<dyn Store>) -> Outcome {
    commit(
        store,
        &[
            (key(4, 1), Some("a")),
            (key(4, 2), Some("b")),
            (key(4, 4), Some("d")),
        ],
    )
    .await?;
    let mut transaction = store.begin()?;
    stage(transaction.as_mut(), &own_writes())?;
    check_own_writes(transaction.as_ref()).await?;
    assert_eq!(
        get(store.view()?.as_ref(), &key(4, 1)).await?.as_deref(),
        Some("a")
    );

    commit(store, &[(key(4, 6), Some("later"))]).await?;
    assert_eq!(
        transaction.get(&key(4, 6)).await?,
        None,
        "the state it began on does not move"
    );
    transaction.commit().await?.durable().await?;
    let view = store.view()?;
    assert_eq!(
        keys(view.as_ref(), KeyRange::all()).await?,
        [key(3, 0), key(4, 1), key(4, 3), key(4, 4), key(4, 6)]
    );
    Ok(())
}

fn own_writes() -> [(Bytes, Option<&'static str>); 6] {
    [
        (key(3, 0), Some("before")),
        (key(4, 1), Some("A")),
        (key(4, 2), None),
        (key(4, 3), Some("c")),
        (key(4, 5), None),
        (key(4, 4), Some("D")),
    ]
}

async fn check_own_writes(read: &dyn Read) -> Result<(), ReadError> {
    assert_eq!(get(read, &key(4, 1)).await?.as_deref(), Some("A"));
    assert_eq!(get(read, &key(4, 2)).await?, None);
    assert_eq!(get(read, &key(4, 3)).await?.as_deref(), Some("c"));
    let within = collect(read.scan(range(key(4, 0), Some(key(4, 9)))).await?).await?;
    let expected = [(key(4, 1), "A"), (key(4, 3), "c"), (key(4, 4), "D")];
    assert_eq!(
        within,
        expected.map(|(key, value)| (key, Bytes::from_static(value.as_bytes())))
    );
    assert_eq!(
        keys(read, range(key(4, 2), Some(key(4, 3)))).await?,
        Vec::<Bytes>::new()
    );
    assert_eq!(
        keys(read, KeyRange::all()).await?,
        [key(3, 0), key(4, 1), key(4, 3), key(4, 4)]
    );
    Ok(())
}

/// Keys that are written again and again, and those beside them, read like all others in every view, however they are
/// scanned.
///
/// # Errors
/// The store's.
pub async fn rewritten_keys_read_like_others(store: &Arc<dyn Store>) -> Outcome {
    let (first, second, beside, last) = (key(4, 1), key(4, 2), key(4, 3), key(4, 5));
    let between = Bytes::from([second.as_ref(), &[0]].concat());
    commit(
        store,
        &[
            (beside.clone(), Some("beside")),
            (between.clone(), Some("between")),
        ],
    )
    .await?;
    let mut views = Vec::new();
    for number in 0..REWRITES {
        let value = if number % 2 == 0 { "even" } else { "odd" };
        // Every third time the second key is not there.
        let present = (number % 3 != 2).then_some(value);
        let changes = [
            (first.clone(), Some(value)),
            (second.clone(), present),
            (last.clone(), Some(value)),
        ];
        commit(store, &changes).await?;
        views.push((store.view()?, value, present));
    }
    let all = |value, present: Option<&'static str>| {
        [
            (&first, Some(value)),
            (&second, present),
            (&between, Some("between")),
            (&beside, Some("beside")),
            (&last, Some(value)),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key.clone(), Bytes::from_static(value?.as_bytes()))))
        .collect::<Vec<_>>()
    };
    let ranges = [
        KeyRange::all(),
        range(first.clone(), Some(last.clone())),
        range(second.clone(), Some(beside.clone())),
        range(between.clone(), None),
        range(Bytes::new(), Some(second.clone())),
        range(key(4, 4), Some(key(4, 9))),
        range(last.clone(), None),
    ];
    for (view, value, present) in views {
        for range in &ranges {
            let found = collect(view.scan(range.clone()).await?).await?;
            let mut expected = all(value, present);
            expected.retain(|(key, _)| range.contains(key));
            assert_eq!(found, expected, "{range:?}");
        }
    }
    Ok(())
}

/// Changes staged over a view read as they would in a transaction, and a savepoint takes them back.
///
/// # Errors
/// The store's.
pub async fn staging_reads_like_a_transaction(store: &Arc<dyn Store>) -> Outcome {
    commit(
        store,
        &[
            (key(4, 1), Some("a")),
            (key(4, 2), Some("b")),
            (key(4, 4), Some("d")),
        ],
    )
    .await?;
    let mut staging = Staging::new(store.view()?);
    for (key, change) in own_writes() {
        match change {
            Some(value) => staging.put_raw(key, Bytes::from_static(value.as_bytes())),
            None => staging.delete_raw(key),
        }
    }
    check_own_writes(&staging).await?;
    let savepoint = staging.savepoint();
    let (bytes, writes) = (staging.bytes(), staging.writes().clone());
    staging.put_raw(key(4, 1), Bytes::from_static(b"again"));
    staging.delete_raw(key(4, 3));
    staging.put_raw(key(4, 8), Bytes::from_static(b"new"));
    staging.rollback_to(savepoint);
    check_own_writes(&staging).await?;
    assert_eq!((staging.bytes(), staging.writes()), (bytes, &writes));

    let mut transaction = store.begin()?;
    staging.writes().apply(transaction.as_mut())?;
    check_own_writes(transaction.as_ref()).await?;
    Ok(())
}

/// Of two transactions that write the same key, whichever commits second conflicts, whatever kind of write it was.
///
/// # Errors
/// The store's.
pub async fn write_write_conflicts_are_detected(store: &Arc<dyn Store>) -> Outcome {
    commit(store, &[(key(4, 1), Some("a"))]).await?;
    let cases = [1, 2].into_iter().flat_map(|id| {
        let changes = [
            (Some("x"), Some("y")),
            (Some("x"), None),
            (None, Some("y")),
            (None, None),
        ];
        changes
            .into_iter()
            .map(move |(first, second)| (id, first, second))
    });
    for (id, first, second) in cases {
        let (mut winner, mut loser) = (store.begin()?, store.begin()?);
        stage(winner.as_mut(), &[(key(4, id), first)])?;
        stage(loser.as_mut(), &[(key(4, id), second), (key(4, 9), Some("more"))])?;
        winner.commit().await?.durable().await?;
        let outcome = loser.commit().await.map(|_| ());
        assert_eq!(
            outcome,
            Err(CommitError::Conflicted),
            "key {id}: {first:?}, then {second:?}"
        );
    }
    let mut begun_after = store.begin()?;
    stage(begun_after.as_mut(), &[(key(4, 1), Some("b"))])?;
    begun_after.commit().await?.durable().await?;
    Ok(())
}

/// Transactions that write different keys both commit, also when each has read what the other writes.
///
/// # Errors
/// The store's.
pub async fn disjoint_writes_do_not_conflict(store: &Arc<dyn Store>) -> Outcome {
    let (mut left, mut right) = (store.begin()?, store.begin()?);
    assert_eq!(left.get(&key(4, 2)).await?, None);
    assert_eq!(right.get(&key(4, 1)).await?, None);
    stage(left.as_mut(), &[(key(4, 1), Some("l"))])?;
    stage(right.as_mut(), &[(key(4, 2), Some("r"))])?;
    let (left, right) = (left.commit().await?, right.commit().await?);
    right.durable().await?;
    left.durable().await?;
    assert_eq!(
        keys(store.view()?.as_ref(), KeyRange::all()).await?,
        [key(4, 1), key(4, 2)]
    );
    Ok(())
}

/// A transaction that conflicts on one key writes none.
///
/// # Errors
/// The store's.
pub async fn a_conflict_writes_nothing(store: &Arc<dyn Store>) -> Outcome {
    let (mut winner, mut loser) = (store.begin()?, store.begin()?);
    stage(winner.as_mut(), &[(key(4, 1), Some("w"))])?;
    stage(
        loser.as_mut(),
        &[
            (key(4, 0), Some("x")),
            (key(4, 1), Some("x")),
            (key(4, 2), Some("x")),
        ],
    )?;
    winner.commit().await?.durable().await?;
    assert_eq!(loser.commit().await.map(|_| ()), Err(CommitError::Conflicted));
    let view = store.view()?;
    assert_eq!(keys(view.as_ref(), KeyRange::all()).await?, [key(4, 1)]);
    assert_eq!(get(view.as_ref(), &key(4, 1)).await?.as_deref(), Some("w"));
    Ok(())
}

/// A transaction that is dropped leaves no trace, and is in nobody's way.
///
/// # Errors
/// The store's.
pub async fn dropped_transactions_write_nothing(store: &Arc<dyn Store>) -> Outcome {
    let mut other = store.begin()?;
    let mut dropped = store.begin()?;
    stage(dropped.as_mut(), &[(key(4, 1), Some("x"))])?;
    drop(dropped);
    assert_eq!(
        keys(store.view()?.as_ref(), KeyRange::all()).await?,
        Vec::<Bytes>::new()
    );
    stage(other.as_mut(), &[(key(4, 1), Some("y"))])?;
    other.commit().await?.durable().await?;
    Ok(())
}

/// While batches that write several keys commit, every view sees all keys of a batch or none.
///
/// # Errors
/// The store's.
pub async fn batches_are_atomic(store: &Arc<dyn Store>) -> Outcome {
    let keys = [key(2, 0), key(4, 7), key(9, 3)];
    let writer = {
        let (store, keys) = (Arc::clone(store), keys.clone());
        tokio::spawn(async move {
            for round in 1..=BATCHES {
                let mut transaction = store.begin()?;
                for key in &keys {
                    transaction.put(key.clone(), Bytes::from(vec![round]))?;
                }
                transaction.commit().await?.durable().await?;
            }
            Ok::<(), CommitError>(())
        })
    };
    let mut newest = Bytes::new();
    while newest.first() != Some(&BATCHES) {
        let view = store.view()?;
        let mut values = Vec::new();
        for key in &keys {
            values.push(view.get(key).await?.unwrap_or_default());
        }
        assert_eq!(
            (&values[0], &values[1]),
            (&values[1], &values[2]),
            "a view sees part of a batch"
        );
        assert!(values[0] >= newest, "a later view sees an earlier state");
        newest = values.swap_remove(0);
        if writer.is_finished() && newest.first() != Some(&BATCHES) {
            break;
        }
        tokio::task::yield_now().await;
    }
    writer.await??;
    assert_eq!(
        store.view()?.get(&keys[0]).await?,
        Some(Bytes::from(vec![BATCHES]))
    );
    Ok(())
}

/// A view taken after `commit` has returned sees the batch though nobody has waited for it, and settling waits; a
/// transaction builds on it.
///
/// # Errors
/// The store's.
pub async fn written_data_is_visible_before_it_is_durable(store: &Arc<dyn Store>) -> Outcome {
    let mut first = store.begin()?;
    stage(first.as_mut(), &[(key(4, 1), Some("a"))])?;
    let first = first.commit().await?;
    let view = store.view()?;
    assert_eq!(get(view.as_ref(), &key(4, 1)).await?.as_deref(), Some("a"));
    let mut second = store.begin()?;
    assert_eq!(get(second.as_ref(), &key(4, 1)).await?.as_deref(), Some("a"));
    stage(second.as_mut(), &[(key(4, 1), Some("b"))])?;
    let second = second.commit().await?;
    view.settled().await?;
    second.durable().await?;
    first.durable().await?;
    Ok(())
}

/// A transaction without writes commits, and is durable at once.
///
/// # Errors
/// The store's.
pub async fn empty_commits_succeed(store: &Arc<dyn Store>) -> Outcome {
    store.begin()?.commit().await?.durable().await?;
    let mut transaction = store.begin()?;
    WriteSet::new().apply(transaction.as_mut())?;
    transaction.commit().await?.durable().await?;
    Ok(())
}

/// Writing an empty key is refused, and the transaction goes on without it.
///
/// # Errors
/// The store's.
pub async fn empty_keys_are_refused(store: &Arc<dyn Store>) -> Outcome {
    let mut transaction = store.begin()?;
    let put = transaction.put(Bytes::new(), Bytes::from_static(b"v"));
    assert!(matches!(put, Err(ReadError::Invalid { .. })), "{put:?}");
    let delete = transaction.delete(Bytes::new());
    assert!(matches!(delete, Err(ReadError::Invalid { .. })), "{delete:?}");
    stage(transaction.as_mut(), &[(key(4, 1), Some("a"))])?;
    transaction.commit().await?.durable().await?;
    Ok(())
}

/// The read counter moves by one per get and per record that a scan returned.
///
/// # Errors
/// The store's.
pub async fn reads_are_counted(store: &Arc<dyn Store>) -> Outcome {
    commit(
        store,
        &[
            (key(4, 1), Some("a")),
            (key(4, 2), Some("b")),
            (key(5, 1), Some("c")),
        ],
    )
    .await?;
    let view = store.view()?;
    let before = store.reads();
    view.get(&key(4, 1)).await?;
    view.get(&key(4, 7)).await?;
    assert_eq!(store.reads() - before, 2);
    collect(view.scan(range(key(4, 0), Some(key(5, 0)))).await?).await?;
    assert_eq!(store.reads() - before, 4);
    store.begin()?.get(&key(5, 1)).await?;
    assert_eq!(store.reads() - before, 5);
    Ok(())
}

/// After closing, views and transactions are refused as closed, old views read nothing more, and closing again is no
/// error; what was acknowledged has been.
///
/// # Errors
/// The store's.
pub async fn closed_stores_say_so(store: &Arc<dyn Store>) -> Outcome {
    let mut unwaited = store.begin()?;
    stage(unwaited.as_mut(), &[(key(4, 1), Some("a"))])?;
    let unwaited = unwaited.commit().await?;
    let mut open = store.begin()?;
    stage(open.as_mut(), &[(key(4, 2), Some("b"))])?;
    let view = store.view()?;
    store.close().await?;
    unwaited.durable().await?;
    assert_eq!(store.view().map(|_| ()), Err(ReadError::Closed));
    assert_eq!(store.begin().map(|_| ()), Err(ReadError::Closed));
    assert_eq!(view.get(&key(4, 1)).await, Err(ReadError::Closed));
    let refused = open.commit().await.map(|_| ());
    assert_eq!(
        refused,
        Err(CommitError::Abandoned {
            source: ReadError::Closed
        })
    );
    store.close().await?;
    Ok(())
}
