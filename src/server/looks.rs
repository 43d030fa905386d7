//! Looks at the disk that say more of edited files. They delay nothing behind them; a question about
//! the edits that comes meanwhile is answered when they are done, or its time is up, from an excerpt of
//! the bookkeeper that sees nothing newer than the question.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, join_all};
use tokio::time::{timeout, timeout_at};

use super::checks::Checks;
use super::daemon::Daemon;
use crate::diagnostics::{
    Bookkeeper, EditedFile, LineEdit, Owner, Place, Reading, SETTLING_MAX, line_edits,
};
use crate::engine::{Checked, Findings, Found, Wanted};
use crate::files::Looked;

/// A look under way; `None` when nothing came of it.
pub type Look = Shared<BoxFuture<'static, Option<Arc<Seen>>>>;

/// What a look found.
#[derive(Debug)]
pub enum Seen {
    /// Of a file that a scope edits.
    Edited(Owner, Reading, Looked),
    /// That a file is gone.
    Gone(Reading),
}

/// Begins a look, which goes on whatever becomes of the message that asked for it.
pub fn begin(
    daemon: &Arc<Daemon>,
    reading: Reading,
    seeing: impl Future<Output = Option<Seen>> + Send + 'static,
) -> Look {
    let number = reading.number;
    let under_way = UnderWay { daemon: Arc::clone(daemon), reading };
    // So that it cannot end before it is noted.
    let mut looks = daemon.checks().looks.lock();
    let task = tokio::spawn(async move {
        // What a disk that hangs says at last is of no use any more.
        let seen = timeout(Duration::from_millis(SETTLING_MAX), seeing).await.ok()??;
        seen.note(under_way.daemon.checks());
        drop(under_way);
        Some(Arc::new(seen))
    });
    let look = task.map(|seen| seen.ok().flatten()).boxed().shared();
    looks.insert(number, look.clone());
    look
}

/// Ends a look, whatever came of it.
struct UnderWay {
    daemon: Arc<Daemon>,
    reading: Reading,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let checks = self.daemon.checks();
        checks.with(|it| it.looked(&self.reading));
        checks.looks.lock().remove(&self.reading.number);
        checks.ring();
    }
}

impl Seen {
    /// Tells the bookkeeper of all, which is not kept while texts are compared.
    fn note(&self, checks: &Checks) {
        let before = checks.with(|it| self.place(it));
        let edits = self.edits(before.as_deref());
        checks.with(|it| self.tell(it, before.is_some(), edits));
    }

    /// Tells an excerpt.
    fn complete(&self, excerpt: &mut Bookkeeper) {
        let before = self.place(excerpt);
        let edits = self.edits(before.as_deref());
        self.tell(excerpt, before.is_some(), edits);
    }

    /// Says which file it really is, and takes the text as of the latest edit.
    fn place(&self, books: &mut Bookkeeper) -> Option<Arc<str>> {
        let Self::Edited(owner, reading, looked) = self else { return None };
        let Looked { real, is_inside, shows, .. } = looked;
        books.place(owner, reading, real, Place { is_inside: *is_inside, shows: *shows });
        books.text_on_disk(reading)
    }

    fn edits(&self, before: Option<&str>) -> Option<Vec<LineEdit>> {
        let Self::Edited(_, _, looked) = self else { return None };
        Some(line_edits(before?, looked.text.as_deref().ok()?))
    }

    fn tell(&self, books: &mut Bookkeeper, had_text: bool, edits: Option<Vec<LineEdit>>) {
        match self {
            Self::Edited(_, reading, looked) => match &looked.text {
                Err(error) if had_text && error.kind() == io::ErrorKind::NotFound => {
                    books.delete(&reading.path);
                }
                text => books.read(reading, text.as_ref().ok().cloned(), edits),
            },
            Self::Gone(reading) => books.delete(&reading.path),
        }
    }
}

/// What is known of a scope's edits as of a question, and the looks that were under way then.
#[derive(Debug)]
pub struct Excerpt {
    owner: Owner,
    /// What the scope was told.
    told: Checked,
    books: Bookkeeper,
    looks: Vec<Look>,
}

impl Excerpt {
    /// An excerpt that waits for these looks.
    pub fn new(owner: Owner, told: Checked, books: Bookkeeper, looks: Vec<Look>) -> Self {
        Self { owner, told, books, looks }
    }

    /// Waits for the looks. Those that are not done when the time is up are left out.
    async fn complete(&mut self, deadline: Duration) {
        let until = tokio::time::Instant::now() + deadline;
        let looks = self.looks.drain(..).map(|look| timeout_at(until, look));
        for seen in join_all(looks).await {
            if let Ok(Some(seen)) = seen {
                seen.complete(&mut self.books);
            }
        }
    }

    /// What a WAIT that came with it has to say of diagnostics.
    pub async fn prepared(mut self, daemon: Arc<Daemon>, deadline: Duration) -> Findings {
        self.complete(deadline).await;
        let Self { owner, told, books, .. } = self;
        let diagnosis = daemon.checks().with(|it| it.diagnosis_of(books, &owner, &told));
        let found = diagnosis.map(|diagnosis| (Wanted::DIAGNOSTICS, Found::Diagnosis(diagnosis)));
        found.into_iter().collect()
    }

    /// The files that the scope edited in its turn.
    pub async fn edited_files(mut self, deadline: Duration) -> Vec<EditedFile> {
        self.complete(deadline).await;
        self.books.edited_files(&self.owner, &self.told)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::mpsc;

    use reminderd_protocol::methods::find;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::server::{Answer, Application, Connection, Outcome, Served, Surroundings};
    use crate::store::MemoryStore;

    /// A session in a turn, on a disk that answers when it is told to.
    struct Bench {
        served: Served,
        connection: Arc<Connection>,
        root: TempDir,
    }

    impl Bench {
        fn test<Test: Future<Output = ()>>(test: impl FnOnce(Self) -> Test) {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            // One thread looks at the disk: what keeps it keeps all looks.
            let runtime = runtime.max_blocking_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let store = Arc::new(MemoryStore::default());
                let daemon = Arc::new(Daemon::new(Surroundings::System, store));
                let (served, root) = (Served(daemon), tempfile::tempdir().unwrap());
                let bench = Self { served, connection: Arc::new(Connection::new(1)), root };
                bench.done("session/open", json!({"root": bench.root.path()})).await.unwrap();
                bench.done("turn/begin", json!({"turn": "1"})).await.unwrap();
                test(bench).await;
            });
        }

        /// A file of the root.
        fn at(&self, name: &str) -> String {
            let root = self.root.path().canonicalize().unwrap();
            root.join(name).to_str().unwrap().to_owned()
        }

        /// No look is answered until what this returns is dropped.
        fn busy_disk() -> mpsc::Sender<()> {
            let (sender, receiver) = mpsc::channel();
            drop(tokio::task::spawn_blocking(move || receiver.recv()));
            sender
        }

        fn send(&self, method: &str, mut params: Value) -> Outcome {
            params["session"] = json!("s");
            self.served.call(&self.connection, find(method).unwrap(), &params.to_string())
        }

        async fn done(&self, method: &str, params: Value) -> Result<Value, String> {
            answer(self.send(method, params)).await
        }

        /// The file was edited; nobody waits until it is looked at.
        fn edited(&self, name: &str) {
            fs::write(self.at(name), "text\n").unwrap();
            drop(self.send("edit/end", json!({"uris": [{"uri": self.at(name)}], "ok": true})));
        }

        fn publishes(&self, name: &str, messages: &[&str]) {
            let found: Vec<_> = messages.iter().map(|text| json!({"message": text})).collect();
            let params = json!({"uri": self.at(name), "checker": "c", "diagnostics": found});
            assert!(matches!(self.send("diagnostic/publish", params), Outcome::Now(Ok(_))));
        }

        /// What a WAIT tells, committed.
        async fn told(&self, wait: Outcome) -> String {
            let delivery = answer(wait).await.unwrap();
            let token = json!({"token": delivery["token"]});
            self.done("reminder/commit", token).await.unwrap();
            body(&delivery)
        }

        fn wait(&self) -> Outcome {
            self.send("reminder/wait", json!({}))
        }
    }

    fn body(delivery: &Value) -> String {
        let entries = delivery["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["body"].as_str().unwrap()).collect()
    }

    async fn answer(mut outcome: Outcome) -> Result<Value, String> {
        let answer: Answer = loop {
            outcome = match outcome {
                Outcome::Now(answer) => break answer,
                Outcome::Later(future) | Outcome::Applied(future) => break future.await,
                Outcome::First(future) => future.await,
            };
        };
        let answer = answer.map_err(|error| error.message)?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    #[test]
    fn a_wait_tells_what_came_before_it_and_nothing_newer() {
        Bench::test(async |bench| {
            let disk = Bench::busy_disk();
            bench.edited("a");
            bench.publishes("a", &["one"]);
            let wait = bench.wait();
            bench.publishes("a", &["one", "two"]);
            drop(disk);
            let told = bench.told(wait).await;
            assert!(told.contains("one") && !told.contains("two"), "{told}");
            let told = bench.told(bench.wait()).await;
            assert!(told.contains("two") && !told.contains("one"), "{told}");
            assert_eq!(bench.told(bench.wait()).await, "");
        });
    }

    /// What was known under the file's real path is what there was before the edit.
    #[test]
    fn a_wait_knows_the_file_behind_a_link() {
        Bench::test(async |bench| {
            symlink("a", bench.at("link")).unwrap();
            bench.publishes("a", &["old"]);
            let disk = Bench::busy_disk();
            bench.edited("link");
            bench.publishes("link", &["old", "one"]);
            let wait = bench.wait();
            drop(disk);
            let told = bench.told(wait).await;
            let (new, before) = told.split_once("that were there before").unwrap();
            assert!(new.contains("one") && before.contains("old"), "{told}");
        });
    }

    #[test]
    fn a_wait_has_a_deadline_and_what_is_late_stays_eligible() {
        Bench::test(async |bench| {
            let disk = Bench::busy_disk();
            bench.edited("a");
            bench.publishes("a", &["one"]);
            let wait = bench.send("reminder/wait", json!({"deadlineMs": 0}));
            assert_eq!(bench.told(wait).await, "");
            let wait = bench.wait();
            drop(disk);
            assert!(bench.told(wait).await.contains("one"));
        });
    }

    #[test]
    fn a_wait_that_is_given_up_leaves_nothing_behind() {
        Bench::test(async |bench| {
            let disk = Bench::busy_disk();
            bench.edited("a");
            bench.publishes("a", &["one"]);
            drop(bench.wait());
            let (overtaken, wait) = (bench.wait(), bench.wait());
            drop(disk);
            assert!(answer(overtaken).await.is_err());
            assert!(bench.told(wait).await.contains("one"));
            let checks = bench.served.0.checks();
            assert!(checks.looks.lock().is_empty());
        });
    }

    #[test]
    fn a_turn_or_a_session_that_ends_meanwhile_ends_the_wait() {
        for end in ["turn/end", "session/close"] {
            Bench::test(async |bench| {
                let disk = Bench::busy_disk();
                bench.edited("a");
                bench.publishes("a", &["one"]);
                let wait = bench.wait();
                drop(bench.send(end, json!({"turn": "1", "outcome": "completed"})));
                drop(disk);
                assert!(answer(wait).await.is_err());
            });
        }
    }

    /// A file that is gone when the WAIT comes has nothing to tell.
    #[test]
    fn a_deletion_before_a_wait_counts() {
        Bench::test(async |bench| {
            bench.edited("a");
            bench.publishes("a", &["one"]);
            let disk = Bench::busy_disk();
            fs::remove_file(bench.at("a")).unwrap();
            let changes = json!({"changes": [{"uri": bench.at("a"), "type": 3}]});
            drop(bench.send("workspace/didChangeWatchedFiles", changes));
            let (wait, state) = (bench.wait(), bench.send("session/state", json!({})));
            drop(disk);
            assert_eq!(bench.told(wait).await, "");
            assert_eq!(answer(state).await.unwrap()["diagnostics"], json!([]));
        });
    }

    /// Ready is what a WAIT behind it can tell of.
    #[test]
    fn a_file_is_ready_once_it_was_looked_at() {
        Bench::test(async |bench| {
            let disk = Bench::busy_disk();
            bench.edited("a");
            bench.publishes("a", &["one"]);
            let settled = bench.done("edit/settle", json!({"timeoutMs": 0})).await.unwrap();
            assert_eq!(settled["files"][0]["outcome"], "timeout");
            let settling = bench.send("edit/settle", json!({}));
            drop(disk);
            let settled = answer(settling).await.unwrap();
            assert_eq!(settled["files"][0]["outcome"], "ready");
            assert!(bench.told(bench.wait()).await.contains("one"));
        });
    }

    #[test]
    fn insight_sees_what_came_before_it_and_nothing_newer() {
        Bench::test(async |bench| {
            let disk = Bench::busy_disk();
            bench.edited("a");
            bench.publishes("a", &["one"]);
            drop(bench.send("file/read", json!({"uri": bench.at("a"), "text": "text\n"})));
            let explain = bench.send("reminder/explain", json!({}));
            let state = bench.send("session/state", json!({}));
            drop(bench.send("file/read", json!({"uri": bench.at("b"), "text": "text\n"})));
            bench.publishes("a", &[]);
            drop(disk);
            let (explained, state) = (answer(explain).await.unwrap(), answer(state).await.unwrap());
            let rows = explained["rows"].as_array().unwrap();
            let row = rows.iter().find(|row| row["id"] == "diagnostics").unwrap();
            assert_eq!(row["speaks"], true, "{row}");
            assert_eq!(state["diagnostics"][0]["new"], 1, "{state}");
            assert_eq!(state["files"]["watched"], 1, "{state}");
        });
    }
}
