//! Diagnostics, and the texts that they are about.

use reminderd_protocol::diagnostics::{
    Diagnostic as WireDiagnostic, DiagnosticPublishParams, DiagnosticState,
    PublishDiagnosticsParams,
};
use reminderd_protocol::files::{
    ContentChange, Position as WirePosition, Range, SettleOutcome as WireOutcome,
};
use reminderd_protocol::state::{EditedFileState, SessionState};
use serde_json::Value;

use super::{Result, named};
use crate::diagnostics::{Diagnostic, EditedFile, Outcome, Position, Report, Standing, TextChange};
use crate::files::identity;

/// `diagnostic/publish`: the file's path and what was said of it; nothing when the checker is in a
/// state that this build does not know.
pub fn publish(
    params: DiagnosticPublishParams,
    connection: u64,
) -> Result<(String, Option<Report>)> {
    let path = identity::path_of(&named("uri", params.uri)?);
    let checker = named("checker", params.checker)?;
    let standing = match params.state {
        None | Some(DiagnosticState::Done) => Standing::Done,
        Some(DiagnosticState::Running) => Standing::Running,
        Some(DiagnosticState::Failed) => Standing::Failed,
        Some(DiagnosticState::None) => Standing::Absent,
        Some(DiagnosticState::Unknown(_)) => return Ok((path, None)),
    };
    let found = match standing {
        Standing::Done => found(&params.diagnostics.unwrap_or_default()),
        _ => Vec::new(),
    };
    let report = Report { checker, connection, version: params.version, standing, found };
    Ok((path, Some(report)))
}

/// `textDocument/publishDiagnostics`; without a checker it is the client's.
pub fn report(
    params: PublishDiagnosticsParams,
    connection: u64,
    client: &str,
) -> Result<(String, Report)> {
    let path = identity::path_of(&named("uri", params.uri)?);
    let report = Report {
        checker: params.checker.unwrap_or_else(|| client.to_owned()),
        connection,
        version: params.version,
        standing: Standing::Done,
        found: found(&params.diagnostics),
    };
    Ok((path, report))
}

/// Those that can be read.
fn found(diagnostics: &[Value]) -> Vec<Diagnostic> {
    let readable = diagnostics.iter().filter_map(WireDiagnostic::read);
    let found = readable.map(|read| {
        let range = read.range.map(range);
        Diagnostic::new(range, read.severity, read.code, read.source, &read.message)
    });
    found.collect()
}

fn range(range: Range) -> (Position, Position) {
    let position = |WirePosition { line, character }| Position { line, character };
    (position(range.start), position(range.end))
}

/// The changes of a document.
pub fn changes(changes: Vec<ContentChange>) -> Vec<TextChange> {
    let change =
        |change: ContentChange| TextChange { range: change.range.map(range), text: change.text };
    changes.into_iter().map(change).collect()
}

/// How waiting for a file's checkers ended.
pub fn outcome(outcome: Outcome) -> WireOutcome {
    match outcome {
        Outcome::Ready => WireOutcome::Ready,
        Outcome::Timeout => WireOutcome::Timeout,
        Outcome::Stale => WireOutcome::Stale,
        Outcome::None => WireOutcome::None,
    }
}

/// Adds what is known of diagnostics to the state of a scope.
pub fn add_checks(state: &mut SessionState, edited: &[EditedFile], skipped: u64) {
    let row = |file: &EditedFile| EditedFileState {
        path: file.path.clone(),
        reported: file.is_fresh,
        new: file.new,
        before: file.before,
        resolved: file.resolved,
    };
    state.diagnostics = edited.iter().map(row).collect();
    if skipped > 0 {
        state.skipped.insert("diagnostic.state".to_owned(), skipped);
    }
}
