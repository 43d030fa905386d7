//! `reminderd decode`: a record, and the message that it stands for.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use clap::Args;
use reminderd_protocol::record::InjectionRecord;

use super::paint::{self, Failure};
use crate::server::record_content;

/// Print the message that an injection record stands for.
///
/// Reads one record (JSON) on standard input, and prints exactly the `content` of its message: byte for
/// byte what the model was told. Exit status 1 when it is no record, or was cut or changed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd decode < record.json")]
pub struct DecodeArguments {}

/// Runs the command.
pub fn run(_: &DecodeArguments) -> ExitCode {
    paint::ended("decode", decoded())
}

fn decoded() -> Result<(), Failure> {
    let mut text = String::new();
    io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| format!("the record cannot be read: {error}"))?;
    let hint = "hand over one record on standard input, as a delivery or `reminder/history` has it";
    let record: InjectionRecord = serde_json::from_str(&text)
        .map_err(|error| format!("this is no injection record: {error} ({hint})"))?;
    let content = record_content(record)
        .map_err(|error| format!("this record cannot be decoded: {}", error.message))?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(content.as_bytes())?;
    Ok(stdout.flush()?)
}
