//! Random histories against a plain relational model: rows in vectors, changed as SQL would change them. After every
//! commit the store must hold the same rows, at every snapshot that is left; its directories must be what a scan of the
//! live records gives; and the head, the counters and the changelog must have moved as they should.

mod check;
mod model;
mod play;

use proptest::prelude::*;

use model::Action;
use play::Game;

/// One transaction: its actions, and whether it is given up instead of committed.
#[derive(Debug, Clone)]
struct Turn {
    actions: Vec<(Action, u16, u16)>,
    abandoned: bool,
}

fn turn() -> impl Strategy<Value = Turn> {
    let action = (
        proptest::sample::select(&Action::ALL[..]),
        any::<u16>(),
        any::<u16>(),
    );
    (
        proptest::collection::vec(action, 1..6),
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(actions, abandoned)| Turn { actions, abandoned })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_the_rows_that_sql_would(turns in proptest::collection::vec(turn(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut game = Game::new().await;
            for turn in turns {
                game.play(&turn.actions, turn.abandoned).await;
            }
        });
    }
}
