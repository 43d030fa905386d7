//! One daemon for many clients: `reminderd serve` behind `reminderd connect`, on real sockets.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Daemon, Framing, PATIENCE, Start, wait_until};

/// Clients that start at once.
const RACERS: usize = 64;
/// A user who is nobody here.
const NOBODY: u32 = 65_534;

/// A place for sockets and state of its own. The daemons in it end with the test.
pub struct Home(TempDir);

impl Home {
    /// An empty one.
    pub fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a directory"));
        fs::create_dir(home.path().join("run")).expect("it can be made");
        home
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The state directory of its daemons.
    pub fn state(&self) -> PathBuf {
        self.path().join("state/reminderd")
    }

    /// A client that speaks through `reminderd connect`.
    pub fn connect(&self) -> Daemon {
        self.connect_with(&[])
    }

    /// The same, with these arguments.
    pub fn connect_with(&self, arguments: &[&str]) -> Daemon {
        let mut client = Start::connecting(Framing::Lines, self.path(), arguments).spawn();
        client.initialize();
        client
    }

    /// The shared daemons that run here, by their process ids.
    pub fn daemons(&self) -> BTreeSet<u32> {
        let processes = fs::read_dir("/proc").expect("proc").flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let state = self.path().to_str().expect("it is text").to_owned();
        ids.filter(|id| {
            let command = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            command.contains("\0serve\0") && command.contains(&state)
        })
        .collect()
    }

    /// The only daemon.
    pub fn daemon(&self) -> u32 {
        let daemons = self.daemons();
        assert_eq!(daemons.len(), 1, "{daemons:?}");
        daemons.into_iter().next().expect("there is one")
    }

    fn expect_no_daemon(&self) {
        assert!(wait_until(PATIENCE, || self.daemons().is_empty()), "{:?}", self.daemons());
    }

    /// The files of the endpoint, by how their names end.
    fn meeting_place(&self, extension: &str) -> Option<PathBuf> {
        let directory = fs::read_dir(self.path().join("run/reminderd")).expect("it was made");
        let mut paths = directory.flatten().map(|entry| entry.path());
        paths.find(|path| path.extension().is_some_and(|it| it == extension))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for daemon in self.daemons() {
            kill(daemon, "-KILL");
        }
    }
}

fn kill(process: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

fn result(answer: &Value) -> &Value {
    assert!(answer.get("error").is_none(), "{answer}");
    &answer["result"]
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

fn open(client: &mut Daemon, session: &str) -> Value {
    let opened = client.request("session/open", json!({"session": session, "root": "/w"}));
    result(&opened)["state"].clone()
}

fn begin(client: &mut Daemon, session: &str, turn: &str) {
    result(&client.request("turn/begin", json!({"session": session, "turn": turn})));
}

fn enqueue(client: &mut Daemon, session: &str, body: &str) {
    result(&client.request("reminder/enqueue", json!({"session": session, "body": body})));
}

fn wait(client: &mut Daemon, session: &str) -> Value {
    result(&client.request("reminder/wait", json!({"session": session}))).clone()
}

fn content(delivery: &Value) -> &str {
    delivery["message"]["content"].as_str().unwrap_or_default()
}

fn shut_down(client: &mut Daemon) {
    result(&client.request("shutdown", Value::Null));
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit_within(Duration::from_secs(1)), 0);
}

#[test]
fn of_many_that_start_at_once_one_starts_the_daemon_and_no_message_is_lost() {
    let home = Home::new();
    let mut clients: Vec<_> =
        (0..RACERS).map(|_| Start::connecting(Framing::Lines, home.path(), &[]).spawn()).collect();
    // All is sent before anybody listens.
    let mut asked = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        let initialized = client.ask("initialize", json!({"capabilities": {}}));
        let own = client.ask("session/open", json!({"session": format!("own-{number}")}));
        let opened = client.ask("session/open", json!({"session": "s"}));
        let body = format!("client {number} was here");
        let queued = client.ask("reminder/enqueue", json!({"session": "s", "body": body}));
        asked.push([initialized, own, opened, queued]);
    }
    let mut new = 0;
    for (client, [initialized, own, opened, queued]) in clients.iter_mut().zip(asked) {
        result(&client.expect_answer(&initialized));
        assert_eq!(result(&client.expect_answer(&own))["state"], "new");
        new += usize::from(result(&client.expect_answer(&opened))["state"] == "new");
        result(&client.expect_answer(&queued));
    }
    assert_eq!(new, 1, "one made the session, the others joined it");
    home.daemon();
    let client = &mut clients[0];
    begin(client, "s", "t");
    let delivery = wait(client, "s");
    for number in 0..RACERS {
        let body = format!("client {number} was here");
        assert!(content(&delivery).contains(&body), "{body}: {delivery}");
    }
    for client in &mut clients {
        shut_down(client);
    }
}

#[test]
fn the_daemon_belongs_to_nobody_and_its_files_to_its_user() {
    let home = Home::new();
    let mut client = home.connect();
    let daemon = home.daemon();
    let stat = fs::read_to_string(format!("/proc/{daemon}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let fields: Vec<&str> = fields.split(' ').collect();
    assert_eq!(fields[3], daemon.to_string(), "it has a session of its own");
    assert_eq!(fields[4], "0", "it has no terminal");
    let link = |name: &str| fs::read_link(format!("/proc/{daemon}/{name}")).expect("it runs");
    assert_eq!(link("cwd"), Path::new("/"));
    assert_eq!(link("fd/0"), Path::new("/dev/null"));
    assert!(wait_until(PATIENCE, || link("fd/1") == Path::new("/dev/null")));
    assert!(wait_until(PATIENCE, || link("fd/2") == home.state().join("daemon.log")));
    let mode =
        |path: PathBuf| fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(home.path().join("run/reminderd")), 0o700);
    assert_eq!(mode(home.state()), 0o700);
    assert_eq!(mode(home.state().join("daemon.log")), 0o600);
    let socket = home.meeting_place("sock").expect("a socket");
    assert!(fs::metadata(&socket).expect("it is there").file_type().is_socket());
    assert_eq!(mode(socket), 0o600);
    shut_down(&mut client);
}

/// The statuses of `SPEC.md`, "Life", each as the private daemon has it.
#[test]
fn connect_exits_as_a_private_daemon_would_have() {
    let home = Home::new();
    // Keeps the daemon there.
    let mut other = home.connect();
    let second = Duration::from_secs(1);
    for framing in Framing::ALL {
        let start = || Start::connecting(framing, home.path(), &[]).spawn();
        // `exit`, with the input left open.
        for is_shut_down in [true, false] {
            let mut client = start();
            client.initialize();
            if is_shut_down {
                result(&client.request("shutdown", Value::Null));
            }
            client.notify("exit", Value::Null);
            assert_eq!(client.expect_exit_within(second), i32::from(!is_shut_down));
        }
        // The end of the input.
        for is_shut_down in [true, false] {
            let mut client = start();
            client.initialize();
            if is_shut_down {
                result(&client.request("shutdown", Value::Null));
            }
            client.close_input();
            assert_eq!(client.expect_exit(), i32::from(!is_shut_down));
        }
        let mut said_nothing = start();
        said_nothing.close_input();
        assert_eq!(said_nothing.expect_exit(), 1);
        let mut cut = start();
        cut.initialize();
        result(&cut.request("shutdown", Value::Null));
        let frame = framing.frame(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        cut.send_bytes(&frame[..frame.len() - 4]);
        cut.close_input();
        assert_eq!(cut.expect_exit(), 1);
        cut.expect_stderr("inside a message");
    }
    let mut unreadable = Start::connecting(Framing::Headers, home.path(), &[]).spawn();
    unreadable.send_bytes(b"Content-Length: many\r\n\r\n");
    assert_eq!(unreadable.expect_exit(), 1);
    unreadable.expect_stderr("Content-Length");
    // The output is closed.
    let mut unheard = Start::connecting(Framing::Lines, home.path(), &[]).unread().spawn();
    unheard.close_output();
    unheard.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
    assert_eq!(unheard.expect_exit(), 1);
    // The process that it names dies.
    let mut process = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
    let mut orphan = Start::connecting(Framing::Lines, home.path(), &[]).spawn();
    orphan.request("initialize", json!({"processId": process.id(), "capabilities": {}}));
    process.kill().expect("sleep runs");
    process.wait().expect("it is our child");
    assert_eq!(orphan.expect_exit_within(Duration::from_secs(5)), 1);
    orphan.expect_stderr("process is gone");
    // None of it touched the others.
    assert_eq!(open(&mut other, "s"), "new");
    shut_down(&mut other);
}

#[test]
fn exit_does_not_wait_for_a_client_that_does_not_read() {
    let home = Home::new();
    let mut other = home.connect();
    for is_shut_down in [true, false] {
        let mut client = Start::connecting(Framing::Lines, home.path(), &[]).unread().spawn();
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
        // More than the pipe and the socket hold together, and less than makes the daemon stop reading.
        for id in 0..4_000 {
            client.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"unknown"}}"#));
        }
        if is_shut_down {
            client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "shutdown"}));
        }
        client.notify("exit", Value::Null);
        let status = client.expect_exit_within(Duration::from_secs(5));
        assert_eq!(status, i32::from(!is_shut_down), "{}", client.stderr());
    }
    shut_down(&mut other);
}

/// Gives its command a terminal for stdin and passes on what it is told itself. The terminal stays open.
const THROUGH_A_TERMINAL: &str = "
import os, pty, subprocess, sys, threading, tty
master, slave = pty.openpty()
tty.setraw(slave)
def feed():
    while told := os.read(0, 65536):
        os.write(master, told)
threading.Thread(target=feed, daemon=True).start()
sys.exit(subprocess.call(sys.argv[1:], stdin=slave))
";

/// A read of a terminal cannot be given up: the end does not wait for it.
#[test]
fn connect_ends_while_its_terminal_says_nothing() {
    let home = Home::new();
    let place = |name: &str| home.path().join(name).to_str().expect("it is text").to_owned();
    let mut client = Start::connecting(Framing::Lines, home.path(), &[])
        .through("python3", &["-c", THROUGH_A_TERMINAL])
        .env("XDG_RUNTIME_DIR", &place("run"))
        .env("XDG_STATE_HOME", &place("state"))
        .spawn();
    client.initialize();
    assert_eq!(open(&mut client, "s"), "new");
    shut_down(&mut client);
}

#[test]
fn what_several_connections_say_comes_together() {
    let home = Home::new();
    let (mut agent, mut hook, mut editor) = (home.connect(), home.connect(), home.connect());
    assert_eq!(open(&mut agent, "s"), "new");
    begin(&mut agent, "s", "t");
    assert_eq!(open(&mut hook, "s"), "live");
    // In the order of arrival, whoever sent it; a hook need not stay.
    enqueue(&mut hook, "s", "from the hook");
    enqueue(&mut editor, "s", "from the editor");
    shut_down(&mut hook);
    enqueue(&mut agent, "s", "from the agent");
    let edit = json!({"session": "s", "uris": [{"uri": "/w/a.rs", "version": 1}], "ok": true});
    result(&agent.request("edit/end", edit));
    // The editor's checker reports on what the agent edited.
    let place = json!({"line": 0, "character": 0});
    let diagnostic = json!({"range": {"start": place, "end": place}, "severity": 1,
        "message": "mismatched types"});
    let published = json!({"uri": "/w/a.rs", "checker": "c", "version": 1,
        "diagnostics": [diagnostic]});
    result(&editor.request("diagnostic/publish", published));
    let delivery = wait(&mut agent, "s");
    let told = content(&delivery);
    let places: Vec<_> = ["from the hook", "from the editor", "from the agent"]
        .map(|body| told.find(body).unwrap_or_else(|| panic!("{body}: {told}")))
        .into();
    assert!(places.is_sorted(), "{told}");
    assert!(told.contains("mismatched types"), "{told}");
    // Any connection may commit while the one that waited is there.
    let committed = editor.request("reminder/commit", json!({"token": delivery["token"]}));
    assert_eq!(result(&committed)["already"], false);
    assert_eq!(content(&wait(&mut agent, "s")), "");
    shut_down(&mut agent);
    shut_down(&mut editor);
}

#[test]
fn a_lost_connection_expires_the_tokens_that_it_waited_for_and_no_others() {
    let home = Home::new();
    let (mut one, mut two) = (home.connect(), home.connect());
    for (client, session) in [(&mut one, "s"), (&mut two, "t")] {
        open(client, session);
        begin(client, session, "1");
        enqueue(client, session, "to be told");
    }
    let (lost, kept) = (wait(&mut one, "s"), wait(&mut two, "t"));
    one.kill();
    let expired = || {
        let state = two.request("session/state", json!({"session": "s"}));
        result(&state)["openTokens"] == 0
    };
    assert!(wait_until(PATIENCE, expired));
    let refused = two.request("reminder/commit", json!({"token": lost["token"]}));
    assert_eq!(code(&refused), -33008);
    result(&two.request("reminder/commit", json!({"token": kept["token"]})));
    assert!(content(&wait(&mut two, "s")).contains("to be told"), "nothing was told");
    shut_down(&mut two);
}

/// B111, over several connections: calls that wait on one are settled by what another says; one that
/// floods and one that does not read keep nobody waiting.
#[test]
fn a_flood_and_a_slow_reader_keep_nobody_else_waiting() {
    let home = Home::new();
    let mut agent = home.connect();
    let mut settling = Vec::new();
    for number in 0..8 {
        let session = format!("s{number}");
        open(&mut agent, &session);
        begin(&mut agent, &session, "t");
        let uri = format!("/w/{number}.rs");
        let running = json!({"uri": uri, "checker": "c", "state": "running"});
        agent.notify("diagnostic/publish", running);
        let edit = json!({"session": session, "uris": [{"uri": uri, "version": 2}], "ok": true});
        result(&agent.request("edit/end", edit));
        let settle = json!({"session": session, "timeoutMs": 600_000});
        settling.push(agent.ask("edit/settle", settle));
    }
    let flood = home.connect();
    let mut stream = String::new();
    for number in 0..100_000 {
        stream += &format!(
            r#"{{"jsonrpc":"2.0","method":"fact/set","params":{{"session":"s0","name":"n","value":{number}}}}}"#
        );
        stream += "\n";
    }
    flood.send_bytes(stream.as_bytes());
    let slow = Start::connecting(Framing::Lines, home.path(), &[]).unread().spawn();
    slow.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
    for id in 1..100_000 {
        slow.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list"}}"#));
    }
    let mut editor = home.connect();
    for number in 0..8 {
        let done = json!({"uri": format!("/w/{number}.rs"), "checker": "c", "version": 2,
            "diagnostics": []});
        result(&editor.request("diagnostic/publish", done));
    }
    for id in settling {
        assert_eq!(result(&agent.expect_answer(&id))["files"][0]["outcome"], "ready");
    }
    slow.kill();
    flood.kill();
    shut_down(&mut editor);
    shut_down(&mut agent);
}

/// A hook's command pipes all it has to say; what has to be durable first is answered all the same.
#[test]
fn a_command_may_say_all_it_has_and_read_the_answers() {
    let home = Home::new();
    let private = home.path().join("private");
    for mut command in [
        Start::connecting(Framing::Lines, home.path(), &[]).spawn(),
        Start::keeping(Framing::Lines, &private).spawn(),
    ] {
        let asked = [
            command.ask("initialize", json!({"capabilities": {}})),
            command.ask("session/open", json!({"session": "s"})),
            command.ask("turn/begin", json!({"session": "s", "turn": "t"})),
            command.ask("turn/end", json!({"session": "s", "turn": "t", "outcome": "completed"})),
            command.ask("shutdown", Value::Null),
        ];
        command.close_input();
        for id in asked {
            result(&command.expect_answer(&id));
        }
        assert_eq!(command.expect_exit(), 0);
    }
}

/// Whatever was answered is kept, also where another connection closes the session at that moment.
#[test]
fn what_is_answered_while_another_connection_closes_is_kept() {
    let home = Home::new();
    let (mut opens, mut writes) = (home.connect(), home.connect());
    let turned: Vec<_> = (0..150)
        .flat_map(|_| {
            let session = json!({"session": "s"});
            [opens.ask("session/open", session.clone()), opens.ask("session/close", session)]
        })
        .collect();
    let written: Vec<_> = (0..1_500)
        .map(|number| {
            let task = json!({"id": number.to_string(), "subject": "x", "status": "pending"});
            writes.ask("task/put", json!({"session": "s", "task": task}))
        })
        .collect();
    let mut expected = BTreeSet::new();
    for (number, id) in written.iter().enumerate() {
        let answer = writes.expect_answer(id);
        if answer.get("error").is_none() {
            expected.insert(number.to_string());
        } else {
            assert_eq!(code(&answer), -33001, "{answer}");
        }
    }
    for id in turned {
        result(&opens.expect_answer(&id));
    }
    assert_eq!(open(&mut writes, "s"), "restored");
    let tasks = writes.request("task/list", json!({"session": "s"}));
    let kept: BTreeSet<_> = result(&tasks)
        .as_array()
        .expect("tasks")
        .iter()
        .map(|task| task["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(kept, expected);
    shut_down(&mut opens);
    shut_down(&mut writes);
}

#[test]
fn what_a_crash_left_over_is_recovered() {
    let home = Home::new();
    let mut client = home.connect();
    open(&mut client, "s");
    begin(&mut client, "s", "1");
    let section = json!({"session": "s", "section": "memory", "content": "content"});
    result(&client.request("section/set", section));
    let delivery = wait(&mut client, "s");
    result(&client.request("reminder/commit", json!({"token": delivery["token"]})));
    let crashed = home.daemon();
    kill(crashed, "-KILL");
    assert_eq!(client.expect_exit(), 1);
    client.expect_stderr("the shared daemon is gone");
    assert!(home.meeting_place("sock").is_some() && home.meeting_place("lock").is_some());
    let mut client = home.connect();
    assert_ne!(home.daemon(), crashed);
    assert_eq!(open(&mut client, "s"), "restored");
    let again = client.request("reminder/commit", json!({"token": delivery["token"]}));
    assert_eq!(result(&again)["already"], true);
    shut_down(&mut client);
}

#[test]
fn it_ends_when_nobody_needs_it() {
    let home = Home::new();
    let mut client = home.connect_with(&["--idle", "0"]);
    open(&mut client, "s");
    home.daemon();
    shut_down(&mut client);
    home.expect_no_daemon();
    assert_eq!(home.meeting_place("sock"), None);
    // Its sessions are free.
    let mut private = Start::keeping(Framing::Lines, &home.state()).spawn();
    private.initialize();
    assert_eq!(open(&mut private, "s"), "restored");
    // Asked to end, it does, and says so to nobody but by ending.
    let mut client = home.connect();
    open(&mut client, "t");
    kill(home.daemon(), "-TERM");
    assert_eq!(client.expect_exit(), 1);
    home.expect_no_daemon();
    assert_eq!(open(&mut private, "t"), "restored");
}

#[test]
fn a_private_and_a_shared_daemon_never_own_one_session() {
    let home = Home::new();
    let mut client = home.connect();
    let mut private = Start::keeping(Framing::Lines, &home.state()).spawn();
    private.initialize();
    let holder = |answer: &Value| {
        assert_eq!(code(answer), -33002);
        answer["error"]["data"]["holder"]["pid"].clone()
    };
    open(&mut client, "s");
    let refused = private.request("session/open", json!({"session": "s"}));
    assert_eq!(holder(&refused), home.daemon());
    open(&mut private, "p");
    let refused = client.request("session/open", json!({"session": "p"}));
    assert_eq!(holder(&refused), private.pid());
    result(&client.request("session/close", json!({"session": "s"})));
    assert_eq!(open(&mut private, "s"), "restored");
    shut_down(&mut client);
}

/// A second `reminderd serve` by hand says why it ends.
#[test]
fn one_daemon_serves_a_place() {
    let home = Home::new();
    let mut client = home.connect();
    let second = Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .arg("serve")
        .env("XDG_RUNTIME_DIR", home.path().join("run"))
        .env("XDG_STATE_HOME", home.path().join("state"))
        .output()
        .expect("it starts");
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("another daemon serves"), "{said}");
    shut_down(&mut client);
}

/// A daemon of an older build that nobody else uses gives everything to the newer one, for which the
/// client waits; nothing that it sent is lost.
#[test]
fn an_older_daemon_hands_over() {
    let home = Home::new();
    let mut old = home.connect_with(&["--build", "1.0.0", "--idle", "60"]);
    let first = home.daemon();
    open(&mut old, "s");
    begin(&mut old, "s", "1");
    shut_down(&mut old);
    // The same build, and an older one, use what is there.
    for build in ["1.0.0", "0.9.0"] {
        let mut client = home.connect_with(&["--build", build]);
        assert_eq!(open(&mut client, "s"), "live");
        assert_eq!(home.daemon(), first);
        shut_down(&mut client);
    }
    let mut new: Vec<_> = (0..8)
        .map(|_| Start::connecting(Framing::Lines, home.path(), &["--build", "1.1.0"]).spawn())
        .collect();
    let asked: Vec<_> = new
        .iter_mut()
        .map(|client| {
            client.ask("initialize", json!({"capabilities": {}}));
            client.ask("session/open", json!({"session": "s"}));
            client.ask("reminder/enqueue", json!({"session": "s", "body": "not lost"}))
        })
        .collect();
    for (client, queued) in new.iter_mut().zip(asked) {
        result(&client.expect_answer(&json!(1)));
        result(&client.expect_answer(&json!(2)));
        result(&client.expect_answer(&queued));
    }
    assert!(wait_until(PATIENCE, || !home.daemons().contains(&first)));
    home.daemon();
    for client in &mut new {
        shut_down(client);
    }
}

/// Connections of an older daemon are not cut: it keeps what they opened until they end, and nothing
/// else.
#[test]
fn an_older_daemon_keeps_its_connections() {
    let home = Home::new();
    let mut stays = home.connect_with(&["--build", "1.0.0"]);
    let first = home.daemon();
    open(&mut stays, "kept");
    begin(&mut stays, "kept", "1");
    let mut hook = home.connect_with(&["--build", "1.0.0"]);
    open(&mut hook, "left");
    shut_down(&mut hook);
    let mut new = home.connect_with(&["--build", "1.1.0"]);
    assert_eq!(home.daemons().len(), 2);
    assert_eq!(open(&mut new, "left"), "restored", "nobody used it");
    let held = new.request("session/open", json!({"session": "kept"}));
    assert_eq!(code(&held), -33002);
    assert_eq!(held["error"]["data"]["holder"]["pid"], first);
    // It goes on there as if nothing had happened, and who comes finds the new one.
    enqueue(&mut stays, "kept", "still here");
    assert!(content(&wait(&mut stays, "kept")).contains("still here"));
    let mut another = home.connect_with(&["--build", "1.0.0"]);
    assert_eq!(open(&mut another, "left"), "live");
    shut_down(&mut another);
    shut_down(&mut stays);
    assert!(wait_until(PATIENCE, || !home.daemons().contains(&first)));
    assert_eq!(open(&mut new, "kept"), "restored");
    shut_down(&mut new);
}

/// Where no socket can be: a port of the loopback, for those who can read its secret.
#[test]
fn over_the_loopback_the_secret_decides() {
    let home = Home::new();
    let mut client = home.connect_with(&["--tcp"]);
    open(&mut client, "s");
    assert_eq!(home.meeting_place("sock"), None);
    let file = home.meeting_place("tcp").expect("a port");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    // Who does not ask for it finds it all the same.
    let mut other = home.connect();
    assert_eq!(open(&mut other, "s"), "live");
    shut_down(&mut other);
    let told: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    let port = u16::try_from(told["port"].as_u64().expect("a port")).expect("a port");
    for hello in [
        json!({"reminderd": "0.1.0"}),
        json!({"reminderd": "0.1.0", "nonce": "1", "proof": "2"}),
        json!({"reminderd": "0.1.0", "nonce": "1", "proof": told["secret"]}),
    ] {
        let mut stranger = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stranger.write_all(format!("{hello}\n").as_bytes()).expect("it reads");
        let mut answer = String::new();
        stranger.read_to_string(&mut answer).expect("it ends");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["answer"], "refused");
        assert!(answer.get("proof").is_none(), "{answer}");
    }
    // The port of a daemon that is gone may be somebody else's now: they know nothing of the secret.
    kill(home.daemon(), "-KILL");
    assert_eq!(client.expect_exit(), 1);
    // The system takes a moment to take away what a process that was killed had open.
    let mut stranger = None;
    assert!(wait_until(PATIENCE, || {
        stranger = std::net::TcpListener::bind(("127.0.0.1", port)).ok();
        stranger.is_some()
    }));
    let stranger = stranger.expect("it is free");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = stranger.accept() {
            let said = stream.write_all(b"{\"reminderd\":\"0.1.0\",\"answer\":\"welcome\"}\n");
            let mut heard = Vec::new();
            drop(said.and_then(|()| stream.read_to_end(&mut heard)));
            let heard = String::from_utf8_lossy(&heard).into_owned();
            assert!(!heard.contains("initialize"), "{heard}");
        }
    });
    let mut client = home.connect_with(&["--tcp"]);
    assert_eq!(open(&mut client, "s"), "restored");
    shut_down(&mut client);
}

/// A state directory too deep for a socket, and nowhere else to put one.
#[test]
fn a_path_too_long_for_a_socket_is_no_obstacle() {
    let home = Home::new();
    let deep = home.path().join("deep".repeat(30));
    let start = || {
        let state = deep.to_str().expect("it is text");
        let start = Start::connecting(Framing::Lines, home.path(), &["--state", state]);
        let mut client = start.env("XDG_RUNTIME_DIR", "").spawn();
        client.initialize();
        client
    };
    let (mut one, mut two) = (start(), start());
    assert_eq!(open(&mut one, "s"), "new");
    assert_eq!(open(&mut two, "s"), "live");
    shut_down(&mut one);
    shut_down(&mut two);
}

/// Another user is refused by the directory, and where that is open, by who they are. Only root can
/// try; for others the test of the credentials' check is all there is.
#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = Home::new();
    let mut client = home.connect();
    let socket = home.meeting_place("sock").expect("a socket");
    // A thread may be another user's; what it says and hears, until the stream ends.
    let talk_as = |user: u32| {
        let socket = socket.clone();
        let talk = move || {
            if user != 0 {
                let user = Uid::from_raw(user);
                set_thread_res_uid(user, user, user)?;
            }
            let mut stream = UnixStream::connect(socket)?;
            let mut heard = [0; 512];
            let bytes = stream
                .write_all(b"{\"reminderd\":\"0.1.0\"}\n")
                .and_then(|()| stream.read(&mut heard))
                .unwrap_or(0);
            io::Result::Ok(String::from_utf8_lossy(&heard[..bytes]).into_owned())
        };
        std::thread::spawn(talk).join().expect("it does not panic")
    };
    assert!(talk_as(0).expect("it is served").contains("welcome"));
    let shut_out = talk_as(NOBODY).map_err(|error| error.kind());
    assert_eq!(shut_out, Err(io::ErrorKind::PermissionDenied));
    // Somebody opened everything to all.
    for path in [home.path().to_owned(), home.path().join("run"), home.path().join("run/reminderd")]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).expect("it is ours");
    assert_eq!(talk_as(NOBODY).expect("it reaches the socket"), "");
    let log = home.state().join("daemon.log");
    let log = fs::read_to_string(log).expect("a log");
    assert!(log.contains("another user was refused"), "{log}");
    shut_down(&mut client);
}
