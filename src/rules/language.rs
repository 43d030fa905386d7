//! The language of conditions and bodies: Jinja, strict about names, bounded in time and size.
//!
//! The template engine charges for what it does and for what it makes, so that neither time nor
//! memory runs away. But it recurses over what a source nests: chains of operators when it compiles,
//! lists in lists when it prints and drops them. A stack that overflows ends the whole process, so
//! a source that could nest deeply is worked on with a stack for the deepest that is possible.

use std::collections::BTreeSet;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;
use std::thread;

use minijinja::value::ValueKind;
use minijinja::{Environment, State, UndefinedBehavior, Value};

use super::effort::{Effort, SPENT};
use super::names;
use crate::engine::Refusal;

/// The longest source of a template or an expression, in bytes.
pub const SOURCE_BYTES_MAX: usize = 64 << 10;
/// What working one out may cost: an instruction costs 1, and so do 64 bytes that it makes.
const FUEL: u64 = 50_000;
/// What most cost at most. The few that cost more are worked out anew, as far as the WAIT's
/// [`Effort`](super::effort::Effort) goes.
const FUEL_OF_MOST: u64 = 2_000;
/// The longest source that cannot nest too deeply for any thread's stack, in bytes.
const SHALLOW_BYTES_MAX: usize = 2 << 10;
/// The stack for other sources, in bytes. Only what is used of it takes memory.
const DEEP_STACK_BYTES: usize = 1 << 30;

/// What every template and expression can use beside the names of the state. A clone shares it.
pub static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL_OF_MOST));
    // Prints the whole state; nobody means that in a body.
    environment.remove_global("debug");
    // Put values into new lists, which are not paid for when they are printed (`soundness`).
    ["dict", "namespace"].iter().for_each(|name| environment.remove_global(name));
    REMOVED.iter().for_each(|name| environment.remove_filter(name));
    // What is printed is paid for by what is in it, and not only by how long it comes out.
    environment.set_formatter(|out, state, value| {
        pay_for(state, value)?;
        minijinja::escape_formatter(out, state, value)
    });
    environment.add_filter("string", |state: &State<'_, '_>, value: Value| {
        pay_for(state, &value)?;
        minijinja::filters::string(state, &value)
    });
    environment
});

/// Takes a step for each value in a list or mapping, however deep, as far as there are any.
fn pay_for(state: &State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
        return Ok(());
    }
    // Before it is looked at: a list that is repeated is made when it is.
    state.consume_fuel(value.len().unwrap_or_default() as u64)?;
    for item in value.try_iter()? {
        pay_for(state, &item)?;
        if value.kind() == ValueKind::Map {
            pay_for(state, &value.get_item(&item)?)?;
        }
    }
    Ok(())
}

/// Filters that are not there: what they put into new lists, or print of them, is not paid for.
const REMOVED: &[&str] = &["batch", "groupby", "pprint", "slice", "zip"];

/// The filters that there are.
pub const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "bool",
    "capitalize",
    "chain",
    "count",
    "default",
    "dictsort",
    "first",
    "float",
    "format",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "trim",
    "unique",
    "upper",
];

/// The tests that there are.
pub const TESTS: &[&str] = &[
    "defined",
    "undefined",
    "none",
    "true",
    "false",
    "boolean",
    "number",
    "integer",
    "float",
    "string",
    "mapping",
    "sequence",
    "iterable",
    "odd",
    "even",
    "divisibleby",
    "lower",
    "upper",
    "startingwith",
    "endingwith",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "in",
    "sameas",
    "filter",
    "test",
];

/// The same with fuel for those that take long.
pub static PATIENT: LazyLock<Environment<'static>> = LazyLock::new(|| patient(&ENVIRONMENT));

/// An environment with fuel for those that take long.
pub fn patient(environment: &Environment<'static>) -> Environment<'static> {
    let mut patient = environment.clone();
    patient.set_fuel(Some(FUEL));
    patient
}

/// Works something out, again with more fuel when it takes long and may. `work` is told whether it
/// has that.
pub fn worked_out<T>(
    effort: &Effort,
    work: impl Fn(bool) -> Result<T, minijinja::Error>,
) -> Result<T, Trouble> {
    match work(false) {
        Err(error) if wants_more(&error) => {
            if effort.takes_long() {
                work(true).map_err(Trouble::Error)
            } else {
                Err(Trouble::Spent)
            }
        }
        outcome => outcome.map_err(Trouble::Error),
    }
}

/// Whether the fuel was used up. A filter may have given the error a context of its own.
fn wants_more(error: &minijinja::Error) -> bool {
    let causes = iter::successors(Some(error as &dyn std::error::Error), |it| it.source());
    causes
        .filter_map(|it| it.downcast_ref::<minijinja::Error>())
        .any(|it| it.kind() == minijinja::ErrorKind::OutOfFuel)
}

/// Why something could not be worked out.
#[derive(Debug)]
pub enum Trouble {
    /// The engine says so.
    Error(minijinja::Error),
    /// Others took all that there was.
    Spent,
}

impl Trouble {
    /// In words for people; `words` has them for what the engine says.
    pub fn told(&self, words: fn(&minijinja::Error) -> String) -> String {
        match self {
            Self::Error(error) => words(error),
            Self::Spent => SPENT.to_owned(),
        }
    }
}

/// What is wrong with a source, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong.
    pub message: String,
    /// The line and the column, both from 1, the column in characters.
    pub place: Option<(u32, u32)>,
}

impl Mistake {
    /// A mistake of a source as a whole.
    fn whole(message: String) -> Self {
        Self { message, place: None }
    }

    /// What the template engine says of a source, worded by `message`.
    pub fn of(
        error: &minijinja::Error,
        source: &str,
        message: fn(&minijinja::Error) -> String,
    ) -> Self {
        // The engine knows its own places as bytes, and those that it does not know as a line.
        let place = error.range().map(|range| place_of(source, range.start));
        let line = error.line().and_then(|line| u32::try_from(line).ok());
        Self { message: message(error), place: place.or_else(|| line.map(|line| (line, 1))) }
    }

    /// As a refusal of the reminder with this id, about the member that holds the source.
    pub fn refusal(self, id: &str, key: &str) -> Refusal {
        let refusal = Refusal::invalid(format!("{key}: {}", self.message));
        refusal.about([key]).within(self.place).of(id)
    }
}

/// Compiles a source, on a stack that is deep enough for it.
pub fn compile<T: Send>(
    source: &str,
    work: impl FnOnce() -> Result<T, Mistake> + Send,
) -> Result<T, Mistake> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(Mistake::whole(format!(
            "the source has {} bytes, and at most {SOURCE_BYTES_MAX} are allowed",
            source.len()
        )));
    }
    with_stack_for(source, || Ok(work())).map_err(Mistake::whole)?
}

/// Works a source out here, or on a thread with a deep stack if the source could need it.
/// The engine panics on some arithmetic (a slice by the smallest number there is): that is a mistake
/// of this source like any other, and takes nothing else with it.
pub fn with_stack_for<T: Send>(
    source: &str,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let work = || {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panic| {
            Err("the template engine failed on it: write it in another way".to_owned())
        })
    };
    if source.len() <= SHALLOW_BYTES_MAX {
        return work();
    }
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(DEEP_STACK_BYTES);
        let worker = worker
            .spawn_scoped(scope, work)
            .map_err(|error| format!("no thread for a long template: {error}"))?;
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// What went wrong in a template, in words for people, with the line.
pub fn describe(error: &minijinja::Error) -> String {
    match error.line() {
        Some(line) => format!("line {line} of the template: {}", detail(error)),
        None => detail(error),
    }
}

/// What went wrong, in words for people.
pub fn detail(error: &minijinja::Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_owned)
}

/// Refuses names that no state ever has. `used` are those that a source does not make itself,
/// with the members that it asks of them by name.
pub fn check_names(
    source: &str,
    used: impl IntoIterator<Item = String>,
    of_pools: bool,
) -> Result<(), Mistake> {
    // Sorted, so that the same source gets the same message.
    for name in used.into_iter().collect::<BTreeSet<_>>() {
        let mut path = name.split('.');
        let (first, second) = (path.next().unwrap_or_default(), path.next());
        if ENVIRONMENT.globals().any(|(global, _)| global == first) {
            continue;
        }
        let unknown = match names::members(first, of_pools) {
            None => Some((first, names::all(of_pools).collect::<Vec<_>>())),
            Some([]) => None,
            Some(members) => {
                second.filter(|it| !members.contains(it)).map(|it| (it, members.to_vec()))
            }
        };
        if let Some((word, known)) = unknown {
            let message = format!("no name {name:?}: {}", suggestion(word, &known));
            return Err(Mistake { message, place: word_in(source, word) });
        }
    }
    Ok(())
}

/// The name that was probably meant, or all of them.
pub fn suggestion(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|name| (strsim::damerau_levenshtein(word, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 2 && distance < word.len() => {
            format!("did you mean {name:?}?")
        }
        _ => format!("write one of {}", known.join(", ")),
    }
}

/// Whether a text has a word in it: no letter, digit or underscore beside it.
pub fn has_word(source: &str, word: &str) -> bool {
    word_in(source, word).is_some()
}

/// Where a word first stands in a source.
fn word_in(source: &str, word: &str) -> Option<(u32, u32)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let start = source.match_indices(word).map(|(start, _)| start).find(|start| {
        let before = source[..*start].chars().next_back();
        let after = source[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })?;
    Some(place_of(source, start))
}

/// The line and column of a byte, both from 1.
pub fn place_of(source: &str, byte: usize) -> (u32, u32) {
    let before = source.get(..byte).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    (number(line), number(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page lists what there is.
    #[test]
    fn the_page_names_every_name_and_no_filter_that_is_not_there() {
        const PAGE: &str = include_str!("../../protocol/RULES.md");
        let (_, page) = PAGE.split_once("\n## Names\n").expect("the page lists names");
        for name in names::all(true) {
            assert!(
                page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}.")),
                "{name}"
            );
        }
        let (_, filters) = page.split_once("and these filters: ").expect("the page lists filters");
        let (filters, _) = filters.split_once(".\n").expect("the list ends");
        let listed: Vec<_> = filters.split(", ").map(|filter| filter.trim_matches('`')).collect();
        assert_eq!(listed, FILTERS);
        let mut state = ENVIRONMENT.empty_state();
        let mut is_there = |filter: &str| {
            let unknown = minijinja::ErrorKind::UnknownFilter;
            let applied = state.apply_filter(filter, &[]);
            applied.map_or_else(|error| error.kind() != unknown, |_| true)
        };
        FILTERS.iter().for_each(|filter| assert!(is_there(filter), "{filter}"));
        REMOVED.iter().for_each(|filter| assert!(!is_there(filter), "{filter}"));
        let mut state = ENVIRONMENT.empty_state();
        for test in TESTS {
            let unknown = minijinja::ErrorKind::UnknownTest;
            let performed = state.perform_test(test, &[]);
            assert!(performed.map_or_else(|error| error.kind() != unknown, |_| true), "{test}");
        }
    }

    #[test]
    fn places_are_counted_in_characters_from_one() {
        assert_eq!(place_of("ab", 0), (1, 1));
        assert_eq!(place_of("ä\nöb", 5), (2, 2));
        assert_eq!(word_in("modes and mode", "mode"), Some((1, 11)));
    }
}
