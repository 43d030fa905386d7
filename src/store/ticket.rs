//! What became of something that was handed to the store.

use tokio::sync::watch;

use super::StoreError;

/// Tells what became of something that was handed to the store. Clones tell the same.
#[derive(Clone, Debug)]
pub struct Ticket(watch::Receiver<Option<Result<(), StoreError>>>);

/// The other end of a ticket.
#[derive(Debug)]
pub struct Promise(watch::Sender<Option<Result<(), StoreError>>>);

impl Ticket {
    /// A ticket whose outcome is open, and the end that settles it.
    pub(super) fn open() -> (Promise, Self) {
        let (sender, receiver) = watch::channel(None);
        (Promise(sender), Self(receiver))
    }

    /// A ticket of something that is done.
    pub(super) fn settled(outcome: Result<(), StoreError>) -> Self {
        let (promise, ticket) = Self::open();
        promise.settle(outcome);
        ticket
    }

    /// The outcome, if there is one yet.
    pub fn outcome(&self) -> Option<Result<(), StoreError>> {
        // In this order: whoever gives the outcome is gone right behind it.
        let is_gone = self.0.has_changed().is_err();
        let outcome = self.0.borrow().clone();
        // A store that ended without an answer has kept nothing.
        outcome.or_else(|| is_gone.then(|| Err(ended())))
    }

    /// Waits for the outcome.
    pub async fn wait(mut self) -> Result<(), StoreError> {
        match self.0.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_) => Err(ended()),
        }
    }

    /// Waits for the outcome on this thread, which must not be one of the runtime's.
    pub fn wait_here(&self, patience: std::time::Duration) -> Result<(), StoreError> {
        let until = std::time::Instant::now() + patience;
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            if std::time::Instant::now() >= until {
                return Err(StoreError::Failed("the store did not answer in time".to_owned()));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl Promise {
    /// Whether the ticket is this one's.
    pub(super) fn settles(&self, ticket: &Ticket) -> bool {
        self.0.subscribe().same_channel(&ticket.0)
    }

    pub(super) fn settle(self, outcome: Result<(), StoreError>) {
        // Nobody may be left who asks.
        drop(self.0.send_replace(Some(outcome)));
    }
}

fn ended() -> StoreError {
    StoreError::Failed("the store has ended".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Its end and the end of whoever gives it come together: it is never taken for that of a store
    /// that gave none.
    #[test]
    fn an_outcome_is_seen_however_soon_the_other_end_is_gone() {
        let (promises, given) = mpsc::channel::<Promise>();
        thread::scope(|scope| {
            scope.spawn(|| given.into_iter().for_each(|promise| promise.settle(Ok(()))));
            for round in 0..200_000 {
                let (promise, ticket) = Ticket::open();
                promises.send(promise).expect("it is given");
                let outcome = loop {
                    if let Some(outcome) = ticket.outcome() {
                        break outcome;
                    }
                };
                assert!(outcome.is_ok(), "round {round}: {outcome:?}");
            }
            drop(promises);
        });
        let (promise, ticket) = Ticket::open();
        drop(promise);
        assert!(ticket.outcome().is_some_and(|outcome| outcome.is_err()), "it gave none");
    }
}
