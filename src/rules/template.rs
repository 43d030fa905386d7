//! Bodies as templates: Jinja, strict about names, bounded in time and size.
//!
//! The template engine recurses over what a source nests: chains of operators when it compiles,
//! lists in lists when it prints and drops them. A stack that overflows ends the whole process, so
//! a source that could nest deeply is worked on with a stack for the deepest that is possible.

use std::fmt;
use std::io;
use std::thread;

use minijinja::{Environment, UndefinedBehavior};

use crate::engine::Refusal;

/// The longest source of a template, in bytes.
pub const SOURCE_BYTES_MAX: usize = 64 << 10;
/// The longest body that a template may yield, in bytes.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Instructions that rendering may take.
const FUEL: u64 = 200_000;
const NAME: &str = "body";
/// The longest source that cannot nest too deeply for any thread's stack, in bytes.
const SHALLOW_BYTES_MAX: usize = 2 << 10;
/// The stack for other sources, in bytes. Only what is used of it takes memory.
const DEEP_STACK_BYTES: usize = 1 << 30;

/// What is wrong with a source, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong.
    pub message: String,
    /// The line and the column, both from 1, the column in characters.
    pub place: Option<(u32, u32)>,
}

impl Mistake {
    fn of(error: &minijinja::Error, source: &str) -> Self {
        // The engine knows its own places as bytes, and those that it does not know as a line.
        let place = error.range().map(|range| place_of(source, range.start));
        let line = error.line().and_then(|line| u32::try_from(line).ok());
        Self { message: describe(error), place: place.or_else(|| line.map(|line| (line, 1))) }
    }

    /// As a refusal of the reminder with this id, about the member that holds the source.
    pub fn refusal(self, id: &str, key: &str) -> Refusal {
        let refusal = Refusal::invalid(format!("{key}: {}", self.message));
        refusal.about([key]).within(self.place).of(id)
    }
}

/// The line and column of a byte, both from 1.
fn place_of(source: &str, byte: usize) -> (u32, u32) {
    let before = source.get(..byte).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    (number(line), number(column))
}

/// A compiled template.
pub struct Template {
    source: String,
    /// Absent for a text without any markup, which needs no rendering.
    compiled: Option<Environment<'static>>,
}

impl Template {
    /// Compiles a source, or says what is wrong with it and where.
    pub fn new(source: &str) -> Result<Self, Mistake> {
        if source.len() > SOURCE_BYTES_MAX {
            let message = format!(
                "the template has {} bytes, and at most {SOURCE_BYTES_MAX} are allowed",
                source.len()
            );
            return Err(Mistake { message, place: None });
        }
        let has_markup = ["{{", "{%", "{#"].iter().any(|mark| source.contains(mark));
        let compiled =
            has_markup.then(|| with_stack_for(source, || Ok(compile(source)))).transpose();
        let compiled = compiled.map_err(|message| Mistake { message, place: None })?.transpose()?;
        Ok(Self { source: source.to_owned(), compiled })
    }

    /// The body for these names, trimmed. `names` is asked only when there is something to fill in.
    pub fn render(&self, names: impl FnOnce() -> minijinja::Value) -> Result<String, String> {
        let Some(environment) = &self.compiled else { return Ok(self.source.trim().to_owned()) };
        let names = names();
        with_stack_for(&self.source, || render(environment, names))
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

fn compile(source: &str) -> Result<Environment<'static>, Mistake> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    let added = environment.add_template_owned(NAME, source.to_owned());
    added.map_err(|error| Mistake::of(&error, source))?;
    Ok(environment)
}

fn render(environment: &Environment<'_>, names: minijinja::Value) -> Result<String, String> {
    let mut body = Bounded::default();
    let template = environment.get_template(NAME).map_err(|error| describe(&error))?;
    // What comes of it is dropped here, on the stack that it needs.
    let outcome = template.render_captured_to(names, &mut body).map(drop);
    match outcome {
        Err(_) if body.full => {
            Err(format!("the body is longer than {BODY_BYTES_MAX} bytes: say less"))
        }
        Err(error) => Err(describe(&error)),
        Ok(()) => String::from_utf8(body.bytes)
            .map(|text| text.trim().to_owned())
            .map_err(|error| error.to_string()),
    }
}

/// Does the work on a source here, or on a thread with a deep stack if the source could need it.
fn with_stack_for<T: Send>(
    source: &str,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    // A namespace outlives the rounds of a loop, and so can nest deeper than its source is long.
    if source.len() <= SHALLOW_BYTES_MAX && !source.contains("namespace") {
        return work();
    }
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(DEEP_STACK_BYTES);
        let worker = worker
            .spawn_scoped(scope, work)
            .map_err(|error| format!("no thread for a long template: {error}"))?;
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn describe(error: &minijinja::Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line} of the template: {what}"),
        None => what,
    }
}

/// Takes bytes up to the longest body, then refuses.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > BODY_BYTES_MAX {
            self.full = true;
            return Err(io::Error::other("the body is too long"));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    fn rendered(source: &str) -> Result<String, String> {
        Template::new(source)
            .map_err(|mistake| mistake.message)?
            .render(|| context! { names => ["b", "c"], count => 3 })
    }

    #[test]
    fn names_are_filled_in_and_the_body_is_trimmed() {
        assert_eq!(rendered("  plain \n"), Ok("plain".to_owned()));
        assert_eq!(rendered("New: {{ names | join(', ') }}."), Ok("New: b, c.".to_owned()));
        assert_eq!(rendered("{% if count > 5 %}many{% endif %}"), Ok(String::new()));
    }

    #[test]
    fn mistakes_say_what_and_where() {
        for (source, part) in
            [("{{ names | joyn }}", "joyn"), ("a\n{{ missing }}", "line 2"), ("{% if %}", "line 1")]
        {
            let message = rendered(source).expect_err(source);
            assert!(message.contains(part), "{source}: {message}");
        }
    }

    #[test]
    fn time_and_size_are_bounded() {
        let endless =
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
        assert!(rendered(endless).is_err());
        let long = "{% for a in range(5000) %}{{ 'x' * 1000 }}{% endfor %}";
        assert!(rendered(long).is_err());
        assert!(Template::new(&"x".repeat(SOURCE_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn depth_is_bounded_by_length_alone() {
        let unary = format!("{{{{ {}1 }}}}", "-".repeat(60_000));
        let filters = format!("{{{{ 1{} }}}}", "|abs".repeat(16_000));
        let branches = format!("{{% if 0 %}}{}{{% endif %}}ok", "{%elif 0%}".repeat(6_000));
        let nested = format!("{{%set a={}a{}%}}", "[".repeat(50), "]".repeat(50));
        let lists = format!("{{%set a=1%}}{}ok", nested.repeat(500));
        let grown = "{% set ns = namespace(a=[]) %}{% for a in range(9999) %}\
                     {% set ns.a = [[[[[[[[ns.a]]]]]]]] %}{% endfor %}ok";
        for source in [unary, filters] {
            assert_eq!(rendered(&source), Ok("1".to_owned()));
        }
        for source in [&branches, &lists, grown] {
            assert_eq!(rendered(source), Ok("ok".to_owned()));
        }
        let printed = grown.replace("9999", "5000").replace("}ok", "}{{ ns.a }}");
        assert_eq!(rendered(&printed).map(|body| body.len()), Ok(80_002));
    }
}
