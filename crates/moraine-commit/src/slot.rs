//! The commit slot of a lake: whose turn it is to write the next snapshot. Who comes waits in order; who has it has it until
//! a deadline that only matters when somebody waits. It is a courtesy that spares clients lost races: what may be written
//! is decided by the head alone, so a slot that was taken away, or never held, costs a retry and never a commit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The slot. Clones are handles to the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    holder: Option<Holder>,
    /// Those whose turn comes, in order.
    waiting: VecDeque<Waiter>,
    next_ticket: u64,
}

#[derive(Debug)]
struct Holder {
    ticket: u64,
    /// When the next in line may take over; `None` while the batch is on its way to the store, which takes bounded time.
    until: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    /// How long it may hold the slot, counted from its turn.
    reservation: Duration,
    /// Wakes it when its turn has come, and when it is the next: only the next in line watches the holder's time, so that a
    /// turn wakes two and not everybody.
    woken: Arc<Notify>,
}

/// A place in the queue, and the slot itself once it is this place's turn. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Hold {
    shared: Arc<Shared>,
    ticket: u64,
    woken: Arc<Notify>,
}

impl Slot {
    /// The slot, if nobody has it or its holder's time is over, and nobody waits.
    pub(crate) fn try_take(&self, reservation: Duration) -> Option<Hold> {
        let mut state = self.shared.lock();
        self.shared.pass_on_expired(&mut state);
        if state.holder.as_ref().is_some_and(|holder| !holder.is_over()) {
            return None;
        }
        let (ticket, woken) = state.enqueue(reservation);
        state.pass_on();
        Some(self.hold(ticket, woken))
    }

    /// Waits in line for the slot, no longer than `limit`. It is then this caller's for `reservation` at least.
    pub(crate) async fn wait(&self, reservation: Duration, limit: Duration) -> Option<Hold> {
        let deadline = Instant::now() + limit;
        let hold = {
            let mut state = self.shared.lock();
            let (ticket, woken) = state.enqueue(reservation);
            if state.holder.is_none() {
                state.pass_on();
            }
            self.hold(ticket, woken)
        };
        loop {
            let expiry = {
                let mut state = self.shared.lock();
                self.shared.pass_on_expired(&mut state);
                if state.is_held_by(hold.ticket) {
                    return Some(hold);
                }
                let holder = state.holder.as_ref().filter(|_| state.is_next(hold.ticket));
                holder.and_then(|holder| holder.until)
            };
            let now = Instant::now();
            if now >= deadline {
                return None;
            }
            let wake = expiry.map_or(deadline, |expiry| expiry.min(deadline));
            tokio::select! {
                // A wake-up that comes before this is not lost: it is kept for the next who asks.
                () = hold.woken.notified() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// How many wait.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.shared.lock().waiting.len()
    }

    fn hold(&self, ticket: u64, woken: Arc<Notify>) -> Hold {
        Hold {
            shared: Arc::clone(&self.shared),
            ticket,
            woken,
        }
    }
}

impl Hold {
    /// Whether the slot is still this one's, which then may hold it for `reservation` from now.
    pub(crate) fn renew(&self, reservation: Duration) -> bool {
        let mut state = self.shared.lock();
        match &mut state.holder {
            Some(holder) if holder.ticket == self.ticket => {
                holder.until = Some(Instant::now() + reservation);
                true
            }
            _ => false,
        }
    }

    /// The batch is on its way: from here on the slot is given back, and not taken away.
    pub(crate) fn writing(&self) {
        let mut state = self.shared.lock();
        if let Some(holder) = &mut state.holder
            && holder.ticket == self.ticket
        {
            holder.until = None;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.is_held_by(self.ticket) {
            state.pass_on();
        } else {
            let was_next = state.is_next(self.ticket);
            state.waiting.retain(|waiter| waiter.ticket != self.ticket);
            if was_next {
                state.wake_next();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next in line take over from a holder whose time is over.
    fn pass_on_expired(&self, state: &mut State) {
        if !state.waiting.is_empty() && state.holder.as_ref().is_some_and(Holder::is_over) {
            tracing::debug!(
                waiting = state.waiting.len(),
                "the commit slot was taken from who held it too long"
            );
            state.pass_on();
        }
    }
}

impl Holder {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

impl State {
    fn enqueue(&mut self, reservation: Duration) -> (u64, Arc<Notify>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let woken = Arc::new(Notify::new());
        self.waiting.push_back(Waiter {
            ticket,
            reservation,
            woken: Arc::clone(&woken),
        });
        (ticket, woken)
    }

    /// Makes the next in line the holder, or nobody.
    fn pass_on(&mut self) {
        self.holder = self.waiting.pop_front().map(|waiter| {
            waiter.woken.notify_one();
            Holder {
                ticket: waiter.ticket,
                until: Some(Instant::now() + waiter.reservation),
            }
        });
        self.wake_next();
    }

    /// Lets who is the next now watch the holder's time.
    fn wake_next(&self) {
        if let Some(next) = self.waiting.front() {
            next.woken.notify_one();
        }
    }

    fn is_next(&self, ticket: u64) -> bool {
        self.waiting.front().is_some_and(|waiter| waiter.ticket == ticket)
    }

    fn is_held_by(&self, ticket: u64) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.ticket == ticket)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use super::*;

    const RESERVATION: Duration = Duration::from_secs(2);
    const LIMIT: Duration = Duration::from_secs(30);

    /// Starts `count` waiters one after the other; each notes its number at its turn and holds the slot for `holding`.
    async fn line(slot: &Slot, count: usize, holding: Duration) -> Arc<StdMutex<Vec<usize>>> {
        let turns = Arc::new(StdMutex::new(Vec::new()));
        for number in 0..count {
            let (slot, noted) = (slot.clone(), Arc::clone(&turns));
            tokio::spawn(async move {
                let hold = slot.wait(RESERVATION, LIMIT).await.unwrap();
                noted.lock().unwrap().push(number);
                tokio::time::sleep(holding).await;
                drop(hold);
            });
            tokio::task::yield_now().await;
        }
        turns
    }

    #[tokio::test(start_paused = true)]
    async fn turns_come_in_the_order_of_arrival() {
        let slot = Slot::default();
        let first = slot.try_take(RESERVATION).unwrap();
        let turns = line(&slot, 8, Duration::from_millis(10)).await;
        assert!(slot.try_take(RESERVATION).is_none(), "nobody jumps the queue");
        drop(first);
        assert!(
            slot.try_take(RESERVATION).is_none(),
            "it went to the next in line"
        );
        tokio::time::sleep(Duration::from_millis(81)).await;
        assert_eq!(*turns.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(slot.try_take(RESERVATION).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_does_nothing_delays_the_next_by_its_reservation_and_no_more() {
        let slot = Slot::default();
        let frozen = slot.try_take(RESERVATION).unwrap();
        let start = Instant::now();
        let next = slot.wait(RESERVATION, LIMIT).await.unwrap();
        assert_eq!(start.elapsed(), RESERVATION);
        assert!(!frozen.renew(RESERVATION), "it is not the holder's any more");
        drop(frozen);
        assert!(
            next.renew(RESERVATION),
            "the old holder's end takes nothing from the new one"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn each_in_a_line_of_frozen_holders_costs_one_reservation() {
        let slot = Slot::default();
        let _frozen = slot.try_take(RESERVATION).unwrap();
        let _turns = line(&slot, 3, Duration::from_secs(3600)).await;
        let start = Instant::now();
        assert!(slot.wait(RESERVATION, LIMIT).await.is_some());
        assert_eq!(start.elapsed(), RESERVATION * 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_matters_only_when_somebody_comes() {
        let slot = Slot::default();
        let slow = slot.try_take(RESERVATION).unwrap();
        tokio::time::sleep(RESERVATION * 10).await;
        assert!(slow.renew(RESERVATION));
        assert!(slot.try_take(RESERVATION).is_none());
        tokio::time::sleep(RESERVATION).await;
        assert!(slot.try_take(RESERVATION).is_some());
        assert!(!slow.renew(RESERVATION));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_goes_on_keeps_the_slot() {
        let slot = Slot::default();
        let busy = slot.try_take(RESERVATION).unwrap();
        let waiting = tokio::spawn({
            let slot = slot.clone();
            async move { slot.wait(RESERVATION, LIMIT).await.map(|_| Instant::now()) }
        });
        let start = Instant::now();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(busy.renew(RESERVATION));
        }
        let turn = waiting.await.unwrap().unwrap();
        assert_eq!(turn - start, Duration::from_secs(3) + RESERVATION);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_whose_batch_is_on_its_way_is_waited_for() {
        let slot = Slot::default();
        let writing = slot.try_take(RESERVATION).unwrap();
        writing.writing();
        let waiting = tokio::spawn({
            let slot = slot.clone();
            async move { slot.wait(RESERVATION, LIMIT).await.is_some() }
        });
        tokio::time::sleep(RESERVATION * 3).await;
        assert!(!waiting.is_finished());
        drop(writing);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_death_of_the_holder_frees_the_slot_at_once() {
        let slot = Slot::default();
        let holder = slot.try_take(RESERVATION).unwrap();
        let dying = tokio::spawn(async move {
            let _holder = holder;
            tokio::time::sleep(Duration::from_millis(5)).await;
            panic!("the holder dies");
        });
        let start = Instant::now();
        assert!(slot.wait(RESERVATION, LIMIT).await.is_some());
        assert_eq!(start.elapsed(), Duration::from_millis(5));
        assert!(dying.await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_is_passed_over() {
        let slot = Slot::default();
        let holder = slot.try_take(RESERVATION).unwrap();
        let waiter = |slot: Slot| tokio::spawn(async move { slot.wait(RESERVATION, LIMIT).await });
        let (first, second, third) = (waiter(slot.clone()), waiter(slot.clone()), waiter(slot.clone()));
        tokio::task::yield_now().await;
        first.abort();
        assert!(first.await.is_err());
        third.abort();
        assert!(third.await.is_err());
        assert_eq!(slot.waiting(), 1);
        let start = Instant::now();
        drop(holder);
        assert!(second.await.unwrap().is_some());
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!(
            slot.try_take(RESERVATION).is_some(),
            "the last holder is gone too"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_at_the_limit_and_leaves_nothing() {
        let slot = Slot::default();
        let holder = slot.try_take(RESERVATION).unwrap();
        holder.writing();
        let start = Instant::now();
        assert!(slot.wait(RESERVATION, LIMIT).await.is_none());
        assert_eq!(start.elapsed(), LIMIT);
        assert_eq!(slot.waiting(), 0);
        drop(holder);
        assert!(slot.try_take(RESERVATION).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_one_turn_of_each_other() {
        let slot = Slot::default();
        let turn = Duration::from_millis(7);
        let writers: Vec<_> = (0..32)
            .map(|_| {
                let slot = slot.clone();
                tokio::spawn(async move {
                    let mut longest = Duration::ZERO;
                    for _ in 0..20 {
                        let start = Instant::now();
                        let hold = slot.wait(RESERVATION, LIMIT).await.unwrap();
                        longest = longest.max(start.elapsed());
                        tokio::time::sleep(turn).await;
                        drop(hold);
                    }
                    longest
                })
            })
            .collect();
        for writer in writers {
            assert!(writer.await.unwrap() <= turn * 31);
        }
    }
}
