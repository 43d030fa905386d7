//! The life of a connection as the Language Server Protocol has it. The only place that names
//! tower-lsp.
//!
//! `LspService` decides what `initialize`, `initialized`, `shutdown` and `exit` may do when. Its
//! `Server` loop is not used (`transport` says why), and the methods of our own table do not go
//! through its router: that costs five boxed futures and an entry in a map for every call, and
//! it cannot answer an event that was sent as a request. Document synchronisation is in our table
//! too, since its notifications are ordinary events here.
//!
//! Clients send odd things in `initialize`. What we do not use is left out before the framework
//! sees it, and what is ill-typed is dropped, so that no client fails for a member that nobody
//! reads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tower_lsp::jsonrpc::{Error, ErrorCode, Request, Response};
use tower_lsp::lsp_types::{
    ClientCapabilities, ClientInfo, InitializeParams, InitializeResult, InitializedParams,
};
use tower_lsp::{LanguageServer, LspService};
use tower_service::Service;

use super::order::{Answer, Application, Connection, panicked};

/// What a client said about itself in `initialize`.
#[derive(Clone, Debug, Default)]
pub struct InitializeRequest {
    /// The process whose death ends the connection.
    pub process_id: Option<u32>,
    /// The client's name and version, if it gave them.
    pub client: Option<(String, Option<String>)>,
    /// Its capabilities, those that the protocol knows and that are well-typed.
    pub capabilities: Value,
    /// `initializationOptions` as sent, `null` when absent.
    pub options: Value,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Uninitialized,
    Initialized,
    ShutDown,
    Exited,
}

/// The life of one connection.
#[derive(Debug)]
pub(super) struct Life {
    service: LspService<Backend>,
    stage: Stage,
    was_shut_down: bool,
}

impl Life {
    pub(super) fn new(application: Arc<dyn Application>, connection: Arc<Connection>) -> Self {
        // The socket of the framework's own client is dropped: `peer` takes its place.
        let (service, _) = LspService::new(|_| Backend { application, connection });
        Self { service, stage: Stage::Uninitialized, was_shut_down: false }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether `shutdown` was ever answered, also after `exit`.
    pub(super) fn was_shut_down(&self) -> bool {
        self.was_shut_down
    }

    /// `initialize` with the JSON text of its params. After a refusal the client may try again.
    pub(super) fn initialize(&mut self, params: &str) -> Answer {
        let params = serde_json::from_str(params).unwrap_or(Value::Null);
        let request = Request::build("initialize").id(0).params(lenient(params)).finish();
        let answer = self.call(request);
        if answer.is_ok() {
            self.stage = Stage::Initialized;
        }
        answer
    }

    pub(super) fn initialized(&mut self) {
        self.notice(Request::build("initialized").params(json!({})).finish());
    }

    pub(super) fn shutdown(&mut self) -> Answer {
        let answer = self.call(Request::build("shutdown").id(0).finish());
        if answer.is_ok() {
            self.stage = Stage::ShutDown;
            self.was_shut_down = true;
        }
        answer
    }

    pub(super) fn exit(&mut self) {
        self.notice(Request::build("exit").finish());
        self.stage = Stage::Exited;
    }

    /// Calls the framework and polls its future once, at once, so that calls take effect in the
    /// order of their arrival. None of the four methods waits for anything.
    fn poll_once(&mut self, request: Request) -> Option<Response> {
        self.service.call(request).now_or_never()?.ok()?
    }

    fn notice(&mut self, request: Request) {
        // The answer of a notification is none.
        let _: Option<Response> = self.poll_once(request);
    }

    fn call(&mut self, request: Request) -> Answer {
        let Some(response) = self.poll_once(request) else {
            return Err(ErrorObject::new(ErrorKind::Internal, "the request was left unanswered"));
        };
        match response.into_parts().1 {
            Ok(result) => serde_json::value::to_raw_value(&result).map_err(|error| {
                ErrorObject::new(ErrorKind::Internal, format!("the answer is not JSON: {error}"))
            }),
            Err(error) => Err(explained(error)),
        }
    }
}

/// Keeps what we use of the params of `initialize`, in a shape that cannot be refused.
fn lenient(params: Value) -> Value {
    let Value::Object(mut members) = params else { return json!({ "capabilities": {} }) };
    let mut kept = Map::new();
    if let Some(id) = members.remove("processId").filter(is::<u32>) {
        kept.insert("processId".to_owned(), id);
    }
    if let Some(info) = members.remove("clientInfo").filter(is::<ClientInfo>) {
        kept.insert("clientInfo".to_owned(), info);
    }
    if let Some(options) = members.remove("initializationOptions") {
        kept.insert("initializationOptions".to_owned(), options);
    }
    let mut capabilities = Map::new();
    if let Some(Value::Object(announced)) = members.remove("capabilities") {
        for (name, value) in announced {
            let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
            if is::<ClientCapabilities>(&alone) {
                capabilities.insert(name, value);
            }
        }
    }
    kept.insert("capabilities".to_owned(), Value::Object(capabilities));
    Value::Object(kept)
}

fn is<T: serde::de::DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

/// An error of the framework in our words; our own errors pass as they are.
fn explained(error: Error) -> ErrorObject {
    if error.data.is_some() {
        let message = error.message.into_owned();
        return ErrorObject { code: error.code.code(), message, data: error.data };
    }
    match error.code.code() {
        -32002 => not_initialized(),
        -32600 => ErrorObject::new(
            ErrorKind::InvalidRequest,
            "the connection was initialized before: initialize and shutdown are sent once",
        ),
        -32602 => ErrorObject::new(ErrorKind::InvalidParams, error.message),
        _ => ErrorObject::new(ErrorKind::Internal, error.message),
    }
}

/// The answer to a request that came too early.
pub(super) fn not_initialized() -> ErrorObject {
    ErrorObject::new(
        ErrorKind::NotInitialized,
        "the connection is not initialized: send `initialize` first and wait for its answer",
    )
}

/// What the framework calls.
#[derive(Debug)]
struct Backend {
    application: Arc<dyn Application>,
    connection: Arc<Connection>,
}

impl std::fmt::Debug for dyn Application {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Application")
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(
        &self,
        params: InitializeParams,
    ) -> tower_lsp::jsonrpc::Result<InitializeResult> {
        let request = InitializeRequest {
            process_id: params.process_id,
            client: params.client_info.map(|info| (info.name, info.version)),
            capabilities: serde_json::to_value(params.capabilities).unwrap_or_default(),
            options: params.initialization_options.unwrap_or_default(),
        };
        // Caught here, so that the framework never learns of a panic half-way through.
        let reply = std::panic::catch_unwind(AssertUnwindSafe(|| {
            self.application.initialize(&self.connection, request.clone())
        }))
        .unwrap_or_else(|_| Err(panicked("initialize")))
        .map_err(framework_error)?;
        let result = serde_json::from_value(reply).map_err(|error| {
            let message = format!("the answer to initialize is ill-formed: {error}");
            framework_error(ErrorObject::new(ErrorKind::Internal, message))
        })?;
        self.connection.initialized(request);
        Ok(result)
    }

    async fn initialized(&self, _: InitializedParams) {
        tracing::debug!(connection = self.connection.id(), "the client is ready");
    }

    async fn shutdown(&self) -> tower_lsp::jsonrpc::Result<()> {
        tracing::debug!(connection = self.connection.id(), "the client shuts down");
        Ok(())
    }
}

fn framework_error(error: ErrorObject) -> Error {
    Error { code: ErrorCode::from(error.code), message: error.message.into(), data: error.data }
}

/// The JSON text `null`, as an answer.
pub(super) fn null() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}
