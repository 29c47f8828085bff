//! The sweep: one act, cut off after each of its writes in turn, and what must hold of whatever is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use moraine_commit::Catalog;
use moraine_store::{OpenOptions, SlateStore};
use object_store::ObjectStore;
use object_store::memory::InMemory;

use crate::lake::Failure;
use crate::stopping_store::{Fault, StoppingStore};

/// What a story is cut off by is the store, not this.
const STEP_SECONDS_MAX: u64 = 30;

/// How many steps of an act were acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    /// The first `steps` steps were acknowledged.
    pub(crate) fn reached(&self, steps: u64) {
        self.0.fetch_max(steps, Ordering::SeqCst);
    }

    fn steps(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// An act that a crash may cut off anywhere. Its steps are acknowledged one after the other.
#[async_trait]
pub(crate) trait Story: Send + Sync + 'static {
    /// What the act finds, made on a store that does not stop.
    async fn before(&self, store: Arc<dyn ObjectStore>) -> Result<(), Failure>;

    /// The act, as far as the store lets it. It may be dropped at any await: that is the crash.
    async fn act(&self, store: Arc<dyn ObjectStore>, progress: &Progress) -> Result<(), Failure>;

    /// Opens what is left, checks that it is whole, and gives the number of steps that have landed.
    async fn check(&self, left: Arc<dyn ObjectStore>) -> Result<u64, Failure>;
}

/// One crash, and what was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crash {
    /// Steps that were acknowledged before it.
    pub(crate) acknowledged: u64,
    /// Steps that are there after it.
    pub(crate) landed: u64,
}

/// Opens the lake on a store, in bounded time.
pub(crate) async fn open(store: Arc<dyn ObjectStore>) -> Result<Arc<Catalog>, Failure> {
    let limit = Duration::from_secs(STEP_SECONDS_MAX);
    let options = OpenOptions {
        create: true,
        open_timeout: limit,
        request_timeout: limit,
        ..OpenOptions::default()
    };
    Ok(Catalog::with_store(
        SlateStore::open_on(store, "lake", &options).await?,
    ))
}

/// Acts of several processes make a few writes more or fewer each time; with these to spare one of them is whole.
const WRITES_SPARE: u64 = 12;

/// The act on a store that takes `writes` writes, then what is left.
async fn crash(story: &dyn Story, image: Arc<InMemory>, writes: u64, fault: Fault) -> Result<Crash, Failure> {
    let stopping = Arc::new(StoppingStore::new(Arc::clone(&image) as _, writes, fault));
    let progress = Progress::default();
    let acted = tokio::select! {
        acted = story.act(Arc::clone(&stopping) as _, &progress) => acted,
        () = stopping.silence() => Err("cut off".into()),
    };
    let acknowledged = progress.steps();
    if fault == Fault::OneUnheard {
        acted.map_err(|error| format!("one answer was lost, and the act failed: {error}"))?;
    }
    let landed = story.check(image).await?;
    if landed < acknowledged {
        return Err(format!("{acknowledged} steps were acknowledged, and {landed} are there").into());
    }
    Ok(Crash { acknowledged, landed })
}

/// How many writes a whole act makes, and its steps.
async fn whole(story: &dyn Story, image: &InMemory) -> (u64, u64) {
    let counting = Arc::new(StoppingStore::new(Arc::new(image.fork()), u64::MAX, Fault::Stops));
    let progress = Progress::default();
    let acted = story.act(Arc::clone(&counting) as _, &progress).await;
    acted.expect("the act succeeds when nothing stops");
    (counting.writes(), progress.steps())
}

/// Cuts the act off after each of its writes; every crash in the order of its writes. Fails with all that is broken.
pub(crate) async fn sweep(story: impl Story, fault: Fault) -> Vec<Crash> {
    let story = Arc::new(story);
    let image = Arc::new(InMemory::new());
    let before = story.before(Arc::clone(&image) as _).await;
    before.expect("what comes before the act succeeds");
    let (writes, steps) = whole(story.as_ref(), &image).await;
    assert!(writes >= steps, "{writes} writes for {steps} durable steps");
    let crashes = (0..=writes + WRITES_SPARE).map(|stop| {
        let (story, image) = (Arc::clone(&story), Arc::new(image.fork()));
        tokio::spawn(async move { crash(story.as_ref(), image, stop, fault).await })
    });
    let mut problems = Vec::new();
    let mut found = Vec::new();
    for (stop, crash) in futures::future::join_all(crashes).await.into_iter().enumerate() {
        match crash.expect("a crash that does not panic") {
            Ok(crash) if crash.landed <= steps => found.push(crash),
            Ok(crash) => problems.push(format!("after {stop} writes: {crash:?} of {steps} steps")),
            Err(problem) => problems.push(format!("after {stop} writes ({fault:?}): {problem}")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let reached = |steps| found.iter().any(|crash: &Crash| crash.landed == steps);
    // Else nothing was cut.
    assert!(fault == Fault::OneUnheard || reached(0), "{found:?}");
    assert!(reached(steps), "{found:?}");
    found
}
