//! Which editors and agents this machine has, and which of them have reminderd.

use std::env;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::super::hook;
use super::{Finding, State};

/// An editor, a language or an agent without hooks, and what reminderd has for it in the project's own tree.
struct Editor {
    about: &'static str,
    name: &'static str,
    programs: &'static [&'static str],
    guide: &'static str,
    /// Where its settings or its extensions are, from the home directory: files that name reminderd, or
    /// directories with an entry that does. Nothing for a language.
    settings: &'static [&'static str],
}

const EDITING: &str = "editors and languages";
const AGENTS: &str = "agents";

const EDITORS: &[Editor] = &[
    Editor {
        about: EDITING,
        name: "Emacs",
        programs: &["emacs"],
        guide: "editors/emacs/README.md",
        settings: &[
            ".emacs",
            ".emacs.el",
            ".emacs.d/init.el",
            ".emacs.d/elpa",
            ".config/emacs/init.el",
            ".config/emacs/elpa",
            ".config/doom/config.el",
        ],
    },
    Editor {
        about: EDITING,
        name: "Neovim",
        programs: &["nvim"],
        guide: "editors/neovim/README.md",
        settings: &[
            ".config/nvim/init.lua",
            ".config/nvim/init.vim",
            ".config/nvim/lua/plugins",
            ".local/share/nvim/lazy",
            ".local/share/nvim/site/pack/plugins/start",
        ],
    },
    Editor {
        about: EDITING,
        name: "VS Code",
        programs: &["code", "codium"],
        guide: "editors/vscode/README.md",
        settings: &[".vscode/extensions", ".vscode-oss/extensions", ".vscode-server/extensions"],
    },
    Editor {
        about: EDITING,
        name: "Node.js",
        programs: &["node"],
        guide: "editors/node/README.md",
        settings: &[],
    },
    Editor {
        about: EDITING,
        name: "Python",
        programs: &["python3"],
        guide: "editors/python/README.md",
        settings: &[],
    },
    Editor {
        about: AGENTS,
        name: "pi",
        programs: &["pi"],
        guide: "editors/pi/README.md",
        settings: &[".pi/agent/settings.json", ".pi/agent/extensions"],
    },
    Editor {
        about: AGENTS,
        name: "OpenCode",
        programs: &["opencode"],
        guide: "editors/opencode/README.md",
        settings: &[
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.jsonc",
            ".config/opencode/plugin",
        ],
    },
];

impl Editor {
    fn finding(&self, home: Option<&Path>) -> Option<Finding> {
        let program = self.programs.iter().find_map(|program| on_path(program))?;
        let finding = |state, what| Finding::new(self.about, self.name, state, what);
        let (program, guide) = (program.display(), self.guide);
        if self.settings.is_empty() {
            let what = format!("{program} (the library for it: {guide})");
            return Some(finding(State::Fine, what));
        }
        let places = self.settings.iter().filter_map(|place| Some(home?.join(place)));
        Some(match places.into_iter().find(|place| names_reminderd(place)) {
            Some(place) => {
                let what = format!("{program}, with reminderd ({})", place.display());
                finding(State::Fine, what)
            }
            None => finding(State::Note, format!("{program}, without reminderd as far as is seen"))
                .advised(format!("how to set it up: {guide}")),
        })
    }
}

/// How much of a file of settings is read, in bytes.
const SETTINGS_BYTES: u64 = 1 << 20;

/// Whether a file, or the name of an entry of a directory, or a file in it, speaks of reminderd.
fn names_reminderd(place: &Path) -> bool {
    let speaks = |path: &Path| {
        let is_file = path.metadata().is_ok_and(|it| it.is_file());
        let mut text = String::new();
        let read = || File::open(path)?.take(SETTINGS_BYTES).read_to_string(&mut text);
        is_file && { read }().is_ok() && text.contains("reminderd")
    };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    speaks(place)
        || entries.into_iter().any(|entry| {
            entry.file_name().to_string_lossy().contains("reminderd") || speaks(&entry.path())
        })
}

/// All of it.
pub fn findings() -> Vec<Finding> {
    let home = env::home_dir();
    let editors = EDITORS.iter().filter_map(|editor| editor.finding(home.as_deref()));
    let agents = hook::agents().filter_map(|(name, title, program, files)| {
        let mentions = |file: &PathBuf| {
            fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("hook {name}")))
        };
        let program = on_path(program);
        let installed = files.iter().find(|file| mentions(file));
        let finding = |state, what: String| Finding::new(AGENTS, title, state, what);
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
