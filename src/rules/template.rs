//! Bodies as templates.

use std::cell::RefCell;
use std::fmt;
use std::io;

use minijinja::Environment;

use super::effort::Effort;
use super::language::{self, ENVIRONMENT, Mistake, describe, with_stack_for};
use super::names::Name;
use super::soundness::check_template;

/// The longest body that a template may yield, in bytes.
pub const BODY_BYTES_MAX: usize = 256 << 10;

const NAME: &str = "body";

/// A source with markup, compiled.
struct Compiled {
    quick: Environment<'static>,
    /// The same with fuel for what takes long.
    patient: Environment<'static>,
}

/// A compiled template.
pub struct Template {
    source: String,
    /// Absent for a text without any markup, which needs no rendering.
    compiled: Option<Compiled>,
    /// The names that it may ask for.
    uses: Vec<Name>,
}

impl Template {
    /// Compiles a source, or says what is wrong with it and where.
    pub fn new(source: &str) -> Result<Self, Mistake> {
        Self::compiled(source, false)
    }

    /// Compiles the source of a pool's template, which has `names` beside the others.
    pub fn of_pool(source: &str) -> Result<Self, Mistake> {
        Self::compiled(source, true)
    }

    fn compiled(source: &str, of_pools: bool) -> Result<Self, Mistake> {
        let has_markup = ["{{", "{%", "{#"].iter().any(|mark| source.contains(mark));
        let compiled = language::compile(source, || {
            has_markup.then(|| compile(source, of_pools)).transpose()
        })?;
        let uses = Name::used_in(compiled.as_ref().map_or("", |_| source));
        Ok(Self { source: source.to_owned(), compiled, uses })
    }

    /// The body for these names, trimmed. `names` is asked, for those that the source may use, only
    /// when there is something to fill in.
    pub fn render(
        &self,
        effort: &Effort,
        names: impl FnOnce(&[Name]) -> minijinja::Value,
    ) -> Result<String, String> {
        let Some(compiled) = &self.compiled else { return Ok(self.source.trim().to_owned()) };
        let names = names(&self.uses);
        with_stack_for(&self.source, || render(compiled, effort, &names))
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

fn compile(source: &str, of_pools: bool) -> Result<Compiled, Mistake> {
    let mut environment = ENVIRONMENT.clone();
    let added = environment.add_template_owned(NAME, source.to_owned());
    added.map_err(|error| Mistake::of(&error, source, describe))?;
    let template =
        environment.get_template(NAME).map_err(|error| Mistake::of(&error, source, describe))?;
    language::check_names(source, template.undeclared_variables(true), of_pools)?;
    check_template(source)?;
    Ok(Compiled { patient: language::patient(&environment), quick: environment })
}

fn render(
    compiled: &Compiled,
    effort: &Effort,
    names: &minijinja::Value,
) -> Result<String, String> {
    let body = RefCell::new(Bounded::default());
    let outcome = language::worked_out(effort, |patient| {
        let environment = if patient { &compiled.patient } else { &compiled.quick };
        let mut body = body.borrow_mut();
        *body = Bounded::default();
        let template = environment.get_template(NAME)?;
        // What comes of it is dropped here, on the stack that it needs.
        template.render_captured_to(names.clone(), &mut *body).map(drop)
    });
    let body = body.into_inner();
    match outcome {
        Err(_) if body.full => {
            Err(format!("the body is longer than {BODY_BYTES_MAX} bytes: say less"))
        }
        Err(trouble) => Err(trouble.told(describe)),
        Ok(()) => String::from_utf8(body.bytes)
            .map(|text| text.trim().to_owned())
            .map_err(|error| error.to_string()),
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
        Template::of_pool(source)
            .map_err(|mistake| mistake.message)?
            .render(&Effort::default(), |_| context! { names => ["b", "c"], turn => 3 })
    }

    #[test]
    fn names_are_filled_in_and_the_body_is_trimmed() {
        assert_eq!(rendered("  plain \n"), Ok("plain".to_owned()));
        assert_eq!(rendered("New: {{ names | join(', ') }}."), Ok("New: b, c.".to_owned()));
        assert_eq!(rendered("{% if turn > 5 %}many{% endif %}"), Ok(String::new()));
    }

    #[test]
    fn mistakes_say_what_and_where() {
        for (source, part) in [
            ("{{ names | joyn }}", "joyn"),
            ("a\n{{ facts.x.y }}", "line 2"),
            ("{% if %}", "line 1"),
        ] {
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
        assert!(Template::new(&"x".repeat(language::SOURCE_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn what_the_engine_panics_on_is_a_mistake() {
        for source in
            ["{{ [1, 2][::-9223372036854775808] }}", "{{ 'abc'[::-9223372036854775808] }}"]
        {
            let message = rendered(source).expect_err(source);
            assert!(message.contains("failed on it"), "{source}: {message}");
        }
    }

    #[test]
    fn depth_is_bounded_by_length_alone() {
        let unary = format!("{{{{ {}1 }}}}", "-".repeat(60_000));
        let filters = format!("{{{{ 1{} }}}}", "|abs".repeat(16_000));
        let branches = format!("{{% if 0 %}}{}{{% endif %}}ok", "{%elif 0%}".repeat(6_000));
        for source in [unary, filters] {
            assert_eq!(rendered(&source), Ok("1".to_owned()));
        }
        assert_eq!(rendered(&branches), Ok("ok".to_owned()));
    }
}
