//! `verification-suggestion`: several implementation files were modified (`reminders.md` §3).
//!
//! Decided by path alone, and on purpose conservative: nothing is read, and large changes of one
//! file are missed. The files of two turns are not added up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, PlanState, Policy, Proposal, Refusal, Reminder, Span, Speech, Trigger, View,
};
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// From how many implementation files on, modified in one turn, it speaks.
    #[schemars(range(min = 1))]
    files: u64,
    /// Turns from one telling to the next.
    #[schemars(range(min = 1))]
    turns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { files: 2, turns: 10 }
    }
}

/// Suggests verification, every few turns.
#[derive(Debug)]
pub struct VerificationSuggestion {
    settings: Settings,
}

impl VerificationSuggestion {
    /// Makes it of `{files, turns}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for VerificationSuggestion {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Every(Span::turns(self.settings.turns)))
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let facts = &view.scope.facts;
        let root = view.root.unwrap_or_default();
        let implementation =
            |path: &&str| is_implementation(path.strip_prefix(root).unwrap_or(path));
        let now = facts.touched.iter().filter(|(_, touch)| touch.wrote);
        let now = now.map(|(path, _)| path.as_str()).filter(implementation).count();
        let before = facts.written_before.iter().map(String::as_str).filter(implementation).count();
        let modified = now.max(before) as u64;
        let files = self.settings.files;
        if modified < files {
            return Proposal::silent(
                format!("{modified} implementation files were modified, and speaks from {files}"),
                "after a turn that modifies more",
            );
        }
        let mut body = format!(
            "{modified} implementation files were modified. Consider verifying the change (build, \
             tests, a run of what it is for) before reporting it done."
        );
        if view.facts.plan.state == PlanState::Accepted && view.facts.plan.verification_pending {
            body.push_str(
                " The accepted plan still awaits verification: give evidence that it was carried \
                 out.",
            );
        }
        Proposal::Speak(vec![Speech::new("verification", body)])
    }
}

/// Folders whose content is generated, built, or somebody else's.
const OTHER_FOLDERS: &[&str] = &[
    ".git",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "doc",
    "docs",
    "generated",
    "node_modules",
    "out",
    "target",
    "third_party",
    "vendor",
    "venv",
];

/// Extensions of source code.
const CODE: &[&str] = &[
    "ada", "asm", "bash", "c", "cc", "clj", "cljs", "cpp", "cs", "css", "cu", "cxx", "d", "dart",
    "el", "elm", "erl", "ex", "exs", "f90", "fs", "go", "groovy", "h", "hh", "hpp", "hs", "html",
    "hxx", "java", "jl", "js", "jsx", "kt", "kts", "less", "lisp", "lua", "m", "mjs", "ml", "mli",
    "mm", "nim", "nix", "php", "pl", "pm", "proto", "ps1", "py", "pyi", "r", "rb", "rs", "s",
    "sass", "scala", "scm", "scss", "sh", "sol", "sql", "svelte", "swift", "tcl", "tf", "ts",
    "tsx", "v", "vb", "vhd", "vue", "wat", "zig", "zsh",
];

fn is_implementation(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default();
    if parts.any(|folder| OTHER_FOLDERS.contains(&folder)) {
        return false;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let generated = [".min", ".gen", ".generated", ".pb", "_pb2", "_generated"];
    CODE.contains(&extension.to_ascii_lowercase().as_str())
        && !generated.iter().any(|mark| stem.ends_with(mark))
}

#[cfg(test)]
mod tests {
    use super::is_implementation;

    #[test]
    fn documentation_generated_and_foreign_files_do_not_count() {
        for path in ["/src/a.rs", "lib/x.PY", "a.el", "app/page.tsx"] {
            assert!(is_implementation(path), "{path}");
        }
        for path in [
            "README.md",
            "docs/conf.py",
            "target/debug/a.rs",
            "node_modules/x/i.js",
            "a.min.js",
            "api_pb2.py",
            "Cargo.lock",
            "Makefile",
            "notes.txt",
            "vendor/a.go",
            "x.json",
        ] {
            assert!(!is_implementation(path), "{path}");
        }
    }
}
