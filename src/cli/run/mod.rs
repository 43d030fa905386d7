//! `reminderd run`: carries out scripts against a daemon and says what was not as expected.
//!
//! A script is read whole and checked before its daemon starts ([`script`]); each of its
//! steps is one exchange over real pipes ([`client`]); answers are compared with what the
//! script expects ([`matching`]), and what came of it is told in one of three forms
//! ([`report`]). A step that fails does not end its script, a daemon that dies does.

pub mod client;
pub mod matching;
pub mod reference;
pub mod report;
pub mod script;
mod show;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::client::Message;
use self::client::{Against, Answer, Client, Launcher, Stop, Stray, Transcript};
use self::matching::{Mismatch, Pattern, shown};
use self::reference::{Names, Unresolved};
use self::report::{
    Case, End, Ending, Reporter, ScriptReport, Tally, TapReporter, TextReporter, Verdict,
};
use self::script::{Action, Script, Step};
use self::show::Show;

/// The answer to a cancelled request.
const REQUEST_CANCELLED: i64 = -32800;

/// How long a step may take of a script that is played for what it says, and all of it.
const PLAY_STEP_TIMEOUT: Duration = Duration::from_secs(30);
const PLAY_TIMEOUT: Duration = Duration::from_secs(3600);

/// The language of scripts, as `--help` teaches it.
pub const LANGUAGE: &str = r#"The script language: one JSON object a line, one verb a line; blank lines and lines that
begin with `#` are skipped.

  {"open": {"session": "s", …}}               session/open with these params
  {"event": METHOD, "params": {…}}            an event, sent as a request so that its error shows
  {"wait": {"session": "s"}, "as": "w1"}      reminder/wait; with "cancel": true cancelled at once
  {"commit": "$w1.token"}                     reminder/commit; or {"commit": {"token": …, …}}
  {"release": "$w1.token"}                    reminder/release; likewise
  {"request": METHOD, "params": {…}}          any request
  {"send": METHOD, "params": {…}, "as": NAME} a request whose answer a later line takes:
  {"await": NAME, "expect": {…}}              then stored as NAME; "cancel": true cancels it first
  {"pending": NAME}                           it has not been answered yet
  {"notify": METHOD, "params": {…}}           any notification; "expectError" awaits its problem
  {"clock": "+8m"}                            moves virtual time; units ms, s, m, h, d
  {"restart": true}                           ends the daemon in order and starts it again;
                                              "kill" kills it
  {"generator": ID, "body": TEXT or null}     what reminder/compute is answered from now on;
                                              "silent": true instead: never answered
  {"asked": ID, "expect": [{…}, …]}           how often and with what ID was asked since then
  {"problem": true, "expect": {…}}            awaits the next reminderd/problem
  {"store": true}                             first step only: what was told outlives restarts
  {"initialize": {…}}                         before all others: its initializationOptions
  {"say": TEXT}                               a heading for people, with --show
  {"surroundings": {…}}                       in recordings: what the daemon is given in place of
                                              its machine, of which it then sees nothing

Beside a verb may stand
  "as": NAME            stores the answer; "$NAME.member.0" stands for a part of it, as a whole
                        string, in any params and expectations; text with a leading `$` takes two
  "expect": PATTERN     objects by member, arrays element by element, and the matchers
                        {"$any": true}  {"$re": "…"}  {"$len": n}  {"$absent": true}
  "expectError": CODE   the answer is this error ("expect" then looks at the error)
  "expectNone": true    on a wait: nothing to say

Exit status: 0 passed, 1 an expectation failed, 2 bad script or arguments, 3 the daemon died
or broke the protocol, 124 timed out; over several scripts the first of 2, 3, 124, 1.

Example: a model is told a note, once
  $ reminderd run --show - <<'END'
  {"open": {"session": "s"}}
  {"event": "turn/begin", "params": {"session": "s", "turn": "1"}}
  {"event": "reminder/stage", "params": {"session": "s", "type": "note", "body": "Be brief."}}
  {"wait": {"session": "s"}, "as": "w1", "expect": {"entries": [{"body": {"$re": "brief"}}]}}
  {"commit": "$w1.token"}
  {"wait": {"session": "s"}, "expectNone": true}
  END"#;

/// Run scripts against a daemon and report what is not as they expect.
///
/// Each script gets a fresh daemon in a process of its own, spoken to over a real pipe and
/// untouched by your sessions and configuration. The last line is `N passed, N failed`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd run tests/scenarios/*.jsonl", after_long_help = LANGUAGE)]
pub struct RunArguments {
    /// Scripts to run, one after another; `-` reads one from standard input
    #[arg(value_name = "SCRIPT", required = true)]
    pub scripts: Vec<PathBuf>,
    /// Speak to this command instead, started through `sh -c`
    #[arg(long, value_name = "CMD")]
    pub against: Option<String>,
    /// How long a step may take: `5`, `5s`, `500ms`
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub step_timeout: Duration,
    /// How long all scripts together may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub timeout: Duration,
    /// Report as TAP version 14
    #[arg(long)]
    pub tap: bool,
    /// Also write an XML report for CI: a script is a suite, an expectation a case
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write every message, both ways, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
    /// Tell what a model would be told, step by step
    #[arg(long, conflicts_with = "tap")]
    pub show: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    match script::milliseconds(text, Some(1000)) {
        Some(0) | None => {
            Err("a time is a whole number with ms, s, m or h, such as 500ms; seconds without"
                .to_owned())
        }
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}

/// How a run ends. The order of the variants is the order in which one hides another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything was as expected.
    Passed,
    /// Something was not.
    Failed,
    /// A step or the whole run took too long.
    TimedOut,
    /// The daemon died or broke the protocol.
    DaemonBroke,
    /// A script is no script, or the arguments cannot be used.
    BadScript,
}

impl Exit {
    /// The exit status.
    pub const fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::BadScript => 2,
            Self::DaemonBroke => 3,
            Self::TimedOut => 124,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Trouble that has nothing to do with what the scripts say.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("cannot write {path}: {source}; choose another file")]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot write the JUnit report {path}: {source}")]
    Junit { path: PathBuf, source: quick_junit::SerializeError },
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

/// Runs the command.
pub fn run(arguments: &RunArguments) -> ExitCode {
    match run_all(arguments, &mut io::stdout()) {
        Ok(exit) => exit.into(),
        // Whoever reads our output has seen enough.
        Err(RunError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Exit::Failed.into()
        }
        Err(error) => {
            eprintln!("reminderd run: {error}");
            match error {
                RunError::Output(_) => Exit::Failed.into(),
                _ => Exit::BadScript.into(),
            }
        }
    }
}

fn run_all(arguments: &RunArguments, out: &mut dyn Write) -> Result<Exit, RunError> {
    let junit = arguments.junit.as_deref().map(create).transpose()?;
    let mut transcript =
        arguments.transcript.as_deref().map(create).transpose()?.map(Transcript::new);
    let mut reporter: Box<dyn Reporter> = if arguments.tap {
        Box::new(TapReporter::default())
    } else {
        Box::new(TextReporter { several: arguments.scripts.len() > 1 })
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::Start)?;
    // A time beyond what the clock can count is no limit; a day's run is the longest.
    let longest = Duration::from_secs(86_400);
    let end = Instant::now() + arguments.timeout.min(longest);

    let mut reports = Vec::new();
    let mut tally = Tally::default();
    for path in &arguments.scripts {
        let runner = ScriptRunner {
            name: display_name(path),
            step_timeout: arguments.step_timeout.min(longest),
            end,
            names: Names::default(),
            cases: Vec::new(),
            show: arguments.show.then(Show::for_stdout),
            out: &mut *out,
        };
        let report = match read_script(path) {
            Ok(script) => runtime.block_on(runner.run(
                &script,
                arguments.against.as_deref().map_or(Against::Own, Against::Command),
                transcript.as_mut(),
            ))?,
            Err(end) => ScriptReport { name: runner.name, cases: vec![bad_script(&end)], end },
        };
        reporter.script(&report, out).map_err(RunError::Output)?;
        tally.add(report.tally());
        reports.push(report);
    }
    if let (Some(path), Some(file)) = (&arguments.junit, junit) {
        report::write_junit(&reports, BufWriter::new(file))
            .map_err(|source| RunError::Junit { path: path.clone(), source })?;
    }
    reporter.finish(tally, out).map_err(RunError::Output)?;
    Ok(reports.iter().map(ScriptReport::exit).max().unwrap_or(Exit::Passed))
}

fn create(path: &Path) -> Result<File, RunError> {
    File::create(path).map_err(|source| RunError::Create { path: path.to_owned(), source })
}

/// A script by the name under which messages speak of it.
pub fn display_name(path: &Path) -> String {
    if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() }
}

/// Reads and checks a script.
pub fn read_script(path: &Path) -> Result<Script, End> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| End::Unreadable(format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        End::Unreadable(format!("is not UTF-8 from byte {offset} on; save it as UTF-8"))
    })?;
    script::parse(whole_lines(&text)).map_err(End::Bad)
}

/// A script without what is left of a line that a recording was cut off in, as when its daemon was
/// killed.
fn whole_lines(text: &str) -> &str {
    let is_recording = text.starts_with("# {");
    let end = text.rfind('\n').filter(|_| is_recording);
    end.map_or(text, |end| &text[..=end])
}

/// Plays a script against a daemon of this program, or of another build of it, however long it takes,
/// and returns what was said both ways, in order.
pub fn play(
    script: &Script,
    path: &Path,
    program: Option<&Path>,
) -> io::Result<(Vec<Message>, ScriptReport)> {
    let spoken = tempfile::tempfile()?;
    let mut transcript = Transcript::new(spoken.try_clone()?);
    let runner = ScriptRunner {
        name: display_name(path),
        step_timeout: PLAY_STEP_TIMEOUT,
        end: Instant::now() + PLAY_TIMEOUT,
        names: Names::default(),
        cases: Vec::new(),
        show: None,
        out: &mut io::sink(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let daemon = program.map_or(Against::Own, Against::Program);
    let report = runtime.block_on(runner.run(script, daemon, Some(&mut transcript)));
    let report = report.map_err(io::Error::other)?;
    let mut spoken = BufReader::new(spoken);
    spoken.rewind()?;
    let lines = spoken.lines().map(|line| Ok(serde_json::from_str(&line?)?));
    Ok((lines.collect::<io::Result<_>>()?, report))
}

/// A script that cannot run is one failure, so that no report can look as if all were well.
fn bad_script(end: &End) -> Case {
    let line = match end {
        End::Bad(errors) => errors.first().map_or(1, |error| error.line),
        _ => 1,
    };
    Case { line, what: "the script can be run".to_owned(), verdict: Verdict::Unreached }
}

/// Carries out one script.
struct ScriptRunner<'a> {
    name: String,
    step_timeout: Duration,
    end: Instant,
    names: Names,
    cases: Vec<Case>,
    show: Option<Show>,
    out: &'a mut dyn Write,
}

/// What a step was answered, and with what it was sent.
struct Exchange {
    params: Value,
    /// None when the step asks nothing.
    answer: Option<Answer>,
}

/// Why a step was not carried out.
enum Hindrance {
    Unresolved(Unresolved),
    Stop(Stop),
}

impl From<Unresolved> for Hindrance {
    fn from(unresolved: Unresolved) -> Self {
        Self::Unresolved(unresolved)
    }
}

impl From<Stop> for Hindrance {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl ScriptRunner<'_> {
    async fn run(
        mut self,
        script: &Script,
        against: Against<'_>,
        transcript: Option<&mut Transcript>,
    ) -> Result<ScriptReport, RunError> {
        let launcher = Launcher::new(against, script).map_err(RunError::Start)?;
        let name = self.name.clone();
        let mut client = Client::new(launcher, &name, transcript);

        let mut steps = script.steps.iter();
        let mut end = End::Finished;
        let mut last_line = 1;
        while let Some(step) = steps.next() {
            last_line = step.line;
            client.begin_step(step.line, self.deadline());
            if let Err(stop) = self.step(&mut client, step).await? {
                self.unreached(step, true);
                steps.by_ref().for_each(|step| self.unreached(step, false));
                end = stopped(stop, step.line, &client);
            }
            self.strays(client.take_unexpected());
        }
        if matches!(end, End::Finished) {
            client.begin_step(last_line, self.deadline());
            if let Err(stop) = client.finish().await {
                let what = "the daemon ends in order".to_owned();
                self.cases.push(Case { line: last_line, what, verdict: Verdict::Unreached });
                end = stopped(stop, last_line, &client);
            }
            self.strays(client.take_unexpected());
        }
        self.strays(client.take_problems());
        if let Some(show) = &self.show {
            show.finish(self.out).map_err(RunError::Output)?;
        }
        Ok(ScriptReport { name: self.name, cases: self.cases, end })
    }

    fn deadline(&self) -> Instant {
        (Instant::now() + self.step_timeout).min(self.end)
    }

    /// Carries out a step and judges it; a stop ends the script.
    async fn step(
        &mut self,
        client: &mut Client<'_>,
        step: &Step,
    ) -> Result<Result<(), Stop>, RunError> {
        let exchange = match self.exchange(client, step).await {
            Ok(exchange) => exchange,
            Err(Hindrance::Stop(reason)) => return Ok(Err(reason)),
            Err(Hindrance::Unresolved(unresolved)) => {
                self.verdict(step, "the step can be sent", vec![mismatch_of(unresolved)]);
                if let Some(name) = &step.name {
                    self.names.set_failed(name);
                }
                return Ok(Ok(()));
            }
        };
        if let Some(show) = &mut self.show {
            show.step(step, &exchange.params, exchange.answer.as_ref(), self.out)
                .map_err(RunError::Output)?;
        }
        if let Some(answer) = exchange.answer {
            self.judge(step, &answer);
            self.store(step, answer);
        }
        Ok(Ok(()))
    }

    async fn exchange(
        &mut self,
        client: &mut Client<'_>,
        step: &Step,
    ) -> Result<Exchange, Hindrance> {
        let no_params = Value::Null;
        Ok(match &step.action {
            Action::Initialize { options } => {
                client.set_options(options);
                Exchange { params: no_params, answer: Some(client.start().await?) }
            }
            Action::Request { method, params, .. } => {
                let params = self.names.fill(params)?;
                let answer = client.request(method, &params).await?;
                Exchange { params, answer: Some(answer) }
            }
            Action::Wait { params, cancel } => {
                let params = self.names.fill(params)?;
                let answer = if *cancel {
                    client.request_cancelled("reminder/wait", &params).await?
                } else {
                    client.request("reminder/wait", &params).await?
                };
                Exchange { params, answer: Some(answer) }
            }
            Action::Send { method, params } => {
                let params = self.names.fill(params)?;
                let name = step.name.as_deref().unwrap_or_default();
                client.send_named(name, method, &params).await?;
                Exchange { params, answer: None }
            }
            Action::Await { sent, cancel } => {
                let answer = client.answer_of(sent, *cancel).await?;
                Exchange { params: no_params, answer: Some(answer) }
            }
            Action::Pending { sent } => {
                let mismatches = client.answered(sent).await?.map(|answer| {
                    let got = match &answer {
                        Ok(result) => shown(Some(result)),
                        Err(error) => format!("error {}", shown(Some(error))),
                    };
                    whole("no answer yet", got)
                });
                self.verdict(step, "unanswered", mismatches.into_iter().collect());
                Exchange { params: no_params, answer: None }
            }
            Action::Notify { method, params } => {
                let params = self.names.fill(params)?;
                client.notify(method, &params).await?;
                // A notification has no answer; its failure comes as a problem.
                let answer = match step.expectations.error {
                    Some(_) => Some(Err(client.problem().await?)),
                    None => None,
                };
                Exchange { params, answer }
            }
            Action::Clock { advance_ms, .. } => {
                let params = json!({ "advanceMs": advance_ms });
                let answer = client.request("reminderd/clock", &params).await?;
                Exchange { params, answer: Some(answer) }
            }
            Action::Restart { kill } => {
                if *kill {
                    client.kill().await?;
                } else {
                    client.finish().await?;
                }
                Exchange { params: no_params, answer: Some(client.start().await?) }
            }
            Action::Generator { id, answer } => {
                client.set_generator(id, answer.clone());
                Exchange { params: no_params, answer: None }
            }
            Action::Asked { id } => {
                Exchange { params: no_params, answer: Some(Ok(client.take_asked(id).into())) }
            }
            Action::Problem => {
                Exchange { params: no_params, answer: Some(Ok(client.problem().await?)) }
            }
            Action::Store | Action::Say { .. } => Exchange { params: no_params, answer: None },
        })
    }

    /// Compares an answer with what the step expects, a case for each expectation.
    fn judge(&mut self, step: &Step, answer: &Answer) {
        let expectations = &step.expectations;
        match (answer, expectations.error) {
            (Err(error), None) => {
                // Without further expectations a cancelled wait may be answered either way.
                let may_cancel = matches!(step.action, Action::Wait { cancel: true, .. })
                    && expectations.labels().is_empty();
                if !(may_cancel && error["code"] == json!(REQUEST_CANCELLED)) {
                    let got = format!("error {}", shown(Some(error)));
                    self.verdict(step, "no error", vec![whole("no error", got)]);
                }
            }
            (Ok(result), Some(code)) => {
                let mismatch = whole(&format!("error {code}"), shown(Some(result)));
                self.verdict(step, &format!("expectError {code}"), vec![mismatch]);
                if expectations.answer.is_some() {
                    let mismatch = whole("an error to look at", shown(Some(result)));
                    self.verdict(step, "expect", vec![mismatch]);
                }
            }
            (Err(error), Some(code)) => {
                let mut mismatches = Vec::new();
                if error["code"] != json!(code) {
                    mismatches.push(whole(
                        &format!("error {code}"),
                        format!("error {}", shown(Some(error))),
                    ));
                }
                self.verdict(step, &format!("expectError {code}"), mismatches);
                self.compare(step, error);
            }
            (Ok(result), None) => {
                if expectations.none {
                    let nothing = Pattern::Object(vec![
                        ("entries".to_owned(), Pattern::Array(Vec::new())),
                        ("message".to_owned(), Pattern::Scalar(Value::Null)),
                    ]);
                    self.verdict(step, "expectNone", nothing.mismatches(result));
                }
                self.compare(step, result);
            }
        }
    }

    fn compare(&mut self, step: &Step, value: &Value) {
        if let Some(pattern) = &step.expectations.answer {
            let mismatches = match pattern.resolve(&self.names) {
                Ok(pattern) => pattern.mismatches(value),
                Err(unresolved) => vec![mismatch_of(unresolved)],
            };
            self.verdict(step, "expect", mismatches);
        }
    }

    /// Stores what a step was answered, if it has a name.
    fn store(&mut self, step: &Step, answer: Answer) {
        let Some(name) = &step.name else { return };
        match answer {
            Ok(value) => self.names.set(name, value),
            Err(error) if step.expectations.error.is_some() => self.names.set(name, error),
            Err(_) => self.names.set_failed(name),
        }
    }

    fn verdict(&mut self, step: &Step, label: &str, mismatches: Vec<Mismatch>) {
        let verdict =
            if mismatches.is_empty() { Verdict::Passed } else { Verdict::Failed(mismatches) };
        let what = format!("{}: {label}", step.describe());
        self.cases.push(Case { line: step.line, what, verdict });
    }

    /// Notes the expectations of a step that the script never came to; the step at which it
    /// stopped counts even when it expects nothing.
    fn unreached(&mut self, step: &Step, stopped_here: bool) {
        let mut labels = step.expectations.labels();
        if labels.is_empty() && stopped_here {
            labels.push("answered".to_owned());
        }
        self.cases.extend(labels.into_iter().map(|label| Case {
            line: step.line,
            what: format!("{}: {label}", step.describe()),
            verdict: Verdict::Unreached,
        }));
    }

    fn strays(&mut self, strays: Vec<Stray>) {
        self.cases.extend(strays.into_iter().map(|stray| Case {
            line: stray.line,
            what: "no unexpected message".to_owned(),
            verdict: Verdict::Failed(vec![Mismatch {
                pointer: String::new(),
                expected: "no message that no step asks for".to_owned(),
                got: shown(Some(&stray.message)),
            }]),
        }));
    }
}

fn whole(expected: &str, got: String) -> Mismatch {
    Mismatch { pointer: String::new(), expected: expected.to_owned(), got }
}

fn mismatch_of(unresolved: Unresolved) -> Mismatch {
    whole(&format!("a value for {}", unresolved.reference), unresolved.reason)
}

fn stopped(stop: Stop, line: usize, client: &Client<'_>) -> End {
    let last_words = client.last_words();
    match stop {
        Stop::Broken(reason) => End::Broken(Ending { line, reason, last_words }),
        Stop::TimedOut(reason) => End::TimedOut(Ending { line, reason, last_words }),
    }
}
