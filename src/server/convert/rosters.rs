//! Sessions and rosters: openings, forms of reminders, forks.

use super::{Reported, Result, invalid, on_scope, value};
use crate::engine::{
    Definition, Event, HostReport, Limit, Member, Opening, Profile, Scope, Source, Switch,
    Switches, Value, Worktree,
};
use crate::files::{self, secrecy};
use crate::reminders;
use crate::rules::form;
use reminderd_protocol::record as wire_record;
use reminderd_protocol::roster::{
    KindSwitches, ReminderForm, RosterConfigureParams, RosterRegisterParams, RosterRemoveParams,
    RosterRow, RosterSource,
};
use reminderd_protocol::scope::Scope as WireScope;
use reminderd_protocol::session::{
    ForkReport, ForkWorktree, HostForm, HostHistory, HostPersists, HostReceipts, HostRender,
    RejectedRecord, SessionOpenParams,
};

/// What `session/open` brings.
#[derive(Debug)]
pub struct Parsed {
    /// What the engine opens with.
    pub opening: Opening,
    /// Records that cannot even be read: rejected alone.
    pub unreadable: Vec<RejectedRecord>,
    /// What values were that this build does not know.
    pub skipped: Vec<&'static str>,
}

/// `session/open`
pub fn opening(params: SessionOpenParams) -> Result<Parsed> {
    let profile = match params.profile.as_deref() {
        None => None,
        Some(name) => {
            let known = Profile::ALL.into_iter().find(|profile| profile.name() == name);
            Some(known.ok_or_else(|| {
                let names = Profile::ALL.map(Profile::name).join(", ");
                invalid(format!("profile {name:?} is unknown: write one of {names}"))
            })?)
        }
    };
    let mut unreadable = Vec::new();
    let records = params.records.map(|records| {
        let mut read = Vec::with_capacity(records.len());
        for (index, json) in records.into_iter().enumerate() {
            // A record that does not even say its id goes by its place.
            let id = json["id"].as_str().map_or_else(|| format!("#{}", index + 1), str::to_owned);
            match serde_json::from_value::<wire_record::InjectionRecord>(json) {
                Ok(record) => match super::record(record) {
                    Ok(record) => read.push(record),
                    Err(error) => {
                        unreadable.push(RejectedRecord { id, reason: error.message });
                    }
                },
                Err(error) => {
                    unreadable
                        .push(RejectedRecord { id, reason: format!("is no record: {error}") });
                }
            }
        }
        read
    });
    let mut skipped = Vec::new();
    let host = params.host.map(|form| host(form, &mut skipped)).unwrap_or_default();
    let mut reminders = Vec::with_capacity(params.reminders.len());
    for form in params.reminders {
        reminders.push(definition(form, &mut skipped)?);
    }
    let denied = secrecy::Options { deny: params.deny.clone(), ..secrecy::Options::default() };
    if let Some(problem) = files::Secrecy::new(None, &denied).problems().first() {
        return Err(invalid(format!("`deny`: {problem}: mend it, nothing was opened")));
    }
    let opening = Opening {
        root: params.root.map(|root| files::identity::path_of(&root)),
        profile,
        kinds: params.kinds.map(switches).unwrap_or_default(),
        reminders,
        host,
        records,
        trusted: params.trusted,
        deny: params.deny,
        own: params.own,
        configuration_file: None,
    };
    Ok(Parsed { opening, unreadable, skipped })
}

/// The worktree of a fork, and the report that its model is told.
pub fn fork(
    worktree: Option<ForkWorktree>,
    report: Option<ForkReport>,
) -> (Option<Worktree>, Option<String>) {
    let worktree =
        worktree.map(|it| Worktree { directory: it.directory, branch: it.branch, base: it.base });
    let report = report
        .map(|it| reminders::fork_report(it.restored, &it.unrestored, &it.external, &it.dropped));
    (worktree, report)
}

/// What the host does. A word that this build does not know changes nothing.
fn host(form: HostForm, skipped: &mut Vec<&'static str>) -> HostReport {
    let mut known = |what: &'static str, value: Option<bool>, is_unknown: bool| {
        if is_unknown {
            skipped.push(what);
            return None;
        }
        value
    };
    let HostForm { history, receipts, render, persists, .. } = &form;
    HostReport {
        native: known(
            "host.history",
            history.as_ref().map(|it| *it == HostHistory::Native),
            history.as_ref().is_some_and(HostHistory::is_unknown),
        ),
        late_receipts: known(
            "host.receipts",
            receipts.as_ref().map(|it| *it == HostReceipts::Late),
            receipts.as_ref().is_some_and(HostReceipts::is_unknown),
        ),
        plain: known(
            "host.render",
            render.as_ref().map(|it| *it == HostRender::Plain),
            render.as_ref().is_some_and(HostRender::is_unknown),
        ),
        replays: known(
            "host.persists",
            persists.as_ref().map(|it| *it == HostPersists::None),
            persists.as_ref().is_some_and(HostPersists::is_unknown),
        ),
        limit: Limit {
            bytes: form.max_bytes,
            chars: form.max_chars,
            utf16: form.max_utf16,
            tokens: None,
        },
        tools: form.tools,
    }
}

pub(super) fn switches(kinds: KindSwitches) -> Switches {
    let switch = |json: serde_json::Value| match json {
        serde_json::Value::Bool(false) => Switch::Off,
        serde_json::Value::Object(_) => Switch::On(value(json)),
        _ => Switch::On(Value::empty_map()),
    };
    kinds.0.into_iter().map(|(name, json)| (name, switch(json))).collect()
}

/// A reminder of the user's own, as data.
fn definition(mut form: ReminderForm, skipped: &mut Vec<&'static str>) -> Result<Definition> {
    if form.lane.take_if(|lane| lane.is_unknown()).is_some() {
        skipped.push("reminder.lane");
    }
    if let Some(scopes) = &mut form.scopes {
        let unknown = scopes.extract_if(.., |scope| scope.is_unknown());
        skipped.extend(unknown.map(|_| "reminder.scopes"));
    }
    let form = serde_json::to_value(form).map_err(|error| invalid(error.to_string()))?;
    form::definition(&value(form)).map_err(|refusal| super::error(&refusal))
}

/// The roster of a scope: what was asked for, not what the daemon always has.
pub fn roster(scope: &Scope) -> Vec<RosterRow> {
    let listed = scope.roster.iter().filter(|member| member.source != Source::Standing);
    listed.map(roster_row).collect()
}

fn roster_row(member: &Member) -> RosterRow {
    RosterRow {
        id: member.id().to_owned(),
        kind: member.definition.kind.clone(),
        enabled: member.enabled,
        policy: member.reminder.stated_policy().to_string(),
        source: match member.source {
            Source::Default | Source::Standing => RosterSource::Default,
            Source::Config => RosterSource::Config,
            Source::Client => RosterSource::Client,
        },
    }
}

/// `roster/register`
pub fn register(params: RosterRegisterParams) -> Result<Reported> {
    let mut skipped = Vec::new();
    let definition = definition(params.reminder, &mut skipped)?;
    Ok(on_scope(params.scope, Event::Registered(definition))?.skipping(skipped))
}

/// `roster/remove`
pub fn remove(params: RosterRemoveParams) -> Result<Reported> {
    on_scope(params.scope, Event::Removed { id: params.id })
}

/// `roster/configure`
pub fn configure(params: RosterConfigureParams) -> Result<Reported> {
    on_scope(params.scope, Event::Configured(switches(params.kinds)))
}

/// `roster/reset`
pub fn reset(scope: WireScope) -> Result<Reported> {
    on_scope(scope, Event::Reset)
}
