//! Injection records.

use super::{Result, agent_path};
use crate::engine::{Entry, Form, Ordinals, Phase, Record, SilentEntry};
use crate::server::digest;
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::record as wire_record;

pub(super) fn wire_phase(phase: Phase) -> wire_record::Phase {
    match phase {
        Phase::TurnStart => wire_record::Phase::TurnStart,
        Phase::MidTurn => wire_record::Phase::MidTurn,
    }
}

/// A record as a client keeps it.
pub fn wire_record(record: Record) -> wire_record::InjectionRecord {
    let Ordinals { turn, request, prompt } = record.ordinals;
    wire_record::InjectionRecord {
        record_type: wire_record::RecordType::InjectedReminders,
        version: 1,
        id: record.id,
        session: record.session,
        agent: (!record.agent.is_root()).then(|| record.agent.as_str().to_owned()),
        turn: record.turn,
        phase: wire_phase(record.phase),
        form: match record.form {
            Form::Blocks => wire_record::RecordForm::Blocks,
            Form::Block => wire_record::RecordForm::Block,
            Form::Plain => wire_record::RecordForm::Plain,
        },
        ordinals: wire_record::Ordinals { turn, request, prompt },
        entries: record
            .entries
            .into_iter()
            .map(|entry| wire_record::RecordEntry {
                id: entry.id,
                entry_type: entry.entry_type,
                key: entry.key,
                kind: entry.kind,
                label: entry.label,
                body: entry.body,
                fingerprint: entry.fingerprint,
                marks: entry.marks,
            })
            .collect(),
        silent: record
            .silent
            .into_iter()
            .map(|silent| wire_record::SilentEntry {
                entry_type: silent.entry_type,
                key: silent.key,
                kind: silent.kind,
                fingerprint: silent.fingerprint,
                marks: silent.marks,
            })
            .collect(),
        digest: record.digest,
    }
}

/// The content of the message that a record stands for. Fails where its digest is not that of its
/// members: then it is not what was told.
pub fn record_content(given: wire_record::InjectionRecord) -> Result<String> {
    let record = record(given)?;
    if !record.is_whole(digest) {
        return Err(ErrorObject::new(
            ErrorKind::BadRecord,
            "its digest does not fit its content: it was cut or changed",
        ));
    }
    Ok(record.content())
}

/// A record that a client hands back.
pub fn record(given: wire_record::InjectionRecord) -> Result<Record> {
    if given.version != 1 {
        return Err(ErrorObject::new(
            ErrorKind::BadRecord,
            format!("is of version {}, and this build reads version 1", given.version),
        ));
    }
    let wire_record::Ordinals { turn, request, prompt } = given.ordinals;
    Ok(Record {
        id: given.id,
        session: given.session,
        agent: agent_path(given.agent.as_deref())?,
        turn: given.turn,
        phase: match given.phase {
            wire_record::Phase::TurnStart => Phase::TurnStart,
            wire_record::Phase::MidTurn => Phase::MidTurn,
        },
        form: match given.form {
            wire_record::RecordForm::Blocks => Form::Blocks,
            wire_record::RecordForm::Block => Form::Block,
            wire_record::RecordForm::Plain => Form::Plain,
        },
        ordinals: Ordinals { turn, request, prompt },
        entries: given
            .entries
            .into_iter()
            .map(|entry| Entry {
                id: entry.id,
                entry_type: entry.entry_type,
                key: entry.key,
                kind: entry.kind,
                label: entry.label,
                body: entry.body,
                fingerprint: entry.fingerprint,
                marks: entry.marks,
            })
            .collect(),
        silent: given
            .silent
            .into_iter()
            .map(|silent| SilentEntry {
                entry_type: silent.entry_type,
                key: silent.key,
                kind: silent.kind,
                fingerprint: silent.fingerprint,
                marks: silent.marks,
            })
            .collect(),
        digest: given.digest,
    })
}
