//! What a source may say beyond what the engine checks when it compiles: filters and tests that there
//! are, and nothing that could grow without being paid for.
//!
//! The engine charges for what it makes, but a list that holds another one twice is as cheap as any
//! other, and what prints or compares it takes twice as long. Forty such steps never end. So a list
//! with names in it is not given a name, and what else puts values into new lists is not there.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Span, parse, parse_expr};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;

use super::language::{FILTERS, Mistake, TESTS, place_of, suggestion};

/// Checks the source of a template, which compiles.
pub fn check_template(source: &str) -> Result<(), Mistake> {
    let parsed = parse(source, "body", SyntaxConfig::default());
    let Ok(template) = parsed else { return Ok(()) };
    Checks { source }.statement(&template)
}

/// Checks the source of an expression, which compiles.
pub fn check_expression(source: &str) -> Result<(), Mistake> {
    let Ok(expression) = parse_expr(source) else { return Ok(()) };
    Checks { source }.expression(&expression, false)
}

/// The checks of a source.
struct Checks<'a> {
    source: &'a str,
}

impl Checks<'_> {
    fn mistake(&self, span: Span, message: String) -> Mistake {
        let place = Some(place_of(self.source, span.start_offset as usize));
        Mistake { message, place }
    }

    fn statements(&self, statements: &[Stmt<'_>]) -> Result<(), Mistake> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&self, statement: &Stmt<'_>) -> Result<(), Mistake> {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => self.expression(&it.expr, false),
            Stmt::ForLoop(it) => {
                if it.recursive {
                    let message = "a loop does not call itself: write one in another".to_owned();
                    return Err(self.mistake(it.span(), message));
                }
                self.expression(&it.iter, true)?;
                it.filter_expr.iter().try_for_each(|filter| self.expression(filter, false))?;
                self.statements(&it.body)?;
                self.statements(&it.else_body)
            }
            Stmt::IfCond(it) => {
                self.expression(&it.expr, false)?;
                self.statements(&it.true_body)?;
                self.statements(&it.false_body)
            }
            Stmt::WithBlock(it) => {
                it.assignments.iter().try_for_each(|(_, value)| self.expression(value, true))?;
                self.statements(&it.body)
            }
            Stmt::Set(it) => self.expression(&it.expr, true),
            Stmt::SetBlock(it) => {
                it.filter.iter().try_for_each(|filter| self.expression(filter, true))?;
                self.statements(&it.body)
            }
            Stmt::AutoEscape(it) => {
                self.expression(&it.enabled, false)?;
                self.statements(&it.body)
            }
            Stmt::FilterBlock(it) => {
                self.expression(&it.filter, false)?;
                self.statements(&it.body)
            }
            Stmt::Do(it) => self.arguments(&it.call.args, false),
            Stmt::EmitRaw(_) => Ok(()),
        }
    }

    /// `named` says that the value is given a name.
    fn expression(&self, expression: &Expr<'_>, named: bool) -> Result<(), Mistake> {
        let both = |one, other| {
            self.expression(one, named)?;
            self.expression(other, named)
        };
        match expression {
            Expr::Var(_) | Expr::Const(_) => Ok(()),
            Expr::Slice(it) => {
                let bounds = [&it.start, &it.stop, &it.step].into_iter().flatten();
                bounds.into_iter().try_for_each(|bound| self.expression(bound, named))?;
                self.expression(&it.expr, named)
            }
            Expr::UnaryOp(it) => self.expression(&it.expr, named),
            Expr::BinOp(it) => {
                if matches!(it.op, BinOpKind::Mul)
                    && [&it.left, &it.right].into_iter().any(may_be_list)
                {
                    let message = "what may be a list is not repeated: multiply numbers, or \
                                   NAME|int"
                        .to_owned();
                    return Err(self.mistake(it.span(), message));
                }
                both(&it.left, &it.right)
            }
            // Comes to true or false, whatever is compared.
            Expr::Compare(it) => {
                self.expression(&it.expr, false)?;
                it.ops.iter().try_for_each(|op| self.expression(&op.expr, false))
            }
            Expr::IfExpr(it) => {
                self.expression(&it.test_expr, false)?;
                it.false_expr.iter().try_for_each(|it| self.expression(it, named))?;
                self.expression(&it.true_expr, named)
            }
            Expr::Filter(it) => {
                self.known("filter", it.name, FILTERS, it.span())?;
                if it.name == "map" && !is_plain_map(&it.args) {
                    let message = "map takes the name of a filter, or attribute=…, and no other \
                                   value to put in"
                        .to_owned();
                    return Err(self.mistake(it.span(), message));
                }
                it.expr.iter().try_for_each(|it| self.expression(it, named))?;
                self.arguments(&it.args, named)
            }
            Expr::Test(it) => {
                self.known("test", it.name, TESTS, it.span())?;
                self.expression(&it.expr, false)?;
                self.arguments(&it.args, false)
            }
            Expr::GetAttr(it) => self.expression(&it.expr, named),
            Expr::GetItem(it) => both(&it.expr, &it.subscript_expr),
            Expr::Call(it) => {
                self.expression(&it.expr, named)?;
                self.arguments(&it.args, named)
            }
            Expr::List(it) => self.container(it.span(), it.items.iter(), named),
            Expr::Tuple(it) => self.container(it.span(), it.items.iter(), named),
            Expr::Map(it) => self.container(it.span(), it.keys.iter().chain(&it.values), named),
        }
    }

    fn arguments(&self, arguments: &[CallArg<'_>], named: bool) -> Result<(), Mistake> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(it)
            | CallArg::Kwarg(_, it)
            | CallArg::PosSplat(it)
            | CallArg::KwargSplat(it) => self.expression(it, named),
        })
    }

    fn container<'e, 's: 'e>(
        &self,
        span: Span,
        mut items: impl Iterator<Item = &'e Expr<'s>>,
        named: bool,
    ) -> Result<(), Mistake> {
        items.try_for_each(|item| {
            if named && !is_constant(item) {
                let message = "a list with names in it is not given a name (set, with, for): use \
                               it where it stands"
                    .to_owned();
                return Err(self.mistake(span, message));
            }
            self.expression(item, named)
        })
    }

    fn known(&self, what: &str, name: &str, known: &[&str], span: Span) -> Result<(), Mistake> {
        if known.contains(&name) {
            return Ok(());
        }
        // The span is that of all that it is applied to.
        let text = self.source.get(span.start_offset as usize..span.end_offset as usize);
        let within = text.and_then(|text| text.rfind(name)).unwrap_or_default();
        let place = place_of(self.source, span.start_offset as usize + within);
        let message = format!("no {what} {name:?}: {}", suggestion(name, known));
        Err(Mistake { message, place: Some(place) })
    }
}

/// Names that are numbers, and filters that give one.
const NUMBERS: [&str; 3] = ["turn", "request", "openTasks"];
const NUMBERING: [&str; 7] = ["abs", "count", "float", "int", "length", "round", "sum"];

/// Whether a value may be a list: repeated, it costs nothing before it is printed, and then all of it.
fn may_be_list(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(it) => matches!(it.value.kind(), ValueKind::Seq | ValueKind::Map),
        Expr::Var(it) => !NUMBERS.contains(&it.id),
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) | Expr::Slice(_) | Expr::Call(_) => true,
        Expr::Filter(it) => !NUMBERING.contains(&it.name),
        Expr::BinOp(it) => may_be_list(&it.left) || may_be_list(&it.right),
        Expr::IfExpr(it) => {
            may_be_list(&it.true_expr) || it.false_expr.as_ref().is_some_and(may_be_list)
        }
        // Members are a client's facts, or numbers.
        Expr::GetAttr(_) | Expr::GetItem(_) => false,
        Expr::UnaryOp(_) | Expr::Compare(_) | Expr::Test(_) => false,
    }
}

/// Whether a value stands there as it is, through and through.
fn is_constant(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(_) => true,
        Expr::UnaryOp(it) => is_constant(&it.expr),
        Expr::List(it) => it.items.iter().all(is_constant),
        Expr::Tuple(it) => it.items.iter().all(is_constant),
        Expr::Map(it) => it.keys.iter().chain(&it.values).all(is_constant),
        _ => false,
    }
}

/// Whether `map` puts nothing into its list but what it makes of the items.
fn is_plain_map(arguments: &[CallArg<'_>]) -> bool {
    arguments.iter().enumerate().all(|(place, argument)| match argument {
        CallArg::Pos(Expr::Const(name)) if place == 0 => {
            name.value.as_str().is_some_and(|name| name != "default" && FILTERS.contains(&name))
        }
        CallArg::Pos(it) => place > 0 && is_constant(it),
        CallArg::Kwarg(_, it) => is_constant(it),
        CallArg::PosSplat(_) | CallArg::KwargSplat(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::template::Template;

    #[test]
    fn what_could_grow_unpaid_is_refused_where_it_stands() {
        for (source, part, place) in [
            ("{% set a = [1] %}{% set a = [a, a] %}{{ a }}", "a list with names", (1, 29)),
            (
                "{% for a in [1] %}{% for b in [[a, a]] %}{% endfor %}{% endfor %}",
                "a list",
                (1, 31),
            ),
            ("{% with a = (turn, turn) %}{{ a }}{% endwith %}", "a list with names", (1, 13)),
            ("{% set a = {'b': turn} %}", "a list with names", (1, 12)),
            ("{% set a = ([turn] if turn else 1)[0] %}", "a list with names", (1, 13)),
            ("{% set a = paths|map('default', paths, true) %}", "map takes", (1, 18)),
            ("{% set a = [0]|map(attribute='x', default=turn) %}", "map takes", (1, 16)),
            (
                "{% for t in tasks recursive %}{{ loop(tasks) }}{% endfor %}",
                "does not call",
                (1, 4),
            ),
            ("{% set a = namespace(b=1) %}", "no name \"namespace\"", (1, 12)),
            ("{% set a = dict(b=1) %}", "no name \"dict\"", (1, 12)),
            ("{{ [turn] * 9 }}", "is not repeated", (1, 4)),
            ("{{ 9 * paths|list }}", "is not repeated", (1, 4)),
            ("{% set a = paths %}{{ a * 9 }}", "is not repeated", (1, 23)),
            ("{{ (paths + paths) * 9 }}", "is not repeated", (1, 4)),
            ("{{ paths|zip(paths) }}", "no filter \"zip\"", (1, 10)),
            ("x\n{{ turn | uper }}", "did you mean \"upper\"?", (2, 11)),
            ("{% if turn is odds %}{% endif %}", "did you mean \"odd\"?", (1, 15)),
        ] {
            let mistake = Template::new(source).expect_err(source);
            assert!(mistake.message.contains(part), "{source}: {mistake:?}");
            assert_eq!(mistake.place, Some(place), "{source}: {mistake:?}");
        }
    }

    #[test]
    fn what_people_write_is_taken() {
        for source in [
            "{% for kind in ['a', 'b', -1] %}{{ kind }}{% endfor %}",
            "{% set a, b = 1, [2, 3] %}{{ a }}",
            "{% if turn in [1, usage.used] %}x{% endif %}",
            "{{ [turn, 2]|join(', ') }}",
            "{{ turn * 2 }} {{ usage.ratio * 100 }} {{ '-' * 9 }} {{ (turn + 1) * paths|length }}",
            "{% set open = tasks|selectattr('status', 'eq', 'pending')|list %}{{ open|length }}",
            "{{ paths|map('upper')|join(' ') }} {{ tasks|map(attribute='id', default='?')|list }}",
            "{% filter upper %}{% raw %}{{ x }}{% endraw %}{% endfilter %}{% set a %}x{% endset %}",
            "{{ facts.a|default(facts.b)|default([]) }} {{ paths[1:][0] ~ '%s'|format(turn) }}",
        ] {
            assert!(Template::new(source).is_ok(), "{source}: {:?}", Template::new(source));
        }
    }
}
