//! The commit slot of a lake: whose turn it is to write the next snapshot. Who comes waits in order; who has it has it until
//! a deadline that only matters when somebody waits. It is a courtesy that spares clients lost races: what may be written
//! is decided by the head alone, so a slot that was taken away, or never held, costs a retry and never a commit. A slot with
//! room for several bounds how many are at work at once, in the same way.

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

#[derive(Debug)]
struct State {
    /// Those who have it; one, unless there is room for more.
    holders: Vec<Holder>,
    room: usize,
    /// Those whose turn comes, in order.
    waiting: VecDeque<Waiter>,
    next_ticket: u64,
}

#[derive(Debug)]
struct Holder {
    ticket: u64,
    /// When the next in line may take over; `None` while the batch is on its way to the store, which takes bounded time.
    until: Option<Instant>,
    /// Whether its snapshot is inserted, so that the turn of the next in line is near.
    is_finishing: bool,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    /// How long it may hold the slot, counted from its turn.
    reservation: Duration,
    /// Whether it has been told that its turn is near, and is not back yet to wait for it: somebody else watches the
    /// holder's time meanwhile.
    is_away: bool,
    /// Wakes it when its turn has come or is near, and when it is the first of those who are here: only that one watches the
    /// holder's time, so that a turn wakes two and not everybody.
    woken: Arc<Notify>,
}

/// A place in the queue.
#[derive(Debug)]
pub(crate) struct Place {
    hold: Hold,
    reservation: Duration,
    /// Until when it is waited at.
    deadline: Instant,
}

/// The slot. Dropping it gives it up, or the place in the queue where it is not this one's yet.
#[derive(Debug)]
pub(crate) struct Hold {
    shared: Arc<Shared>,
    ticket: u64,
    woken: Arc<Notify>,
}

impl Default for State {
    fn default() -> Self {
        State {
            holders: Vec::new(),
            room: 1,
            waiting: VecDeque::new(),
            next_ticket: 0,
        }
    }
}

impl Slot {
    /// A slot that `room` may have at once.
    pub(crate) fn with_room(room: usize) -> Slot {
        let slot = Slot::default();
        slot.shared.lock().room = room;
        slot
    }

    /// The slot, if nobody has it or its holder's time is over, and nobody waits.
    pub(crate) fn try_take(&self, reservation: Duration) -> Option<Hold> {
        let mut state = self.shared.lock();
        self.shared.pass_on_expired(&mut state);
        state.holders.retain(|holder| !holder.is_over());
        if state.is_full() {
            return None;
        }
        let (ticket, woken) = state.enqueue(reservation);
        Some(self.hold(ticket, woken))
    }

    /// Waits in line for the slot, no longer than `limit`. It is then this caller's for `reservation` at least.
    pub(crate) async fn wait(&self, reservation: Duration, limit: Duration) -> Option<Hold> {
        self.line_up(reservation, limit).turn().await
    }

    /// Takes a place in line for the slot, which is waited at no longer than `limit`. The slot is then this caller's for
    /// `reservation` at least, from its turn on.
    pub(crate) fn line_up(&self, reservation: Duration, limit: Duration) -> Place {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.lock();
        let (ticket, woken) = state.enqueue(reservation);
        Place {
            hold: self.hold(ticket, woken),
            reservation,
            deadline,
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

impl Place {
    /// Waits until the turn is near: who has the slot has inserted its snapshot, and this place is the next. What the caller
    /// does then without the slot takes no time of its turn. It comes back for [`Place::turn`]; where it does not, its turn
    /// costs others its reservation, and it waits anew should it come later.
    pub(crate) async fn near(&self) {
        self.come_back();
        self.wait_until(|state, ticket| state.is_held_by(ticket) || state.is_near(ticket))
            .await;
        self.hold.shared.lock().leave(self.hold.ticket);
    }

    /// Waits for the slot.
    pub(crate) async fn turn(self) -> Option<Hold> {
        self.come_back();
        let has_come = self.wait_until(|state, ticket| state.is_held_by(ticket)).await;
        has_come.then_some(self.hold)
    }

    /// Who was away is here again: its turn, if it has begun meanwhile, begins now, and if it is over there comes another.
    fn come_back(&self) {
        let mut state = self.hold.shared.lock();
        if let Some(waiter) = state.waiter(self.hold.ticket) {
            waiter.is_away = false;
        } else if !self.hold.renew_in(&mut state, self.reservation) {
            state.line_up(Waiter {
                ticket: self.hold.ticket,
                reservation: self.reservation,
                is_away: false,
                woken: Arc::clone(&self.hold.woken),
            });
        }
    }

    /// Waits until something is so, no longer than to the deadline; whether it is. Who is the first of those who are here
    /// watches the holder's time.
    async fn wait_until(&self, is_so: impl Fn(&State, u64) -> bool) -> bool {
        let Place { hold, deadline, .. } = self;
        loop {
            let expiry = {
                let mut state = hold.shared.lock();
                hold.shared.pass_on_expired(&mut state);
                if is_so(&state, hold.ticket) {
                    return true;
                }
                let holders = state.holders.iter().filter(|_| state.is_watching(hold.ticket));
                holders.filter_map(|holder| holder.until).min()
            };
            let now = Instant::now();
            if now >= *deadline {
                return false;
            }
            let wake = expiry.map_or(*deadline, |expiry| expiry.min(*deadline));
            tokio::select! {
                // A wake-up that comes before this is not lost: it is kept for the next who asks.
                () = hold.woken.notified() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }
}

impl Hold {
    /// Whether the slot is still this one's, which then may hold it for `reservation` from now.
    pub(crate) fn renew(&self, reservation: Duration) -> bool {
        self.renew_in(&mut self.shared.lock(), reservation)
    }

    fn renew_in(&self, state: &mut State, reservation: Duration) -> bool {
        let holder = state.holder(self.ticket);
        holder
            .map(|holder| holder.until = Some(Instant::now() + reservation))
            .is_some()
    }

    /// The same for one whose snapshot is inserted, which tells the next in line.
    pub(crate) fn finish(&self, reservation: Duration) -> bool {
        let mut state = self.shared.lock();
        let is_held = self.renew_in(&mut state, reservation);
        if is_held {
            state.finish(self.ticket);
        }
        is_held
    }

    /// The batch is on its way: from here on the slot is given back, and not taken away.
    pub(crate) fn writing(&self) {
        let mut state = self.shared.lock();
        if let Some(holder) = state.holder(self.ticket) {
            holder.until = None;
            state.finish(self.ticket);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.is_held_by(self.ticket) {
            state.holders.retain(|holder| holder.ticket != self.ticket);
            state.pass_on();
        } else {
            let was_first = state.is_next(self.ticket) || state.is_watching(self.ticket);
            state.waiting.retain(|waiter| waiter.ticket != self.ticket);
            if was_first {
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
        if !state.waiting.is_empty() && state.holders.iter().any(Holder::is_over) {
            tracing::debug!(
                waiting = state.waiting.len(),
                "a turn was taken from who held it too long"
            );
            state.holders.retain(|holder| !holder.is_over());
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
        self.line_up(Waiter {
            ticket,
            reservation,
            is_away: false,
            woken: Arc::clone(&woken),
        });
        (ticket, woken)
    }

    fn line_up(&mut self, waiter: Waiter) {
        self.waiting.push_back(waiter);
        if !self.is_full() {
            self.pass_on();
        }
    }

    /// Gives what is free to the next in line.
    fn pass_on(&mut self) {
        while !self.is_full()
            && let Some(waiter) = self.waiting.pop_front()
        {
            waiter.woken.notify_one();
            self.holders.push(Holder {
                ticket: waiter.ticket,
                until: Some(Instant::now() + waiter.reservation),
                is_finishing: false,
            });
        }
        self.wake_next();
    }

    fn is_full(&self) -> bool {
        self.holders.len() >= self.room
    }

    fn holder(&mut self, ticket: u64) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.ticket == ticket)
    }

    /// The holder's snapshot is inserted: the next in line may get ready.
    fn finish(&mut self, ticket: u64) {
        if let Some(holder) = self.holder(ticket)
            && !std::mem::replace(&mut holder.is_finishing, true)
        {
            self.wake_next();
        }
    }

    /// Lets who is the next now see it, and who is the first of those who are here watch the holder's time.
    fn wake_next(&self) {
        let next = self.waiting.front();
        let watching = self.watching().filter(|_| next.is_none_or(|next| next.is_away));
        for waiter in next.into_iter().chain(watching) {
            waiter.woken.notify_one();
        }
    }

    /// One goes away to get ready.
    fn leave(&mut self, ticket: u64) {
        if let Some(waiter) = self.waiter(ticket) {
            waiter.is_away = true;
            self.wake_next();
        }
    }

    fn waiter(&mut self, ticket: u64) -> Option<&mut Waiter> {
        self.waiting.iter_mut().find(|waiter| waiter.ticket == ticket)
    }

    /// Whether it is the next, and the holder will not be long.
    fn is_near(&self, ticket: u64) -> bool {
        self.is_next(ticket) && self.holders.iter().any(|holder| holder.is_finishing)
    }

    /// The first of those who are here.
    fn watching(&self) -> Option<&Waiter> {
        self.waiting.iter().find(|waiter| !waiter.is_away)
    }

    fn is_watching(&self, ticket: u64) -> bool {
        self.watching().is_some_and(|waiter| waiter.ticket == ticket)
    }

    fn is_next(&self, ticket: u64) -> bool {
        self.waiting.front().is_some_and(|waiter| waiter.ticket == ticket)
    }

    fn is_held_by(&self, ticket: u64) -> bool {
        self.holders.iter().any(|holder| holder.ticket == ticket)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use tokio::time::timeout;

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

    /// Who has the slot and has inserted its snapshot, and the next, who has been told so.
    async fn one_finishing_and_one_told(slot: &Slot) -> (Hold, Place) {
        let holder = slot.try_take(RESERVATION).unwrap();
        assert!(holder.finish(RESERVATION));
        let next = slot.line_up(RESERVATION, LIMIT);
        next.near().await;
        (holder, next)
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
    async fn the_next_in_line_is_told_when_the_holder_finishes() {
        let slot = Slot::default();
        let holder = slot.try_take(RESERVATION).unwrap();
        let (next, other) = (slot.line_up(RESERVATION, LIMIT), slot.line_up(RESERVATION, LIMIT));
        let pause = Duration::from_millis(10);
        assert!(timeout(pause, next.near()).await.is_err(), "it has just begun");
        assert!(holder.finish(RESERVATION));
        timeout(Duration::ZERO, next.near()).await.unwrap();
        assert!(timeout(pause, other.near()).await.is_err(), "one is before it");
        let turn = tokio::spawn(next.turn());
        tokio::time::sleep(pause).await;
        assert!(!turn.is_finished(), "near is not yet here");
        drop(holder);
        let hold = turn.await.unwrap().unwrap();
        assert!(
            timeout(pause, other.near()).await.is_err(),
            "that one has just begun"
        );
        hold.writing();
        timeout(Duration::ZERO, other.near()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_and_does_not_come_costs_one_reservation() {
        let slot = Slot::default();
        let (_frozen, _away) = one_finishing_and_one_told(&slot).await;
        let start = Instant::now();
        assert!(slot.wait(RESERVATION, LIMIT).await.is_some());
        assert_eq!(start.elapsed(), RESERVATION * 2, "the holder's and its own");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_and_comes_late_takes_another_place() {
        let slot = Slot::default();
        let (holder, late) = one_finishing_and_one_told(&slot).await;
        drop(holder);
        let start = Instant::now();
        let next = slot.wait(RESERVATION, LIMIT).await.unwrap();
        assert_eq!(start.elapsed(), RESERVATION);
        let late = tokio::spawn(late.turn());
        tokio::task::yield_now().await;
        assert_eq!(slot.waiting(), 1);
        drop(next);
        assert!(late.await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_again_after_its_turn_is_told_of_another() {
        let slot = Slot::default();
        let late = slot.line_up(RESERVATION, LIMIT);
        late.near().await;
        late.near().await;
        let next = slot.wait(RESERVATION, LIMIT).await.unwrap();
        let start = Instant::now();
        assert!(next.finish(RESERVATION));
        late.near().await;
        drop(next);
        assert!(late.turn().await.is_some());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_has_begun_before_its_owner_came_is_whole() {
        let slot = Slot::default();
        let early = slot.line_up(RESERVATION, LIMIT);
        early.near().await;
        tokio::time::sleep(RESERVATION / 2).await;
        let _hold = early.turn().await.unwrap();
        let start = Instant::now();
        assert!(slot.wait(RESERVATION, LIMIT).await.is_some());
        assert_eq!(start.elapsed(), RESERVATION);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_and_goes_is_passed_over() {
        let slot = Slot::default();
        let (holder, away) = one_finishing_and_one_told(&slot).await;
        let next = slot.line_up(RESERVATION, LIMIT);
        let pause = Duration::from_millis(10);
        assert!(timeout(pause, next.near()).await.is_err());
        drop(away);
        timeout(Duration::ZERO, next.near()).await.unwrap();
        drop(holder);
        assert!(timeout(Duration::ZERO, next.turn()).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_later_than_the_limit() {
        let slot = Slot::default();
        let _holder = slot.try_take(LIMIT * 2).unwrap();
        let next = slot.line_up(RESERVATION, LIMIT);
        let start = Instant::now();
        next.near().await;
        assert!(next.turn().await.is_none());
        assert_eq!(start.elapsed(), LIMIT);
        assert_eq!(slot.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_at_the_limit_and_does_not_come_is_not_relied_on() {
        let slot = Slot::default();
        let _holder = slot.try_take(LIMIT * 2).unwrap();
        let silent = slot.line_up(RESERVATION, LIMIT);
        let start = Instant::now();
        let next = tokio::spawn(slot.line_up(RESERVATION, LIMIT * 4).turn());
        silent.near().await;
        assert!(next.await.unwrap().is_some());
        assert_eq!(start.elapsed(), LIMIT * 2 + RESERVATION);
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_have_it_as_there_is_room_for() {
        let slot = Slot::with_room(3);
        let start = Instant::now();
        let turns = line(&slot, 8, Duration::from_millis(10)).await;
        assert_eq!(*turns.lock().unwrap(), [0, 1, 2]);
        assert!(slot.try_take(RESERVATION).is_none());
        let last = slot.wait(RESERVATION, LIMIT).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(20));
        assert_eq!(turns.lock().unwrap().len(), 8);
        // Of those who do nothing each costs its own place, for its reservation.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let _frozen = (
            slot.wait(RESERVATION, LIMIT).await,
            slot.wait(RESERVATION, LIMIT).await,
        );
        drop(last);
        let start = Instant::now();
        let _turns = line(&slot, 4, Duration::from_millis(10)).await;
        assert!(slot.wait(RESERVATION, LIMIT).await.is_some());
        assert_eq!(start.elapsed(), Duration::from_millis(40));
        let _all = (
            slot.wait(RESERVATION, LIMIT).await,
            slot.wait(RESERVATION, LIMIT).await,
        );
        assert!(start.elapsed() >= RESERVATION);
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
