--- What the tests share: a tiny runner, conditions with a deadline, and an agent's own connection.

local M = {}

local uv = vim.uv or vim.loop

--- How long anything may take, in milliseconds. Only failures take that long.
local PATIENCE_MS = 60000

--- A deadline that is never reached.
M.NEVER_MS = 600000

local tests = {}

---@param name string
---@param body fun()
function M.test(name, body)
  table.insert(tests, { name = name, body = body })
end

--- Says why a test cannot be run with this Neovim.
function M.skip(name, why)
  table.insert(tests, { name = name, skipped = why })
end

function M.eq(expected, actual, about)
  if not vim.deep_equal(expected, actual) then
    local message = "%s\n  expected %s\n  but got  %s"
    error(message:format(about or "not equal", vim.inspect(expected), vim.inspect(actual)), 2)
  end
end

function M.ok(value, about)
  if not value then
    error(about or "not so", 2)
  end
  return value
end

function M.has(text, part)
  if type(text) ~= "string" or not text:find(part, 1, true) then
    error(("%q is not in\n%s"):format(part, tostring(text)), 2)
  end
end

function M.has_not(text, part)
  if text and text:find(part, 1, true) then
    error(("%q is in\n%s"):format(part, text), 2)
  end
end

--- Waits until the condition holds and gives what it gave.
function M.eventually(condition, about)
  local result
  local is_so = vim.wait(PATIENCE_MS, function()
    result = condition()
    return result and true or false
  end, 5)
  if not is_so then
    error("waited in vain: " .. (about or "a condition"), 2)
  end
  return result
end

--- Lets everything that is scheduled happen.
function M.settle()
  local is_done = false
  vim.schedule(function()
    is_done = true
  end)
  M.eventually(function()
    return is_done
  end)
end

--- A directory that is there until the tests end.
function M.directory()
  local path = vim.fn.tempname()
  vim.fn.mkdir(path, "p")
  return uv.fs_realpath(path)
end

function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

function M.read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

--- The daemon under test, which the script names.
function M.daemon(...)
  return { assert(vim.env.REMINDERD, "REMINDERD names the daemon under test"), ... }
end

--- The shared daemon, which ends with its last connection.
function M.shared()
  return M.daemon("connect", "--idle", "1")
end

--- A daemon that does as a table of rules says, see `tests/support/fake_daemon.py`.
function M.fake(rules)
  local path = vim.fn.tempname() .. ".json"
  M.write(path, vim.json.encode(rules))
  return { "python3", vim.env.REMINDERD_CHECKOUT .. "/tests/support/fake_daemon.py", path }
end

--- Connects another client: an agent's host, beside the editor. Its requests wait for their answer.
function M.agent(command)
  local link = {}
  local dispatchers = { notification = function() end }
  if vim.fn.has("nvim-0.10") == 1 then
    link.peer = vim.lsp.rpc.start(command, dispatchers)
  else
    link.peer = vim.lsp.rpc.start(command[1], vim.list_slice(command, 2), dispatchers)
  end
  function link.request(method, params)
    local answer
    link.peer.request(method, params, function(err, result)
      answer = { err = err, result = result }
    end)
    M.eventually(function()
      return answer
    end, "the answer to " .. method)
    if answer.err then
      error(("%s: %s"):format(method, answer.err.message), 2)
    end
    return answer.result
  end
  link.request("initialize", { capabilities = vim.empty_dict() })
  function link.close()
    link.peer.notify("exit")
  end
  return link
end

--- Runs something and gives the messages that went to the daemon meanwhile, those whose method
--- fits one of the patterns.
---@param patterns string|string[]
---@return { method: string, params: table }[]
function M.sent(patterns, body)
  patterns = type(patterns) == "table" and patterns or { patterns }
  local rpc = require("reminderd.rpc")
  local notify, request = rpc.notify, rpc.request
  local messages = {}
  local function note(method, params)
    for _, pattern in ipairs(patterns) do
      if method:find(pattern) then
        table.insert(messages, { method = method, params = params })
      end
    end
  end
  rpc.notify = function(method, params)
    note(method, params)
    return notify(method, params)
  end
  rpc.request = function(method, params, ...)
    note(method, params)
    return request(method, params, ...)
  end
  local ok, err = pcall(body)
  rpc.notify, rpc.request = notify, request
  if not ok then
    error(err, 0)
  end
  return messages
end

--- Everything that was told to the person, newest last.
M.notices = {}
vim.notify = function(message)
  table.insert(M.notices, message)
end

--- Begins to use the client with a daemon, as nobody did before.
function M.start(options)
  M.notices = {}
  require("reminderd").setup(options)
  require("reminderd.rpc").restart()
end

local function say(...)
  io.stdout:write(string.format(...), "\n")
end

--- Runs what was declared and ends Neovim with the outcome.
function M.run()
  local failed = 0
  for number, case in ipairs(tests) do
    if case.skipped then
      say("ok %d - %s # SKIP %s", number, case.name, case.skipped)
    else
      local ok, err = xpcall(case.body, debug.traceback)
      say("%s %d - %s", ok and "ok" or "not ok", number, case.name)
      if not ok then
        failed = failed + 1
        say("  %s", (tostring(err):gsub("\n", "\n  ")))
      end
    end
  end
  say("1..%d", #tests)
  vim.cmd(failed > 0 and "cquit 1" or "qall!")
end

return M
