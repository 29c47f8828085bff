//! What commits of the library cost, side by side in one run: how many share a flush, what a long history adds, and what ended
//! versions add to loading the newest state, beside bare SlateDB and beside RockLake's keys on the same store. Prints tables
//! with ratios; asserts nothing about time. `commits history versions` runs these parts of it, `commits 100` makes the longest
//! history 100 times as short, for a look.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, unreachable_pub)]

mod bare;
mod committers;
mod history;
mod rocklake;
mod subjects;
mod versions;

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let shorter = wanted
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1);
    let parts = ["committers", "history", "versions"];
    let named = wanted.iter().any(|argument| parts.contains(&argument.as_str()));
    let is_wanted = |part: &str| !named || wanted.iter().any(|argument| argument == part);
    if is_wanted("committers") {
        committers::run().await;
    }
    if is_wanted("history") {
        history::run(shorter).await;
    }
    if is_wanted("versions") {
        versions::run().await;
    }
}
