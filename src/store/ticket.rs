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
        let outcome = self.0.borrow().clone();
        // A store that ended without an answer has kept nothing.
        outcome.or_else(|| self.0.has_changed().is_err().then(|| Err(ended())))
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
