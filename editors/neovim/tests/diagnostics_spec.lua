-- Diagnostics of the editor, as an agent of another client hears of them.
local t = require("helpers")
local rpc = require("reminderd.rpc")

local api = vim.api

local root = t.directory()
t.start({ command = t.shared() })

local agent = t.agent(t.shared())
agent.request("session/open", { session = "agent", root = root })

local turns = 0
--- Begins a turn in which the agent edits a file, and opens the file in the editor.
local function open_edited(name, text)
  turns = turns + 1
  local path = root .. "/" .. name
  t.write(path, text)
  vim.cmd("silent edit! " .. path)
  local bufnr = api.nvim_get_current_buf()
  -- What the editor says is there before the edit.
  t.settle()
  agent.request("turn/begin", { session = "agent", turn = "turn-" .. turns })
  return bufnr, path
end

local function begin(path)
  agent.request("edit/begin", { session = "agent", uris = { path } })
end

local function finish(path)
  agent.request("edit/end", { session = "agent", uris = { { uri = path } }, ok = true })
end

--- What the agent is told, once a checker has reported.
local function told(path)
  local settled = agent.request("edit/settle", { session = "agent", uris = { path } })
  t.eq("ready", settled.files[1].outcome)
  local delivery = agent.request("reminder/wait", { session = "agent" })
  agent.request("reminder/commit", { token = delivery.token })
  return delivery.message and delivery.message.content
end

local lint = api.nvim_create_namespace("a-linter")
local types = api.nvim_create_namespace("a-type-checker")

local function problem(message, column, last)
  return {
    lnum = 0,
    col = column or 0,
    end_lnum = 0,
    end_col = last or column or 0,
    severity = vim.diagnostic.severity.ERROR,
    source = "lint",
    code = "E1",
    message = message,
  }
end

--- Waits until what was published is with the daemon.
local function sync()
  local answer
  rpc.request("session/list", {}, function(_, result)
    answer = result
  end)
  t.eventually(function()
    return answer
  end)
end

t.test("what an edit brought is told, and what was there before is not called new", function()
  local bufnr, path = open_edited("new.py", "x = 1\n")
  vim.diagnostic.set(lint, bufnr, { problem("an old problem") })
  sync()
  begin(path)
  finish(path)
  vim.diagnostic.set(lint, bufnr, { problem("an old problem"), problem("a new problem") })
  sync()
  local content = told(path)
  t.has(content, "a new problem")
  t.has(content, "new.py")
  t.has(content, "E1")
  local new = content:find("a new problem", 1, true)
  t.ok(new < content:find("an old problem", 1, true), "the old problem stands first:\n" .. content)
end)

t.test("columns are UTF-16 code units", function()
  local text = "🎉αx = 1"
  local bufnr, path = open_edited("columns.py", text .. "\n")
  begin(path)
  finish(path)
  -- 4 bytes and 2 units for the first character, 2 bytes and 1 unit for the second.
  vim.diagnostic.set(lint, bufnr, { problem("at x", 6, 7) })
  sync()
  t.has(told(path), "1:4")
end)

t.test("each namespace is a checker of its own", function()
  local bufnr, path = open_edited("two.py", "x = 1\n")
  begin(path)
  finish(path)
  vim.diagnostic.set(lint, bufnr, { problem("of the linter") })
  vim.diagnostic.set(types, bufnr, { problem("of the type checker") })
  vim.diagnostic.set(lint, bufnr, {})
  sync()
  local content = told(path)
  t.has(content, "of the type checker")
  t.has_not(content, "of the linter")
end)

t.test("a checker that finds the same again has checked again; others have not", function()
  local bufnr, path = open_edited("again.py", "x = 1\n")
  vim.diagnostic.set(lint, bufnr, { problem("the same") })
  vim.diagnostic.set(types, bufnr, { problem("not checked again") })
  sync()
  begin(path)
  finish(path)
  local function outcome(timeout_ms)
    local params = { session = "agent", uris = { path }, timeoutMs = timeout_ms }
    return agent.request("edit/settle", params).files[1].outcome
  end
  t.eq("timeout", outcome(1))
  vim.diagnostic.set(lint, bufnr, { problem("the same") })
  sync()
  t.eq("ready", outcome(10000))
end)

t.test("a clean file is clean", function()
  local bufnr, path = open_edited("clean.py", "x = 1\n")
  vim.diagnostic.set(lint, bufnr, { problem("soon gone") })
  sync()
  begin(path)
  finish(path)
  vim.diagnostic.set(lint, bufnr, {})
  sync()
  t.eq(nil, told(path))
end)

--- A language server that publishes one problem when a file is opened or changed.
local server = [[
import json, sys
def send(message):
    text = json.dumps(message)
    sys.stdout.write(f"Content-Length: {len(text)}\r\n\r\n{text}")
    sys.stdout.flush()
while True:
    length = 0
    while (line := sys.stdin.readline().strip()):
        if line.lower().startswith("content-length:"):
            length = int(line.split(":")[1])
    if not length:
        sys.exit(0)
    message = json.loads(sys.stdin.read(length))
    method = message.get("method")
    if method == "initialize":
        send({"jsonrpc": "2.0", "id": message["id"],
              "result": {"capabilities": {"textDocumentSync": 1}}})
    elif method in ("textDocument/didOpen", "textDocument/didChange"):
        at = {"line": 0, "character": 0}
        found = {"range": {"start": at, "end": at}, "message": "the server's problem",
                 "severity": 1, "code": 42, "source": "server"}
        send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics",
              "params": {"uri": message["params"]["textDocument"]["uri"], "diagnostics": [found]}})
    elif method == "crash":
        sys.exit(0)
    elif "id" in message:
        send({"jsonrpc": "2.0", "id": message["id"], "result": None})
]]

local function start_server(bufnr)
  local path = t.directory() .. "/server.py"
  t.write(path, server)
  local id = vim.lsp.start_client({ name = "tester", cmd = { "python3", path }, root_dir = root })
  vim.lsp.buf_attach_client(bufnr, id)
  t.eventually(function()
    return #vim.diagnostic.get(bufnr) > 0
  end, "the server's diagnostics")
  return id
end

t.test("a language server's diagnostics are told", function()
  local bufnr, path = open_edited("server.py", "x = 1\n")
  begin(path)
  finish(path)
  local id = start_server(bufnr)
  sync()
  local content = told(path)
  t.has(content, "the server's problem")
  t.has(content, "42")
  vim.lsp.stop_client(id, true)
end)

t.test("a language server that ends has not found the file to be clean", function()
  local bufnr, path = open_edited("ended.py", "x = 1\n")
  local id = start_server(bufnr)
  sync()
  begin(path)
  finish(path)
  local sent = t.sent("^diagnostic/publish$", function()
    vim.lsp.get_client_by_id(id).rpc.notify("crash", vim.empty_dict())
    t.eventually(function()
      return #vim.diagnostic.get(bufnr) == 0
    end, "the editor to forget the server's diagnostics")
    t.settle()
  end)
  t.ok(#sent > 0, "nothing was published")
  for _, message in ipairs(sent) do
    t.eq("failed", message.params.state)
    t.eq(nil, message.params.diagnostics)
    t.has(message.params.checker, "tester")
  end
end)

t.test("another daemon gets all diagnostics anew", function()
  local bufnr = open_edited("anew.py", "x = 1\n")
  vim.diagnostic.set(lint, bufnr, { problem("still there") })
  local sent = t.sent("^diagnostic/publish$", rpc.restart)
  local found = {}
  for _, message in ipairs(sent) do
    found[message.params.uri] = message.params.diagnostics[1]
  end
  t.eq("still there", found[vim.uri_from_bufnr(bufnr)].message)
end)

t.test("nothing is reported when it is switched off", function()
  t.start({ command = t.shared(), diagnostics = false })
  local bufnr = open_edited("off.py", "x = 1\n")
  local sent = t.sent("^diagnostic/", function()
    vim.diagnostic.set(lint, bufnr, { problem("unheard") })
  end)
  t.eq({}, sent)
end)

t.test("the daemon took everything", function()
  t.eq({}, rpc.status().problems)
  t.eq({}, t.notices)
end)

t.run()
