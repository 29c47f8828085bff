//! What commits of the library cost, side by side in one run: how many share a flush, what a long history adds, and what ended
//! versions add to loading the newest state, beside bare SlateDB and beside RockLake's keys on the same store. Prints tables
//! with ratios; asserts nothing about time. `commits 100` makes the longest history 100 times as short, for a look.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, unreachable_pub)]

mod committers;
mod history;
mod rocklake;
mod subjects;
mod versions;

#[tokio::main]
async fn main() {
    let shorter = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1);
    committers::run().await;
    history::run(shorter).await;
    versions::run().await;
}
