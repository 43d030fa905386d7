-- Plain language clients: the daemon as Neovim's own client takes any language server.
local t = require("helpers")

local api = vim.api

local root = t.directory()
local path = root .. "/notes.py"
local agent

local exit_status

--- What a person's own configuration does, without this plugin.
local function start(bufnr)
  local config = {
    name = "reminderd",
    cmd = t.shared(),
    root_dir = root,
    on_exit = function(code)
      exit_status = code
    end,
  }
  if vim.lsp.start then
    return vim.lsp.start(config, { bufnr = bufnr })
  end
  local id = vim.lsp.start_client(config)
  vim.lsp.buf_attach_client(bufnr, id)
  return id
end

local client

--- What the agent is told, once the daemon has heard all that the editor said.
local function told()
  local is_heard = false
  client.rpc.request("session/list", vim.empty_dict(), function()
    is_heard = true
  end)
  t.eventually(function()
    return is_heard
  end)
  local delivery = agent.request("reminder/wait", { session = "agent" })
  agent.request("reminder/commit", { token = delivery.token })
  return t.ok(delivery.message, "nothing was told").content
end

t.test("the client attaches and asks for the whole of document synchronisation", function()
  t.write(path, "one\nthe 🎉 line\nthree\n")
  vim.cmd("silent edit " .. path)
  local bufnr = api.nvim_get_current_buf()
  local id = start(bufnr)
  client = t.eventually(function()
    local started = vim.lsp.get_client_by_id(id)
    local is_attached = started and vim.lsp.buf_is_attached(bufnr, id)
    return is_attached and (started.server_capabilities or {}).textDocumentSync and started
  end, "the client to attach")
  local sync = client.server_capabilities.textDocumentSync
  t.eq(true, sync.openClose)
  t.eq(2, sync.change)
  t.ok(sync.save, "saves are not asked for")
end)

t.test("an agent of another connection hears what the person saved", function()
  agent = t.agent(t.shared())
  agent.request("session/open", { session = "agent", root = root })
  agent.request("turn/begin", { session = "agent", turn = "1" })
  agent.request("file/read", { session = "agent", uri = path })
  -- Changes within a line, before and behind a character of two UTF-16 units.
  vim.cmd("normal! 2G0ix")
  vim.cmd("normal! A!")
  vim.cmd("normal! 1Gdd")
  vim.cmd("normal! Gofour")
  vim.cmd("silent write")
  local content = told()
  t.has(content, "-the 🎉 line\n+xthe 🎉 line!")
  t.has(content, "+four")
  t.has(content, "the person")
end)

t.test("a document that was changed, undone and saved again is as it was", function()
  vim.cmd("normal! Gofive")
  vim.cmd("silent write")
  t.has(told(), "+five")
  vim.cmd("silent undo")
  vim.cmd("silent write")
  t.has(told(), "-five")
end)

t.test("closing the file and stopping the client end in order", function()
  vim.cmd("silent bwipeout!")
  client.stop(client)
  t.eventually(function()
    return exit_status ~= nil
  end, "the end of the client")
  t.eq(0, exit_status)
  agent.close()
end)

t.test("nothing was said to the person, and nothing is in the client's log", function()
  t.eq({}, t.notices)
  local log = t.read(vim.lsp.get_log_path()) or ""
  for line in log:gmatch("[^\n]+") do
    t.ok(not line:find("^%[ERROR%]") and not line:find("^%[WARN%]"), line)
  end
end)

t.run()
