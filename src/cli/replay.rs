//! `reminderd replay`: plays a recording, and says what is said otherwise than it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value as Json, json};

use super::config::document;
use super::conversation::{self, Played};
use super::paint::{self, Align, Cell, FAINT, Failure, LIVELY, Progress, Screen, Table, count};
use super::report::page::{Outcome, Reminder, Wait};
use super::run::report::{Case, End, ScriptReport, Verdict};
use super::run::script::{Action, Script};
use super::run::{self, Message};
use crate::configuration::Layer;
use crate::engine::short_name;

/// How much of a text a difference shows, in characters.
const SHOWN_CHARS: usize = 200;
/// How many differing answers are shown that no WAIT shows.
const CASES_SHOWN: usize = 3;

/// Play a recording, and say what is said otherwise than it was.
///
/// Nothing of this machine is looked at: not its clock, its files or its configuration, all of which
/// stand in the recording. The same build says the same, byte for byte. With `--config`, the file takes
/// the place of the user's own configuration, and with `--against` another build that of this one:
/// then the first difference is shown, and by type what would have been told more or less, and what
/// that would have cost. Exit status: 0 when all is said as it was, 1 when something is not, 2 when it
/// cannot be played.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: what would my new rule have said last week, and what would it have cost?\n  \
                  $ reminderd replay demo.jsonl --config new.toml"
)]
pub struct ReplayArguments {
    /// The recording, as `reminderd record` lists it
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Play it under this configuration instead of the user's own
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Play it with this program, another build of reminderd
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// One JSON object: the numbers, and the first difference
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &ReplayArguments) -> ExitCode {
    match replayed(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            let _failure = paint::ended("replay", Err(failure));
            ExitCode::from(2)
        }
    }
}

/// Whether all was said as it was.
fn replayed(arguments: &ReplayArguments) -> Result<bool, Failure> {
    let path = &arguments.recording;
    let name = run::display_name(path);
    let mut script = run::read_script(path).map_err(|end| {
        ScriptReport { name: name.clone(), cases: Vec::new(), end }.ending().join("\n")
    })?;
    if !script.plays {
        let why =
            "is no recording (`reminderd record start` makes some, `reminderd run` plays others)";
        return Err(format!("{name} {why}").into());
    }
    let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let recorded = conversation::sessions(&recorded(&text));
    if let Some(config) = &arguments.config {
        configure(&mut script, config)?;
    }
    let playing = Progress::of("playing");
    let (messages, report) = run::play(&script, path, arguments.against.as_deref())
        .map_err(|error| format!("{name} cannot be played: {error}"))?;
    drop(playing);
    if !matches!(report.end, End::Finished) {
        return Err(report.ending().join("\n").into());
    }
    if let Some(why) = not_taken(&script, &report) {
        return Err(format!("{name}:{why}").into());
    }
    let comparison = Comparison::of(&recorded, &conversation::sessions(&messages));
    let is_same = report.cases.iter().all(|case| matches!(case.verdict, Verdict::Passed));
    if arguments.json {
        paint::print(&paint::json_line(&comparison.as_json(is_same)))?;
    } else {
        comparison.tell(&name, &report, is_same)?;
    }
    Ok(is_same)
}

/// Why the daemon did not take what the recording gives it, if it did not.
fn not_taken(script: &Script, report: &ScriptReport) -> Option<String> {
    let given = script.steps.iter().filter(|step| step.is_of_recordings());
    let lines: BTreeSet<_> = given.map(|step| step.line).collect();
    let of_given = report.cases.iter().filter(|case| lines.contains(&case.line));
    let refused = of_given.filter_map(|case| match &case.verdict {
        Verdict::Failed(mismatches) => Some((case.line, &mismatches.first()?.got)),
        _ => None,
    });
    refused.map(|(line, why)| format!("{line}: {why}")).next()
}

/// Has this file take the place of the user's own configuration.
fn configure(script: &mut Script, path: &Path) -> Result<(), String> {
    let document = document(path, Layer::User);
    let document = document.map_err(|error| format!("{}: {error}", path.display()))?;
    if document.broken {
        let mistakes = document.mistakes.iter();
        let rendered = mistakes.map(|it| it.rendered(&document.origin, &document.source));
        return Err(rendered.collect::<Vec<_>>().join("\n\n"));
    }
    if !document.mistakes.is_empty() {
        let command = format!("reminderd config check {}", path.display());
        paint::remark(&format!("there are mistakes in the configuration: see `{command}`"));
    }
    // As people spell it, so that what is explained leads there.
    let given = json!({
        "path": path, "isUsers": true, "text": &*document.source, "isBroken": false,
        "isInside": true,
    });
    for step in &mut script.steps {
        let Action::Request { method, params, .. } = &mut step.action else { continue };
        if method == "reminderd/surroundings"
            && let Some(files) = params["configuration"].as_array_mut()
        {
            files.retain(|file| file["isUsers"] != true);
            files.insert(0, given.clone());
        }
    }
    Ok(())
}

/// The conversation that a recording holds.
fn recorded(text: &str) -> Vec<Message> {
    let mut messages = Vec::new();
    // What was sent and is answered by a later line.
    let mut sent = BTreeMap::new();
    let mut id = 0;
    for line in text.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let (method, params) = match &line {
            it if it["open"].is_object() => (json!("session/open"), &it["open"]),
            it if it["wait"].is_object() => (json!("reminder/wait"), &it["wait"]),
            it if it["commit"].is_object() => (json!("reminder/commit"), &it["commit"]),
            it if it["release"].is_object() => (json!("reminder/release"), &it["release"]),
            it if it["request"].is_string() => (it["request"].clone(), &it["params"]),
            it if it["send"].is_string() => (it["send"].clone(), &it["params"]),
            it if it["clock"].is_string() => {
                let milliseconds = it["clock"].as_str().and_then(|clock| {
                    clock.strip_prefix('+')?.strip_suffix("ms")?.parse::<u64>().ok()
                });
                let params = json!({ "advanceMs": milliseconds });
                messages
                    .push(from("client", json!({"method": "reminderd/clock", "params": params})));
                continue;
            }
            it if it["await"].is_string() => {
                let answered = sent.remove(it["await"].as_str().unwrap_or_default());
                messages.extend(answered.and_then(|id| answer(&line, id)));
                continue;
            }
            _ => continue,
        };
        id += 1;
        let params = unescaped(params);
        messages.push(from("client", json!({ "id": id, "method": method, "params": params })));
        match line["as"].as_str() {
            Some(name) => _ = sent.insert(name.to_owned(), id),
            None => messages.extend(answer(&line, id)),
        }
    }
    messages
}

fn from(whom: &str, message: Json) -> Message {
    Message { from: whom.to_owned(), message }
}

fn answer(line: &Json, id: i64) -> Option<Message> {
    if !line["expectError"].is_null() || line["cancel"] == true {
        return None;
    }
    Some(from("daemon", json!({ "id": id, "result": unescaped(&line["expect"]) })))
}

/// A value as the script stands for it.
fn unescaped(value: &Json) -> Json {
    match value {
        Json::String(text) => text.strip_prefix('$').unwrap_or(text).into(),
        Json::Array(elements) => elements.iter().map(unescaped).collect(),
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), unescaped(value))).collect()
        }
        scalar => scalar.clone(),
    }
}

/// How often something is told, and what it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    times: u64,
    tokens: u64,
}

/// What is told now, beside what was told then.
#[derive(Debug, Default)]
struct Comparison {
    waits: u64,
    /// By type: then and now.
    by_type: BTreeMap<String, [Told; 2]>,
    first: Option<Difference>,
}

/// A WAIT that says something else.
#[derive(Debug)]
struct Difference {
    session: String,
    /// Which WAIT of its session, from 1.
    number: usize,
    /// Then and now.
    waits: [Option<Wait>; 2],
}

impl Comparison {
    fn of(then: &BTreeMap<String, Played>, now: &BTreeMap<String, Played>) -> Self {
        let mut comparison = Self::default();
        let nothing = Played::default();
        let sessions = then.keys().chain(now.keys().filter(|name| !then.contains_key(*name)));
        for session in sessions {
            let both = [then, now].map(|all| all.get(session).unwrap_or(&nothing));
            comparison.add(session, both.map(|played| &*played.waits));
        }
        comparison
    }

    fn add(&mut self, session: &str, both: [&[Wait]; 2]) {
        let length = both[0].len().max(both[1].len());
        self.waits += length as u64;
        for index in 0..length {
            let waits = both.map(|waits| waits.get(index));
            for (side, wait) in waits.iter().enumerate() {
                let told = wait.iter().filter(|wait| wait.outcome == Outcome::Committed);
                for reminder in told.flat_map(|wait| &wait.entries) {
                    let told = self.by_type.entry(reminder.entry_type.clone()).or_default();
                    told[side].times += 1;
                    told[side].tokens += reminder.tokens;
                }
            }
            if self.first.is_none() && said(waits[0]) != said(waits[1]) {
                self.first = Some(Difference {
                    session: session.to_owned(),
                    number: index + 1,
                    waits: waits.map(Option::<&Wait>::cloned),
                });
            }
        }
    }

    fn total(&self) -> [Told; 2] {
        let mut total = [Told::default(); 2];
        for told in self.by_type.values() {
            for side in 0..2 {
                total[side].times += told[side].times;
                total[side].tokens += told[side].tokens;
            }
        }
        total
    }

    fn as_json(&self, is_same: bool) -> Json {
        let told = |[then, now]: [Told; 2]| {
            let told = |told: Told| json!({ "times": told.times, "tokens": told.tokens });
            json!({ "recorded": told(then), "now": told(now) })
        };
        let by_type = self.by_type.iter().map(|(name, both)| (name.clone(), told(*both)));
        let first = self.first.as_ref().map(|Difference { session, number, waits }| {
            let entries = |wait: &Option<Wait>| {
                let entries = wait.as_ref().map(|wait| wait.entries.iter());
                let entry = |it: &Reminder| json!({ "type": it.entry_type, "body": it.body });
                entries.map(|entries| entries.map(entry).collect::<Vec<_>>())
            };
            let at = waits.iter().flatten().next().map(|wait| paint::utc(wait.at));
            json!({
                "session": session,
                "wait": number,
                "at": at,
                "recorded": entries(&waits[0]),
                "now": entries(&waits[1]),
            })
        });
        json!({
            "same": is_same,
            "waits": self.waits,
            "total": told(self.total()),
            "byType": by_type.collect::<serde_json::Map<_, _>>(),
            "firstDifference": first,
        })
    }

    fn tell(&self, name: &str, report: &ScriptReport, is_same: bool) -> Result<(), Failure> {
        let screen = Screen::of_stdout();
        let [then, now] = self.total();
        let waits = count(self.waits, "WAIT");
        if is_same {
            let told = count(now.times, "reminder");
            let tokens = count(now.tokens, "token");
            let text = format!("{name}: {waits}, {told}, {tokens}: all as recorded\n");
            return Ok(paint::print(&text)?);
        }
        let mut text = format!("{name}: {waits}\n");
        match &self.first {
            Some(difference) => text.push_str(&difference.text(screen)),
            None => {
                let unmet = report
                    .cases
                    .iter()
                    .filter(|case| matches!(case.verdict, Verdict::Failed(_) | Verdict::Unreached));
                text.push_str("Every WAIT says what it said. Other answers differ, first:\n");
                unmet.take(CASES_SHOWN).for_each(|case| text.push_str(&mismatch(case, screen)));
            }
        }
        let mut table = Table::new(&[
            ("TYPE", Align::Left),
            ("RECORDED", Align::Right),
            ("NOW", Align::Right),
            ("TOKENS RECORDED", Align::Right),
            ("TOKENS NOW", Align::Right),
            ("MORE", Align::Right),
        ]);
        let mut row = |name: Cell, [then, now]: [Told; 2]| {
            let more = i128::from(now.tokens) - i128::from(then.tokens);
            let style = if more == 0 { FAINT } else { LIVELY };
            table.row([
                name,
                then.times.into(),
                now.times.into(),
                then.tokens.into(),
                now.tokens.into(),
                Cell::new(&format!("{more:+}"), style),
            ]);
        };
        for (name, told) in &self.by_type {
            row(Cell::from(&**name), *told);
        }
        row(Cell::from("all"), [then, now]);
        text.push_str(&table.text(screen));
        Ok(paint::print(&text)?)
    }
}

/// What a WAIT says, as far as a model hears it, and what became of it.
fn said(wait: Option<&Wait>) -> Option<(&[Reminder], Outcome)> {
    wait.map(|wait| (&*wait.entries, wait.outcome))
}

impl Difference {
    fn text(&self, screen: Screen) -> String {
        let Self { session, number, waits } = self;
        let wait = waits.iter().flatten().next();
        let at = wait.map(|wait| format!(", {}", paint::local_time(wait.at))).unwrap_or_default();
        let turn = wait.and_then(|wait| wait.turn.as_deref());
        let turn = turn.map(|turn| format!(", turn {}", paint::name(turn, screen)));
        let mut text = format!(
            "The first difference is at WAIT {number} of session {}{at}{}:\n",
            paint::name(session, screen),
            turn.unwrap_or_default()
        );
        for (side, wait) in ["recorded", "now"].into_iter().zip(waits) {
            let entries = wait.as_ref().map(|wait| &*wait.entries).unwrap_or_default();
            if entries.is_empty() {
                text.push_str(&format!("  {side}: nothing\n"));
            }
            for entry in entries {
                let name = paint::name(&entry.entry_type, screen);
                text.push_str(&format!("  {side}: {name}\n"));
                text.push_str(&paint::block(&short_name(&entry.body, SHOWN_CHARS), "    ", screen));
            }
        }
        text
    }
}

/// An answer that differs.
fn mismatch(case: &Case, screen: Screen) -> String {
    let mut text = format!("  line {}, {}\n", case.line, paint::name(&case.what, screen));
    if let Verdict::Failed(mismatches) = &case.verdict {
        for mismatch in mismatches.iter().take(CASES_SHOWN) {
            let pointer = &mismatch.pointer;
            let said = format!("{pointer}\nexpected: {}\ngot: {}", mismatch.expected, mismatch.got);
            text.push_str(&paint::block(&said, "    ", screen));
        }
    }
    text
}
