//! Which editors and agents this machine has, and which of them have reminderd.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::hook;
use super::{Finding, State};

/// Editors and what reminderd has for each, in the project's own tree.
const EDITORS: &[(&str, &[&str], &str)] = &[
    ("Emacs", &["emacs"], "editors/emacs/README.md"),
    ("Neovim", &["nvim"], "editors/neovim/README.md"),
    ("VS Code", &["code", "codium"], "editors/vscode/README.md"),
    ("Node.js", &["node"], "editors/node/README.md"),
    ("Python", &["python3"], "editors/python/README.md"),
];

/// All of it.
pub fn findings() -> Vec<Finding> {
    let editors = EDITORS.iter().filter_map(|(name, programs, guide)| {
        let program = programs.iter().find_map(|program| on_path(program))?;
        let what = format!("{} (how to set it up: {guide})", program.display());
        Some(Finding::new("editors and languages", name, State::Fine, what))
    });
    let agents = hook::agents().filter_map(|(name, title, program, files)| {
        let mentions = |file: &PathBuf| {
            fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("hook {name}")))
        };
        let program = on_path(program);
        let installed = files.iter().find(|file| mentions(file));
        let finding = |state, what: String| Finding::new("agents", title, state, what);
        match (program, installed) {
            (None, None) => None,
            (Some(program), None) => {
                let what = format!("{}, which does not run reminderd", program.display());
                Some(finding(State::Note, what).advised(format!("reminderd hook install {name}")))
            }
            (_, Some(file)) => {
                Some(finding(State::Fine, format!("{} runs reminderd", file.display())))
            }
        }
    });
    editors.chain(agents).collect()
}

/// A program that a shell would find.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|at| at.join(program)).find(|it: &PathBuf| is_program(it))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
