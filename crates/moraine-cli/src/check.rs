//! `moraine check`: whether every invariant of the format holds on one store, or on each store below a root, without
//! disturbing its server.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use moraine_commit::check::{Checked, Finding, Invariant, Severity, check};
use moraine_store::{OpenOptions, StoreUrl, open_reader_ungated};
use serde_json::json;

use crate::arguments::CheckOptions;
use crate::places::lakes;

/// The exit code when an invariant does not hold.
const UNSOUND: u8 = 3;

/// Checks, prints what was found as it is found, and at last a line for each store.
pub(crate) async fn run(options: CheckOptions) -> anyhow::Result<ExitCode> {
    let urls = lakes(&options.url).await?;
    let mut is_sound = true;
    let mut failures = Vec::new();
    for url in urls {
        match look(&url, &options).await {
            Ok(checked) => is_sound &= checked.is_sound(),
            Err(error) => failures.push(format!("cannot check {url}: {error:#}")),
        }
    }
    anyhow::ensure!(failures.is_empty(), failures.join("\n"));
    Ok(if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(UNSOUND)
    })
}

async fn look(url: &StoreUrl, options: &CheckOptions) -> anyhow::Result<Checked> {
    let reader = open_reader_ungated(url, &OpenOptions::default()).await?;
    let mut printed = BTreeMap::new();
    let checked = check(reader.as_ref(), &mut |finding| {
        print(url, &finding, options, &mut printed)
    })
    .await;
    let closed = reader.close().await;
    let checked = checked.context("it cannot be read")?;
    closed?;
    if options.json {
        println!("{}", summary_json(url, &checked));
    } else {
        print!("{}", summary(url, &checked));
    }
    Ok(checked)
}

/// Prints a finding, unless enough of its kind were printed.
fn print(url: &StoreUrl, finding: &Finding, options: &CheckOptions, printed: &mut BTreeMap<Invariant, u64>) {
    let of_kind = printed.entry(finding.invariant).or_default();
    *of_kind += 1;
    if *of_kind > options.limit {
        return;
    }
    let Finding {
        invariant,
        key,
        detail,
    } = finding;
    if options.json {
        let finding = json!({
            "store": url.to_string(),
            "invariant": invariant.name(),
            "severity": invariant.severity().to_string(),
            "key": key,
            "detail": detail,
            "repair": invariant.repair(),
        });
        println!("{finding}");
        return;
    }
    println!("{} {invariant}: {key}: {detail}", invariant.severity());
    if *of_kind == 1 {
        println!("  repair: {}", invariant.repair());
    }
    if *of_kind == options.limit {
        println!("  (further findings of this kind are counted and not shown; see --limit)");
    }
}

fn summary(url: &StoreUrl, checked: &Checked) -> String {
    let of = |severity: Severity| -> u64 {
        let findings = checked.findings.iter();
        findings
            .filter(|(invariant, _)| invariant.severity() == severity)
            .map(|(_, count)| count)
            .sum()
    };
    let (violations, leftovers) = (of(Severity::Violation), of(Severity::Leftover));
    let invariants = Invariant::ALL.len();
    if violations + leftovers == 0 {
        return format!(
            "{url}: {} records, all {invariants} invariants hold\n",
            checked.records
        );
    }
    let broken = checked.findings.len();
    format!(
        "{url}: {} records, {broken} of {invariants} invariants do not hold: {violations} violations, {leftovers} \
         leftovers\n",
        checked.records
    )
}

fn summary_json(url: &StoreUrl, checked: &Checked) -> serde_json::Value {
    let findings: BTreeMap<&str, u64> = checked
        .findings
        .iter()
        .map(|(invariant, count)| (invariant.name(), *count))
        .collect();
    json!({
        "store": url.to_string(),
        "records": checked.records,
        "sound": checked.is_sound(),
        "findings": findings,
    })
}
