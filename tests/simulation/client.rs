//! A client in this process: its bytes come in pieces of any size, and what the daemon says can be
//! spoilt on the way.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, split,
};
use tokio::time::timeout;

use crate::faults::Planted;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a request was answered with; an error as its object.
pub type Answer = Result<Value, Value>;

/// A connection.
pub struct Client {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    last: u64,
    /// What was asked and is not answered.
    open: BTreeMap<u64, (String, Value)>,
    answers: BTreeMap<u64, Answer>,
}

impl Client {
    pub fn new(stream: DuplexStream) -> Self {
        let (input, output) = split(stream);
        Self {
            input: BufReader::new(input),
            output,
            last: 0,
            open: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    /// Sends a request, and returns its id.
    pub async fn send(&mut self, method: &str, params: Value, rng: &mut Rng) -> u64 {
        self.last += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.open.insert(self.last, (method.to_owned(), params));
        self.write(format!("{request}\n").as_bytes(), rng).await;
        self.last
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value, rng: &mut Rng) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(format!("{message}\n").as_bytes(), rng).await;
    }

    /// Sends the first part of a message, and no more.
    pub async fn break_off(&mut self, method: &str, params: Value, rng: &mut Rng) {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
        let message = message.to_string();
        let end = rng.usize(1..message.len());
        self.write(&message.as_bytes()[..end], rng).await;
    }

    /// Writes in pieces.
    async fn write(&mut self, mut bytes: &[u8], rng: &mut Rng) {
        while !bytes.is_empty() {
            let most = if rng.bool() { bytes.len() } else { rng.usize(1..=bytes.len()) };
            let (piece, rest) = bytes.split_at(most);
            self.output.write_all(piece).await.expect("the daemon reads");
            self.output.flush().await.expect("the daemon reads");
            tokio::task::yield_now().await;
            bytes = rest;
        }
    }

    /// Waits for the answer of a request.
    pub async fn answer(&mut self, id: u64, planted: &mut Planted) -> Result<Answer, String> {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(answer);
            }
            let mut line = String::new();
            let read = timeout(PATIENCE, self.input.read_line(&mut line)).await;
            match read {
                Err(_) => return Err(format!("nobody answered {:?}", self.open.get(&id))),
                Ok(Ok(0) | Err(_)) => return Err("the daemon closed the connection".to_owned()),
                Ok(Ok(_)) => {}
            }
            let message: Value = serde_json::from_str(&line)
                .map_err(|error| format!("the daemon said what is no JSON: {error}: {line}"))?;
            for message in planted.spoil(message, &self.open) {
                self.take(&message)?;
            }
        }
    }

    fn take(&mut self, message: &Value) -> Result<(), String> {
        if message.get("method").is_some() {
            return Err(format!("the daemon said what nobody asked: {message}"));
        }
        let id = message["id"].as_u64().ok_or("an answer names no request")?;
        if self.open.remove(&id).is_none() {
            return Err(format!("request {id} was answered twice, or never asked: {message}"));
        }
        let answer = match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        };
        self.answers.insert(id, answer);
        Ok(())
    }
}
