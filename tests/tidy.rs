//! The arrows of the architecture: who may name whom, and what the engine may not know. Read from
//! the source text, so that a mistake is found with its file and line.

use std::fs;
use std::path::{Path, PathBuf};

/// A word that must not stand in some files, and what to do instead.
struct Ban {
    /// The path below `src` that it holds for.
    under: &'static str,
    /// Files and folders below `src` that may all the same.
    except: &'static [&'static str],
    words: &'static [&'static str],
    law: &'static str,
    remedy: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        under: "engine",
        except: &[],
        words: &[
            "std::time",
            "std::fs",
            "std::net",
            "std::thread",
            "std::io",
            "std::env",
            "std::process",
            "std::sync::Mutex",
            "std::sync::RwLock",
            "std::sync::atomic",
            "SystemTime",
            "Instant::",
            "Mutex<",
            "RwLock<",
            "thread_local!",
        ],
        law: "the engine does no I/O and knows no clock, thread or lock",
        remedy: "take it as an argument: `Kit`, `Material` and `Millis` are how the engine is given things",
    },
    Ban {
        under: "engine",
        except: &[],
        words: &["HashMap", "HashSet", "RandomState"],
        law: "the engine's containers are ordered, so that equal input gives equal output",
        remedy: "use BTreeMap or BTreeSet",
    },
    Ban {
        under: "engine",
        except: &[],
        words: &[
            "tokio",
            "async fn",
            ".await",
            "serde_json",
            "rusqlite",
            "minijinja",
            "tracing::",
            "getrandom",
            "blake3",
            "futures_util",
            "dashmap",
            "parking_lot",
            "rustix",
        ],
        law: "the engine names std and serde only",
        remedy: "do it in src/server, and hand the engine the result",
    },
    Ban {
        under: "engine",
        except: &[],
        words: &["crate::", "reminderd::"],
        law: "the engine names nothing outside itself; arrows never turn back",
        remedy: "write `super::`, or move what both need into the engine",
    },
    Ban {
        under: "rules",
        except: &[],
        words: &[
            "crate::reminders",
            "crate::files",
            "crate::configuration",
            "crate::server",
            "crate::cli",
        ],
        law: "src/rules names the engine only",
        remedy: "move what both need into src/rules or the engine",
    },
    Ban {
        under: "files",
        except: &[],
        words: &[
            "crate::reminders",
            "crate::rules",
            "crate::configuration",
            "crate::server",
            "crate::cli",
        ],
        law: "src/files names the engine only",
        remedy: "move what both need into src/files or the engine",
    },
    Ban {
        under: "diagnostics",
        except: &[],
        words: &[
            "crate::reminders",
            "crate::rules",
            "crate::configuration",
            "crate::files",
            "crate::server",
            "crate::cli",
            "std::fs",
            "std::io",
            "std::net",
            "std::thread",
            "std::time",
            "std::env",
            "SystemTime",
            "Instant::",
            "Mutex<",
            "HashMap",
            "HashSet",
            "tokio",
            "async fn",
            ".await",
        ],
        law: "src/diagnostics is a bookkeeper without I/O, clock or lock, and names the engine only",
        remedy: "take it as an argument, and let src/server find it out",
    },
    Ban {
        under: "store",
        // Tests ask a real session for its lines.
        except: &["store/tests.rs"],
        words: &[
            "crate::reminders",
            "crate::rules",
            "crate::configuration",
            "crate::files",
            "crate::diagnostics",
            "crate::server",
            "crate::cli",
        ],
        law: "src/store names the engine only",
        remedy: "move what both need into src/store or the engine",
    },
    Ban {
        under: "",
        except: &["store"],
        words: &["rusqlite"],
        law: "only src/store knows its database",
        remedy: "ask the store",
    },
    Ban {
        under: "reminders",
        except: &[],
        words: &[
            "crate::configuration",
            "crate::server",
            "crate::cli",
            "tokio",
            "std::fs",
            "std::time",
        ],
        law: "src/reminders names the engine, src/rules and src/files only",
        remedy: "let the server find it out, and the engine hand it over in the `View`",
    },
    Ban {
        under: "configuration",
        except: &[],
        words: &["crate::diagnostics", "crate::store", "crate::server", "crate::cli", "tokio"],
        law: "src/configuration names the engine, src/reminders, src/rules and src/files only",
        remedy: "let the server or the command line hand it over",
    },
    Ban {
        under: "server",
        except: &[],
        words: &["crate::cli"],
        law: "the server does not know the command line",
        remedy: "take it as an argument",
    },
    Ban {
        under: "",
        except: &["server", "cli"],
        words: &["reminderd_protocol"],
        law: "only src/server and src/cli know the wire",
        remedy: "convert in src/server/convert.rs",
    },
    Ban {
        under: "",
        except: &["server/lsp.rs"],
        words: &["tower_lsp"],
        law: "all of the framework stays in src/server/lsp.rs",
        remedy: "wrap what you need there",
    },
    Ban {
        under: "",
        except: &["cli"],
        words: &["println!", "eprintln!", "print!(", "eprint!("],
        law: "stdout carries frames only, and logs go through `tracing`",
        remedy: "use `tracing`, or return the text to src/cli",
    },
    Ban {
        under: "",
        except: &[],
        words: &["todo!", "unimplemented!", "dbg!"],
        law: "nothing is left open in what is committed",
        remedy: "finish it, or refuse with an error that says so",
    },
];

/// What the engine may import from outside itself.
const ENGINE_MAY_USE: &[&str] = &["std::", "core::", "alloc::", "serde::", "super::", "self::"];

fn source_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> =
        entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            source_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The lines of code with their numbers: without comments and without unit tests, which may use
/// what they like.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number, line.split(" // ").next().unwrap_or(line)))
}

/// Whether the word stands there as a word of its own. One that ends in a sign ends there.
fn names(line: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let starts = !word.starts_with(part_of_name) || !before.is_some_and(part_of_name);
        let ends = !word.ends_with(part_of_name) || !after.is_some_and(part_of_name);
        starts && ends
    })
}

/// Where a file breaks a law; `name` is its path below `src`.
fn broken(name: &str, text: &str) -> Vec<String> {
    let below = |folder: &str| {
        folder.is_empty()
            || name == folder
            || name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    };
    let mut broken = Vec::new();
    for (number, line) in code(text) {
        for ban in BANS.iter().filter(|ban| below(ban.under)) {
            if ban.except.iter().any(|folder| below(folder)) {
                continue;
            }
            for word in ban.words.iter().filter(|word| names(line, word)) {
                broken.push(format!(
                    "src/{name}:{number}: names `{word}`, but {}: {}",
                    ban.law, ban.remedy
                ));
            }
        }
        let import = line.trim_start().trim_start_matches("pub ").strip_prefix("use ");
        // `mod.rs` re-exports its own modules by their names.
        let own_module = |path: &str| {
            let module = path.split("::").next().unwrap_or(path);
            name == "engine/mod.rs" && text.contains(&format!("mod {module};"))
        };
        if let Some(path) = import
            && below("engine")
            && !ENGINE_MAY_USE.iter().any(|allowed| path.starts_with(allowed))
            && !own_module(path)
        {
            broken.push(format!(
                "src/{name}:{number}: imports `{path}`, but the engine names std and serde only: do \
                 it in src/server, and hand the engine the result"
            ));
        }
    }
    // Wire types are not engine types, and one place converts.
    let knows_both = |wire: &str, engine: &str| {
        let code: Vec<_> = code(text).map(|(_, line)| line).collect();
        code.iter().any(|line| line.contains(wire)) && code.iter().any(|line| line.contains(engine))
    };
    if below("server")
        && name != "server/convert.rs"
        && knows_both("reminderd_protocol::record", "engine::{Record")
    {
        broken.push(format!(
            "src/{name}: names records of the wire and of the engine, but only \
             src/server/convert.rs converts: do it there"
        ));
    }
    broken
}

#[test]
fn the_arrows_never_turn_back() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    source_files(&source, &mut files);
    assert!(files.len() > 20, "the source is not where it was");
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("source is text");
        let name = file.strip_prefix(&source).expect("it was found there");
        all.extend(broken(&name.to_string_lossy().replace('\\', "/"), &text));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn breaches_are_seen() {
    for (name, text, part) in [
        ("engine/scope.rs", "use std::collections::HashMap;", "BTreeMap"),
        ("engine/scope.rs", "fn f() { let now = std::time::Instant::now(); }", "as an argument"),
        ("engine/scope.rs", "\nuse crate::server::Peer;", "src/engine/scope.rs:2: names `crate::`"),
        ("engine/scope.rs", "use anything::Else;", "imports `anything::Else;`"),
        ("engine/mod.rs", "pub use elsewhere::Else;", "imports"),
        ("rules/policy.rs", "use crate::reminders::Catalogue;", "the engine only"),
        ("reminders/mod.rs", "use crate::server::Peer;", "src/files only"),
        ("configuration/mod.rs", "use crate::server::Peer;", "src/files only"),
        ("rules/form.rs", "use crate::configuration::Document;", "the engine only"),
        ("rules/policy.rs", "use crate::files::identity;", "the engine only"),
        ("files/read.rs", "use crate::rules::Tuning;", "the engine only"),
        ("diagnostics/mod.rs", "use crate::files::identity;", "the engine only"),
        ("diagnostics/mod.rs", "fn f() { let now = std::time::Instant::now(); }", "as an argument"),
        ("files/read.rs", "use reminderd_protocol::record;", "know the wire"),
        ("rules/policy.rs", "use reminderd_protocol::record;", "know the wire"),
        ("server/daemon.rs", "use tower_lsp::LspService;", "lsp.rs"),
        ("server/daemon.rs", "println!(\"x\");", "frames only"),
        ("cli/run.rs", "todo!()", "left open"),
    ] {
        let found = broken(name, text).join("\n");
        assert!(found.contains(part), "{name}: {text}: {found:?}");
    }
    for (name, text) in [
        ("engine/scope.rs", "/// As `HashMap` does.\nuse std::collections::BTreeMap;"),
        ("engine/mod.rs", "mod scope;\npub use scope::Scope;"),
        ("engine/scope.rs", "#[cfg(test)]\nmod tests { use serde_json::json; }"),
        ("server/lsp.rs", "use tower_lsp::LspService;"),
        ("cli/run.rs", "println!(\"x\");"),
        ("reminders/mention.rs", "use crate::files::identity;"),
        ("files/read.rs", "use std::fs::File;\nuse crate::engine::Found;"),
    ] {
        assert_eq!(broken(name, text), Vec::<String>::new(), "{name}: {text}");
    }
}
