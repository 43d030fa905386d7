--- What the person asks: why a reminder speaks or is silent, what was told, how the client stands.

local documents = require("reminderd.documents")
local row = require("reminderd.row")
local rpc = require("reminderd.rpc")
local sessions = require("reminderd.session")

local api = vim.api

local M = {}

--- How many tellings the log shows.
local LOG_ROWS = 100

--- Shows lines in a window of their own, `q` closes it.
---@param name string
---@param lines string[]
---@return integer bufnr
local function show(name, lines)
  local bufnr = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].bufhidden = "wipe"
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = "reminderd"
  vim.cmd("botright split")
  api.nvim_win_set_buf(0, bufnr)
  vim.cmd(("silent! file reminderd://%s/%d"):format(name, bufnr))
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = bufnr, desc = "Close" })
  return bufnr
end

---@param message string
local function warn(message)
  vim.notify("reminderd: " .. message, vim.log.levels.WARN)
end

--- Asks about a session by its id; it may be another client's.
---@param id string?
---@param method string
---@param params table
---@param callback fun(result: table, id: string)
local function ask(id, method, params, callback)
  id = id or sessions.recent()
  if not id then
    warn("no session is open here; name one, as :Reminderd explain SESSION")
    return
  end
  params.session = id
  rpc.request(method, params, function(err, result)
    if err then
      warn(err.message)
    else
      callback(result, id)
    end
  end)
end

--- Says of each reminder of a session whether it would speak now, and why or why not.
---@param id? string
function M.explain(id)
  ask(id, "reminder/explain", {}, function(result, session)
    local lines = { ("Session %s"):format(session), "" }
    for _, entry in ipairs(result.rows) do
      local price = entry.speaks and (" (%d tokens)"):format(entry.tokens) or ""
      local mark = entry.speaks and "●" or "○"
      table.insert(lines, ("%s %s: %s%s"):format(mark, entry.id, entry.reason, price))
      if entry.next and entry.next ~= "" then
        table.insert(lines, ("    next: %s"):format(entry.next))
      end
    end
    show("explain", lines)
  end)
end

---@param record table
---@return string
local function log_row(record)
  local labels = {}
  for _, entry in ipairs(record.entries) do
    table.insert(labels, entry.label)
  end
  local at = os.date("%Y-%m-%d %H:%M:%S", math.floor((record.at or 0) / 1000))
  local kept = record.retained and "" or "  (history does not hold it any more)"
  local what = #labels > 0 and table.concat(labels, ", ") or "nothing in words"
  return ("%s  %s  %s%s"):format(at, record.phase, what, kept)
end

--- Shows what a session was told, the newest first. `<CR>` on a row shows what it said.
---@param id? string
function M.log(id)
  ask(id, "reminder/history", { limit = LOG_ROWS }, function(result, session)
    local lines = { ("Session %s"):format(session), "" }
    local heading = #lines
    for _, record in ipairs(result.records) do
      table.insert(lines, log_row(record))
    end
    if #result.records == 0 then
      table.insert(lines, "Nothing was told yet.")
    end
    local bufnr = show("log", lines)
    vim.keymap.set("n", "<CR>", function()
      local record = result.records[api.nvim_win_get_cursor(0)[1] - heading]
      if record and #record.entries > 0 then
        row.float(row.lines_of(record.entries))
      end
    end, { buffer = bufnr, desc = "Show what was said" })
  end)
end

--- How the client stands, in lines.
---@return string[]
function M.status_lines()
  rpc.ensure()
  local status = rpc.status()
  local lines = { ("Daemon: %s"):format(status.state) }
  if status.server then
    local info = status.server.serverInfo
    table.insert(lines, ("Build: %s %s"):format(info.name, info.version))
  end
  if status.trouble then
    local at = os.date("%H:%M:%S", status.trouble.time)
    table.insert(lines, ("Last trouble, at %s: %s"):format(at, status.trouble.message))
  end
  table.insert(lines, ("Session: %s"):format(sessions.recent() or "none"))
  table.insert(lines, ("Files reported: %d"):format(documents.count()))
  for _, problem in ipairs(status.problems) do
    local code = ("%d"):format(problem.code)
    table.insert(lines, ("Refused: %s (%s) %s"):format(problem.method, code, problem.message))
  end
  return lines
end

function M.status()
  show("status", M.status_lines())
end

---@type table<string, fun(argument: string?)>
local commands = {
  explain = M.explain,
  log = M.log,
  status = M.status,
  expand = row.expand,
  restart = function()
    rpc.restart()
  end,
}

--- `:Reminderd COMMAND [SESSION]`
---@param arguments string[]
function M.run(arguments)
  local command = commands[arguments[1] or "status"]
  if command then
    command(arguments[2])
  else
    warn(("there is no command %q, see :help :Reminderd"):format(arguments[1]))
  end
end

---@param lead string
---@return string[]
function M.complete(lead)
  local names = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(commands))
  table.sort(names)
  return names
end

return M
