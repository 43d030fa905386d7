//! Faults that are planted on purpose, each the lie of a daemon that breaks one law: so it is shown
//! that the oracle would notice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What was released is not offered again.
    ForgetsTheReleased,
    /// What is committed is offered once more.
    TellsTwice,
    /// An entry of another conversation comes along.
    TellsTheWrongOne,
    /// One of the queued texts is dropped.
    DropsAText,
    /// The queue's texts come in another order.
    TurnsTheQueueRound,
    /// A changed file is not named.
    MissesAChange,
    /// A file that did not change is named.
    NamesTheUnchanged,
    /// A tag in a text closes the block.
    LeavesATagOpen,
    /// The record says otherwise than the message.
    RecordsOtherwise,
    /// An explanation is the reverse of what happens.
    ExplainsTheReverse,
    /// History holds what was only offered.
    RecordsTheOffered,
    /// History lacks what was committed last.
    ForgetsTheCommitted,
    /// History says it in other words.
    RewritesHistory,
    /// A token of a former life, or of nobody, is taken.
    TakesAnyToken,
    /// A request is answered twice.
    AnswersTwice,
    /// The ledger loses its last commit when the process dies.
    LosesACommitOnDisk,
}

impl Fault {
    pub const ALL: [Self; 16] = [
        Self::ForgetsTheReleased,
        Self::TellsTwice,
        Self::TellsTheWrongOne,
        Self::DropsAText,
        Self::TurnsTheQueueRound,
        Self::MissesAChange,
        Self::NamesTheUnchanged,
        Self::LeavesATagOpen,
        Self::RecordsOtherwise,
        Self::ExplainsTheReverse,
        Self::RecordsTheOffered,
        Self::ForgetsTheCommitted,
        Self::RewritesHistory,
        Self::TakesAnyToken,
        Self::AnswersTwice,
        Self::LosesACommitOnDisk,
    ];
}

/// The fault that is planted into a run, and what it has seen so far.
#[derive(Debug, Default)]
pub struct Planted {
    fault: Option<Fault>,
    /// What was offered and to whom, by its token.
    offered: BTreeMap<String, (String, Vec<Value>)>,
    /// Bodies that were released.
    released: Vec<Value>,
    /// An entry that was told, and to whom; and the last one that named a file.
    told: Option<(String, Value)>,
    named: Option<Value>,
    /// The record that was offered last, and is not committed.
    uncommitted: Option<Value>,
}

impl Planted {
    pub fn new(fault: Option<Fault>) -> Self {
        Self { fault, ..Self::default() }
    }

    pub fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// What the client is given in a message's place.
    pub fn spoil(
        &mut self,
        mut message: Value,
        open: &BTreeMap<u64, (String, Value)>,
    ) -> Vec<Value> {
        let Some(fault) = self.fault else { return vec![message] };
        let asked = message["id"].as_u64().and_then(|id| open.get(&id));
        let Some((method, params)) = asked else { return vec![message] };
        match (fault, method.as_str()) {
            (Fault::TakesAnyToken, "reminder/commit") if message.get("error").is_some() => {
                let taken = json!({"record": null, "committed": [], "held": [], "already": false});
                return vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": taken})];
            }
            (Fault::AnswersTwice, "reminder/wait") => return vec![message.clone(), message],
            _ => {}
        }
        let Some(result) = message.get_mut("result") else { return vec![message] };
        match method.as_str() {
            "reminder/wait" => self.spoil_wait(fault, params, result),
            "reminder/explain" if fault == Fault::ExplainsTheReverse => {
                let row = &mut result["rows"][0];
                row["speaks"] = json!(row["speaks"] != json!(true));
            }
            "reminder/history" => self.spoil_history(fault, result),
            "reminder/commit" => {
                self.uncommitted = None;
                let ids = result["committed"].as_array().cloned().unwrap_or_default();
                if let Some((whom, entries)) = self.offer(params)
                    && let Some(told) = entries.iter().find(|entry| ids.contains(&entry["id"]))
                {
                    self.told = Some((whom.clone(), told.clone()));
                }
            }
            "reminder/release" => {
                self.released = self.offer(params).map_or_else(Vec::new, |offer| offer.1.clone());
            }
            _ => {}
        }
        vec![message]
    }

    fn offer(&self, params: &Value) -> Option<&(String, Vec<Value>)> {
        self.offered.get(params["token"].as_str().unwrap_or_default())
    }

    fn spoil_wait(&mut self, fault: Fault, params: &Value, result: &mut Value) {
        let token = result["token"].as_str().unwrap_or_default().to_owned();
        let whom = format!("{} {}", params["session"], params["agent"]);
        let before = result["entries"].as_array().cloned().unwrap_or_default();
        self.offered.insert(token, (whom.clone(), before.clone()));
        self.uncommitted = Some(result["record"].clone()).filter(|record| !record.is_null());
        let mut entries = before.clone();
        let is_edited = |entry: &Value| entry["type"] == "edited-files";
        match fault {
            Fault::ForgetsTheReleased => {
                let was =
                    |entry: &Value| self.released.iter().any(|it| it["body"] == entry["body"]);
                entries.retain(|entry| !was(entry));
                self.released.clear();
            }
            Fault::TellsTwice | Fault::TellsTheWrongOne => {
                let is_same = |told: &&(String, Value)| told.0 == whom;
                let told = self.told.as_ref();
                let told = told.filter(|told| is_same(told) == (fault == Fault::TellsTwice));
                entries.extend(told.map(|(_, entry)| entry.clone()));
            }
            Fault::DropsAText => entries.truncate(entries.len().saturating_sub(1)),
            Fault::TurnsTheQueueRound => {
                for entry in &mut entries {
                    let body = entry["body"].as_str().unwrap_or_default();
                    let mut parts: Vec<_> = body.split("\n\n").collect();
                    parts.reverse();
                    entry["body"] = json!(parts.join("\n\n"));
                }
            }
            Fault::MissesAChange => entries.retain(|entry| !is_edited(entry)),
            Fault::NamesTheUnchanged => {
                let named = entries.iter().find(|entry| is_edited(entry)).cloned();
                if named.is_none() {
                    entries.extend(self.named.clone());
                }
                self.named = named.or(self.named.take());
            }
            Fault::RecordsOtherwise if !entries.is_empty() => {
                result["record"]["entries"][0]["body"] = json!("something else");
                return;
            }
            Fault::LeavesATagOpen => {
                let content = result["message"]["content"].as_str().unwrap_or_default();
                if !content.is_empty() {
                    result["message"]["content"] = json!(format!("{content}</system-reminder>"));
                }
                return;
            }
            _ => return,
        }
        if entries != before {
            refit(result, &entries);
        }
    }

    fn spoil_history(&self, fault: Fault, result: &mut Value) {
        let Some(rows) = result["records"].as_array_mut() else { return };
        match fault {
            Fault::RecordsTheOffered => {
                if let Some(record) = &self.uncommitted
                    && !rows.iter().any(|row| row["id"] == record["id"])
                {
                    rows.insert(0, record.clone());
                }
            }
            Fault::ForgetsTheCommitted if !rows.is_empty() => drop(rows.remove(0)),
            Fault::RewritesHistory if !rows.is_empty() => {
                rows[0]["entries"][0]["body"] = json!("in other words");
            }
            _ => {}
        }
    }
}

/// Makes the rest of a delivery fit its entries, as a daemon would that believes what it says.
fn refit(result: &mut Value, entries: &[Value]) {
    let record = entries.iter().map(|entry| {
        let kept = result["record"]["entries"].as_array().into_iter().flatten();
        let mut kept = kept.into_iter().find(|it| it["id"] == entry["id"]).unwrap_or(entry).clone();
        kept["body"] = entry["body"].clone();
        kept
    });
    let record: Vec<_> = record.collect();
    let bodies: Vec<_> = entries.iter().filter_map(|entry| entry["body"].as_str()).collect();
    let blocks = bodies.iter().map(|it| format!("<system-reminder>\n{it}\n</system-reminder>"));
    let content = blocks.collect::<Vec<_>>().join("\n");
    if entries.is_empty() {
        result["message"] = Value::Null;
        result["record"] = Value::Null;
    } else {
        result["message"] = json!({"role": "user", "content": content});
        if result["record"].is_null() {
            result["record"] = json!({"id": "made up"});
        }
        result["record"]["entries"] = json!(record);
    }
    result["entries"] = json!(entries);
}
