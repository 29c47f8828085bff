//! Who goes first: clients that have lost a race for a snapshot are remembered, and known again when they come for their
//! second try. What a turn is worth is the commit protocol's affair.
//!
//! A second try need not come on the connection that lost: DuckDB's connection pool gives a thread whichever is free, so
//! with several threads most come on another one, and without its pool all do. What stays the same is the place the
//! connections come from, and how DuckLake opens a second try: with the check for conflicts, where any other of its
//! transactions opens with the newest snapshot.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use moraine_commit::{Catalog, Turn};
use sqlparser::ast::{CopySource, Expr, Query, SelectItem, SetExpr, Statement, TableFactor};
use tokio::time::Instant;

use crate::parse::Parsed;

/// How long a lost race is remembered. DuckLake's longest pause before another try is about four seconds.
const LOSS_REMEMBERED: Duration = Duration::from_secs(10);
/// Lost races remembered for one lake. More than connections; the oldest are forgotten first.
const LOSSES_MAX: usize = 4_096;

/// After so many commits in a row, or a lost race, a client's next transaction is expected to commit too.
const COMMITS_IN_A_ROW: u32 = 2;
/// After so many transactions in a row that read only, a client's next one is expected to read only too.
const READS_IN_A_ROW: u32 = 8;

/// Where a client's connections come from: as much as can be told of its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) user: String,
    pub(crate) application: String,
}

/// The client of a session.
#[derive(Debug)]
pub(crate) struct Client {
    /// The process id told to the client.
    pub(crate) session: i32,
    pub(crate) place: Place,
    /// Snapshots committed one after the other, with no transaction between them that read only.
    commits: AtomicU32,
    /// Transactions that read only, one after the other.
    reads: AtomicU32,
    /// Whether what it committed last needed no turn: an append, where appends are rebased.
    appends: AtomicBool,
    /// Whether this is the connection that its process attached a lake with, and works on when it does one thing at a time.
    /// Any other is one more of a process that does several things at once, as those do that answer queries or take rows in.
    has_attached: AtomicBool,
}

/// What has lately happened to a lake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lately {
    /// See [`Catalog::is_busy`].
    pub(crate) is_busy: bool,
    /// See [`Catalog::only_grows`].
    pub(crate) only_grows: bool,
}

impl Lately {
    pub(crate) fn of(catalog: &Catalog) -> Lately {
        Lately {
            is_busy: catalog.is_busy(),
            only_grows: catalog.only_grows(),
        }
    }
}

impl Client {
    pub(crate) fn new(session: i32, place: Place) -> Client {
        Client {
            session,
            place,
            commits: AtomicU32::new(0),
            reads: AtomicU32::new(0),
            appends: AtomicBool::new(false),
            has_attached: AtomicBool::new(false),
        }
    }

    /// Notes how a transaction on a lake ended. One that was overtaken takes too long for others to wait for it.
    pub(crate) fn note_end(&self, committed_in_time: bool) {
        let commits = self.commits.load(Ordering::Relaxed);
        let commits = if committed_in_time {
            self.reads.store(0, Ordering::Relaxed);
            commits.saturating_add(1)
        } else {
            0
        };
        self.commits.store(commits, Ordering::Relaxed);
        self.appends.store(false, Ordering::Relaxed);
    }

    /// Notes that a transaction ended that read only.
    pub(crate) fn note_read(&self) {
        self.commits.store(0, Ordering::Relaxed);
        let reads = self.reads.load(Ordering::Relaxed);
        self.reads.store(reads.saturating_add(1), Ordering::Relaxed);
    }

    /// Notes the commit of an append where appends are rebased: the next one needs no turn either.
    pub(crate) fn note_append(&self) {
        self.commits.store(0, Ordering::Relaxed);
        self.reads.store(0, Ordering::Relaxed);
        self.appends.store(true, Ordering::Relaxed);
    }

    /// Notes a lost race: the client is writing, and so are others.
    pub(crate) fn note_loss(&self) {
        self.commits.store(COMMITS_IN_A_ROW, Ordering::Relaxed);
    }

    /// Whether the next transaction is likely to commit a snapshot too.
    fn is_writing(&self) -> bool {
        self.commits.load(Ordering::Relaxed) >= COMMITS_IN_A_ROW
    }

    /// Notes a transaction that opens as none of DuckLake's does but those of an ATTACH.
    pub(crate) fn note_attach(&self) {
        self.has_attached.store(true, Ordering::Relaxed);
    }

    /// Whether the next transaction may be one that must not be overtaken.
    fn may_update(&self, lately: Lately) -> bool {
        let may_be_a_job = !lately.only_grows || self.has_attached.load(Ordering::Relaxed);
        lately.is_busy && may_be_a_job
    }

    /// Whether the next transaction is expected to read only.
    fn is_reader(&self) -> bool {
        self.reads.load(Ordering::Relaxed) >= READS_IN_A_ROW
    }
}

/// What a transaction's first statement shows of its client's intention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// DuckLake's check whether what was committed meanwhile is in the way of a second try.
    ConflictCheck,
    /// The newest snapshot: how every other transaction of DuckLake opens.
    NewestSnapshot,
    Other,
}

/// What a later statement shows of a transaction's intention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intention {
    /// It lists the files to delete rows from: it is going to commit, and must not be overtaken.
    Write,
    /// It lists the files or reads the rows of a query.
    Read,
}

/// The races for snapshots of one lake that were lost and not yet made good.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    lost: Vec<Loss>,
}

#[derive(Debug)]
struct Loss {
    client: Arc<Client>,
    at: Instant,
    /// Whether the session that lost has begun something since that may be another client's: a thread of the same
    /// process that was given its connection.
    session_has_gone_on: bool,
}

impl Losses {
    /// Remembers that a client has lost.
    pub(crate) fn note(&mut self, client: &Arc<Client>) {
        client.note_loss();
        self.forget_old();
        if self.lost.len() >= LOSSES_MAX {
            self.lost.remove(0);
        }
        self.lost.push(Loss {
            client: Arc::clone(client),
            at: Instant::now(),
            session_has_gone_on: false,
        });
    }

    /// Whether a transaction that begins is to wait for its turn, and as what.
    pub(crate) fn turn(&mut self, client: &Client, opening: Opening, lately: Lately) -> Option<Turn> {
        if self.claim(client, opening) {
            return Some(Turn::SecondTry);
        }
        if client.is_writing() {
            return Some(Turn::Expected);
        }
        if opening != Opening::NewestSnapshot || client.is_reader() {
            return None;
        }
        if client.appends.load(Ordering::Relaxed) {
            return Some(Turn::Append);
        }
        client.may_update(lately).then_some(Turn::Possible)
    }

    fn claim(&mut self, client: &Client, opening: Opening) -> bool {
        if self.lost.is_empty() {
            return false;
        }
        self.forget_old();
        let own = self
            .lost
            .iter()
            .position(|loss| loss.client.session == client.session && !loss.session_has_gone_on);
        match opening {
            Opening::ConflictCheck => {
                let of_place = || {
                    self.lost
                        .iter()
                        .position(|loss| loss.client.place == client.place)
                };
                let Some(claimed) = own.or_else(of_place) else {
                    return false;
                };
                self.lost.remove(claimed);
                true
            }
            Opening::NewestSnapshot | Opening::Other => {
                let loss = own.and_then(|own| self.lost.get_mut(own));
                loss.map(|loss| loss.session_has_gone_on = true).is_some()
            }
        }
    }

    fn forget_old(&mut self) {
        self.lost.retain(|loss| loss.at.elapsed() < LOSS_REMEMBERED);
    }
}

impl Opening {
    /// What a transaction that begins with this statement is about. The check for conflicts reads statistics of all
    /// tables, or all snapshots, or what changed since one of them, in an order that DuckDB's planner chooses.
    pub(crate) fn of(parsed: &Parsed) -> Opening {
        let Some((query, is_copy)) = query_of(parsed) else {
            return Opening::Other;
        };
        match scanned(query) {
            Some(scan) if scan.table == "ducklake_snapshot" && scan.asks_for_the_newest() => {
                Opening::NewestSnapshot
            }
            Some(scan) if is_copy => match (scan.table, scan.condition) {
                ("ducklake_snapshot_changes", _)
                | ("ducklake_snapshot" | "ducklake_table_stats" | "ducklake_table_column_stats", None) => {
                    Opening::ConflictCheck
                }
                _ => Opening::Other,
            },
            _ => Opening::Other,
        }
    }
}

impl Intention {
    /// What a statement shows. To delete rows or to update them, DuckLake first lists the files of the table together with
    /// the ids of their delete files; to read, without them.
    pub(crate) fn of(parsed: &Parsed) -> Option<Intention> {
        let (query, _) = query_of(parsed)?;
        let scan = scanned(query)?;
        match scan.table {
            "ducklake_delete_file" if scan.selects("delete_file_id") => Some(Intention::Write),
            // The other half of that list.
            "ducklake_data_file" if scan.selects("record_count") && scan.selects("path") => None,
            "ducklake_data_file" | "ducklake_delete_file" => Some(Intention::Read),
            table
                if table.starts_with("ducklake_inlined_data_") && table != "ducklake_inlined_data_tables" =>
            {
                Some(Intention::Read)
            }
            _ => None,
        }
    }
}

/// The query that a statement runs, and whether it copies the result out.
fn query_of(parsed: &Parsed) -> Option<(&Query, bool)> {
    let Parsed::Sql(statement) = parsed else {
        return None;
    };
    match statement.as_ref() {
        Statement::Copy {
            source: CopySource::Query(query),
            to: true,
            ..
        } => Some((query, true)),
        Statement::Query(query) => Some((query, false)),
        _ => None,
    }
}

/// The scan of one table that a query is.
struct Scanned<'q> {
    table: &'q str,
    columns: &'q [SelectItem],
    condition: Option<&'q Expr>,
}

impl Scanned<'_> {
    fn selects(&self, column: &str) -> bool {
        self.columns.iter().any(
            |item| matches!(item, SelectItem::UnnamedExpr(Expr::Identifier(name)) if name.value == column),
        )
    }

    /// Whether the condition is `snapshot_id = (SELECT MAX(snapshot_id) ..)`.
    fn asks_for_the_newest(&self) -> bool {
        matches!(self.condition, Some(Expr::BinaryOp { right, .. }) if matches!(right.as_ref(), Expr::Subquery(_)))
    }
}

/// The one table that a query scans, itself or in a query below it.
fn scanned(query: &Query) -> Option<Scanned<'_>> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let [from] = select.from.as_slice() else {
        return None;
    };
    match &from.relation {
        TableFactor::Table { name, .. } => Some(Scanned {
            table: name.0.last()?.as_ident()?.value.as_str(),
            columns: &select.projection,
            condition: select.selection.as_ref(),
        }),
        TableFactor::Derived { subquery, .. } => scanned(subquery),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const QUIET: Lately = Lately {
        is_busy: false,
        only_grows: true,
    };
    const BUSY: Lately = Lately {
        is_busy: true,
        only_grows: false,
    };
    const GROWING: Lately = Lately {
        is_busy: true,
        only_grows: true,
    };

    fn client(session: i32, application: &str) -> Arc<Client> {
        let place = Place {
            address: IpAddr::from([127, 0, 0, 1]),
            user: "u".to_owned(),
            application: application.to_owned(),
        };
        Arc::new(Client::new(session, place))
    }

    #[test]
    fn who_commits_again_and_again_takes_turns_and_a_reader_does_not_wait() {
        let mut losses = Losses::default();
        let client = client(1, "a");
        assert_eq!(losses.turn(&client, Opening::Other, BUSY), None);
        client.note_end(true);
        assert_eq!(losses.turn(&client, Opening::Other, BUSY), None);
        client.note_end(true);
        assert_eq!(losses.turn(&client, Opening::Other, BUSY), Some(Turn::Expected));
        client.note_end(false);
        assert_eq!(losses.turn(&client, Opening::Other, BUSY), None);
        losses.note(&client);
        assert_eq!(
            losses.turn(&client, Opening::ConflictCheck, BUSY),
            Some(Turn::SecondTry)
        );
        assert_eq!(losses.turn(&client, Opening::Other, BUSY), Some(Turn::Expected));
    }

    #[test]
    fn whoever_may_be_about_to_write_takes_turns_where_others_write() {
        let mut losses = Losses::default();
        let client = client(1, "a");
        let mut turn = |lately| losses.turn(&client, Opening::NewestSnapshot, lately);
        assert_eq!(turn(QUIET), None, "nobody writes here");
        assert_eq!(turn(BUSY), Some(Turn::Possible));
        for _ in 0..READS_IN_A_ROW {
            assert_eq!(turn(BUSY), Some(Turn::Possible));
            client.note_read();
        }
        assert_eq!(turn(BUSY), None, "a reader");
        client.note_end(true);
        assert_eq!(turn(BUSY), Some(Turn::Possible), "a reader no more");
        client.note_append();
        for _ in 0..READS_IN_A_ROW {
            assert_eq!(turn(BUSY), Some(Turn::Append), "what it does needs no turn");
            client.note_read();
        }
        assert_eq!(turn(BUSY), None, "a reader again");
        client.note_append();
        client.note_end(false);
        assert_eq!(turn(BUSY), Some(Turn::Possible));
    }

    #[test]
    fn one_more_connection_of_a_process_waits_for_nobody_where_rows_are_only_added() {
        let mut losses = Losses::default();
        let (first, other) = (client(1, "a"), client(2, "a"));
        first.note_attach();
        let mut turn = |client: &Arc<Client>, lately| losses.turn(client, Opening::NewestSnapshot, lately);
        assert_eq!(turn(&first, GROWING), Some(Turn::Possible));
        assert_eq!(turn(&other, GROWING), None);
        assert_eq!(turn(&other, BUSY), Some(Turn::Possible));
        other.note_loss();
        assert_eq!(turn(&other, GROWING), Some(Turn::Expected), "it writes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_is_made_good_once() {
        let mut losses = Losses::default();
        let (loser, other) = (client(1, "a"), client(2, "b"));
        losses.note(&loser);
        assert!(
            !losses.claim(&other, Opening::ConflictCheck),
            "it has lost nothing"
        );
        assert!(losses.claim(&loser, Opening::ConflictCheck));
        assert!(!losses.claim(&loser, Opening::ConflictCheck));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_try_is_known_on_another_connection_of_the_same_process() {
        let mut losses = Losses::default();
        losses.note(&client(1, "a"));
        assert!(
            !losses.claim(&client(2, "a"), Opening::Other),
            "that is not a second try"
        );
        assert!(losses.claim(&client(2, "a"), Opening::ConflictCheck));
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_is_given_the_losers_connection_does_not_take_its_turn_away() {
        let mut losses = Losses::default();
        losses.note(&client(1, "a"));
        assert!(
            losses.claim(&client(1, "a"), Opening::Other),
            "it may be a whole new try"
        );
        assert!(!losses.claim(&client(1, "a"), Opening::Other));
        assert!(losses.claim(&client(2, "a"), Opening::ConflictCheck));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_is_forgotten_in_time() {
        let mut losses = Losses::default();
        losses.note(&client(1, "a"));
        tokio::time::sleep(LOSS_REMEMBERED).await;
        assert!(!losses.claim(&client(1, "a"), Opening::ConflictCheck));
    }

    #[test]
    fn a_second_try_of_ducklake_opens_with_its_check_for_conflicts() {
        let opening = |text: &str| Opening::of(&parse::statements(text).unwrap()[0]);
        for text in [
            r#"COPY (SELECT "table_id", "record_count" FROM "public"."ducklake_table_stats" ) TO STDOUT (FORMAT "binary");"#,
            r#"COPY (SELECT "table_id", "min_value" FROM "ducklake_table_column_stats" ) TO STDOUT (FORMAT "binary");"#,
            r#"COPY (SELECT "snapshot_id" FROM "public"."ducklake_snapshot" ) TO STDOUT (FORMAT "binary");"#,
            r#"COPY (SELECT "snapshot_id" FROM "public"."ducklake_snapshot_changes" WHERE "snapshot_id" > '2') TO STDOUT (FORMAT "binary");"#,
        ] {
            assert_eq!(opening(text), Opening::ConflictCheck, "{text}");
        }
        for text in [
            "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id = (SELECT MAX(snapshot_id) FROM ducklake_snapshot)",
            r#"COPY (SELECT "snapshot_id" FROM (SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id = (
                SELECT MAX(snapshot_id) FROM ducklake_snapshot)) AS __unnamed_subquery ) TO STDOUT (FORMAT "binary");"#,
        ] {
            assert_eq!(opening(text), Opening::NewestSnapshot, "{text}");
        }
        for text in [
            "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id = 7",
            "SELECT snapshot_id FROM ducklake_snapshot",
            r#"COPY (SELECT "snapshot_id" FROM "public"."ducklake_snapshot" WHERE "snapshot_id" = '7') TO STDOUT (FORMAT "binary");"#,
            r#"COPY (SELECT "table_id" FROM "public"."ducklake_table_stats" WHERE "table_id" = '1') TO STDOUT (FORMAT "binary");"#,
            r#"COPY (SELECT "key" FROM "public"."ducklake_metadata" ) TO STDOUT (FORMAT "binary");"#,
            "INSERT INTO ducklake_snapshot VALUES (1, NOW(), 1, 1, 1)",
        ] {
            assert_eq!(opening(text), Opening::Other, "{text}");
        }
    }
    #[test]
    fn who_lists_delete_files_by_id_is_about_to_write() {
        let intention = |text: &str| Intention::of(&parse::statements(text).unwrap()[0]);
        for (text, expected) in [
            (
                r#"COPY (SELECT "table_id", "delete_file_id", "path" FROM "public"."ducklake_delete_file" WHERE "table_id" = '1') TO STDOUT (FORMAT "binary");"#,
                Some(Intention::Write),
            ),
            (
                r#"COPY (SELECT "data_file_id", "record_count", "path" FROM "ducklake_data_file" WHERE "table_id" = '1') TO STDOUT (FORMAT "binary");"#,
                None,
            ),
            (
                r#"COPY (SELECT "data_file_id", "path" FROM "ducklake_data_file" WHERE "table_id" = '1') TO STDOUT (FORMAT "binary");"#,
                Some(Intention::Read),
            ),
            (
                r#"COPY (SELECT "data_file_id", "path" FROM "ducklake_delete_file" ) TO STDOUT (FORMAT "binary");"#,
                Some(Intention::Read),
            ),
            (
                r#"COPY (SELECT "a", "row_id" FROM "ducklake_inlined_data_1_1" ) TO STDOUT (FORMAT "binary");"#,
                Some(Intention::Read),
            ),
            (
                r#"COPY (SELECT "table_id" FROM "ducklake_inlined_data_tables" ) TO STDOUT (FORMAT "binary");"#,
                None,
            ),
            ("SELECT 1", None),
        ] {
            assert_eq!(intention(text), expected, "{text}");
        }
    }
}
