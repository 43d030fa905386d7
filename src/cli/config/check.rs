//! `reminderd config check`: every mistake, with its place and the way out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value as Json, json};

use super::{document, is_same};
use crate::configuration::{
    Document, FILE_NAME, Layer, Layers, Mistake, Severity, Unreadable, users_file,
};

/// Say what is wrong with configuration files.
///
/// Each mistake is `FILE:LINE:COLUMN: what is wrong: the way out`, with the line and a caret under
/// it. Without FILE the user's file and `./reminderd.toml` are checked, where they are; `[limits]` and
/// `[store]` have no place in the latter. Exit status: 0 when all is clean, 1 when there are mistakes
/// (keys that nobody knows are mistakes too), 2 when a file cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd config check ~/.config/reminderd/reminderd.toml")]
pub struct CheckArguments {
    /// Files to check
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Say it as JSON
    #[arg(long)]
    json: bool,
}

/// A file that was checked.
struct Checked {
    name: String,
    outcome: Result<(Arc<Document>, Vec<Mistake>), String>,
}

/// Runs the command.
pub fn run(arguments: &CheckArguments) -> ExitCode {
    let users = users_file();
    let workspaces = PathBuf::from(FILE_NAME);
    let users_document = users.as_deref().and_then(|path| document(path, Layer::User).ok());
    let users_document = users_document.map(Arc::new);
    let check = |path: &Path, must_be: bool| {
        let is_users = is_same(path, users.as_ref());
        let is_workspaces = !is_users && is_same(path, Some(&workspaces));
        let layer = if is_workspaces { Layer::Workspace } else { Layer::User };
        let outcome = match document(path, layer) {
            Ok(document) => Ok(with_layers(document, users_document.clone().filter(|_| !is_users))),
            Err(Unreadable::Missing) if !must_be => return None,
            Err(error) => Err(error.to_string()),
        };
        Some(Checked { name: path.display().to_string(), outcome })
    };
    let checked: Vec<Checked> = if arguments.files.is_empty() {
        let both = users.iter().chain([&workspaces]);
        both.filter_map(|path| check(path, false)).collect()
    } else {
        arguments.files.iter().filter_map(|path| check(path, true)).collect()
    };
    if arguments.json {
        println!("{:#}", json!({ "files": checked.iter().map(as_json).collect::<Vec<_>>() }));
    } else {
        checked.iter().for_each(tell);
        if checked.is_empty() {
            let users = users.map(|path| format!("{} nor ", path.display())).unwrap_or_default();
            println!("There is neither {users}{FILE_NAME}: everything is as by default.");
        }
    }
    let status = checked.iter().map(|checked| match &checked.outcome {
        Ok((_, mistakes)) => u8::from(!mistakes.is_empty()),
        Err(_) => 2,
    });
    status.max().unwrap_or(0).into()
}

/// A document with its mistakes, those that show only beside the user's file too.
fn with_layers(document: Document, user: Option<Arc<Document>>) -> (Arc<Document>, Vec<Mistake>) {
    let document = Arc::new(document);
    let layers = Layers { user, workspace: Some(document.clone()), session: None };
    let together = layers.mistakes().into_iter();
    let own = together.filter(|(whose, _)| Arc::ptr_eq(whose, &document)).map(|(_, it)| it);
    let mut mistakes = document.mistakes.clone();
    mistakes.extend(own);
    mistakes.sort_by_key(|mistake| mistake.at.range.start);
    (document, mistakes)
}

fn tell(checked: &Checked) {
    let Checked { name, outcome } = checked;
    match outcome {
        Ok((_, mistakes)) if mistakes.is_empty() => println!("{name}: no mistakes"),
        Ok((document, mistakes)) => {
            for mistake in mistakes {
                println!("{}\n", mistake.rendered(&document.origin, &document.source));
            }
        }
        Err(why) => eprintln!("{name}: {why}"),
    }
}

fn as_json(checked: &Checked) -> Json {
    let Checked { name, outcome } = checked;
    match outcome {
        Ok((document, mistakes)) => json!({
            "file": name,
            "broken": document.broken,
            "mistakes": mistakes.iter().map(mistake_as_json).collect::<Vec<_>>(),
        }),
        Err(why) => json!({ "file": name, "unreadable": why }),
    }
}

fn mistake_as_json(mistake: &Mistake) -> Json {
    json!({
        "line": mistake.at.line,
        "column": mistake.at.column,
        "key": mistake.key,
        "severity": match mistake.severity {
            Severity::Mistake => "mistake",
            Severity::Unknown => "unknown",
        },
        "message": mistake.message,
        "help": mistake.help,
    })
}
