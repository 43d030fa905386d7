//! Nothing that stands in a file that is secret, denied or ignored reaches a body, a record, a log, a
//! problem or the database, whatever is done to it: canaries sit in all of them while everything that
//! could carry content is walked, in an order that differs from seed to seed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Framing, Project, Start, on_session, text_of};

/// Stands in every file that must not be shown.
const CANARY: &str = "canary-4c1e";

/// Files that hold it, and whether the client may give their content: what git ignores it knows.
const CAGED: [(&str, bool); 12] = [
    (".env", true),
    ("config/.env.production", true),
    ("deploy/id_rsa", true),
    ("deploy/Server.PEM", true),
    ("secrets.json", true),
    ("x.vault", true),
    ("denied/AGENTS.md", true),
    ("denied/data.rs", true),
    ("sheet.csv", true),
    ("out.log", false),
    ("tmp/cache.txt", false),
    (".aws/credentials", true),
];

/// Files with nothing to hide.
const PLAIN: [&str; 3] = ["src/a.rs", "src/b.rs", "notes.md"];

/// Numbers that look random and come again for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).expect("it is below the end")
    }
}

/// A session that says all that it ever would.
struct Cage {
    project: Project,
    chance: Chance,
    number: u64,
    turn: u64,
}

impl Cage {
    fn new(seed: u64, state: &Path) -> Self {
        let mut daemon = Start::keeping(Framing::Lines, state)
            .env("REMINDERD_LOG", "trace")
            .env("RUST_LOG", "trace")
            .forbidding(CANARY)
            .spawn();
        daemon.initialize_with(json!({"problems": true, "fileChanged": true}));
        daemon.forgive("file/changed");
        let mut project = Project::opened(
            daemon,
            json!({
                "deny": ["denied/", "*.csv"],
                "kinds": {"edited-files": {"secret": ["*.vault"]}},
                "host": {"persists": "none"},
            }),
        );
        project.git(&["init", "-q"]);
        project.write(".gitignore", "*.log\ntmp/\n");
        project.event("agent/spawn", json!({"agent": "/x", "kinds": {"edited-files": {}}}));
        project.event("turn/begin", json!({"agent": "/x", "turn": "1"}));
        let mut cage = Self { project, chance: Chance(seed), number: 0, turn: 1 };
        for (name, _) in CAGED {
            cage.write_caged(name);
            symlink(cage.project.path(name), cage.project.path(&link(name))).expect("a link");
        }
        for name in PLAIN {
            cage.write_plain(name);
        }
        cage
    }

    fn write_caged(&mut self, name: &str) {
        let content = self.secret();
        self.project.write(name, content);
    }

    /// Text with canaries, and lines that stay.
    fn secret(&mut self) -> String {
        self.number += 1;
        let number = self.number;
        let lines: Vec<_> = (0..5).map(|line| format!("KEY_{line}={CANARY}-{line}\n")).collect();
        format!("{}NEW={CANARY}-{number}\n", lines.concat())
    }

    fn write_plain(&mut self, name: &str) {
        self.number += 1;
        self.project.write(name, format!("fn plain() {{\n    {}\n}}\n", self.number));
    }

    /// Sends a message that may fail; what it answers may not sing.
    fn tell(&mut self, method: &str, params: Value) -> Value {
        self.project.daemon.request(method, on_session(params))
    }

    /// One of the caged files under one of its names, as a client would spell it.
    fn caged(&mut self) -> (String, String, bool) {
        let (name, is_given) = CAGED[self.chance.below(CAGED.len())];
        let spelled = match self.chance.below(3) {
            0 => link(name),
            1 => format!("./src/..//{name}"),
            _ => name.to_owned(),
        };
        let path = format!("{}/{spelled}", text_of(&self.project.root));
        let uri = if self.chance.below(2) == 0 { path } else { format!("file://{path}") };
        (name.to_owned(), uri, is_given)
    }

    fn step(&mut self) {
        let (name, uri, is_given) = self.caged();
        let agent = if self.chance.below(3) == 0 { "/x" } else { "" };
        let given = if is_given { json!(self.secret()) } else { Value::Null };
        match self.chance.below(18) {
            0..=2 => self.write_caged(&name),
            3 => drop(self.tell("file/read", json!({"agent": agent, "uri": uri}))),
            4 => drop(self.tell("file/read", json!({"agent": agent, "uri": uri, "text": given}))),
            5 => {
                self.write_caged(&name);
                self.tell("file/wrote", json!({"agent": agent, "uri": uri, "text": given}));
            }
            6 => {
                self.tell("mention/add", json!({"kind": "file", "target": uri}));
                let range = json!({"start": 1, "end": 3});
                self.tell("mention/add", json!({"kind": "file", "target": uri, "range": range}));
            }
            7 => {
                self.tell("mention/add", json!({"kind": "file", "target": uri, "content": given}));
                let directory = uri.rsplit_once('/').expect("a path").0;
                self.tell("mention/add", json!({"kind": "file", "target": directory}));
            }
            8 => self.edited_by_the_person(&name, &uri, &given),
            9 => self.checked(agent, &name, &uri),
            10 => {
                // Over a plain file, and at once back to something plain.
                let plain = PLAIN[self.chance.below(PLAIN.len())];
                self.tell("file/read", json!({"uri": self.project.at(plain)}));
                self.tell("file/read", json!({"uri": uri}));
                fs::rename(self.project.path(&name), self.project.path(plain)).expect("renamed");
                self.wait("");
                self.write_plain(plain);
                self.write_caged(&name);
            }
            11 => {
                fs::remove_file(self.project.path(&name)).expect("it is there");
                self.wait(agent);
                self.write_caged(&name);
            }
            12 => {
                // A plain link that is turned to it.
                let link = self.project.path("turned");
                drop(fs::remove_file(&link));
                symlink("src/a.rs", &link).expect("a link");
                self.tell("file/read", json!({"uri": text_of(&link)}));
                fs::remove_file(&link).expect("it is there");
                symlink(&name, &link).expect("a link");
                self.wait("");
            }
            13 => {
                let plain = PLAIN[self.chance.below(PLAIN.len())];
                self.tell("file/read", json!({"agent": agent, "uri": self.project.at(plain)}));
                self.write_plain(plain);
            }
            14 => self.look_around(agent),
            15 => match self.chance.below(3) {
                0 => drop(self.tell("history/rewound", json!({"through": null}))),
                1 => drop(self.tell("history/compacted", json!({"retained": "none"}))),
                _ => drop(self.tell("history/cleared", json!({}))),
            },
            16 => {
                self.turn += 1;
                let turn = self.turn.to_string();
                self.tell("turn/begin", json!({"turn": turn}));
                self.tell("turn/begin", json!({"agent": "/x", "turn": turn}));
            }
            _ => self.wait(agent),
        }
    }

    fn wait(&mut self, agent: &str) {
        let answer = self.tell("reminder/wait", json!({"agent": agent}));
        let token = &answer["result"]["token"];
        if self.chance.below(4) == 0 {
            self.project.daemon.request("reminder/release", json!({"token": token}));
        } else {
            self.project.daemon.request("reminder/commit", json!({"token": token}));
        }
    }

    fn edited_by_the_person(&mut self, name: &str, uri: &str, given: &Value) {
        let text = given.as_str().unwrap_or(CANARY);
        let document = json!({"uri": uri, "languageId": "x", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
        let document = json!({"uri": uri, "version": 2});
        let changes = json!([{"text": format!("{text}{CANARY}\n")}]);
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.tell("textDocument/didChange", params);
        self.write_caged(name);
        let params = json!({"textDocument": {"uri": uri}, "text": text});
        self.tell("textDocument/didSave", params);
        let changes = json!([{"uri": uri, "type": 2}]);
        self.tell("workspace/didChangeWatchedFiles", json!({"changes": changes}));
    }

    fn checked(&mut self, agent: &str, name: &str, uri: &str) {
        self.tell("edit/begin", json!({"agent": agent, "uris": [uri]}));
        self.write_caged(name);
        self.tell("edit/end", json!({"agent": agent, "uris": [{"uri": uri}], "ok": true}));
        let place = json!({"start": {"line": 1, "character": 0}, "end": {"line": 1,
            "character": 9}});
        let diagnostics = json!([{"range": place, "message": "is wrong", "severity": 1}]);
        let params = json!({"uri": uri, "checker": "c", "diagnostics": diagnostics});
        self.tell("diagnostic/publish", params);
        self.wait(agent);
    }

    /// Everything that a person or a client may ask for.
    fn look_around(&mut self, agent: &str) {
        for method in [
            "reminder/explain",
            "session/state",
            "reminder/history",
            "roster/list",
            "task/list",
            "session/list",
        ] {
            let answer = self.tell(method, json!({"agent": agent}));
            assert!(answer["result"] != Value::Null, "{method}: {answer}");
        }
    }
}

fn link(name: &str) -> String {
    format!("link-{}", name.replace('/', "-"))
}

/// Every file below a directory holds no canary.
fn is_silent(directory: &Path) {
    for entry in fs::read_dir(directory).expect("it is there") {
        let path = entry.expect("it is there").path();
        if path.is_dir() {
            is_silent(&path);
            continue;
        }
        let bytes = fs::read(&path).expect("it can be read");
        let sings = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!sings, "{} sings", path.display());
    }
}

#[test]
fn no_canary_sings() {
    for seed in [0x9e37_79b9_7f4a_7c15, 0x2545_f491_4f6c_dd1d, 0xd1b5_4a32_d192_ed03] {
        let state = tempfile::tempdir().expect("a directory");
        let mut cage = Cage::new(seed, state.path());
        for _ in 0..150 {
            cage.step();
        }
        cage.look_around("");
        let forked = cage.tell("session/fork", json!({"into": "t"}));
        assert!(forked["result"].is_object(), "{forked}");
        cage.tell("session/close", json!({}));
        let daemon = &mut cage.project.daemon;
        daemon.forgive_problems();
        daemon.request("shutdown", Value::Null);
        daemon.notify("exit", Value::Null);
        assert_eq!(daemon.expect_exit(), 0);
        let log = daemon.stderr();
        assert!(!log.contains(CANARY), "{log}");
        is_silent(state.path());
    }
}
