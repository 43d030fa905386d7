//! The configuration files of a daemon: the user's own, and one at each session's root. They are read
//! on threads of their own. `session/open` waits for that a moment, so that a session's first WAIT
//! sees them as they were then; after it they are looked at again every second, by their stamps. That
//! needs no events, and is right however an editor saves.
//!
//! What cannot be read leaves what was read before in force. A file that had something to say and is
//! gone, empty or broken is looked at again for a moment before that is believed: it may be about to
//! be written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::configuration::{
    self, Document, Effective, FILE_NAME, Layer, Layers, Mistake, Origin, Severity, Unreadable,
};
use crate::engine::{Configuration, LeftOut, Value, one_line};
use crate::files::{Stamp, identity};

/// How often files are looked at while sessions are open.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long `session/open` waits for files to be read.
const OPEN_PATIENCE: Duration = Duration::from_millis(500);
/// How long a file is given to be whole again.
const SETTLE: Duration = Duration::from_millis(200);
/// How long nobody may have written to a file for it to be taken as whole.
const QUIET: Duration = Duration::from_millis(60);
/// How long lies between two looks meanwhile.
const PAUSE: Duration = Duration::from_millis(20);
/// How old a file's times must be for the stamp to vouch for its content.
const FRESH: Duration = Duration::from_secs(3);
/// How many mistakes of a document a client is told.
const TROUBLES_MAX: usize = 10;

/// What stood in one of them, as recordings have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    path: PathBuf,
    /// Whether it is the user's own, rather than the one at the session's root.
    is_users: bool,
    /// The text in force.
    text: Option<String>,
    /// Whether what stands there cannot be used.
    is_broken: bool,
    is_inside: bool,
}

/// The configuration files that sessions of a daemon use.
#[derive(Debug, Default)]
pub struct ConfigurationFiles {
    /// Whether files are read at all.
    reads: bool,
    /// Where the user's own is, if that is known.
    users: Option<PathBuf>,
    files: Mutex<BTreeMap<PathBuf, Arc<File>>>,
    /// What connections were told is wrong, at most once each.
    said: Mutex<BTreeMap<u64, BTreeSet<Trouble>>>,
    /// Whether a task looks at the files.
    is_watching: AtomicBool,
    /// Whether a recording says what stands in them, so that none is looked at.
    is_played: bool,
}

/// One file.
#[derive(Debug)]
struct File {
    path: PathBuf,
    layer: Layer,
    /// One look at a time.
    looking: Mutex<()>,
    seen: Mutex<Seen>,
}

/// What a file said when it was last looked at.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// How often it was found to say something else; 0 as long as it was never looked at.
    version: u64,
    stamp: Option<Stamp>,
    /// Whether the stamp vouches for what was read.
    is_vouched: bool,
    /// What is in force.
    document: Option<Arc<Document>>,
    /// What is wrong with what stands there, for people.
    trouble: Option<String>,
    /// Whether what stands there cannot be used.
    is_broken: bool,
    /// Whether it really lies in the directory that it was looked for in.
    is_inside: bool,
}

impl Seen {
    /// Whether it cannot be said what the file is to mean.
    fn is_unknown(&self) -> bool {
        self.version == 0 || (self.is_broken && self.document.is_none())
    }
}

/// What the files, and what a client gave, come to for one session.
#[derive(Debug, Default)]
pub struct Configured {
    /// What the session takes over.
    pub configuration: Configuration,
    /// Whether a file cannot be read and never could, so that a session that knows what it said stays
    /// with that.
    pub is_uncertain: bool,
    /// Ids of what an untrusted workspace says that is left out.
    pub untrusted: Vec<String>,
    /// What is wrong, for people.
    pub troubles: Vec<Trouble>,
}

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// What, with its place.
    text: String,
    /// Which state of the files it is about: what was mended may go wrong again.
    version: u64,
}

/// Which state of its files a session has taken over: the user's own, and the one at its root.
pub type Versions = [u64; 2];

impl ConfigurationFiles {
    /// The files of a daemon whose user's own is this one. A daemon by default reads none.
    pub fn new(users: Option<PathBuf>) -> Self {
        Self { reads: true, users, ..Self::default() }
    }

    /// Those that a recording speaks of.
    pub fn played() -> Self {
        Self { reads: true, is_played: true, ..Self::default() }
    }

    /// Takes over what a recording says of files.
    pub fn play(&self, standing: Vec<Standing>) {
        let mut files = self.files.lock();
        for Standing { path, is_users, text, is_broken, is_inside } in standing {
            let layer = if is_users { Layer::User } else { Layer::Workspace };
            let place = files.entry(path.clone());
            let file = place.or_insert_with(|| Arc::new(File::new(&path, layer)));
            let origin = Origin::new(layer, path.display().to_string());
            let document = text.map(|text| Arc::new(Document::read(&text, origin)));
            let mut seen = file.seen.lock();
            let trouble = document.as_deref().and_then(trouble);
            let version = seen.version + 1;
            *seen = Seen { version, document, trouble, is_broken, is_inside, ..Seen::default() };
        }
    }

    /// What stands in the files of a session, for a recording of it.
    pub fn standing(&self, root: Option<&str>) -> Vec<Standing> {
        let files = self.of(root).into_iter().flatten();
        let standing = files.map(|file| {
            let seen = file.seen.lock();
            Standing {
                path: file.path.clone(),
                is_users: file.layer == Layer::User,
                text: seen.document.as_ref().map(|document| document.source.to_string()),
                is_broken: seen.is_unknown() || seen.is_broken,
                is_inside: seen.is_inside,
            }
        });
        standing.collect()
    }

    /// The user's own file, and the one at this root.
    fn of(&self, root: Option<&str>) -> [Option<Arc<File>>; 2] {
        if !self.reads {
            return [None, None];
        }
        let workspace = root.filter(|root| identity::is_path(root));
        let workspace = workspace.map(|root| identity::on_disk(root).join(FILE_NAME));
        let workspace = workspace.filter(|path| Some(path) != self.users.as_ref());
        let mut files = self.files.lock();
        if self.is_played {
            let users = files.values().find(|file| file.layer == Layer::User).cloned();
            return [users, workspace.and_then(|path| files.get(&path).cloned())];
        }
        let mut file = |path: &Path, layer| {
            let known = files.entry(path.to_owned());
            Arc::clone(known.or_insert_with(|| Arc::new(File::new(path, layer))))
        };
        let users = self.users.as_ref().map(|path| file(path, Layer::User));
        [users, workspace.map(|path| file(&path, Layer::Workspace))]
    }

    /// Looks at the files of a session that is being opened, as long as that may take.
    pub async fn look(&self, root: Option<&str>) {
        let files: Vec<_> = self.of(root).into_iter().flatten().collect();
        if files.is_empty() || self.is_played {
            return;
        }
        let looks = files.into_iter().map(|file| {
            tokio::task::spawn_blocking(move || {
                let _one_at_a_time = file.looking.lock();
                file.look();
            })
        });
        let looks = futures_util::future::join_all(looks);
        // What takes longer is taken over when it is there.
        drop(tokio::time::timeout(OPEN_PATIENCE, looks).await);
    }

    /// Looks at all files of sessions with these roots, and lets go of the others.
    pub async fn look_again(&self, roots: BTreeSet<Option<String>>) {
        let used = roots.iter().flat_map(|root| self.of(root.as_deref())).flatten();
        let used: BTreeMap<_, _> = used.map(|file| (file.path.clone(), file)).collect();
        self.files.lock().retain(|path, _| used.contains_key(path));
        let looks = used.into_values().map(|file| {
            // A look that hangs is not joined by another one.
            tokio::task::spawn_blocking(move || {
                file.looking.try_lock().map(|_one_at_a_time| file.look())
            })
        });
        let looks = futures_util::future::join_all(looks);
        drop(tokio::time::timeout(LOOK_EVERY, looks).await);
    }

    /// Which state the files of a session are in.
    pub fn versions(&self, root: Option<&str>) -> Versions {
        self.of(root).map(|file| file.map_or(0, |file| file.seen.lock().version))
    }

    /// What the files come to, as they were last seen.
    pub fn configured(
        &self,
        root: Option<&str>,
        trusted: bool,
        given: Option<&Value>,
    ) -> Configured {
        let [users, mut workspace] =
            self.of(root).map(|file| file.map(|file| file.seen.lock().clone()));
        let identity = |seen: &Option<Seen>| Some(seen.as_ref()?.stamp?.identity());
        if identity(&workspace).is_some() && identity(&workspace) == identity(&users) {
            // Where the user's own file lies at the root, it is read once, as the user's own.
            workspace = None;
        }
        let mut done = Configured::default();
        let seen = || users.iter().chain(&workspace);
        let version = seen().map(|seen| seen.version).sum();
        done.is_uncertain = seen().any(Seen::is_unknown);
        let mut left_out = Vec::new();
        let mut document = None;
        if let Some(users) = &users {
            done.add_trouble(users.version, users.trouble.clone());
        }
        if let Some(workspace) = workspace {
            if trusted || workspace.is_inside || workspace.document.is_none() {
                done.add_trouble(workspace.version, workspace.trouble);
                document = workspace.document;
            } else {
                left_out.push(distrusted(FILE_NAME, "it lies outside of the root", FILE_NAME));
            }
        }
        let session = given.and_then(|given| serde_json::to_value(given).ok());
        let session = session.map(|json| Document::of_json(&json, Origin::client()));
        done.add_trouble(0, session.as_ref().and_then(trouble));
        let layers = Layers {
            user: users.and_then(|it| it.document),
            workspace: document,
            session: session.map(Arc::new),
        };
        for (document, mistake) in layers.mistakes() {
            done.add_trouble(version, Some(mistake.headline(&document.origin)));
        }
        let Effective { mut configuration, left_out: untrusted, .. } = layers.effective(trusted);
        left_out.extend(untrusted.iter().map(|left| {
            let why = match &left.key {
                None => left.why.clone(),
                Some(key) => format!("{key}: {}", left.why),
            };
            distrusted(&left.id, &why, &left.origin.with_line(&left.at))
        }));
        for left in &left_out {
            if !done.untrusted.contains(&left.id) {
                done.untrusted.push(left.id.clone());
            }
        }
        let documents = [&layers.user, &layers.workspace, &layers.session];
        for document in documents.into_iter().flatten() {
            left_out.extend(document.left_out.iter().map(|(id, why)| LeftOut {
                id: id.clone(),
                reason: format!("is left out: {}", why.headline(&document.origin)),
                next: "when the configuration is mended".to_owned(),
            }));
        }
        configuration.left_out = left_out;
        done.configuration = configuration;
        done
    }

    /// Those of the troubles that a connection was not told yet, as one text.
    pub fn news(&self, connection: u64, troubles: &[Trouble]) -> Option<String> {
        let mut said = self.said.lock();
        let known = said.entry(connection).or_default();
        let news = troubles.iter().filter(|trouble| known.insert((*trouble).clone()));
        let news: Vec<_> = news.map(|trouble| trouble.text.as_str()).collect();
        (!news.is_empty()).then(|| news.join("\n"))
    }

    /// A connection is gone.
    pub fn disconnect(&self, connection: u64) {
        self.said.lock().remove(&connection);
    }

    /// Says whether the caller is to look at the files from now on.
    pub fn begin_watching(&self) -> bool {
        self.reads && !self.is_played && !self.is_watching.swap(true, Ordering::SeqCst)
    }

    /// Nobody looks at the files any more.
    pub fn end_watching(&self) {
        self.is_watching.store(false, Ordering::SeqCst);
    }
}

impl Configured {
    fn add_trouble(&mut self, version: u64, text: Option<String>) {
        self.troubles.extend(text.map(|text| Trouble { text, version }));
    }
}

fn distrusted(id: &str, why: &str, place: &str) -> LeftOut {
    LeftOut {
        id: id.to_owned(),
        reason: format!("is not trusted: {why} ({})", one_line(place)),
        next: "when the session is opened with trusted: true".to_owned(),
    }
}

impl File {
    fn new(path: &Path, layer: Layer) -> Self {
        Self { path: path.to_owned(), layer, looking: Mutex::default(), seen: Mutex::default() }
    }

    /// Looks at the file, and takes over what it says.
    fn look(&self) {
        let seen = self.seen.lock().clone();
        let had = seen.document.as_ref().is_some_and(|it| !it.source.trim().is_empty());
        let began = Instant::now();
        loop {
            let stamp = Stamp::at(&self.path);
            if seen.version > 0 && seen.is_vouched && stamp == seen.stamp {
                return;
            }
            let origin = Origin::new(self.layer, self.path.display().to_string());
            let read = configuration::read(&self.path, origin);
            let says = |it: &Document| !it.broken && !it.source.trim().is_empty();
            let is_whole = read.as_ref().is_ok_and(says) && Stamp::at(&self.path) == stamp;
            let is_quiet = stamp.is_some_and(|stamp| stamp.age() >= QUIET);
            if !had || (is_whole && is_quiet) || began.elapsed() >= SETTLE {
                self.take(stamp, read);
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    fn take(&self, stamp: Option<Stamp>, read: Result<Document, Unreadable>) {
        let is_inside = self.is_inside();
        let mut seen = self.seen.lock();
        let before = seen.clone();
        seen.is_broken = false;
        seen.trouble = None;
        let mut mistakes = Vec::new();
        match read {
            Err(Unreadable::Missing) => seen.document = None,
            Err(Unreadable::Other(why)) => {
                seen.is_broken = true;
                seen.trouble = Some(format!("{}: {why}", self.path.display()));
            }
            Ok(document) => {
                seen.is_broken = document.broken;
                seen.trouble = trouble(&document);
                mistakes.clone_from(&document.mistakes);
                if !document.broken {
                    seen.document = Some(Arc::new(document));
                }
            }
        }
        let stays = match seen.document {
            Some(_) => " (what it said before stays in force)",
            None => " (nothing of it is in force in new sessions)",
        };
        let is_broken = seen.is_broken;
        if let Some(trouble) = seen.trouble.as_mut().filter(|_| is_broken) {
            trouble.push_str(stays);
        }
        seen.stamp = stamp;
        seen.is_vouched = stamp.is_none_or(|stamp| stamp.age() >= FRESH);
        seen.is_inside = is_inside;
        let text = |seen: &Seen| seen.document.as_ref().map(|it| Arc::clone(&it.source));
        let is_the_same = text(&before) == text(&seen)
            && before.trouble == seen.trouble
            && before.is_broken == seen.is_broken
            && before.is_inside == seen.is_inside;
        if before.version > 0 && is_the_same {
            seen.document = before.document;
            return;
        }
        seen.version += 1;
        for mistake in &mistakes {
            self.log(mistake);
        }
        if seen.is_broken {
            tracing::warn!(file = %self.path.display(), "a configuration file cannot be used");
        }
    }

    /// Names and places only: what a file says is not logged.
    fn log(&self, mistake: &Mistake) {
        let Mistake { severity, at, key, .. } = mistake;
        let place = format!("{}:{}:{}", self.path.display(), at.line, at.column);
        match severity {
            Severity::Mistake => tracing::warn!(place, key, "a mistake in the configuration"),
            Severity::Unknown => tracing::warn!(place, key, "an unknown key in the configuration"),
        }
    }

    fn is_inside(&self) -> bool {
        let directory = self.path.parent().and_then(|directory| fs::canonicalize(directory).ok());
        let real = fs::canonicalize(&self.path).ok();
        real.zip(directory).is_some_and(|(real, directory)| real.starts_with(directory))
    }
}

/// What is wrong with a document, a line each: what is left out for it first.
fn trouble(document: &Document) -> Option<String> {
    let grave = |mistake: &&Mistake| mistake.severity == Severity::Mistake;
    let (grave, others): (Vec<_>, Vec<_>) = document.mistakes.iter().partition(grave);
    let mut lines: Vec<_> = grave
        .into_iter()
        .chain(others)
        .take(TROUBLES_MAX)
        .map(|mistake| mistake.headline(&document.origin))
        .collect();
    let more = document.mistakes.len() - lines.len();
    if more > 0 {
        let hint = match document.origin.layer {
            // There is no file to look at.
            Layer::Session => String::new(),
            Layer::User | Layer::Workspace => {
                format!(": see `reminderd config check {}`", one_line(&document.origin.name))
            }
        };
        lines.push(format!("and {more} more{hint}"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
