//! A session as a recording plays: before each WAIT it is asked of every reminder why it speaks or is
//! silent. Asking changes nothing, so that the WAITs are those of the recording.

use std::path::Path;

use serde_json::json;

use super::page::{Report, Source};
use crate::cli::conversation::{self, Played};
use crate::cli::paint::{self, count};
use crate::cli::run;
use crate::cli::run::report::{Case, End, ScriptReport, Verdict};
use crate::cli::run::script::{Action, Expectations, Script, Step};
use crate::engine::{Millis, short_name};

/// The line of a question that no recording holds.
const ASKED: usize = 0;

/// The session of a recording; of several the one that waits most often.
pub fn played(path: &Path, made: Millis) -> Result<Report, String> {
    let name = run::display_name(path);
    let stopped = |report: &ScriptReport| Err(report.ending().join("\n"));
    let mut script = match run::read_script(path) {
        Ok(script) => script,
        Err(end) => {
            return stopped(&ScriptReport { name, cases: Vec::new(), end });
        }
    };
    ask_before_waits(&mut script);
    let (messages, report) = run::play(&script, path, None)
        .map_err(|error| format!("{name} cannot be played: {error}"))?;
    if !matches!(report.end, End::Finished) {
        return stopped(&report);
    }
    let is_unmet = |case: &&Case| case.line != ASKED && !matches!(case.verdict, Verdict::Passed);
    let unmet = report.cases.iter().filter(is_unmet).count() as u64;
    if unmet > 0 {
        paint::remark(&format!(
            "{name} expects other answers than this build gives ({}): the page shows what it says \
             now",
            count(unmet, "difference")
        ));
    }
    let mut sessions = conversation::sessions(&messages);
    let waits_most = sessions.iter().max_by_key(|(_, played)| played.waits.len());
    let Some(session) = waits_most.map(|(session, _)| session.clone()) else {
        return Err(format!("{name} opens no session"));
    };
    if sessions.len() > 1 {
        paint::remark(&format!(
            "{name} holds {} sessions: the page shows {:?}, which waits most often",
            sessions.len(),
            short_name(&session, 100)
        ));
    }
    let Played { root, waits, explanations } = sessions.remove(&session).unwrap_or_default();
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        made,
        session,
        root,
        source: Source::Recording,
        waits,
        explanations: explanations.all(),
    })
}

/// Puts a question before each WAIT: whose answer the page shows beside it.
fn ask_before_waits(script: &mut Script) {
    let steps = std::mem::take(&mut script.steps);
    for step in steps {
        let scope = match &step.action {
            Action::Wait { params, .. } => Some(params),
            Action::Send { method, params } | Action::Request { method, params, .. }
                if method == "reminder/wait" =>
            {
                Some(params)
            }
            _ => None,
        };
        if let Some(params) = scope {
            let mut scope = json!({ "session": params["session"] });
            if !params["agent"].is_null() {
                scope["agent"] = params["agent"].clone();
            }
            script.steps.push(Step {
                line: ASKED,
                action: Action::Request {
                    verb: "request",
                    method: "reminder/explain".to_owned(),
                    params: scope,
                },
                name: None,
                expectations: Expectations::default(),
            });
        }
        script.steps.push(step);
    }
}
