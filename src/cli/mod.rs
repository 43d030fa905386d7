//! The command line: one file a command.

use std::process::ExitCode;
use std::sync::Arc;

use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::methods::Method;
use serde_json::{json, value::RawValue};

use crate::server::{Application, Connection, InitializeRequest, Limits, Outcome, serve_stdio};

/// Provisional: a daemon that knows no session.
struct Empty;

impl Application for Empty {
    fn initialize(
        &self,
        _: &Arc<Connection>,
        request: InitializeRequest,
    ) -> Result<serde_json::Value, ErrorObject> {
        if request.options.get("protocolVersion").is_some_and(|version| version != 1) {
            let error = ErrorObject::new(ErrorKind::InvalidParams, "the protocol version is 1");
            return Err(error.with("kind", "version").with("supported", json!([1])));
        }
        Ok(json!({
            "serverInfo": {"name": "reminderd", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimental": {"reminderd": {"protocolVersion": 1}}},
        }))
    }

    fn call(&self, _: &Arc<Connection>, method: &'static Method, params: &str) -> Outcome {
        Outcome::Now(match method.name {
            "session/list" => RawValue::from_string("[]".to_owned())
                .map_err(|error| ErrorObject::new(ErrorKind::Internal, error.to_string())),
            "turn/begin" if params == "{}" => {
                Err(ErrorObject::new(ErrorKind::InvalidParams, "`turn/begin` needs a `session`"))
            }
            "diagnostic/publish" => Ok(RawValue::NULL.to_owned()),
            name => Err(ErrorObject::new(ErrorKind::NotYet, format!("`{name}` is to come"))),
        })
    }

    fn closed(&self, _: &Arc<Connection>) {}
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    match runtime.enable_all().build() {
        Ok(runtime) => {
            let end = runtime.block_on(serve_stdio(Arc::new(Empty), Limits::default()));
            std::process::exit(end.status().into())
        }
        Err(error) => {
            eprintln!("reminderd: no runtime: {error}");
            ExitCode::FAILURE
        }
    }
}
