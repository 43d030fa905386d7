--- A stand-in for CodeCompanion: the chat's behaviour that other plugins can see, and a scripted
--- model in place of a provider.
---
--- What it keeps to, of olimorris/codecompanion.nvim (versions 17 to 19):
---
--- - events are `User` autocommands named `CodeCompanion…` with `data`, run at once;
--- - `chat:submit(options)` does nothing while `chat.current_request` is set; calls
---   `options.callback`; takes the person's text from the buffer and adds it as a message, unless
---   `auto_submit`; copies the messages into `payload.messages` with the adapter's role names;
---   dispatches `on_submitted` with `{ payload = payload }`; sends; then fires `ChatSubmitted`;
--- - the client fires `RequestStarted` from within the sending, with `bufnr`, `id`, `interaction`
---   and `adapter`, and `RequestFinished` with `status` when all is over; an adapter whose set-up
---   fails fires neither;
--- - `chat:done` forgets the request, adds the model's message, labels messages as sent, and runs
---   the tools, or else dispatches `on_ready` (only when the model was the last to speak), resets
---   the status, dispatches `on_completed` and fires `ChatDone`;
--- - tools fire `ToolsStarted`, for each `ToolStarted` (`tool`) and `ToolFinished` (`name`), then
---   `ToolsFinished`; `chat.tools.status` says how the last one went; a scheduled `submit` with
---   `auto_submit` follows, or the chat becomes ready;
--- - `chat:stop` sets the status `cancelling`, dispatches `on_cancelled`, cancels the request and
---   schedules `done`;
--- - a saved chat keeps of each message `role`, `content`, `tools`, `context`, `opts.visible` and
---   `_meta.tag`;
--- - a compaction drops all messages but the system's and leaves a summary tagged
---   `compact_summary`; the debug window puts edited messages in place of `chat.messages`.

local api = vim.api

local M = {}

--- What the model does at each request, in order: `{ content = … }`, `{ tools = { call, … } }`,
--- `{ status = 500 }`, `{ hang = true }`, `{ no_setup = true }`.
M.script = {}
--- The messages of each request that went out, in order.
M.requests = {}
--- Called with each tool call, gives whether it succeeds.
M.run_tool = function()
  return true
end
--- Whether results of tools are sent on by themselves.
M.auto_submit = true

local chats = {}

local function fire(event, data)
  api.nvim_exec_autocmds("User", { pattern = "CodeCompanion" .. event, data = data or {} })
end

local Adapter = {}
Adapter.__index = Adapter

function Adapter:map_roles(messages)
  for _, message in ipairs(messages) do
    message.role = self.roles[message.role] or message.role
  end
  return messages
end

local function new_adapter(kind)
  local adapter = { name = "scripted", formatted_name = "Scripted", type = kind or "http" }
  -- A provider whose names of the roles are its own.
  adapter.roles = { llm = "assistant", user = "user", system = "system", tool = "tool" }
  return setmetatable(adapter, Adapter)
end

local Chat = {}

local function ready(chat, options)
  options = options or {}
  if not options.auto_submit and chat._last_role ~= "user" then
    chat.cycle = chat.cycle + 1
    chat:add_buf_message({ role = "user", content = "" })
    chat.header_line = api.nvim_buf_line_count(chat.bufnr)
    chat:dispatch("on_ready")
  end
  chat.status = ""
end

function Chat:add_callback(event, callback)
  self.callbacks[event] = self.callbacks[event] or {}
  table.insert(self.callbacks[event], callback)
  return self
end

function Chat:dispatch(event, ...)
  for _, callback in ipairs(self.callbacks[event] or {}) do
    local ok, err = pcall(callback, self, ...)
    if not ok then
      table.insert(M.callback_errors, event .. ": " .. tostring(err))
    end
  end
  return self
end

function Chat:add_message(data, options)
  options = options or {}
  options.visible = options.visible ~= false
  local meta = vim.tbl_deep_extend("force", { cycle = self.cycle }, options._meta or {})
  local message = { role = data.role, content = data.content, _meta = meta }
  if data.tool_calls then
    message.tools = { calls = data.tool_calls }
  end
  message.context, options.context, options._meta = options.context, nil, nil
  message.opts = options
  table.insert(self.messages, message)
  return self
end

function Chat:add_buf_message(data)
  self._last_role = data.role
  local lines = vim.split(data.content, "\n", { plain = true })
  api.nvim_buf_set_lines(self.bufnr, -1, -1, false, { "## " .. data.role, "" })
  api.nvim_buf_set_lines(self.bufnr, -1, -1, false, lines)
end

--- What the person types below the last heading.
function Chat:type(text)
  api.nvim_buf_set_lines(self.bufnr, -1, -1, false, vim.split(text, "\n", { plain = true }))
end

local function typed(chat)
  local lines = api.nvim_buf_get_lines(chat.bufnr, chat.header_line, -1, false)
  local text = vim.trim(table.concat(lines, "\n"))
  return text ~= "" and text or nil
end

local function send(chat, payload)
  local step = table.remove(M.script, 1) or { content = "Very well." }
  if step.no_setup then
    return { cancel = function() end }
  end
  table.insert(M.requests, vim.deepcopy(payload.messages))
  local event = { id = math.random(10000000), bufnr = chat.bufnr, interaction = "chat" }
  event.adapter = { name = chat.adapter.name, formatted_name = chat.adapter.formatted_name }
  local is_cancelled = false
  if not step.hang then
    -- Answers come from the main loop, after `submit` has returned.
    vim.defer_fn(function()
      if is_cancelled then
        return
      end
      chat.status = step.status and "error" or "success"
      if step.status then
        chat:done({})
      else
        chat:add_buf_message({ role = "llm", content = step.content or "" })
        chat:done({ step.content or "" }, nil, step.tools)
      end
      fire("RequestFinished", vim.tbl_extend("force", event, { status = chat.status }))
    end, 5)
  end
  fire("RequestStarted", event)
  return {
    cancel = function()
      is_cancelled = true
    end,
  }
end

--- The Agent Client Protocol: the agent is sent what it has not seen yet.
local function prompt(chat, payload)
  payload.messages = vim.tbl_filter(function(message)
    return message.role == "user" and not message._meta.sent
  end, payload.messages)
  return send(chat, payload)
end

function Chat:submit(options)
  if self.current_request then
    return
  end
  options = options or {}
  if options.callback then
    options.callback()
  end
  if not options.auto_submit then
    local text = typed(self)
    local has_user = vim.tbl_contains(
      vim.tbl_map(function(message)
        return message.role
      end, self.messages),
      "user"
    )
    if not text and not has_user then
      return
    end
    if not options.regenerate then
      self:add_message({ role = "user", content = text or "" })
    end
  end
  local payload = { messages = self.adapter:map_roles(vim.deepcopy(self.messages)), tools = {} }
  self:dispatch("on_submitted", { payload = payload })
  local via = self.adapter.type == "acp" and prompt or send
  self.current_request = via(self, payload)
  fire("ChatSubmitted", { bufnr = self.bufnr, id = self.id, type = self.adapter.type })
end

local function run_tools(chat, calls)
  local id = math.random(10000000)
  fire("ToolsStarted", { id = id, bufnr = chat.bufnr })
  for _, call in ipairs(calls) do
    local name = call["function"].name
    fire("ToolStarted", { id = id, tool = name, bufnr = chat.bufnr })
    chat.tools.status = M.run_tool(call) and "success" or "error"
    table.insert(chat.messages, {
      role = "tool",
      content = chat.tools.status,
      tools = { call_id = call.id },
      _meta = { cycle = chat.cycle },
      opts = { visible = true },
    })
    fire("ToolFinished", { id = id, name = name, bufnr = chat.bufnr })
  end
  fire("ToolsFinished", { id = id, bufnr = chat.bufnr })
  vim.schedule(function()
    if M.auto_submit then
      chat:submit({
        auto_submit = true,
        callback = function()
          ready(chat, { auto_submit = true })
        end,
      })
    else
      ready(chat, { auto_submit = false })
    end
  end)
end

function Chat:done(output, _, tools, _, options)
  self.current_request = nil
  if not self.status or self.status == "" then
    return
  end
  local content = vim.trim(table.concat(output or {}, ""))
  if content ~= "" then
    self:add_message({ role = "llm", content = content })
  end
  if not options or options.status ~= "stopped" then
    for _, message in ipairs(self.messages) do
      if message.role == "user" then
        message._meta.sent = true
      end
    end
  end
  if tools then
    self:add_message({ role = "llm", tool_calls = tools }, { visible = false })
    return run_tools(self, tools)
  end
  ready(self)
  self:dispatch("on_completed", { status = self.status })
  fire("ChatDone", { bufnr = self.bufnr, id = self.id })
end

function Chat:stop()
  self.status = "cancelling"
  self:dispatch("on_cancelled")
  fire("ChatStopped", { bufnr = self.bufnr, id = self.id })
  local request = self.current_request
  self.current_request = nil
  if request then
    pcall(request.cancel)
  end
  vim.schedule(function()
    self:done(nil, nil, nil, nil, { status = "stopped" })
  end)
end

function Chat:close()
  if self.current_request then
    self:stop()
  end
  self:dispatch("on_closed")
  fire("ChatClosed", { bufnr = self.bufnr, id = self.id })
  chats[self.bufnr] = nil
end

function Chat:clear()
  self.cycle = 1
  self.messages = {}
  fire("ChatCleared", { bufnr = self.bufnr, id = self.id })
end

function Chat:regenerate()
  if self.messages[#self.messages].role == "llm" then
    table.remove(self.messages)
    self:submit({ regenerate = true })
  end
end

function Chat:compact(summary)
  self.messages = { { role = "user", content = summary, _meta = { tag = "compact_summary" } } }
end

--- What a saved chat holds, as it stands in its file.
function Chat:saved()
  local function encode(message)
    return {
      role = message.role,
      content = message.content,
      tools = message.tools,
      context = message.context,
      opts = message.opts and { visible = message.opts.visible },
      _meta = message._meta.tag and { tag = message._meta.tag } or nil,
    }
  end
  return vim.json.encode(vim.tbl_map(encode, self.messages))
end

--- A new chat; with `messages` one that goes on.
function M.chat(options)
  options = options or {}
  local chat = setmetatable({
    id = math.random(10000000),
    adapter = new_adapter(options.adapter),
    bufnr = api.nvim_create_buf(true, true),
    callbacks = {},
    cycle = 1,
    header_line = 0,
    messages = options.messages or {},
    status = "",
    tools = { status = "success" },
    _last_role = "user",
  }, { __index = Chat })
  for _, message in ipairs(chat.messages) do
    message._meta = message._meta or {}
  end
  chats[chat.bufnr] = { name = "Chat", chat = chat }
  chat:dispatch("on_created")
  fire("ChatCreated", { bufnr = chat.bufnr, id = chat.id, from_prompt_library = false })
  return chat
end

--- Each chat in a table of its own; the chat itself for a buffer.
function M.buf_get_chat(bufnr)
  return bufnr and chats[bufnr].chat or vim.tbl_values(chats)
end

--- What callbacks failed with; CodeCompanion logs it and goes on.
M.callback_errors = {}

return M
