//! What clients said of documents and checkers before a recording began: of no one session, and told to
//! each that is recorded later. Only what still holds is kept.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::played::Client;
use crate::engine::Millis;

/// Results of checkers that are kept at most.
const RESULTS_MAX: usize = 5_000;
/// Open documents that are kept at most, and messages of each.
const DOCUMENTS_MAX: usize = 256;
const DOCUMENT_MESSAGES_MAX: usize = 256;

/// A message.
#[derive(Clone, Debug)]
pub struct Said {
    /// When it came.
    pub at: Millis,
    /// From whom.
    pub client: Client,
    /// Its method.
    pub method: &'static str,
    /// Its params.
    pub params: Json,
}

/// Whether a message is of a method that is kept.
pub fn is_kept(method: &str) -> bool {
    method.starts_with("textDocument/") || method == "diagnostic/publish"
}

/// What still holds.
#[derive(Debug, Default)]
pub struct Backlog {
    /// The last of each checker on each file.
    results: BTreeMap<(String, String, u64), Said>,
    /// What happened to each document since it was opened; nothing of one that had too much happen.
    documents: BTreeMap<(String, u64), Vec<Said>>,
}

impl Backlog {
    /// Takes note of a message.
    pub fn note(&mut self, said: Said) {
        let uri = |of: &Json| of["uri"].as_str().unwrap_or_default().to_owned();
        let client = said.client.id;
        match said.method {
            "diagnostic/publish" | "textDocument/publishDiagnostics" => {
                let checker = said.params["checker"].as_str().unwrap_or_default().to_owned();
                let key = (uri(&said.params), checker, client);
                if self.results.len() < RESULTS_MAX || self.results.contains_key(&key) {
                    self.results.insert(key, said);
                }
            }
            "textDocument/didOpen" if self.documents.len() < DOCUMENTS_MAX => {
                let key = (uri(&said.params["textDocument"]), client);
                self.documents.insert(key, vec![said]);
            }
            "textDocument/didChange" | "textDocument/didSave" => {
                let key = (uri(&said.params["textDocument"]), client);
                if let Some(messages) = self.documents.get_mut(&key) {
                    messages.push(said);
                    if messages.len() > DOCUMENT_MESSAGES_MAX {
                        self.documents.remove(&key);
                    }
                }
            }
            "textDocument/didClose" => {
                self.documents.remove(&(uri(&said.params["textDocument"]), client));
            }
            _ => {}
        }
    }

    /// A client is gone, and what it said with it.
    pub fn disconnect(&mut self, client: u64) {
        self.results.retain(|(_, _, of), _| *of != client);
        self.documents.retain(|(_, of), _| *of != client);
    }

    /// What holds, oldest first.
    pub fn all(&self) -> Vec<Said> {
        let mut all: Vec<_> =
            self.results.values().chain(self.documents.values().flatten()).cloned().collect();
        all.sort_by_key(|said| said.at);
        all
    }
}
