//! What `globs` and `tool` of a rule match: paths that the turn touched and calls that it finished,
//! as far as the rule was not told of them yet.
//!
//! A path counts as often as it is touched, a call once. What a telling told is noted in its record
//! as a range of what happened, so that history decides: what it lost is offered again.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use memchr::memmem::Finder;
use regex::{Regex, RegexBuilder};
use regex_syntax::hir::literal::Extractor;
use serde::Deserialize;

use super::effort::{Effort, Spent};
use super::names::below_root;
use crate::engine::{CallInput, FinishedCall, Rearm, Refusal, Serial, Touch, View};

/// Globs that one rule has at most.
const GLOBS_MAX: usize = 1_000;
/// The longest glob or pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4 << 10;
/// What a compiled pattern may take, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Texts of which a pattern needs one, at most: with more it is quicker to try the pattern itself.
const NEEDLES_MAX: usize = 64;

/// Texts of which one must stand in whatever a pattern matches.
#[derive(Debug, Default)]
struct Needles(Vec<Finder<'static>>);

impl Needles {
    /// Those of texts, one of which every match has in it.
    fn new<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Self {
        let finder = |text: T| {
            let text = text.as_ref();
            (!text.is_empty()).then(|| Finder::new(text).into_owned())
        };
        let finders: Option<Vec<_>> = texts.into_iter().map(finder).collect();
        Self(finders.filter(|finders| finders.len() <= NEEDLES_MAX).unwrap_or_default())
    }

    /// Whether anything in the heap could match.
    fn may_match(&self, heap: &[u8]) -> bool {
        self.0.is_empty() || self.0.iter().any(|needle| needle.find(heap).is_some())
    }

    /// Those of a regular expression: the texts with which every match begins, where they are few.
    fn of_pattern(source: &str) -> Self {
        let Ok(parsed) = regex_syntax::parse(source) else { return Self::default() };
        let found = Extractor::new().extract(&parsed);
        let texts = found.literals().unwrap_or_default().iter();
        Self::new(texts.map(|text| text.as_bytes().to_vec()))
    }

    /// Those of globs: of each that does not take back the longest text without a wildcard.
    fn of_globs(globs: &[String]) -> Self {
        let matching = globs.iter().filter(|glob| !glob.starts_with('!'));
        Self::new(matching.map(|glob| {
            // Behind a class, an alternative or an escape no text is sure to be needed as it stands.
            let plain = glob.split(['[', '{', '\\']).next().unwrap_or_default().trim_end();
            // `**/` may stand for nothing, so that the slashes beside it are not needed.
            let runs = plain.split(['*', '?']).map(|run| run.trim_matches('/'));
            runs.max_by_key(|run| run.len()).unwrap_or_default()
        }))
    }
}

/// What the patterns of all rules are looked for in, put together once a WAIT: most match nothing
/// of it, and then neither path nor call need be looked at.
#[derive(Default)]
struct Heaps {
    paths: OnceCell<Vec<u8>>,
    texts: OnceCell<Vec<u8>>,
}

fn heap<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<u8> {
    texts.flat_map(|text| text.bytes().chain([b'\n'])).collect()
}

/// The member `tool` of a form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSettings {
    name: Option<String>,
    input: Option<String>,
    ok: Option<bool>,
}

/// A pattern over finished calls; each member that is there must match.
#[derive(Debug)]
pub struct ToolPattern {
    /// Matches whole names.
    name: Option<Regex>,
    /// Is looked for in the texts of an input.
    input: Option<Regex>,
    needles: Needles,
    ok: Option<bool>,
}

impl ToolPattern {
    /// Compiles the patterns: regular expressions, the name's over the whole of it.
    pub fn new(settings: ToolSettings) -> Result<Self, Refusal> {
        let ToolSettings { name, input, ok } = settings;
        if name.is_none() && input.is_none() && ok.is_none() {
            let refusal = Refusal::invalid("tool has one or more of name, input and ok");
            return Err(refusal.about(["tool"]));
        }
        // Compiled as it stands first, so that a mistake is told of what was written.
        let whole = |name: &String| {
            pattern("name", name)?;
            pattern("name", &format!(r"\A(?:{name})\z"))
        };
        Ok(Self {
            name: name.as_ref().map(whole).transpose()?,
            needles: Needles::of_pattern(input.as_deref().unwrap_or_default()),
            input: input.map(|input| pattern("input", &input)).transpose()?,
            ok,
        })
    }

    /// Whether a call of a tool whose name matches does.
    fn matches(&self, call: &FinishedCall) -> bool {
        let has = |pattern: &Regex, input: &CallInput| {
            input.texts.iter().any(|text| pattern.is_match(text))
        };
        self.ok.is_none_or(|ok| ok == call.ok)
            && self
                .input
                .as_ref()
                .is_none_or(|it| call.input.as_ref().is_some_and(|input| has(it, input)))
    }

    /// The calls of the turn that match and were not told; an error when the rules of the WAIT have
    /// looked through as much as they may.
    pub fn matched<'a>(
        &self,
        view: &View<'a>,
        told: &Ranges,
        effort: &Effort,
    ) -> Result<Vec<&'a FinishedCall>, Spent> {
        let finished = || view.scope.calls.finished();
        let heaps = view.workings.of::<Heaps>();
        let texts = heaps.texts.get_or_init(|| {
            let inputs = finished().filter_map(|call| call.input.as_ref());
            heap(inputs.flat_map(|input| &input.texts).map(String::as_str))
        });
        if !self.needles.may_match(texts) {
            return Ok(Vec::new());
        }
        // A turn calls few tools, many times each.
        let mut known: Option<(&str, bool)> = None;
        let mut is_meant = |name: &'a str| match known {
            Some((known, is_meant)) if known == name => is_meant,
            _ => {
                let is_meant = self.name.as_ref().is_none_or(|pattern| pattern.is_match(name));
                known = Some((name, is_meant));
                is_meant
            }
        };
        let mut matched = Vec::new();
        for call in finished().filter(|call| !told.hold(call.serial)) {
            if !is_meant(&call.name) {
                continue;
            }
            let texts = call.input.iter().flat_map(|input| &input.texts);
            let bytes = self.input.as_ref().map_or(0, |_| texts.map(String::len).sum());
            if !effort.looks_through(bytes) {
                return Err(Spent);
            }
            if self.matches(call) {
                matched.push(call);
            }
        }
        Ok(matched)
    }
}

fn pattern(member: &str, source: &str) -> Result<Regex, Refusal> {
    let refused = |why: String| {
        Err(Refusal::invalid(format!("tool.{member}: {why}")).about(["tool", member]))
    };
    if source.len() > PATTERN_BYTES_MAX {
        return refused(format!("a pattern has at most {PATTERN_BYTES_MAX} bytes"));
    }
    let compiled = RegexBuilder::new(source)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .build();
    compiled.or_else(|error| refused(error.to_string()))
}

/// Globs over paths below the root, gitignore style.
#[derive(Debug)]
pub struct Globs {
    matcher: Gitignore,
    needles: Needles,
}

impl Globs {
    /// Compiles them.
    pub fn new(globs: &[String]) -> Result<Self, Refusal> {
        let refused = |place: Option<usize>, why: String| {
            let key = ["globs".to_owned()].into_iter().chain(place.map(|it| it.to_string()));
            Err(Refusal::invalid(format!("globs: {why}")).about(key))
        };
        if globs.is_empty() || globs.len() > GLOBS_MAX {
            return refused(None, format!("a rule has 1 to {GLOBS_MAX} globs"));
        }
        let mut builder = GitignoreBuilder::new("");
        for (place, glob) in globs.iter().enumerate() {
            // A comment, in a file of such patterns; nobody writes one in a list.
            let says_nothing = glob.trim().is_empty() || glob.starts_with('#');
            if says_nothing || glob.len() > PATTERN_BYTES_MAX {
                let why = format!("{glob:?} is no glob of 1 to {PATTERN_BYTES_MAX} bytes");
                return refused(Some(place), why);
            }
            if let Err(error) = builder.add_line(None, glob) {
                return refused(Some(place), error.to_string());
            }
        }
        let matcher = builder.build();
        let needles = Needles::of_globs(globs);
        matcher
            .map(|matcher| Self { matcher, needles })
            .or_else(|error| refused(None, error.to_string()))
    }

    /// The paths of the turn that match and were not told.
    pub fn matched<'a>(&self, view: &View<'a>, told: &Ranges) -> Vec<(&'a String, &'a Touch)> {
        let touched = || view.scope.facts.touched.iter();
        let heaps = view.workings.of::<Heaps>();
        let paths = heaps
            .paths
            .get_or_init(|| heap(touched().filter_map(|(path, _)| below_root(view, path))));
        if !self.needles.may_match(paths) {
            return Vec::new();
        }
        touched()
            .filter(|(path, touch)| {
                !told.hold(touch.at)
                    && below_root(view, path).is_some_and(|path| self.matches(path))
            })
            .collect()
    }

    fn matches(&self, path: &str) -> bool {
        self.matcher.matched_path_or_any_parents(path, false).is_ignore()
    }
}

/// What a rule was told of this turn, as ranges of what happened.
#[derive(Debug, Default)]
pub struct Ranges(Vec<(Serial, Serial)>);

impl Ranges {
    /// What history holds; with [`Rearm::Never`] what it lost too.
    pub fn told(view: &View<'_>, rearm: Rearm) -> Self {
        let marks = view.scope.history.marks_of_turn(view.id, view.moment.ordinals.turn, rearm);
        let range = |mark: &str| {
            let (first, last) = mark.split_once('-')?;
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        Self(marks.filter_map(range).collect())
    }

    fn hold(&self, serial: Serial) -> bool {
        self.0.iter().any(|(first, last)| (first..=last).contains(&&serial))
    }
}

/// The mark of a telling that tells of these, none when it tells of nothing that happened.
pub fn mark(happened: impl Iterator<Item = Serial>) -> Vec<String> {
    let happened: BTreeSet<_> = happened.collect();
    let range = happened.first().zip(happened.last());
    range.map(|(first, last)| format!("{first}-{last}")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(tool: serde_json::Value, name: &str, texts: Option<&[&str]>, ok: bool) -> bool {
        let settings = serde_json::from_value(tool).expect("settings");
        let pattern = ToolPattern::new(settings).expect("a pattern");
        let texts = texts.map(|texts| texts.iter().map(|&text| text.to_owned()).collect());
        let input = texts.map(|texts| CallInput { texts, ..CallInput::default() });
        let all = heap(input.iter().flat_map(|it| &it.texts).map(String::as_str));
        let is_meant = pattern.name.as_ref().is_none_or(|pattern| pattern.is_match(name));
        let call = FinishedCall { serial: 1, name: name.to_owned(), ok, input };
        let matches = is_meant && pattern.matches(&call);
        assert!(!matches || pattern.needles.may_match(&all), "{pattern:?} matches, unseen");
        matches
    }

    #[test]
    fn what_a_match_needs_is_never_more_than_there_is() {
        let paths = [
            "a", "b", "a/b", "a/x/b", "x/a", "x/a/y", "a.rs", "x/a.rs", "{a", "a b", "a ", "A",
            "[a]", "a]", "!a", "#a", "ab/c", "a/ab", "ä/ö",
        ];
        let globs = [
            "*", "**", "a", "/a", "a/", "/a/", "**/a", "a/**", "a/**/b", "**/a/**", "*.rs", "a*b",
            "?", "[ab]", "{a,b}", "a{,b}", "x/*", "\\!a", "\\#a", "a ", "a\\ ", "a?", "*a*",
            "a/*/b", "!b", "ä/*",
        ];
        let mut matched = 0;
        for glob in globs {
            for more in globs {
                let Ok(both) = Globs::new(&[glob.to_owned(), more.to_owned()]) else { continue };
                for path in paths.into_iter().filter(|path| both.matches(path)) {
                    assert!(both.needles.may_match(path.as_bytes()), "{glob} {more}: {path}");
                    matched += 1;
                }
            }
        }
        assert!(matched > 1_000, "{matched}");
        let one = |globs: &[&str]| {
            let globs: Vec<_> = globs.iter().map(|&glob| glob.to_owned()).collect();
            Globs::new(&globs).expect("globs").needles
        };
        assert!(!one(&["migrations/**", "*.sql", "!*.md"]).may_match(b"src/a.rs\nb.md\n"));

        let texts = ["cargo test", "run cargo", "CARGO", "x\ny", "", "aab", "naïve"];
        let patterns = [
            "cargo (test|nextest)",
            "^cargo",
            "(?i)cargo",
            "go$",
            "(?m)^y",
            "a*b",
            "",
            ".",
            "a{2}",
            "x|cargo",
            r"\bcargo\b",
            "[a-z]+ test",
            "na.ve",
            "(?s)x.y",
            "^$",
        ];
        for source in patterns {
            let (pattern, needles) =
                (Regex::new(source).expect(source), Needles::of_pattern(source));
            for text in texts.into_iter().filter(|text| pattern.is_match(text)) {
                assert!(needles.may_match(text.as_bytes()), "{source}: {text}");
            }
        }
        assert!(!Needles::of_pattern("cargo (test|nextest)").may_match(b"cargo build\n"));
    }

    #[test]
    fn a_name_matches_whole_and_an_input_anywhere() {
        assert!(matches(json!({"name": "Bash"}), "Bash", None, true));
        assert!(!matches(json!({"name": "Bash"}), "BashOutput", None, true));
        assert!(matches(json!({"name": "Bash|Bash.*"}), "BashOutput", None, true));
        assert!(matches(json!({"name": "(?i)bash"}), "BASH", None, true));
        assert!(!matches(json!({"name": "bash"}), "Bash", None, true));
        let texts = Some(&[r#"{"command":"cd a && cargo test"}"#, "cd a && cargo test"][..]);
        assert!(matches(json!({"input": "cargo (test|nextest)"}), "Bash", texts, true));
        assert!(matches(json!({"input": "^cd .* test$"}), "Bash", texts, true));
        assert!(!matches(json!({"input": "^cargo"}), "Bash", texts, true));
        assert!(!matches(json!({"input": ""}), "Bash", None, true), "an input nobody knows");
        assert!(!matches(json!({"input": "cargo", "ok": false}), "Bash", texts, true));
        assert!(matches(json!({"ok": false}), "Bash", None, false));
    }

    #[test]
    fn mistakes_say_where() {
        for (tool, key) in [
            (json!({}), &["tool"][..]),
            (json!({"name": "("}), &["tool", "name"]),
            (json!({"name": "a)(b"}), &["tool", "name"]),
            (json!({"input": "x{99999}{99999}"}), &["tool", "input"]),
            (json!({"input": "x".repeat(PATTERN_BYTES_MAX + 1)}), &["tool", "input"]),
        ] {
            let settings = serde_json::from_value(tool.clone()).expect("settings");
            let refusal = ToolPattern::new(settings).expect_err(&tool.to_string());
            assert_eq!(refusal.at.expect("a place").key, key, "{tool}");
        }
        for (globs, key) in [
            (vec![], &["globs"][..]),
            (vec!["a", "{b"], &["globs", "1"]),
            (vec![" "], &["globs", "0"]),
            (vec!["#a"], &["globs", "0"]),
        ] {
            let globs: Vec<String> = globs.into_iter().map(str::to_owned).collect();
            let refusal = Globs::new(&globs).expect_err(&globs.join(" "));
            assert_eq!(refusal.at.expect("a place").key, key, "{globs:?}");
        }
    }

    #[test]
    fn a_mark_is_the_range_of_what_happened() {
        assert_eq!(mark([7, 3, 5].into_iter()), ["3-7"]);
        assert!(mark(std::iter::empty()).is_empty());
        assert!(Ranges(vec![(3, 7), (9, 9)]).hold(9));
        assert!(!Ranges(vec![(3, 7), (9, 9)]).hold(8));
    }
}
