//! `moraine migrate`: brings one store, or each below a URL, to the newest format, with a bar that shows how far it is.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use moraine_migrate::units::{MigrateOptions, MigrationReport, Observer, Progress, migrate};
use moraine_store::StoreUrl;

use crate::arguments::MigrateArguments;
use crate::places::lakes;

/// Shows the progress of one store, and passes on that Ctrl-C was pressed.
struct Bar {
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
}

/// Migrates, and prints what was done.
pub(crate) async fn run(arguments: MigrateArguments) -> anyhow::Result<()> {
    let urls = stores(&arguments).await?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&interrupted);
    // The batch under way is finished first; a second Ctrl-C ends the process, which loses nothing either.
    let signal = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            on_signal.store(true, Ordering::Relaxed);
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        }
    });
    let options = MigrateOptions {
        dry_run: arguments.dry_run,
        checkpoint: arguments.checkpoint,
        ask_for_server: !arguments.take_over,
        ..MigrateOptions::default()
    };
    for url in urls {
        let mut bar = Bar {
            bar: bar(),
            interrupted: Arc::clone(&interrupted),
        };
        let migrated = migrate(&url, &options, &mut bar).await;
        bar.bar.finish_and_clear();
        let report = migrated.with_context(|| format!("cannot migrate {url}"))?;
        print!("{}", text(&url, &report, arguments.dry_run));
    }
    signal.abort();
    Ok(())
}

async fn stores(arguments: &MigrateArguments) -> anyhow::Result<Vec<StoreUrl>> {
    let url = &arguments.url;
    let urls = lakes(url).await?;
    if urls.len() > 1 && !arguments.all {
        let names: Vec<String> = urls.iter().map(StoreUrl::to_string).collect();
        anyhow::bail!(
            "there are {} stores below {url} ({}); name one, or migrate all of them with --all",
            names.len(),
            names.join(", ")
        );
    }
    Ok(urls)
}

fn bar() -> ProgressBar {
    let style = "{spinner} {msg} [{bar:32}] {human_pos}/{human_len} ({per_sec}, {eta} left)";
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

impl Observer for Bar {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        // Numbers of another total begin a new estimate.
        if self.bar.length() != progress.total {
            match progress.total {
                Some(total) => self.bar.set_length(total),
                None => self.bar.unset_length(),
            }
            self.bar.reset_eta();
        }
        self.bar.set_message(progress.doing);
        self.bar.set_position(progress.done);
        match self.interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn text(url: &StoreUrl, report: &MigrationReport, dry_run: bool) -> String {
    let MigrationReport {
        from_format,
        to_format,
        ..
    } = report;
    if report.units.is_empty() {
        return format!("{url} has format {from_format}, the newest; there is nothing to do\n");
    }
    let mut text = match (dry_run, report.resumed) {
        (true, false) => format!("{url} would be migrated from format {from_format} to {to_format}:\n"),
        (true, true) => format!(
            "{url} has a migration that was interrupted, which would be resumed, from format {from_format} to \
             {to_format}:\n"
        ),
        (false, false) => format!("{url} was migrated from format {from_format} to {to_format}:\n"),
        (false, true) => {
            format!(
                "{url}: a migration that was interrupted was resumed, from format {from_format} to {to_format}:\n"
            )
        }
    };
    for unit in &report.units {
        text.push_str(&format!(
            "  {} to {}: {}",
            unit.from_format, unit.to_format, unit.name
        ));
        if !dry_run {
            text.push_str(&format!(", {} records", unit.records));
        }
        text.push('\n');
    }
    if dry_run {
        text.push_str(&format!(
            "  {} records were looked at and are whole, {} of them to be gone through; nothing was changed\n",
            report.records, report.to_do
        ));
    } else if report.completed > 0 {
        text.push_str(&format!(
            "  {} directory entries and rows that older versions had left out or behind were set right\n",
            report.completed
        ));
    }
    if let Some(checkpoint) = &report.checkpoint {
        text.push_str(&format!(
            "  the state before is kept as checkpoint {checkpoint}\n"
        ));
    }
    text
}
