//! The floor: the daemon's own server with nothing behind it. It reads the same bytes in the same
//! way and answers with bytes that the client gave it beforehand, so that what a figure has above
//! it is what the daemon does: reading params, sessions, the engine, writing results. Params of
//! a method that it was given no answer for are parsed and dropped; the others stay unread.
//!
//! It runs in a process of its own, started from the benchmark's own file, as the daemon does.

use std::collections::HashMap;
use std::hint::black_box;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use reminderd::server::{Answer, Application, Connection, InitializeRequest, Limits, Outcome};
use reminderd_protocol::error::ErrorObject;
use reminderd_protocol::methods::Method;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::client::Client;

/// The argument that makes the benchmark's file this server.
pub const ARGUMENT: &str = "--serve-echo";

/// A client of an echo that answers these methods with these results, others with `null`.
pub fn client(replies: &Value) -> Client {
    let own_file = std::env::current_exe().expect("a program has a file");
    let mut command = Command::new(own_file);
    command.arg(ARGUMENT);
    Client::start(command, replies)
}

/// Serves until the client is gone.
pub fn serve() -> ! {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = reminderd::server::serve_stdio(Arc::new(Echo::default()), Limits::default());
    let end = runtime.expect("a runtime can be started").block_on(served);
    std::process::exit(end.status().into())
}

#[derive(Default)]
struct Echo {
    replies: OnceLock<HashMap<String, Box<RawValue>>>,
}

impl Application for Echo {
    fn initialize(
        &self,
        _: &Arc<Connection>,
        request: InitializeRequest,
    ) -> Result<Value, ErrorObject> {
        let Value::Object(replies) = request.options else { return Ok(Value::Null) };
        let text = |value: &Value| to_raw_value(value).expect("a value is JSON");
        let replies = replies.iter().map(|(method, reply)| (method.clone(), text(reply)));
        self.replies.set(replies.collect()).expect("a client initializes once");
        Ok(json!({ "capabilities": {} }))
    }

    fn call(&self, _: &Arc<Connection>, method: &'static Method, params: &str) -> Outcome {
        let reply = self.replies.get().and_then(|replies| replies.get(method.name));
        let answer: Answer = match reply {
            Some(reply) => Ok(reply.clone()),
            None => {
                let params: Value = serde_json::from_str(params).expect("params are JSON");
                drop(black_box(params));
                Ok(RawValue::NULL.to_owned())
            }
        };
        Outcome::Now(answer)
    }

    fn closed(&self, _: &Arc<Connection>) {}
}
