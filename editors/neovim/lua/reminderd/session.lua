--- Sessions and their turns, the WAIT, and what becomes of a delivery.

local config = require("reminderd.config")
local documents = require("reminderd.documents")
local rpc = require("reminderd.rpc")

local uv = vim.uv or vim.loop

local M = {}

--- The daemon's error when its disk did not take a commit, which may be sent again.
local STORE_FAILED = -33010
--- The part of a WAIT's deadline that the daemon may use for what is slow, such as diffs.
local DAEMON_SHARE = 0.8

---@class reminderd.Delivery
---@field content? string The text to put in as a message of the user; `nil` when nothing speaks.
---@field record? table What is kept beside the message.
---@field row? string The line that stands for the message in a view.
---@field entries { id: string, type: string, key?: string, label: string, body: string }[]
---@field phase "turn-start"|"mid-turn"
---@field held { type: string, key?: string, reason: string }[]
---@field tokens integer The estimated price of the message.
---@field token string
---@field is_settled boolean Whether it was committed or released.
local Delivery = {}
Delivery.__index = Delivery

---@param result table
---@return reminderd.Delivery
local function new_delivery(result)
  return setmetatable({
    token = result.token,
    content = result.message and result.message.content,
    record = result.record,
    row = result.row,
    entries = result.entries or {},
    phase = result.phase,
    held = result.held or {},
    tokens = result.tokens or 0,
    is_settled = false,
  }, Delivery)
end

--- Says that the payload about to be sent contains the message. To be called also when there is
--- none, since requests are counted by their commits.
---@param callback? fun(err: reminderd.Error?, record: table?) Gets the record to keep once the
---  daemon has it on its disk; there may be one where the delivery had none.
---@param placement? string Where the message was put.
function Delivery:commit(callback, placement)
  if self.is_settled then
    return
  end
  self.is_settled = true
  local params = { token = self.token, placement = placement }
  local function answered(err, result)
    if callback then
      callback(err, result and result.record)
    end
  end
  rpc.request("reminder/commit", params, function(err, result)
    if err and err.code == STORE_FAILED then
      rpc.request("reminder/commit", params, answered)
    else
      answered(err, result)
    end
  end)
end

--- Says that the message never came to be: the next WAIT offers the same again.
---@param reason? string
function Delivery:release(reason)
  if self.is_settled then
    return
  end
  self.is_settled = true
  rpc.request("reminder/release", { token = self.token, reason = reason })
end

---@class reminderd.SessionOptions
---@field root? string The workspace, the current directory by default.
---@field host? table What the host does, see `session/open` of the protocol.
---@field records? table[]|fun():table[] The records that the conversation still holds. Left out,
---  the daemon's own memory stands.
---@field profile? string
---@field kinds? table
---@field reminders? table[]
---@field deny? string[] Globs of files whose content is never shown.
---@field own? string[] Directories of the conversation's own bookkeeping.

---@class reminderd.Session
---@field id string
---@field options reminderd.SessionOptions
---@field turns table<string, string> The open turn of each agent, of the root under `""`.
---@field generation integer The connection on which it was opened last.
---@field unheard integer How many reports the daemon has not taken in yet.
---@field on_heard fun()[] What waits until there are none.
local Session = {}
Session.__index = Session

---@type table<string, reminderd.Session>
local sessions = {}
--- The session that was used last.
---@type string?
local recent

--- A name that nobody else gives.
---@param prefix string
---@return string
function M.unique(prefix)
  local bytes = uv.random(8):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end)
  return ("%s-%d-%s"):format(prefix, os.time(), bytes)
end

--- The session of this id, made with these options if it is not there.
---@param id string
---@param options? reminderd.SessionOptions
---@return reminderd.Session
function M.get(id, options)
  local session = sessions[id]
  if not session then
    local fresh = { id = id, options = {}, turns = {}, generation = 0, unheard = 0, on_heard = {} }
    session = setmetatable(fresh, Session)
    sessions[id] = session
  end
  if options then
    session.options = options
  end
  recent = id
  session:attach()
  return session
end

--- A session that goes on from another's history up to a record, under a name of its own.
---@param source string
---@param through string The id of the last record that both have.
---@param id string
---@param options? reminderd.SessionOptions
---@return reminderd.Session
function M.fork(source, through, id, options)
  rpc.request("session/fork", { session = source, into = id, through = through })
  return M.get(id, options)
end

--- The session that is meant when none is named.
---@return string?
function M.recent()
  return recent
end

--- Opens the session on the connection that is there now, if it is not open on it yet.
---@return boolean is_connected
function Session:attach()
  if not rpc.ensure() then
    return false
  end
  if self.generation == rpc.generation() then
    return true
  end
  self.generation = rpc.generation()
  local options = self.options
  local records = options.records
  rpc.request("session/open", {
    session = self.id,
    root = options.root or uv.cwd(),
    host = options.host,
    records = type(records) == "function" and records() or records,
    profile = options.profile,
    kinds = options.kinds,
    reminders = options.reminders,
    deny = options.deny,
    own = options.own,
  }, function(err)
    -- Another daemon may own it, and let it go later.
    if err and type(err.code) == "number" then
      self.generation = 0
      rpc.tell(("session %s is not opened: %s"):format(self.id, err.message))
    end
  end)
  -- A daemon that lost its process does not know the turn; one that did not says that it does.
  for agent, turn in pairs(self.turns) do
    local params = { session = self.id, turn = turn, agent = agent ~= "" and agent or nil }
    rpc.request("turn/begin", params)
  end
  return true
end

rpc.on_start(function()
  for _, session in pairs(sessions) do
    session:attach()
  end
end)

--- Reports an event of this session, such as `file/read`. Says whether there was a daemon to hear.
---@param method string
---@param params? table All members but `session`.
---@return boolean
function Session:event(method, params)
  if not self:attach() then
    return false
  end
  recent = self.id
  documents.flush()
  return rpc.notify(method, vim.tbl_extend("force", { session = self.id }, params or {}))
end

--- Reports an event that the daemon looks at files for, such as `edit/end`; the next WAIT is asked
--- once it has.
---@param method string
---@param params table All members but `session`.
function Session:report(method, params)
  self.unheard = self.unheard + 1
  self:request(method, params, function()
    self.unheard = self.unheard - 1
    if self.unheard == 0 then
      local waiting = self.on_heard
      self.on_heard = {}
      for _, continue in ipairs(waiting) do
        continue()
      end
    end
  end, { deadline_ms = config.get().deadline_ms })
end

--- Asks something about this session.
---@param method string
---@param params? table All members but `session`.
---@param callback fun(err: reminderd.Error?, result: any)
---@param options? reminderd.RequestOptions
---@return reminderd.Request
function Session:request(method, params, callback, options)
  self:attach()
  documents.flush()
  params = vim.tbl_extend("force", { session = self.id }, params or {})
  return rpc.request(method, params, callback, options)
end

--- Begins a turn: the person said something.
---@param options? { agent?: string, prompt?: string }
---@return string turn
function Session:begin_turn(options)
  options = options or {}
  local turn = M.unique("turn")
  self:event("turn/begin", { turn = turn, agent = options.agent, prompt = options.prompt })
  self.turns[options.agent or ""] = turn
  return turn
end

--- Ends the open turn, if there is one.
---@param outcome "completed"|"cancelled"|"failed"
---@param agent? string
function Session:end_turn(outcome, agent)
  local turn = self.turns[agent or ""]
  if turn then
    self:event("turn/end", { turn = turn, agent = agent, outcome = outcome })
    self.turns[agent or ""] = nil
  end
end

---@class reminderd.WaitOptions
---@field agent? string
---@field seam? "prompt"|"tools"|"continuation" Where the message will stand.
---@field records? string[] The ids of the records that the payload holds.
---@field limit? table The most that the message may take.
---@field deadline_ms? integer

--- Asks what the model should be told before the request that is being prepared. Begins a turn if
--- none is open. The callback is called once: with a delivery, or with `nil` when there is none to
--- be had in time, and then the request goes out without. It is not called after `cancel`.
---@param options reminderd.WaitOptions
---@param callback fun(delivery: reminderd.Delivery?)
---@return reminderd.Request
function Session:wait(options, callback)
  if not self.turns[options.agent or ""] then
    self:begin_turn({ agent = options.agent })
  end
  local deadline_ms = options.deadline_ms or config.get().deadline_ms
  local began = uv.now()
  local is_cancelled = false
  ---@type reminderd.Request?
  local request

  local function ask()
    if is_cancelled then
      return
    end
    local left_ms = math.max(deadline_ms - (uv.now() - began), 1)
    request = self:request("reminder/wait", {
      agent = options.agent,
      turn = self.turns[options.agent or ""],
      seam = options.seam,
      history = options.records and { records = options.records },
      limit = options.limit,
      deadlineMs = math.floor(DAEMON_SHARE * left_ms),
    }, function(_, result)
      callback(type(result) == "table" and result.token and new_delivery(result) or nil)
    end, {
      deadline_ms = left_ms,
      late = function(result)
        new_delivery(result):release("too late")
      end,
    })
  end

  if self.unheard == 0 then
    ask()
  else
    table.insert(self.on_heard, ask)
  end
  return {
    cancel = function()
      is_cancelled = true
      if request then
        request.cancel()
      end
    end,
  }
end

--- Closes the session; it can be opened again. With `forget` what is stored about it is erased.
---@param options? { forget?: boolean }
function Session:close(options)
  if self:attach() then
    rpc.request("session/close", { session = self.id, forget = options and options.forget })
  end
  sessions[self.id] = nil
  if recent == self.id then
    recent = nil
  end
end

return M
