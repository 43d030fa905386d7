//! What must follow from what was said: knows the messages that went over the wire, the files that were
//! changed, and the contract; nothing of how the daemon works.
//!
//! Whatever is told to a model in this simulation carries a mark, `<number>@<session><agent>`, which
//! nothing else has. So it can be seen who was told what, and how often. What a checker says is for
//! every conversation of the session that edits the file: its mark is `<number>@<session>~`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A conversation: a session by its number, and an agent's path, or nothing for the root.
pub type Scope = (usize, String);

macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err(format!($($reason)+));
        }
    };
}
pub(crate) use ensure;

/// Where a text waits for its WAIT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The session's: told to the root, in order.
    Pending,
    /// The turn's: gone with it.
    Turn,
    /// What a checker said of a file that was edited.
    Checked(String),
    /// The same, where it may still be told and need not be.
    Doubtful,
}

/// What was offered at a WAIT.
#[derive(Clone, Debug)]
pub struct Offer {
    pub token: String,
    pub scope: Scope,
    pub entries: Vec<Value>,
    pub record: Value,
    /// The contents that it showed, by file.
    shown: BTreeMap<String, String>,
}

/// What is known of a conversation.
#[derive(Debug, Default)]
struct Conversation {
    /// Ids and entries of what was told, oldest first.
    told: Vec<(String, Value)>,
    /// What waits, by its mark, in the order in which it was said.
    waiting: Vec<(String, Queue)>,
    /// What the model knows of a file.
    known: BTreeMap<String, String>,
    /// Whether the standing text has to come, where that is known.
    standing: Option<bool>,
    /// Whether its history was compacted since something was last answered that the store holds: the
    /// daemon may die before that is written.
    is_unwritten: bool,
}

/// The oracle.
#[derive(Debug, Default)]
pub struct Oracle {
    conversations: BTreeMap<Scope, Conversation>,
    /// Marks that were told, ever, and to whom.
    marks: BTreeSet<(Scope, String)>,
    /// Commits whose answer did not come.
    open: Vec<Offer>,
    /// Those that history showed to be told. Until something is answered behind them that the store
    /// holds, they may go with the process.
    unwritten: Vec<Offer>,
    /// Those of them whose process died.
    doubtful: Vec<Offer>,
}

/// The marks in a text.
pub fn marks(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "@/~".contains(c);
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.contains("@s"));
    words.map(str::to_owned).collect()
}

fn body(entry: &Value) -> &str {
    entry["body"].as_str().unwrap_or_default()
}

fn kind(entry: &Value) -> &str {
    entry["type"].as_str().unwrap_or_default()
}

impl Conversation {
    fn doubt(&mut self, of: impl Fn(&str) -> bool) {
        for (_, queue) in &mut self.waiting {
            if matches!(queue, Queue::Checked(file) if of(file)) {
                *queue = Queue::Doubtful;
            }
        }
    }
}

impl Oracle {
    fn at(&mut self, scope: &Scope) -> &mut Conversation {
        self.conversations.entry(scope.clone()).or_default()
    }

    /// A session is opened anew: its standing text has to come.
    pub fn opened(&mut self, session: usize) {
        self.at(&(session, String::new())).standing = Some(true);
    }

    pub fn said(&mut self, scope: &Scope, mark: &str, queue: Queue) {
        if let Queue::Checked(file) = &queue {
            // A checker's list stands for what it said before.
            for (_, conversation) in
                self.conversations.iter_mut().filter(|((of, _), _)| *of == scope.0)
            {
                conversation.waiting.retain(|(_, before)| *before != Queue::Checked(file.clone()));
            }
        }
        self.at(scope).waiting.push((mark.to_owned(), queue));
    }

    /// The model of a conversation knows what stands in a file now.
    pub fn knows(&mut self, scope: &Scope, file: &str, content: &str) {
        self.at(scope).known.insert(file.to_owned(), content.to_owned());
    }

    /// What belonged to a turn is gone with it; what a checker said may still be true.
    pub fn turn_ended(&mut self, scope: &Scope) {
        let conversation = self.at(scope);
        conversation.waiting.retain(|(_, queue)| *queue != Queue::Turn);
        conversation.doubt(|_| true);
    }

    /// A file changed behind the checker's back: what it said of it may be over.
    pub fn changed(&mut self, session: usize, file: &str) {
        for (_, conversation) in self.conversations.iter_mut().filter(|((of, _), _)| *of == session)
        {
            conversation.doubt(|checked| checked == file);
        }
    }

    /// Nothing more is told to an agent.
    pub fn settled(&mut self, scope: &Scope) {
        self.conversations.remove(scope);
    }

    /// All of history is gone, or nothing of it.
    pub fn compacted(&mut self, scope: &Scope, keeps: bool) {
        if !keeps {
            let conversation = self.at(scope);
            if conversation.standing.is_some() {
                conversation.standing = Some(true);
            }
            conversation.is_unwritten = true;
            // What it knew of files went with it: they are named in other words.
            conversation.known.clear();
        }
    }

    /// The daemon has begun another life. Queues do not survive it, agents are gone with their turns.
    pub fn restarted(&mut self, in_good_order: bool) {
        self.conversations.retain(|(_, agent), _| agent.is_empty());
        for offer in std::mem::take(&mut self.unwritten) {
            if !in_good_order && offer.scope.1.is_empty() {
                self.at(&offer.scope).is_unwritten = true;
                self.doubtful.push(offer);
            }
        }
        for conversation in self.conversations.values_mut() {
            if std::mem::take(&mut conversation.is_unwritten) && !in_good_order {
                conversation.standing = None;
            }
            conversation.waiting.clear();
            conversation.known.clear();
        }
    }

    /// A session is closed: its queues are gone, its history is kept.
    pub fn closed(&mut self, session: usize) {
        self.conversations.retain(|(of, agent), _| *of != session || agent.is_empty());
        let conversation = self.at(&(session, String::new()));
        conversation.waiting.clear();
        conversation.known.clear();
    }

    /// Laws 3, 4, 6, 7 and 10 of what a WAIT answers. `disk` is what stands in the session's files.
    pub fn offered(
        &mut self,
        scope: &Scope,
        delivery: &Value,
        disk: &BTreeMap<String, String>,
    ) -> Result<Offer, String> {
        let token = delivery["token"].as_str().ok_or("a WAIT's answer has no token")?.to_owned();
        let entries = delivery["entries"].as_array().ok_or("a WAIT's answer has no entries")?;
        let record = &delivery["record"];
        let content = delivery["message"]["content"].as_str().unwrap_or_default();
        ensure!(entries.is_empty() == record.is_null(), "entries without a record, or the reverse");
        let recorded = record["entries"].as_array().map_or(&[][..], Vec::as_slice);
        ensure!(recorded.len() == entries.len(), "the record holds other entries than the answer");
        for (entry, kept) in entries.iter().zip(recorded) {
            ensure!(body(entry) == body(kept), "the record says otherwise: {kept} for {entry}");
        }
        is_closed(content, entries)?;

        let all_marks: Vec<_> = entries.iter().flat_map(|entry| marks(body(entry))).collect();
        let (suffix, checked) = (format!("@s{}{}", scope.0, scope.1), format!("@s{}~", scope.0));
        for mark in &all_marks {
            let whose = &mark[mark.find('@').unwrap_or_default()..];
            ensure!(whose == suffix || whose == checked, "{mark} is told to {suffix}");
            let told = (scope.clone(), mark.clone());
            ensure!(!self.marks.contains(&told), "{mark} is told a second time");
        }
        let is_limited = delivery["held"].as_array().is_some_and(|held| !held.is_empty());
        let conversation = self.at(scope);
        if !is_limited {
            let waiting = conversation.waiting.iter();
            let must = waiting.filter(|(_, queue)| *queue != Queue::Doubtful);
            let missing: Vec<_> = must.filter(|(mark, _)| !all_marks.contains(mark)).collect();
            ensure!(missing.is_empty(), "{missing:?} is not told");
            let pending = conversation.waiting.iter().filter(|(_, queue)| *queue == Queue::Pending);
            let in_order: Vec<_> = pending.map(|(mark, _)| mark).collect();
            let told: Vec<_> = all_marks.iter().filter(|mark| in_order.contains(mark)).collect();
            ensure!(told == in_order, "the queue's order {in_order:?} became {told:?}");
        }
        for mark in all_marks.iter().filter(|mark| !mark.ends_with('~')) {
            let is_waiting = conversation.waiting.iter().any(|(waiting, _)| waiting == mark);
            ensure!(is_waiting, "{mark} is told, and does not wait to be");
        }
        let stands = entries.iter().any(|entry| kind(entry) == "standing");
        if let Some(expected) = conversation.standing {
            ensure!(stands == expected || is_limited && !stands, "the standing text: {stands}");
        }
        let speaks_of = |file: &str| {
            let edited = entries.iter().filter(|entry| kind(entry) == "edited-files");
            edited.into_iter().any(|entry| body(entry).contains(file))
        };
        let mut shown = BTreeMap::new();
        for (file, known) in &conversation.known {
            let Some(stands) = disk.get(file) else { continue };
            let named = speaks_of(file);
            ensure!(is_limited || named == (known != stands), "{file} is named: {named}");
            if named {
                shown.insert(file.clone(), stands.clone());
            }
        }
        Ok(Offer {
            token,
            scope: scope.clone(),
            entries: entries.clone(),
            record: record.clone(),
            shown,
        })
    }

    /// A commit was answered: this of an offer is told now.
    pub fn committed(&mut self, offer: &Offer, result: &Value) -> Result<(), String> {
        let ids: Vec<_> = result["committed"].as_array().into_iter().flatten().collect();
        let told: Vec<_> = offer.entries.iter().filter(|it| ids.contains(&&it["id"])).collect();
        ensure!(told.len() == ids.len(), "committed what was not offered: {result}");
        let record = &result["record"];
        ensure!(record.is_null() == told.is_empty(), "a record of nothing, or none: {result}");
        self.told(offer, &told, record);
        self.conversations.values_mut().for_each(|it| it.is_unwritten = false);
        self.unwritten.clear();
        Ok(())
    }

    fn told(&mut self, offer: &Offer, entries: &[&Value], record: &Value) {
        let marks: Vec<_> = entries.iter().flat_map(|entry| marks(body(entry))).collect();
        self.marks.extend(marks.iter().map(|mark| (offer.scope.clone(), mark.clone())));
        let conversation = self.at(&offer.scope);
        conversation.waiting.retain(|(mark, _)| !marks.contains(mark));
        if let Some(id) = record["id"].as_str() {
            conversation.told.push((id.to_owned(), record["entries"].clone()));
        }
        for entry in entries {
            match kind(entry) {
                "standing" => conversation.standing = Some(false),
                "edited-files" => conversation.known.extend(offer.shown.clone()),
                _ => {}
            }
        }
    }

    /// A commit was sent, and its answer did not come: history will show what became of it.
    pub fn unanswered(&mut self, offer: Offer) {
        self.open.push(offer);
    }

    /// Laws 3 and 10 of a history: it holds what was committed, as it was told, and nothing else.
    pub fn history(&mut self, scope: &Scope, result: &Value) -> Result<(), String> {
        let rows = result["records"].as_array().ok_or("a history has no records")?;
        let holds = |id: &str| rows.iter().any(|row| row["id"] == id);
        let (of_it, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|offer| offer.scope == *scope);
        self.open = others;
        for offer in of_it {
            if offer.record["id"].as_str().is_some_and(holds) {
                let entries: Vec<_> = offer.entries.iter().collect();
                self.told(&offer, &entries, &offer.record);
                self.unwritten.push(offer);
            }
        }
        let (of_it, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.doubtful).into_iter().partition(|offer| offer.scope == *scope);
        self.doubtful = others;
        for offer in of_it.iter().filter(|it| !it.record["id"].as_str().is_some_and(holds)) {
            let gone: Vec<_> = offer.entries.iter().flat_map(|entry| marks(body(entry))).collect();
            self.marks.retain(|(whose, mark)| whose != scope || !gone.contains(mark));
            self.at(scope).told.retain(|(id, _)| offer.record["id"] != **id);
        }
        let told = &self.at(scope).told;
        let expected: Vec<_> =
            told.iter().rev().map(|(id, entries)| (id.as_str(), entries)).collect();
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row["id"].as_str().unwrap_or_default(), &row["entries"]))
            .collect();
        ensure!(found == expected, "history holds {found:?}, told was {expected:?}");
        Ok(())
    }
}

/// Law 7: whatever an entry says, each block opens and closes once.
fn is_closed(content: &str, entries: &[Value]) -> Result<(), String> {
    let count = |text: &str| content.matches(text).count();
    let (opened, closed) = (count("<system-reminder"), count("</system-reminder"));
    let blocks = if entries.is_empty() { 0 } else { opened.max(1) };
    ensure!(opened == blocks && closed == blocks, "{opened} tags open, {closed} close: {content}");
    ensure!(opened <= entries.len(), "{opened} blocks for {} entries", entries.len());
    for entry in entries {
        ensure!(content.contains(body(entry)), "the message lacks an entry: {entry}");
    }
    Ok(())
}

/// Law 11: whoever was said to speak speaks, and nobody else does.
pub fn explained(rows: &Value, offer: &Offer) -> Result<(), String> {
    let recorded = offer.record["entries"].as_array().map_or(&[][..], Vec::as_slice);
    for row in rows["rows"].as_array().ok_or("an explanation has no rows")? {
        let (id, of) = (row["id"].as_str().unwrap_or_default(), &row["kind"]);
        let spoke = recorded.iter().any(|entry| match id {
            "staged" => entry["kind"] == "staged",
            "turn-events" => entry["kind"] == "turn-event",
            id => kind(entry) == id && entry["kind"] == *of,
        });
        ensure!(row["speaks"] == spoke, "explain says of {row}, and it spoke: {spoke}");
    }
    Ok(())
}
