//! Bodies as templates: Jinja, strict about names, bounded in time and size.

use std::fmt;
use std::io;

use minijinja::{Environment, UndefinedBehavior};

/// The longest source of a template, in bytes.
pub const SOURCE_BYTES_MAX: usize = 64 << 10;
/// The longest body that a template may yield, in bytes.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// Instructions that rendering may take.
const FUEL: u64 = 200_000;
const NAME: &str = "body";

/// A compiled template.
pub struct Template {
    source: String,
    /// Absent for a text without any markup, which needs no rendering.
    compiled: Option<Environment<'static>>,
}

impl Template {
    /// Compiles a source, or says what is wrong with it and where.
    pub fn new(source: &str) -> Result<Self, String> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(format!(
                "the template has {} bytes, and at most {SOURCE_BYTES_MAX} are allowed",
                source.len()
            ));
        }
        let has_markup = ["{{", "{%", "{#"].iter().any(|mark| source.contains(mark));
        let compiled = has_markup.then(|| compile(source)).transpose()?;
        Ok(Self { source: source.to_owned(), compiled })
    }

    /// The body for these names, trimmed. `names` is asked only when there is something to fill in.
    pub fn render(&self, names: impl FnOnce() -> minijinja::Value) -> Result<String, String> {
        let Some(environment) = &self.compiled else { return Ok(self.source.trim().to_owned()) };
        let mut body = Bounded::default();
        let template = environment.get_template(NAME).map_err(|error| describe(&error))?;
        match template.render_captured_to(names(), &mut body) {
            Err(_) if body.full => {
                Err(format!("the body is longer than {BODY_BYTES_MAX} bytes: say less"))
            }
            Err(error) => Err(describe(&error)),
            Ok(_) => String::from_utf8(body.bytes)
                .map(|text| text.trim().to_owned())
                .map_err(|error| error.to_string()),
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

fn compile(source: &str) -> Result<Environment<'static>, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.add_template_owned(NAME, source.to_owned()).map_err(|error| describe(&error))?;
    Ok(environment)
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

    fn render(source: &str) -> Result<String, String> {
        Template::new(source)?.render(|| context! { names => ["b", "c"], count => 3 })
    }

    #[test]
    fn names_are_filled_in_and_the_body_is_trimmed() {
        assert_eq!(render("  plain \n"), Ok("plain".to_owned()));
        assert_eq!(render("New: {{ names | join(', ') }}."), Ok("New: b, c.".to_owned()));
        assert_eq!(render("{% if count > 5 %}many{% endif %}"), Ok(String::new()));
    }

    #[test]
    fn mistakes_say_what_and_where() {
        for (source, part) in
            [("{{ names | joyn }}", "joyn"), ("a\n{{ missing }}", "line 2"), ("{% if %}", "line 1")]
        {
            let message = render(source).expect_err(source);
            assert!(message.contains(part), "{source}: {message}");
        }
    }

    #[test]
    fn time_and_size_are_bounded() {
        let endless =
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
        assert!(render(endless).is_err());
        let long = "{% for a in range(5000) %}{{ 'x' * 1000 }}{% endfor %}";
        assert!(render(long).is_err());
        assert!(Template::new(&"x".repeat(SOURCE_BYTES_MAX + 1)).is_err());
    }
}
