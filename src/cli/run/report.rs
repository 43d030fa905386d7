//! What a run has found, as text for people, as TAP and as `JUnit`.
//!
//! All three tell the same cases; the text leaves out what passed and what was not reached.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::Exit;
use super::matching::Mismatch;
use super::script::ScriptError;

/// Everything that came of one script.
#[derive(Debug)]
pub struct ScriptReport {
    /// The script as named by the user.
    pub name: String,
    /// One case for each expectation and each thing that went wrong otherwise.
    pub cases: Vec<Case>,
    /// How it came to its end.
    pub end: End,
}

/// One expectation, or one thing that nobody expected.
#[derive(Debug)]
pub struct Case {
    /// The line of its step.
    pub line: usize,
    /// What was looked at, in a few words.
    pub what: String,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of a case.
#[derive(Debug)]
pub enum Verdict {
    /// As expected.
    Passed,
    /// Different at these places.
    Failed(Vec<Mismatch>),
    /// Never judged; the end of the script says why.
    Unreached,
}

/// How a script came to its end.
#[derive(Debug)]
pub enum End {
    /// All of its steps were carried out.
    Finished,
    /// It is no script.
    Bad(Vec<ScriptError>),
    /// It could not be read at all.
    Unreadable(String),
    /// The daemon died or broke the protocol.
    Broken(Ending),
    /// A step, or the whole run, took too long.
    TimedOut(Ending),
}

/// Where and why a script stopped early.
#[derive(Debug)]
pub struct Ending {
    /// The line of the step that was being carried out.
    pub line: usize,
    /// Why.
    pub reason: String,
    /// What the daemon last wrote to stderr.
    pub last_words: Vec<String>,
}

/// How many cases passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// As expected.
    pub passed: usize,
    /// Different, or never reached.
    pub failed: usize,
}

impl ScriptReport {
    /// How many of its cases passed and failed.
    pub fn tally(&self) -> Tally {
        let passed =
            self.cases.iter().filter(|case| matches!(case.verdict, Verdict::Passed)).count();
        Tally { passed, failed: self.cases.len() - passed }
    }

    /// The exit status that this script alone would give.
    pub fn exit(&self) -> Exit {
        match &self.end {
            End::Bad(_) | End::Unreadable(_) => Exit::BadScript,
            End::Broken(_) => Exit::DaemonBroke,
            End::TimedOut(_) => Exit::TimedOut,
            End::Finished if self.tally().failed > 0 => Exit::Failed,
            End::Finished => Exit::Passed,
        }
    }

    /// Lines that say why the script stopped early; none when it did not.
    pub fn ending(&self) -> Vec<String> {
        let name = &self.name;
        let (what, ending) = match &self.end {
            End::Finished => return Vec::new(),
            End::Bad(errors) => {
                return errors.iter().map(|error| format!("{name}:{error}")).collect();
            }
            End::Unreadable(reason) => return vec![format!("{name}: {reason}")],
            End::Broken(ending) => ("the daemon died or broke the protocol", ending),
            End::TimedOut(ending) => ("timed out", ending),
        };
        let Ending { line, reason, last_words } = ending;
        let mut lines = vec![format!("{name}:{line}: {what}: {reason}")];
        lines.extend(last_words.iter().map(|line| format!("  stderr: {line}")));
        lines
    }
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

impl Mismatch {
    /// The pointer for people, who cannot see an empty one.
    fn place(&self) -> &str {
        if self.pointer.is_empty() { "(the whole answer)" } else { &self.pointer }
    }
}

/// Writes reports while scripts end, and the tally at last.
pub trait Reporter {
    /// Writes what came of a script.
    fn script(&mut self, report: &ScriptReport, out: &mut dyn Write) -> io::Result<()>;
    /// Writes the last lines.
    fn finish(&mut self, tally: Tally, out: &mut dyn Write) -> io::Result<()>;
}

/// For people: what failed, and a line for each script when there are several.
#[derive(Debug)]
pub struct TextReporter {
    /// Whether each script gets a line of its own.
    pub several: bool,
}

impl Reporter for TextReporter {
    fn script(&mut self, report: &ScriptReport, out: &mut dyn Write) -> io::Result<()> {
        for case in &report.cases {
            let Verdict::Failed(mismatches) = &case.verdict else { continue };
            for mismatch in mismatches {
                writeln!(out, "{}:{}: {}", report.name, case.line, mismatch.place())?;
                writeln!(out, "  expected: {}", mismatch.expected)?;
                writeln!(out, "  got:      {}", mismatch.got)?;
            }
        }
        // A script that is no script is trouble, not a result.
        if let End::Bad(_) | End::Unreadable(_) = report.end {
            report.ending().iter().for_each(|line| eprintln!("{line}"));
        } else {
            report.ending().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        if self.several {
            writeln!(out, "{}: {}", report.name, report.tally())?;
        }
        out.flush()
    }

    fn finish(&mut self, tally: Tally, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{tally}")
    }
}

/// For test harnesses: TAP version 14.
#[derive(Debug, Default)]
pub struct TapReporter {
    number: usize,
}

impl Reporter for TapReporter {
    fn script(&mut self, report: &ScriptReport, out: &mut dyn Write) -> io::Result<()> {
        if self.number == 0 {
            writeln!(out, "TAP version 14")?;
        }
        for case in &report.cases {
            self.number += 1;
            let passed = matches!(case.verdict, Verdict::Passed);
            // A `#` would begin a directive.
            let title = format!("{}:{} {}", report.name, case.line, case.what);
            let title = title.replace('\\', "\\\\").replace('#', "\\#").replace(['\n', '\r'], " ");
            writeln!(out, "{} {} - {title}", if passed { "ok" } else { "not ok" }, self.number)?;
            match &case.verdict {
                Verdict::Passed => {}
                Verdict::Unreached => {
                    writeln!(out, "  ---\n  message: \"not reached\"\n  ...")?;
                }
                Verdict::Failed(mismatches) => {
                    writeln!(out, "  ---\n  differences:")?;
                    for mismatch in mismatches {
                        writeln!(out, "    - at: {}", quoted(&mismatch.pointer))?;
                        writeln!(out, "      expected: {}", quoted(&mismatch.expected))?;
                        writeln!(out, "      got: {}", quoted(&mismatch.got))?;
                    }
                    writeln!(out, "  ...")?;
                }
            }
        }
        report.ending().iter().try_for_each(|line| writeln!(out, "# {line}"))?;
        out.flush()
    }

    fn finish(&mut self, tally: Tally, out: &mut dyn Write) -> io::Result<()> {
        if self.number == 0 {
            writeln!(out, "TAP version 14")?;
        }
        writeln!(out, "1..{}\n# {tally}", self.number)
    }
}

/// A YAML string in double quotes, which JSON's are.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes a `JUnit` report: a script is a suite, an expectation a case.
pub fn write_junit(
    reports: &[ScriptReport],
    out: impl Write,
) -> Result<(), quick_junit::SerializeError> {
    let mut junit = Report::new("reminderd run");
    for report in reports {
        let mut suite = TestSuite::new(report.name.as_str());
        let ending = report.ending().join("\n");
        for case in &report.cases {
            let status = match &case.verdict {
                Verdict::Passed => TestCaseStatus::success(),
                Verdict::Unreached => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                    status.set_message("not reached").set_description(ending.as_str());
                    status
                }
                Verdict::Failed(mismatches) => {
                    let told: Vec<_> = mismatches
                        .iter()
                        .map(|mismatch| {
                            format!(
                                "{}\n  expected: {}\n  got:      {}",
                                mismatch.place(),
                                mismatch.expected,
                                mismatch.got
                            )
                        })
                        .collect();
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(format!("{}:{} {}", report.name, case.line, case.what));
                    status.set_description(told.join("\n"));
                    status
                }
            };
            let title = format!("{}:{} {}", report.name, case.line, case.what);
            let mut junit_case = TestCase::new(title, status);
            junit_case.set_classname(report.name.as_str());
            suite.add_test_case(junit_case);
        }
        junit.add_test_suite(suite);
    }
    junit.serialize(out)
}
