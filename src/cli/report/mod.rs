//! `reminderd report`: a session as a page to read.
//!
//! What the page shows is known either from the store (`told.rs`: what was told, and nothing of what
//! stayed silent) or from a recording that is played (`played.rs`: everything). Both come to the same
//! data, which `page.rs` puts into one file.

pub mod page;
mod played;
mod told;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;

use super::asking::{Known, PlaceArguments, choose, known};
use super::paint::{self, Failure, Progress, count};
use crate::engine::Millis;

/// Make a page of a session: what was told, when, at what cost, and what stayed silent and why.
///
/// One file of HTML that needs nothing else and can reach no network: a time line, tokens by kind, a
/// table to sort and search, every text. It holds what models were told, so only you can read it. Of a
/// session it shows what the store keeps, which is what was told; of a recording (or any script of
/// `reminderd run`), which it plays, also why each other reminder was silent at each WAIT. Without an
/// argument it is the only session there is, or the one that was used last of those whose root holds
/// the current directory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd report demo -o demo.html && xdg-open demo.html")]
pub struct ReportArguments {
    /// The session, or the file of a recording
    #[arg(value_name = "SESSION|RECORDING")]
    of: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
    /// Write the page to this file; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &ReportArguments) -> ExitCode {
    paint::ended("report", reported(arguments))
}

fn reported(arguments: &ReportArguments) -> Result<(), Failure> {
    let making = Progress::of("making the page");
    let report = report(arguments)?;
    let page = page::page(&report).map_err(|error| error.to_string())?;
    drop(making);
    if arguments.output == Path::new("-") {
        let mut stdout = io::stdout().lock();
        stdout.write_all(page.as_bytes())?;
        return Ok(stdout.flush()?);
    }
    write(&arguments.output, &page)?;
    let told = report.waits.iter().map(|wait| wait.entries.len() as u64).sum();
    paint::remark(&format!(
        "{}: {}, {}",
        arguments.output.display(),
        count(report.waits.len() as u64, "WAIT"),
        count(told, "reminder")
    ));
    Ok(())
}

fn report(arguments: &ReportArguments) -> Result<page::Report, Failure> {
    let made = Millis::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    let archive = arguments.place.archive()?;
    let all = known(None, archive.as_ref())?;
    let is_known = |name: &str| all.iter().any(|one: &Known| one.session == name);
    if let Some(name) = arguments.of.as_deref()
        && !is_known(name)
        && looks_like_a_file(Path::new(name))
    {
        return Ok(played::played(Path::new(name), made)?);
    }
    let Some(archive) = archive else {
        arguments.place.needed_archive()?;
        return Err("the store is gone: try again".to_owned().into());
    };
    let chosen = choose(&all, arguments.of.as_deref())?;
    Ok(told::told(&archive, chosen, made)?)
}

/// Whether a file is meant, there or not.
fn looks_like_a_file(path: &Path) -> bool {
    let is_script = path.extension().is_some_and(|extension| extension == "jsonl");
    is_script || path.components().count() > 1 || path.exists()
}

/// Writes the page whole or not at all, for nobody else to read.
fn write(path: &Path, page: &str) -> Result<(), String> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(format!("{} is no file: name one that can be replaced", path.display()));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let written = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).and_then(
        |mut file| {
            file.write_all(page.as_bytes())?;
            file.persist(path)?;
            Ok(())
        },
    );
    written.map_err(|error| {
        format!("{} cannot be written: {error} (name another file with -o)", path.display())
    })
}
