//! Random histories of tables whose rows are inlined: inserts, updates, deletions, columns that come and go, flushes,
//! deletions from the files that a flush wrote, expiry, tables dropped and made again. A plain model keeps every version of
//! every row; after each commit the lake shows what the model shows, at every snapshot that is left, rows in chunks and rows
//! in Parquet files alike, and every invariant of the format holds.

pub(crate) mod model;
mod play;
pub(crate) mod read;

use proptest::prelude::*;

use play::{Action, Game};

/// Histories in one run; each has up to [`ACTIONS_MAX`] actions.
const HISTORIES: u32 = 2000;
const ACTIONS_MAX: usize = 14;

fn actions() -> impl Strategy<Value = Vec<(Action, u16)>> {
    let action = prop_oneof![
        6 => Just(Action::Insert),
        3 => Just(Action::Update),
        3 => Just(Action::Delete),
        2 => Just(Action::DeleteFromFile),
        2 => Just(Action::AddColumn),
        1 => Just(Action::DropColumn),
        3 => Just(Action::Flush),
        1 => Just(Action::FlushTable),
        2 => Just(Action::Expire),
        1 => Just(Action::DropTable),
        1 => Just(Action::CreateTable),
    ];
    proptest::collection::vec((action, any::<u16>()), 1..ACTIONS_MAX)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: HISTORIES, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_history_of_inlined_rows_shows_what_a_list_of_row_versions_shows(actions in actions()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut game = Game::new().await;
            for (action, pick) in actions {
                game.play(action, pick).await;
            }
            game.check_invariants().await;
        });
    }
}
