//! The method table: one row for each method of the protocol.

use crate::agent::{AgentSettleParams, AgentSpawnParams};
use crate::diagnostics::{DiagnosticPublishParams, PublishDiagnosticsParams};
use crate::files::{
    DidChangeParams, DidChangeWatchedFilesParams, DidCloseParams, DidOpenParams, DidSaveParams,
    EditBeginParams, EditEndParams, EditSettleParams, EditSettleResult, FileChangedParams,
    FileForgetParams, FileReadParams, FileWroteParams,
};
use crate::history::{
    HistoryCompactedParams, HistoryParams, HistoryReportedParams, HistoryResult,
    HistoryRewoundParams,
};
use crate::initialize::{
    CancelParams, ClockParams, ClockResult, InitializeParams, InitializeResult, SetTraceParams,
    SurroundingsParams,
};
use crate::problem::ProblemParams;
use crate::queue::{AcknowledgeParams, EnqueueParams, ObserveParams, StageParams, WithdrawParams};
use crate::roster::{
    ComputeParams, ComputeResult, ExplainResult, RosterConfigureParams, RosterRegisterParams,
    RosterRemoveParams, RosterRemoveResult, RosterRow,
};
use crate::scope::Scope;
use crate::session::{
    SessionCloseParams, SessionForkParams, SessionOpenParams, SessionOpenResult, SessionSummary,
};
use crate::state::{
    DateSetParams, FactSetParams, GoalChargeParams, GoalSetParams, HookContextParams,
    HookOutcomeParams, JobEndedParams, MentionAddParams, ModeSetParams, PatchRevisedParams,
    PlanSetParams, PoolSetParams, SectionSetParams, SessionState, SkillAttachParams,
    SkillOfferParams, Task, TaskPutParams, TaskRemoveParams, TaskReplaceParams, UsageReportParams,
    VerifierStartedParams,
};
use crate::turn::{ToolBeginParams, ToolEndParams, TurnBeginParams, TurnEndParams};
use crate::wait::{CommitParams, CommitResult, Delivery, ReleaseParams, ReleaseResult, WaitParams};
use crate::wire::NoParams;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Who sends a method and whether it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// Client to server, answered.
    Request,
    /// Client to server, as a notification or as a request that is answered with `null`.
    Event,
    /// Client to server, not answered.
    Notification,
    /// Server to client, answered.
    ServerRequest,
    /// Server to client, not answered.
    ServerNotification,
}

impl MethodKind {
    /// The name in the schema.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Event => "event",
            Self::Notification => "notification",
            Self::ServerRequest => "serverRequest",
            Self::ServerNotification => "serverNotification",
        }
    }
}

/// A wire type of the table.
#[derive(Clone, Copy, Debug)]
pub struct WireType {
    /// Its name in Rust; `()` is `null` on the wire.
    pub name: &'static str,
    /// Its JSON Schema, a reference into the generator's definitions where it has a name.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Reads a value of the type and writes it back as this crate would have written it.
    pub canonical: fn(&Value) -> Result<Value, serde_json::Error>,
}

impl WireType {
    /// The type `T`, under a name.
    pub const fn of<T: JsonSchema + Serialize + DeserializeOwned>(name: &'static str) -> Self {
        Self {
            name,
            schema: SchemaGenerator::subschema_for::<T>,
            canonical: |value| serde_json::to_value(T::deserialize(value)?),
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Who sends it and whether it is answered.
    pub kind: MethodKind,
    /// The protocol version that brought it.
    pub since: u32,
    /// The type of its params.
    pub params: WireType,
    /// The type of its result; an event has one only when it is sent as a request.
    pub result: Option<WireType>,
}

/// The row of a method, if the protocol has it.
pub fn find(name: &str) -> Option<&'static Method> {
    static BY_NAME: LazyLock<HashMap<&str, &Method>> =
        LazyLock::new(|| METHODS.iter().map(|method| (method.name, method)).collect());
    BY_NAME.get(name).copied()
}

macro_rules! methods {
    ($( $name:literal $kind:ident since $since:literal: $params:ty $(=> $result:ty)?; )+) => {
        /// All methods of the protocol, in the order of `SPEC.md`.
        pub static METHODS: &[Method] = &[$(
            Method {
                name: $name,
                kind: MethodKind::$kind,
                since: $since,
                params: WireType::of::<$params>(stringify!($params)),
                result: methods!(@result $($result)?),
            },
        )+];
    };
    (@result) => { None };
    (@result $result:ty) => { Some(WireType::of::<$result>(stringify!($result))) };
}

methods! {
    // The life of a connection.
    "initialize" Request since 1: InitializeParams => InitializeResult;
    "initialized" Notification since 1: NoParams;
    "shutdown" Request since 1: NoParams => ();
    "exit" Notification since 1: NoParams;
    "$/cancelRequest" Notification since 1: CancelParams;
    "$/setTrace" Notification since 1: SetTraceParams;
    "reminderd/problem" ServerNotification since 1: ProblemParams;
    "file/changed" ServerNotification since 1: FileChangedParams;
    "reminderd/clock" Request since 1: ClockParams => ClockResult;
    "reminderd/surroundings" Request since 1: SurroundingsParams => ();

    // Sessions, agents, turns.
    "session/open" Request since 1: SessionOpenParams => SessionOpenResult;
    "session/close" Request since 1: SessionCloseParams => ();
    "session/fork" Request since 1: SessionForkParams => SessionOpenResult;
    "session/list" Request since 1: NoParams => Vec<SessionSummary>;
    "session/state" Request since 1: Scope => SessionState;
    "agent/spawn" Event since 1: AgentSpawnParams => ();
    "agent/settle" Event since 1: AgentSettleParams => ();
    "turn/begin" Event since 1: TurnBeginParams => ();
    "turn/end" Event since 1: TurnEndParams => ();
    "tool/begin" Event since 1: ToolBeginParams => ();
    "tool/end" Event since 1: ToolEndParams => ();

    // The WAIT.
    "reminder/wait" Request since 1: WaitParams => Delivery;
    "reminder/commit" Request since 1: CommitParams => CommitResult;
    "reminder/release" Request since 1: ReleaseParams => ReleaseResult;

    // What the client puts in directly.
    "reminder/stage" Event since 1: StageParams => ();
    "reminder/observe" Event since 1: ObserveParams => ();
    "reminder/enqueue" Event since 1: EnqueueParams => ();
    "reminder/withdraw" Event since 1: WithdrawParams => ();
    "reminder/acknowledge" Event since 1: AcknowledgeParams => ();

    // Roster and insight.
    "roster/list" Request since 1: Scope => Vec<RosterRow>;
    "roster/register" Event since 1: RosterRegisterParams => ();
    "roster/remove" Event since 1: RosterRemoveParams => RosterRemoveResult;
    "roster/configure" Event since 1: RosterConfigureParams => ();
    "roster/reset" Event since 1: Scope => ();
    "reminder/explain" Request since 1: Scope => ExplainResult;
    "reminder/history" Request since 1: HistoryParams => HistoryResult;
    "reminder/compute" ServerRequest since 1: ComputeParams => ComputeResult;

    // History.
    "history/compacted" Event since 1: HistoryCompactedParams => ();
    "history/rewound" Event since 1: HistoryRewoundParams => ();
    "history/cleared" Event since 1: Scope => ();
    "history/reported" Event since 1: HistoryReportedParams => ();

    // State that reminders speak about.
    "mode/set" Event since 1: ModeSetParams => ();
    "plan/set" Event since 1: PlanSetParams => ();
    "task/put" Event since 1: TaskPutParams => ();
    "task/remove" Event since 1: TaskRemoveParams => ();
    "task/replace" Event since 1: TaskReplaceParams => ();
    "task/list" Request since 1: Scope => Vec<Task>;
    "goal/set" Event since 1: GoalSetParams => ();
    "goal/charge" Event since 1: GoalChargeParams => ();
    "usage/report" Event since 1: UsageReportParams => ();
    "pool/set" Event since 1: PoolSetParams => ();
    "section/set" Event since 1: SectionSetParams => ();
    "mention/add" Event since 1: MentionAddParams => ();
    "skill/offer" Event since 1: SkillOfferParams => ();
    "skill/attach" Event since 1: SkillAttachParams => ();
    "hook/context" Event since 1: HookContextParams => ();
    "hook/outcome" Event since 1: HookOutcomeParams => ();
    "patch/revised" Event since 1: PatchRevisedParams => ();
    "verifier/started" Event since 1: VerifierStartedParams => ();
    "job/ended" Event since 1: JobEndedParams => ();
    "date/set" Event since 1: DateSetParams => ();
    "fact/set" Event since 1: FactSetParams => ();

    // Files and diagnostics.
    "file/read" Event since 1: FileReadParams => ();
    "file/wrote" Event since 1: FileWroteParams => ();
    "file/forget" Event since 1: FileForgetParams => ();
    "textDocument/didOpen" Event since 1: DidOpenParams => ();
    "textDocument/didChange" Event since 1: DidChangeParams => ();
    "textDocument/didSave" Event since 1: DidSaveParams => ();
    "textDocument/didClose" Event since 1: DidCloseParams => ();
    "workspace/didChangeWatchedFiles" Event since 1: DidChangeWatchedFilesParams => ();
    "edit/begin" Event since 1: EditBeginParams => ();
    "edit/end" Event since 1: EditEndParams => ();
    "edit/settle" Request since 1: EditSettleParams => EditSettleResult;
    "diagnostic/publish" Event since 1: DiagnosticPublishParams => ();
    "textDocument/publishDiagnostics" Event since 1: PublishDiagnosticsParams => ();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_under_its_own_name_alone() {
        for method in METHODS {
            assert!(std::ptr::eq(find(method.name).unwrap(), method), "{}", method.name);
        }
        assert!(find("reminder/collect").is_none());
    }
}
