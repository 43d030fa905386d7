//! A client that does as little as a client can: the time is the server's and that of the pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A server in a process of its own, spoken to over pipes, one message a line.
pub struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    message: String,
    reply: String,
}

impl Client {
    /// Starts the server and opens the connection.
    pub fn start(mut command: Command, options: &serde_json::Value) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server can be started");
        let input = process.stdin.take().expect("stdin is a pipe");
        let output = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        let mut client =
            Self { process, input, output, message: String::new(), reply: String::new() };
        let params = serde_json::json!({ "capabilities": {}, "initializationOptions": options });
        client.request("initialize", &params.to_string());
        client.send(&notification("initialized", "{}"));
        client
    }

    /// The daemon itself, in memory, so that several may have a session of the same name.
    pub fn daemon() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
        command.arg("--ephemeral");
        Self::start(command, &serde_json::json!({}))
    }

    /// The daemon with a store in this directory.
    pub fn keeping(state: &std::path::Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
        command.arg("--state").arg(state);
        Self::start(command, &serde_json::json!({}))
    }

    /// Memory that the server holds, in KiB.
    pub fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.expect("the system says what a process holds");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|text| text.trim().strip_suffix(" kB"));
        resident.and_then(|text| text.trim().parse().ok()).expect("a number of KiB")
    }

    /// Ends the daemon in order.
    pub fn end(mut self) {
        self.request("shutdown", "{}");
        self.send(&notification("exit", "{}"));
        self.process.wait().expect("the server ends");
    }

    /// Sends a request and reads its reply, which may not be an error.
    pub fn request(&mut self, method: &str, params: &str) -> &str {
        self.message.clear();
        for part in
            [r#"{"jsonrpc":"2.0","id":1,"method":""#, method, r#"","params":"#, params, "}\n"]
        {
            self.message.push_str(part);
        }
        self.input.write_all(self.message.as_bytes()).expect("the server reads");
        self.reply.clear();
        self.output.read_line(&mut self.reply).expect("the server answers");
        let is_result = self.reply.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#);
        assert!(is_result, "{method} was answered {}", self.reply);
        &self.reply
    }

    /// Sends messages that have no replies.
    pub fn send(&mut self, messages: &str) {
        self.input.write_all(messages.as_bytes()).expect("the server reads");
    }

    /// Waits until everything that was sent has been applied, none of it with a problem.
    pub fn settle(&mut self) {
        self.request("session/list", "{}");
    }

    /// One WAIT of session `s`, and the commit of its token.
    pub fn wait_and_commit(&mut self) {
        self.wait_and_commit_in("s");
    }

    /// One WAIT of a session in turn `t`, and the commit of its token.
    pub fn wait_and_commit_in(&mut self, session: &str) {
        const TOKEN: &str = r#""token":""#;
        let params = [r#"{"session":""#, session, r#"","turn":"t"}"#].concat();
        let reply = self.request("reminder/wait", &params);
        let start = reply.find(TOKEN).expect("every WAIT has a token") + TOKEN.len();
        let end = start + reply[start..].find('"').expect("a string has an end");
        let params = [r#"{"token":""#, &reply[start..end], r#""}"#].concat();
        self.request("reminder/commit", &params);
    }

    /// The result of the last reply.
    pub fn last_result(&self) -> serde_json::Value {
        let mut reply: serde_json::Value = serde_json::from_str(&self.reply).expect("JSON");
        reply["result"].take()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The line of a notification.
pub fn notification(method: &str, params: &str) -> String {
    [r#"{"jsonrpc":"2.0","method":""#, method, r#"","params":"#, params, "}\n"].concat()
}
