//! Conditions as expressions.

use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::Expression;

use super::effort::Effort;
use super::language::{self, ENVIRONMENT, Mistake, PATIENT, detail, with_stack_for, worked_out};
use super::names::Name;
use super::soundness::check_expression;

/// A compiled condition.
pub struct Condition {
    source: Arc<str>,
    compiled: Expression<'static, 'static>,
    /// Made when it is first needed: few take long.
    patient: OnceLock<Option<Expression<'static, 'static>>>,
    /// The names that it may ask for.
    uses: Vec<Name>,
}

impl Condition {
    /// Compiles a source, or says what is wrong with it and where.
    pub fn new(source: &str) -> Result<Self, Mistake> {
        let compiled = language::compile(source, || {
            let compiled = ENVIRONMENT.compile_expression_owned(source.to_owned());
            let compiled = compiled.map_err(|error| Mistake::of(&error, source, detail))?;
            language::check_names(source, compiled.undeclared_variables(true), false)?;
            check_expression(source)?;
            Ok(compiled)
        })?;
        let patient = OnceLock::new();
        Ok(Self { source: source.into(), compiled, patient, uses: Name::used_in(source) })
    }

    /// Whether it holds for these names: whether what it yields is neither false, zero, none nor
    /// empty. `names` is asked for those that the source may use.
    pub fn holds(
        &self,
        effort: &Effort,
        names: impl FnOnce(&[Name]) -> minijinja::Value,
    ) -> Result<bool, String> {
        let names = names(&self.uses);
        with_stack_for(&self.source, || {
            let value = worked_out(effort, |patient| {
                let patient = patient.then(|| self.patient.get_or_init(|| self.compiled_again()));
                let compiled = patient.and_then(Option::as_ref).unwrap_or(&self.compiled);
                compiled.eval(names.clone())
            });
            match value {
                Ok(value) if value.is_undefined() => Err("it is of a missing name".to_owned()),
                // What comes of it is dropped here, on the stack that it needs.
                Ok(value) => Ok(value.is_true()),
                Err(trouble) => Err(trouble.told(detail)),
            }
        })
    }

    fn compiled_again(&self) -> Option<Expression<'static, 'static>> {
        PATIENT.compile_expression_owned(self.source.to_string()).ok()
    }

    /// Its source.
    pub fn source(&self) -> &Arc<str> {
        &self.source
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.source).finish()
    }
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    fn holds(source: &str) -> Result<bool, String> {
        let condition = Condition::new(source).map_err(|mistake| mistake.message)?;
        condition.holds(
            &Effort::default(),
            |_| context! { facts => context! { failing => 2 }, turn => 3 },
        )
    }

    #[test]
    fn a_condition_holds_as_jinja_says() {
        for (source, expected) in [
            ("facts.failing > 0", true),
            ("facts.failing > 0 and turn == 4", false),
            ("facts.missing is defined", false),
            ("'a' in ['a', 'b']", true),
            ("[]", false),
            ("range(3) | sum", true),
            ("none", false),
        ] {
            assert_eq!(holds(source), Ok(expected), "{source}");
        }
    }

    #[test]
    fn a_missing_name_is_an_error() {
        for source in ["facts.missing", "facts.missing > 0", "usage.ratio > 0.5"] {
            assert!(holds(source).is_err(), "{source}");
        }
    }

    #[test]
    fn mistakes_say_what_and_where() {
        for (source, part, place) in [
            ("facts.failing >", "unexpected", Some((1, 15))),
            ("turn ==\n  fact.x", "did you mean \"facts\"?", Some((2, 3))),
            ("plan.actve", "did you mean \"active\"?", Some((1, 6))),
            ("names | length > 0", "no name \"names\"", Some((1, 1))),
            ("prompt is defined", "write one of facts, mode", Some((1, 1))),
        ] {
            let mistake = Condition::new(source).expect_err(source);
            assert!(mistake.message.contains(part), "{source}: {mistake:?}");
            assert_eq!(mistake.place, place, "{source}: {mistake:?}");
        }
    }

    #[test]
    fn time_memory_and_depth_are_bounded() {
        for source in [
            "'x' * 10 ** 9",
            "('x' * 10 ** 6) * 10 ** 6",
            "'x' | center(10 ** 9)",
            "'x' | indent(10 ** 9)",
            "('x' * 100000) | replace('x', 'y' * 100000)",
            "range(100000) | map('string') | list | join('x' * 1000)",
            "(range(9999) | list) * 10 ** 9 | length",
            "range(99999) | list | sort | map('center', 9999) | list | length",
            "'%099999999d' | format(1)",
            "10 ** 10 ** 10 > 0",
            "([1] * 100000) | string | length",
            "([[1] * 400] * 400) | string | length",
        ] {
            let outcome = holds(source);
            assert!(outcome.is_err(), "{source}: {outcome:?}");
        }
        for source in [
            format!("{}1", "-".repeat(60_000)),
            format!("1{}", "|abs".repeat(16_000)),
            format!("{}1{}", "(".repeat(30_000), ")".repeat(30_000)),
            format!("{}{}", "[".repeat(30_000), "]".repeat(30_000)),
            format!("1{}", " + 1".repeat(16_000)),
            format!("{}1", "not ".repeat(16_000)),
        ] {
            // Refused or worked out: either way the process lives.
            drop(holds(&source));
        }
        assert!(Condition::new(&"1".repeat(language::SOURCE_BYTES_MAX + 1)).is_err());
    }
}
