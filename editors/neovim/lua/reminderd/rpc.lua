--- The connection to the daemon: started when it is needed, watched, and never waited for.
---
--- Every request ends exactly once: with its answer, at its deadline, when it is cancelled, or when
--- the daemon is gone. What is sent is in the order of the calls, and the daemon takes it in that
--- order, so that nothing here waits for `initialize` to be answered.

local config = require("reminderd.config")
local transport = require("reminderd.transport")

local uv = vim.uv or vim.loop

local M = {}

local METHOD_NOT_FOUND, INTERNAL_ERROR = -32601, -32603
--- The version of `protocol/SPEC.md` that is spoken here.
local PROTOCOL_VERSION = 1
--- A daemon that went away is started again after so many milliseconds, doubled each time.
local RETRY_MS_MIN, RETRY_MS_MAX = 1000, 60000
--- A daemon that has left a request unanswered for so long is given up: what is sent to it would
--- only pile up.
local SILENT_MS_MAX = 10000
--- How long a process may take to end once it was asked to.
local EXIT_MS_MAX = 2000
--- How many problems are kept for `:Reminderd status`.
local PROBLEMS_MAX = 20

---@class reminderd.Error
---@field code integer|string Of the protocol, or `"deadline"` or `"unavailable"`.
---@field message string

---@class reminderd.Link
---@field peer reminderd.Peer
---@field last_id integer The id of the last request.
---@field pending table<integer, fun(err: reminderd.Error?, result: any)> What awaits each answer.
---@field server? table The daemon's answer to `initialize`.
---@field silent_since? integer When a request passed its deadline with nothing answered since.

---@type reminderd.Link?
local link
local generation = 0
--- Why the daemon is not started any more, until `restart`.
---@type string?
local refused
local retry_ms = RETRY_MS_MIN
local retry_at = 0
local was_told = false
---@type { message: string, time: integer }?
local trouble
---@type { method: string, code: integer, message: string }[]
local problems = {}
---@type fun()[]
local on_start = {}
---@type table<string, fun(params: table): table>
local handlers = {}

--- Remembers what is wrong and tells the person, once.
---@param message string
function M.tell(message)
  trouble = { message = message, time = os.time() }
  if was_told then
    return
  end
  was_told = true
  vim.schedule(function()
    local text = "reminderd: %s. Requests go out without reminders (:checkhealth reminderd)."
    vim.notify(text:format(message), vim.log.levels.WARN)
  end)
end

--- Lets go of a connection and ends everything that waits for it.
---@param lost reminderd.Link
---@param message string
local function drop(lost, message)
  if link == lost then
    link = nil
    retry_at = uv.now() + retry_ms
    retry_ms = math.min(2 * retry_ms, RETRY_MS_MAX)
  end
  local pending = lost.pending
  lost.pending = {}
  for _, answer in pairs(pending) do
    answer({ code = "unavailable", message = message })
  end
end

---@param started reminderd.Link
---@param err? table
---@param result? table
local function initialized(started, err, result)
  result = type(result) == "table" and result or {}
  local ours = vim.tbl_get(result, "capabilities", "experimental", "reminderd")
  if not err and ours and ours.protocolVersion == PROTOCOL_VERSION then
    started.server = result
    return
  end
  if err and err.code == "unavailable" then
    return
  end
  local why = err and err.message or "what answered is not reminderd"
  refused = ("%q is of no use: %s"):format(table.concat(config.get().command, " "), why)
  M.tell(refused)
  drop(started, refused)
  started.peer:kill()
end

local function initialize_params()
  local version = vim.version()
  local options = config.get()
  local number = ("%d.%d.%d"):format(version.major, version.minor, version.patch)
  local name = { name = "neovim", version = number }
  return {
    processId = uv.os_getpid(),
    clientInfo = name,
    capabilities = vim.empty_dict(),
    initializationOptions = {
      protocolVersion = PROTOCOL_VERSION,
      client = name,
      config = options.settings,
      trusted = options.trusted,
    },
  }
end

--- What the daemon says of its own accord.
---@param from reminderd.Link
---@param message table
local function heard(from, message)
  if message.method and message.id then
    local handler = handlers[message.method]
    local ok, result = false, nil
    if handler then
      ok, result = pcall(handler, message.params)
    end
    if ok then
      from.peer:send({ id = message.id, result = result })
    else
      local code = handler and INTERNAL_ERROR or METHOD_NOT_FOUND
      from.peer:send({ id = message.id, error = { code = code, message = message.method } })
    end
  elseif message.method == "reminderd/problem" then
    table.insert(problems, message.params)
    if #problems > PROBLEMS_MAX then
      table.remove(problems, 1)
    end
  elseif message.id then
    local answer = from.pending[message.id]
    from.pending[message.id] = nil
    from.silent_since = nil
    if answer then
      answer(message.error, message.result)
    end
  end
end

--- The connection, started if need be. `nil` while there is none to be had.
---@return reminderd.Link?
local function ensure()
  if link and link.silent_since and uv.now() - link.silent_since > SILENT_MS_MAX then
    local silent = link
    M.tell("the daemon does not answer")
    drop(silent, "the daemon does not answer")
    silent.peer:kill()
  end
  if link or refused or uv.now() < retry_at then
    return link
  end
  local command = config.get().command
  if vim.fn.executable(command[1]) == 0 then
    retry_at = uv.now() + RETRY_MS_MAX
    M.tell(("%q is not an executable program"):format(command[1]))
    return nil
  end
  ---@type reminderd.Link
  local started = { last_id = 0, pending = {} }
  local peer, why_not = transport.start(command, function(message)
    heard(started, message)
  end, function(reason)
    if link == started then
      local text = ("%q is of no use: %s"):format(table.concat(command, " "), reason)
      M.tell(text)
      drop(started, text)
    end
  end)
  if not peer then
    retry_at = uv.now() + RETRY_MS_MAX
    M.tell(("%q cannot be started: %s"):format(command[1], why_not))
    return nil
  end
  started.peer = peer
  link = started
  generation = generation + 1
  M.request("initialize", initialize_params(), function(err, result)
    initialized(started, err, result)
  end)
  M.notify("initialized", vim.empty_dict())
  for _, hook in ipairs(on_start) do
    hook()
  end
  return link
end

--- Whether there is a connection; starts one if need be.
---@return boolean
function M.ensure()
  return ensure() ~= nil
end

--- Counts the connections that there were, so that others know what is to be said on this one.
---@return integer
function M.generation()
  return generation
end

--- Calls `hook` at the beginning of every connection.
---@param hook fun()
function M.on_start(hook)
  table.insert(on_start, hook)
end

--- Answers requests of the daemon. The handler gives the result and must not take long.
---@param method string
---@param handler fun(params: table): table
function M.handle(method, handler)
  handlers[method] = handler
end

--- Sends a notification. Says whether there was a connection to send it on.
---@param method string
---@param params table
---@return boolean
function M.notify(method, params)
  local current = ensure()
  return current ~= nil and current.peer:send({ method = method, params = params })
end

---@class reminderd.RequestOptions
---@field deadline_ms? integer After so many milliseconds the callback gets an error of the code
---  `deadline`.
---@field late? fun(result: table) Gets the result of a request that passed its deadline or was
---  cancelled, if it was answered all the same.

---@class reminderd.Request
---@field cancel fun() Ends the request; its callback is not called any more.

--- Sends a request. The callback is called once, from the main loop, and never before this returns.
---@param method string
---@param params table
---@param callback? fun(err: reminderd.Error?, result: any)
---@param options? reminderd.RequestOptions
---@return reminderd.Request
function M.request(method, params, callback, options)
  options = options or {}
  local is_finished = false
  local timer

  local function finish(err, result)
    if is_finished then
      return
    end
    is_finished = true
    if timer then
      timer:stop()
      timer:close()
    end
    if callback then
      callback(err, result)
    end
  end

  local current = ensure()
  local id
  if current then
    id = current.last_id + 1
    current.last_id = id
    current.pending[id] = function(err, result)
      if method ~= "initialize" and not err then
        retry_ms = RETRY_MS_MIN
      end
      if is_finished and result ~= nil and options.late then
        options.late(result)
      end
      finish(err, result)
    end
  end
  if not current or not current.peer:send({ id = id, method = method, params = params }) then
    local message = refused or trouble and trouble.message or "there is no daemon"
    vim.schedule(function()
      finish({ code = "unavailable", message = message })
    end)
    return {
      cancel = function()
        callback = nil
      end,
    }
  end

  local function stop_work()
    if link == current then
      current.peer:send({ method = "$/cancelRequest", params = { id = id } })
    end
  end
  local function expire()
    if not is_finished then
      current.silent_since = current.silent_since or uv.now()
      stop_work()
      local message = ("no answer within %d ms"):format(options.deadline_ms)
      M.tell("the daemon gave " .. message)
      finish({ code = "deadline", message = message })
    end
  end
  if options.deadline_ms then
    timer = uv.new_timer()
    timer:start(options.deadline_ms, 0, function()
      -- Where the editor itself stood still, the answer may be there, unread. It is read first.
      timer:start(1, 0, vim.schedule_wrap(expire))
    end)
  end
  return {
    cancel = function()
      if not is_finished then
        stop_work()
        callback = nil
        finish()
      end
    end,
  }
end

---@class reminderd.Status
---@field state "off"|"starting"|"ready"|"refused"
---@field server? table The daemon's answer to `initialize`.
---@field trouble? { message: string, time: integer } What went wrong last.
---@field problems { method: string, code: integer, message: string }[] Notifications that failed.

---@return reminderd.Status
function M.status()
  local state = refused and "refused" or not link and "off" or link.server and "ready" or "starting"
  return { state = state, server = link and link.server, trouble = trouble, problems = problems }
end

--- Ends the connection, in order and without waiting. The daemon that others share goes on.
function M.stop()
  local last = link
  if not last then
    return
  end
  link = nil
  last.peer:send({ id = last.last_id + 1, method = "shutdown" })
  last.peer:send({ method = "exit" })
  last.peer:close()
  drop(last, "the connection was closed")
  vim.defer_fn(function()
    last.peer:kill()
  end, EXIT_MS_MAX)
end

--- Begins anew: what was refused or given up is tried again, and trouble is told again.
---@return boolean
function M.restart()
  M.stop()
  refused, trouble, was_told = nil, nil, false
  problems = {}
  retry_ms, retry_at = RETRY_MS_MIN, 0
  return M.ensure()
end

return M
