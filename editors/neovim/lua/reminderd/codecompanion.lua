--- Reminders in the chats of CodeCompanion.
---
--- A chat calls the model from `chat:submit()`, for the person's message and again after each
--- batch of tools. Each chat gets a `submit` of its own, put into that chat alone, which asks first
--- what the model should be told and submits when the answer is there. Meanwhile the chat has a
--- request that can be stopped like any other. CodeCompanion's callback `on_submitted` gets the
--- payload before it is sent: there the message is put in, and into the chat, hidden. It is
--- committed when CodeCompanion says that the request started.
---
--- The records are kept with the chat's messages, in `context.reminderd`, which CodeCompanion keeps
--- when it saves a chat. What the messages still hold is what history holds.

local config = require("reminderd.config")
local documents = require("reminderd.documents")
local row = require("reminderd.row")
local rpc = require("reminderd.rpc")
local sessions = require("reminderd.session")

local api = vim.api

local M = {}

local ROLE = "user"
--- The tag of our messages among CodeCompanion's, and the member of `context` with their records.
local TAG = "reminderd"
--- CodeCompanion's tag of the summary that a compaction leaves.
local SUMMARY_TAG = "compact_summary"

--- What CodeCompanion's own tools do to the file that they name.
---@type table<string, "read"|"write">
local FILE_TOOLS = {
  read_file = "read",
  create_file = "write",
  delete_file = "write",
  edit_file = "write",
  insert_edit_into_file = "write",
}

---@class reminderd.ChatCall
---@field id string
---@field name string
---@field input table
---@field reads string[] URIs.
---@field writes string[] URIs.

---@class reminderd.Chat
---@field chat table CodeCompanion's chat.
---@field submit fun(chat: table, options?: table) CodeCompanion's `submit`.
---@field session? reminderd.Session Known from the first request on.
---@field delivery? reminderd.Delivery The answer for the request that is being submitted.
---@field sent? { delivery: reminderd.Delivery, message?: table, anchor: table, line: integer } What
---  is in a payload whose request has not started yet.
---@field has_submitted boolean Whether CodeCompanion made a payload.
---@field summary? string The summary of the last compaction.
---@field announced reminderd.ChatCall[] Calls that the model made and that have not started.
---@field running? reminderd.ChatCall

---@type table<integer, reminderd.Chat>
local chats = {}

--- The records that a chat's messages hold, in order.
---@param chat table
---@return table[]
local function records_of(chat)
  local records = {}
  for _, message in ipairs(chat.messages) do
    vim.list_extend(records, vim.tbl_get(message, "context", TAG) or {})
  end
  return records
end

---@param chat table
---@return string[]
local function record_ids(chat)
  return vim.tbl_map(function(record)
    return record.id
  end, records_of(chat))
end

---@param message table
---@param record table
local function keep_record(message, record)
  message.context = message.context or {}
  message.context[TAG] = message.context[TAG] or {}
  table.insert(message.context[TAG], record)
end

---@param id string
---@return boolean
local function is_open_elsewhere(id)
  for _, other in pairs(chats) do
    if other.session and other.session.id == id then
      return true
    end
  end
  return false
end

--- The chat's session: a new one, or that of its records. A chat whose messages were copied from
--- one that is still open is a fork of it.
---@param state reminderd.Chat
---@return reminderd.Session
local function session_of(state)
  if not state.session then
    local chat = state.chat
    local records = records_of(chat)
    local latest = records[#records]
    local options = {
      -- An agent behind the Agent Client Protocol owns its conversation.
      host = chat.adapter.type == "acp" and { history = "native" } or nil,
      records = function()
        return records_of(chat)
      end,
    }
    local fresh = sessions.unique("codecompanion")
    if not latest then
      state.session = sessions.get(fresh, options)
    elseif is_open_elsewhere(latest.session) then
      state.session = sessions.fork(latest.session, latest.id, fresh, options)
    else
      state.session = sessions.get(latest.session, options)
    end
  end
  return state.session
end

--- Reports a compaction since the last request. Other losses are seen from the ids of each WAIT.
---@param state reminderd.Chat
local function report_compaction(state)
  local summary
  for _, message in ipairs(state.chat.messages) do
    if vim.tbl_get(message, "_meta", "tag") == SUMMARY_TAG then
      summary = message.content
    end
  end
  if summary and summary ~= state.summary then
    session_of(state):event("history/compacted", { retained = record_ids(state.chat) })
  end
  state.summary = summary
end

--- Reports how full the context is, where CodeCompanion knows both numbers.
---@param state reminderd.Chat
local function report_usage(state)
  local used = vim.tbl_get(state.chat, "ui", "tokens")
  local usable = vim.tbl_get(state.chat.adapter, "model", "meta", "context_window")
  if type(used) == "number" and type(usable) == "number" then
    session_of(state):event("usage/report", { used = used, usable = usable })
  end
end

--- Takes back what was put into a payload that was not sent.
---@param state reminderd.Chat
---@param reason string
local function release(state, reason)
  local delivery = state.delivery or state.sent and state.sent.delivery
  if delivery then
    delivery:release(reason)
  end
  local message = state.sent and state.sent.message
  state.delivery, state.sent = nil, nil
  if message then
    state.chat.messages = vim.tbl_filter(function(other)
      return other ~= message
    end, state.chat.messages)
  end
end

--- How a turn ended, from CodeCompanion's status; where that was reset already, from what is there.
---@param state reminderd.Chat
---@param status? string
---@return "completed"|"cancelled"|"failed"
local function outcome(state, status)
  if status == "success" then
    return "completed"
  elseif status == "error" then
    return "failed"
  elseif status == "cancelling" or status == "cancelled" then
    return "cancelled"
  end
  local last = state.chat.messages[#state.chat.messages]
  return last and last.role == "llm" and "completed" or "failed"
end

---@param state reminderd.Chat
---@param how "completed"|"cancelled"|"failed"
local function end_turn(state, how)
  release(state, "the turn ended")
  documents.leave_saves({})
  state.announced, state.running = {}, nil
  if state.session then
    state.session:end_turn(how)
  end
end

--- Asks for reminders, then submits.
---@param state reminderd.Chat
---@param options? table
local function submit(state, options)
  local chat = state.chat
  if chat.current_request then
    return state.submit(chat, options)
  end
  local session = session_of(state)
  local is_continued = options and options.auto_submit and session.turns[""]
  if not is_continued then
    end_turn(state, outcome(state, chat.status))
    session:begin_turn()
  end
  report_compaction(state)
  report_usage(state)

  local wait
  local request = {
    cancel = function()
      wait.cancel()
    end,
    status = function()
      return "pending"
    end,
  }
  wait = session:wait({
    seam = is_continued and "tools" or "prompt",
    records = record_ids(chat),
  }, function(delivery)
    chat.current_request = nil
    state.delivery, state.has_submitted = delivery, false
    state.submit(chat, options)
    if not state.has_submitted then
      end_turn(state, "cancelled")
    end
  end)
  chat.current_request = request
end

--- Puts the message into the payload that is about to be sent, and into the chat.
---@param state reminderd.Chat
---@param payload table
local function put_in(state, payload)
  state.has_submitted = true
  local delivery = state.delivery
  state.delivery = nil
  if not delivery then
    return
  end
  local chat = state.chat
  local message
  if delivery.content then
    chat:add_message({ role = ROLE, content = delivery.content }, {
      visible = false,
      _meta = { tag = TAG },
      context = { [TAG] = { delivery.record } },
    })
    message = chat.messages[#chat.messages]
    local sent = vim.deepcopy(message)
    sent.role = vim.tbl_get(chat.adapter, "roles", ROLE) or ROLE
    table.insert(payload.messages, sent)
  end
  state.sent = {
    delivery = delivery,
    message = message,
    anchor = chat.messages[#chat.messages],
    line = api.nvim_buf_line_count(chat.bufnr) - 1,
  }
end

--- The request is on its way: what is in it was told.
---@param state reminderd.Chat
local function commit(state)
  local sent = state.sent
  state.sent = nil
  if not sent then
    return
  end
  if config.get().row then
    row.show(state.chat.bufnr, sent.line, sent.delivery)
  end
  sent.delivery:commit(function(_, record)
    -- A record without words has no message of its own.
    if record and not sent.message then
      keep_record(sent.anchor, record)
    end
  end, "codecompanion")
end

---@param path string
---@return string uri
local function uri_of(path)
  return vim.uri_from_fname(vim.fn.fnamemodify(path, ":p"))
end

--- The files that a patch in the form of `apply_patch` names.
---@param patch string
---@return string[]
local function patched_files(patch)
  local uris = {}
  for line in patch:gmatch("[^\n]+") do
    local path = line:match("^%*%*%* %a+ File: (.+)$") or line:match("^%*%*%* Move to: (.+)$")
    if path then
      table.insert(uris, uri_of(vim.trim(path)))
    end
  end
  return uris
end

---@param call table As the model made it.
---@return reminderd.ChatCall
local function read_call(call)
  local called = call["function"]
  local input = called.arguments
  if type(input) == "string" then
    local ok, decoded = pcall(vim.json.decode, input, { luanil = { object = true } })
    input = ok and decoded
  end
  input = type(input) == "table" and input or {}
  local about = { id = call.id, name = called.name, input = input, reads = {}, writes = {} }
  local does = FILE_TOOLS[called.name]
  if does and type(input.filepath) == "string" then
    table.insert(does == "read" and about.reads or about.writes, uri_of(input.filepath))
  elseif called.name == "apply_patch" and type(input.patchText) == "string" then
    about.writes = patched_files(input.patchText)
  end
  return about
end

--- Whether a call of `read_file` asks for some of the lines.
---@param input table
---@return boolean
local function is_partial(input)
  local first = tonumber(input.start_line or input.start_line_number_base_zero) or 0
  local last = tonumber(input.end_line or input.end_line_number_base_zero) or -1
  return first > 0 or last >= 0
end

---@param state reminderd.Chat
local function tools_started(state)
  state.announced = {}
  local messages = state.chat.messages
  for index = #messages, 1, -1 do
    local calls = vim.tbl_get(messages[index], "tools", "calls")
    if calls then
      state.announced = vim.tbl_map(read_call, calls)
      return
    end
  end
end

---@param state reminderd.Chat
---@param name string
local function tool_started(state, name)
  local session = state.session
  if not session or not session.turns[""] then
    return
  end
  for index, call in ipairs(state.announced) do
    if call.name == name then
      state.running = table.remove(state.announced, index)
      break
    end
  end
  local call = state.running
  if call then
    session:event("tool/begin", { call = call.id, name = call.name, input = call.input })
    if #call.writes > 0 then
      session:event("edit/begin", { uris = call.writes })
      documents.leave_saves(call.writes)
    end
  end
end

---@param state reminderd.Chat
local function tool_finished(state)
  local call = state.running
  state.running = nil
  if not call then
    return
  end
  documents.leave_saves({})
  local session = session_of(state)
  local is_ok = state.chat.tools.status ~= "error"
  if is_ok then
    for _, uri in ipairs(call.reads) do
      session:event("file/read", { uri = uri, partial = is_partial(call.input) })
    end
    for _, uri in ipairs(call.writes) do
      session:event("file/wrote", { uri = uri })
    end
  end
  if #call.writes > 0 then
    local uris = vim.tbl_map(function(uri)
      return { uri = uri }
    end, call.writes)
    session:report("edit/end", { uris = uris, ok = is_ok })
  end
  session:event("tool/end", { call = call.id, name = call.name, ok = is_ok })
end

---@param chat table
local function attach(chat)
  if chats[chat.bufnr] then
    return
  end
  ---@type reminderd.Chat
  local state = { chat = chat, submit = chat.submit, announced = {}, has_submitted = false }
  chats[chat.bufnr] = state
  chat.submit = function(_, options)
    return submit(state, options)
  end
  chat:add_callback("on_submitted", function(_, data)
    put_in(state, data.payload)
  end)
  -- Another callback may have submitted the next message already.
  chat:add_callback("on_ready", function()
    if not chat.current_request then
      end_turn(state, outcome(state, chat.status))
    end
  end)
  chat:add_callback("on_completed", function(_, data)
    if not chat.current_request then
      end_turn(state, outcome(state, data and data.status))
    end
  end)
  chat:add_callback("on_cancelled", function()
    end_turn(state, "cancelled")
  end)
  chat:add_callback("on_closed", function()
    end_turn(state, "cancelled")
    if state.session then
      state.session:close()
    end
    chats[chat.bufnr] = nil
  end)
  -- So that the daemon is there by the first request.
  rpc.ensure()
end

--- What CodeCompanion says, by event.
---@type table<string, fun(state: reminderd.Chat, data: table)>
local events = {
  RequestStarted = function(state, data)
    if (data.interaction or data.strategy) == "chat" then
      commit(state)
    end
  end,
  ChatSubmitted = function(state, data)
    -- A request over HTTP has started by now, or it never will.
    if data.type == "http" then
      release(state, "the request did not start")
    end
  end,
  ChatCleared = function(state)
    end_turn(state, "cancelled")
    row.clear(state.chat.bufnr)
    if state.session then
      state.session:event("history/cleared")
    end
  end,
  ToolsStarted = tools_started,
  ToolStarted = function(state, data)
    tool_started(state, data.tool)
  end,
  ToolFinished = tool_finished,
}

--- Gives reminders to the chats that are there and those that come.
function M.enable()
  -- The data of its events, without which nothing can be said about a chat, came with 0.8.
  if vim.fn.has("nvim-0.8") == 0 then
    return
  end
  local group = api.nvim_create_augroup("reminderd.codecompanion", {})
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "CodeCompanion*",
    desc = "reminderd: follow the chats of CodeCompanion",
    callback = function(event)
      local data = event.data or {}
      local name = event.match:gsub("^CodeCompanion", "")
      if name == "ChatCreated" then
        attach(require("codecompanion").buf_get_chat(data.bufnr))
        return
      end
      local state = data.bufnr and chats[data.bufnr]
      if state and events[name] then
        events[name](state, data)
      end
    end,
  })
  if package.loaded["codecompanion"] then
    for _, listed in ipairs(require("codecompanion").buf_get_chat()) do
      attach(listed.chat)
    end
  end
end

--- Leaves the chats alone.
function M.disable()
  pcall(api.nvim_del_augroup_by_name, "reminderd.codecompanion")
  for bufnr, state in pairs(chats) do
    chats[bufnr] = nil
    state.chat.submit = state.submit
  end
end

return M
