-- Chats of CodeCompanion, against a stand-in that keeps to what CodeCompanion does.
local t = require("helpers")

if vim.fn.has("nvim-0.8") == 0 then
  t.skip("chats of CodeCompanion", "CodeCompanion needs a newer Neovim")
  t.run()
  return
end

local codecompanion = require("codecompanion")
local row = require("reminderd.row")
local rpc = require("reminderd.rpc")

local api = vim.api

local root = t.directory()
vim.cmd("silent cd " .. root)

local function ask(method, params)
  local answer
  rpc.request(method, params, function(err, result)
    answer = { err = err, result = result }
  end)
  t.eventually(function()
    return answer
  end, "the answer to " .. method)
  t.eq(nil, answer.err)
  return answer.result
end

--- A new chat whose model does as the script says.
local function new_chat(script, options)
  codecompanion.script = script or {}
  codecompanion.requests = {}
  codecompanion.callback_errors = {}
  codecompanion.auto_submit = true
  codecompanion.run_tool = function()
    return true
  end
  return codecompanion.chat(options)
end

local function idle(chat)
  t.eventually(function()
    return not chat.current_request and chat.status == "" and #codecompanion.script == 0
  end, "the chat to be ready")
  t.eq({}, codecompanion.callback_errors)
end

--- The person says something, and the model answers.
local function say(chat, text, count)
  local before = #codecompanion.requests
  chat:type(text)
  chat:submit()
  t.eventually(function()
    return #codecompanion.requests >= before + (count or 1)
  end, "the request")
  idle(chat)
end

--- The session of a chat: the newest one that is live.
local function session_of(chat)
  for _, message in ipairs(chat.messages) do
    local records = vim.tbl_get(message, "context", "reminderd")
    if records then
      return records[#records].session
    end
  end
  return require("reminderd.session").recent()
end

local function enqueue(chat, body)
  ask("reminder/enqueue", { session = session_of(chat), body = body })
end

local function last(messages)
  return messages[#messages]
end

local function count(messages, part)
  local found = 0
  for _, message in ipairs(messages) do
    if type(message.content) == "string" and message.content:find(part, 1, true) then
      found = found + 1
    end
  end
  return found
end

local function call(id, name, arguments)
  local text = vim.json.encode(arguments or vim.empty_dict())
  return { id = id, type = "function", ["function"] = { name = name, arguments = text } }
end

t.start({ command = t.shared(), deadline_ms = t.NEVER_MS })
-- A rule that speaks in every session, once.
local standing = { id = "tabs", body = "Indent with tabs." }

--- A chat with a session that has something to say.
local function chat_with_reminder(script, options)
  local chat = new_chat(script, options)
  say(chat, "Hello.")
  ask("roster/register", { session = session_of(chat), reminder = standing })
  codecompanion.requests = {}
  return chat
end

t.test("the message follows the person's, in the payload and hidden in the chat", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  local payload = codecompanion.requests[1]
  t.eq("Fix the parser.", payload[#payload - 1].content)
  t.eq("user", last(payload).role)
  t.has(last(payload).content, "<system-reminder>\nIndent with tabs.\n</system-reminder>")

  local kept = chat.messages[#chat.messages - 1]
  t.eq(last(payload).content, kept.content)
  t.eq(false, kept.opts.visible)
  t.eq("reminderd", kept._meta.tag)
  t.eq("injected-reminders", kept.context.reminderd[1].type)
  local text = table.concat(api.nvim_buf_get_lines(chat.bufnr, 0, -1, false), "\n")
  t.has_not(text, "Indent with tabs.")
end)

t.test("it is told once, and stays in the payloads that follow", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  say(chat, "And the lexer.")
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
  t.eq("And the lexer.", last(codecompanion.requests[2]).content)
end)

t.test("it is committed when the request starts", function()
  local chat = chat_with_reminder()
  codecompanion.script = { { hang = true } }
  chat:type("Fix the parser.")
  chat:submit()
  t.eventually(function()
    return #codecompanion.requests == 1
  end)
  t.eventually(function()
    local history = ask("reminder/history", { session = session_of(chat) })
    return #history.records > 0 and history.records[1].entries[1]
  end, "the commit")
  chat:stop()
  idle(chat)
end)

t.test("a row stands for it, and shows what it said", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  local namespace = api.nvim_get_namespaces()["reminderd.row"]
  local marks = api.nvim_buf_get_extmarks(chat.bufnr, namespace, 0, -1, { details = true })
  t.eq(1, #marks)
  t.has(marks[1][4].virt_lines[1][1][1], "◇ 1 system reminder (tabs)")
  api.nvim_win_set_buf(0, chat.bufnr)
  vim.cmd("normal! G")
  row.expand()
  local text = table.concat(api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  t.has(text, "Indent with tabs.")
  vim.cmd("close")
end)

t.test("after each batch of tools the model is told what came up", function()
  local chat = new_chat({ { tools = { call("c1", "run_command") } }, {} })
  codecompanion.run_tool = function()
    enqueue(chat, "The build is green again.")
    return true
  end
  local sent = t.sent("^reminder/wait$", function()
    say(chat, "Build it.", 2)
  end)
  local payload = codecompanion.requests[2]
  t.eq("tool", payload[#payload - 1].role)
  t.has(last(payload).content, "The build is green again.")
  t.eq({ "prompt", "tools" }, { sent[1].params.seam, sent[2].params.seam })
end)

t.test("tools are reported with their calls, and a WAIT never meets an open one", function()
  local chat = new_chat({
    { tools = { call("c1", "run_command", { cmd = "make" }), call("c2", "fetch") } },
    {},
  })
  codecompanion.run_tool = function(made)
    local refusal
    rpc.request("reminder/wait", { session = session_of(chat) }, function(err)
      refusal = err
    end)
    t.eventually(function()
      return refusal
    end, "a WAIT to be refused while a call is open")
    t.eq(-33005, refusal.code)
    return made.id == "c1"
  end
  local sent = t.sent("^tool/", function()
    say(chat, "Build it.", 2)
  end)
  sent = vim.tbl_map(function(message)
    local params = message.params
    return { message.method, params.call, params.name, params.ok, params.input }
  end, sent)
  t.eq({
    { "tool/begin", "c1", "run_command", nil, { cmd = "make" } },
    { "tool/end", "c1", "run_command", true },
    { "tool/begin", "c2", "fetch", nil, {} },
    { "tool/end", "c2", "fetch", false },
  }, sent)
  t.eq({}, rpc.status().problems)
end)

t.test("a file that the agent read and somebody changed is told; its own writes are not", function()
  local path = root .. "/parser.py"
  t.write(path, "one\ntwo\n")
  local reads = call("c1", "read_file", { filepath = "parser.py" })
  local chat = new_chat({ { tools = { reads } }, {} })
  say(chat, "Read the parser.", 2)
  t.write(path, "one\nzwei\n")
  say(chat, "Go on.")
  t.has(last(codecompanion.requests[3]).content, "-two\n+zwei")

  local writes = call("c2", "insert_edit_into_file", { filepath = path, edits = {} })
  codecompanion.script = { { tools = { writes } }, {} }
  codecompanion.run_tool = function()
    t.write(path, "eins\nzwei\n")
    return true
  end
  say(chat, "Edit the parser.", 2)
  say(chat, "Go on.")
  t.eq("Go on.", last(last(codecompanion.requests)).content)
  t.eq({}, rpc.status().problems)
end)

t.test("some lines are not the whole file; files of a patch are the agent's writes", function()
  local path = root .. "/lexer.py"
  t.write(path, "one\ntwo\n")
  local lines = { filepath = path, start_line = 1, end_line = 1 }
  local patch = "*** Begin Patch\n*** Update File: lexer.py\n@@\n-one\n+eins\n*** End Patch"
  local chat = new_chat({ { tools = { call("c1", "read_file", lines) } }, {} })
  local sent = t.sent({ "^file/", "^edit/" }, function()
    say(chat, "Read a line.", 2)
    codecompanion.script = { { tools = { call("c2", "apply_patch", { patchText = patch }) } }, {} }
    say(chat, "Patch it.", 2)
  end)
  local uri = vim.uri_from_fname(path)
  local session = session_of(chat)
  t.eq({
    { method = "file/read", params = { session = session, uri = uri, partial = true } },
    { method = "edit/begin", params = { session = session, uris = { uri } } },
    { method = "file/wrote", params = { session = session, uri = uri } },
    { method = "edit/end", params = { session = session, uris = { { uri = uri } }, ok = true } },
  }, sent)
end)

t.test("diagnostics that the agent's edit brought are told", function()
  local path = root .. "/typed.py"
  t.write(path, "x = 1\n")
  vim.cmd("silent edit! " .. path)
  local bufnr = api.nvim_get_current_buf()
  local edits = call("c1", "edit_file", { filepath = path, old_string = "1", new_string = "y" })
  local chat = new_chat({ { tools = { edits, call("c2", "get_diagnostics") } }, {} })
  local checker = api.nvim_create_namespace("checker")
  codecompanion.run_tool = function(made)
    if made.id == "c1" then
      t.write(path, "x = y\n")
    else
      vim.diagnostic.set(checker, bufnr, { { lnum = 0, col = 4, message = "y is not defined" } })
    end
    return true
  end
  say(chat, "Edit it.", 2)
  t.has(last(codecompanion.requests[2]).content, "y is not defined")
  vim.cmd("silent bwipeout!")
end)

t.test("a chat that is stopped while it waits sends nothing, and loses nothing", function()
  local chat = chat_with_reminder()
  chat:type("Fix the parser.")
  chat:submit()
  t.ok(chat.current_request, "there is nothing to stop")
  chat:submit()
  chat:stop()
  idle(chat)
  t.eq(0, #codecompanion.requests)
  say(chat, "Do it.")
  t.eq(1, #codecompanion.requests)
  t.eq(1, count(codecompanion.requests[1], "Indent with tabs."))
end)

t.test("a chat that is closed while it waits sends nothing", function()
  local chat = chat_with_reminder()
  chat:type("Fix the parser.")
  chat:submit()
  chat:close()
  t.settle()
  ask("session/list", {})
  t.settle()
  t.eq(0, #codecompanion.requests)
end)

t.test("what could not be sent is taken back and offered again", function()
  local chat = chat_with_reminder()
  codecompanion.script = { { no_setup = true } }
  chat:type("Fix the parser.")
  chat:submit()
  t.eventually(function()
    return #codecompanion.script == 0
  end)
  t.eq(0, count(chat.messages, "Indent with tabs."))
  chat:stop()
  idle(chat)
  say(chat, "Try again.")
  t.eq(1, count(codecompanion.requests[1], "Indent with tabs."))
end)

t.test("a request that failed had told: the message stays and is not told again", function()
  local chat = chat_with_reminder()
  codecompanion.script = { { status = 500 } }
  say(chat, "Fix the parser.")
  say(chat, "Try again.")
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
end)

t.test("turns end as they ended", function()
  local chat
  local sent = t.sent("^turn/end$", function()
    chat = new_chat({ { content = "Done." } })
    say(chat, "Do it.")
    codecompanion.script = { { tools = { call("c1", "fetch") } }, { content = "Done." } }
    say(chat, "Fetch it.", 2)
    codecompanion.script = { { status = 500 } }
    say(chat, "Fail.")
    codecompanion.script = { { hang = true } }
    local before = #codecompanion.requests
    chat:type("Hang.")
    chat:submit()
    t.eventually(function()
      return #codecompanion.requests > before
    end)
    chat:stop()
    idle(chat)
    codecompanion.script = { { tools = { call("c2", "fetch") } } }
    codecompanion.auto_submit = false
    say(chat, "Fetch it and stop.")
    t.eventually(function()
      return not require("reminderd.session").get(session_of(chat)).turns[""]
    end, "the last turn to end")
  end)
  local outcomes = vim.tbl_map(function(message)
    return message.params.outcome
  end, sent)
  t.eq({ "completed", "completed", "failed", "cancelled", "completed" }, outcomes)
end)

t.test("a chat that has nothing to send sends nothing", function()
  local chat = new_chat()
  chat:submit()
  t.eventually(function()
    return not chat.current_request
  end)
  t.eq(0, #codecompanion.requests)
  t.eq(0, #chat.messages)
end)

t.test("a message that was edited out of the chat is told again", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  t.eq(1, count(codecompanion.requests[1], "Indent with tabs."))
  -- The debug window prints the messages, and reads them back as Lua.
  local edited = loadstring("return " .. vim.inspect(chat.messages))()
  chat.messages = edited
  say(chat, "Unchanged.")
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
  chat.messages = vim.tbl_filter(function(message)
    return message._meta.tag ~= "reminderd"
  end, chat.messages)
  say(chat, "Edited.")
  t.eq(1, count(codecompanion.requests[3], "Indent with tabs."))
  t.has(last(codecompanion.requests[3]).content, "Indent with tabs.")
end)

t.test("an answer that is regenerated hears nothing twice", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  chat:regenerate()
  t.eventually(function()
    return #codecompanion.requests == 2
  end)
  idle(chat)
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
end)

t.test("a compaction is reported, and what it dropped is told again", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  local sent = t.sent("^history/", function()
    chat:compact("They asked to fix the parser.")
    say(chat, "Go on.")
    say(chat, "And on.")
  end)
  local params = { session = session_of(chat), retained = {} }
  t.eq({ { method = "history/compacted", params = params } }, sent)
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
  t.has(last(codecompanion.requests[2]).content, "Indent with tabs.")
end)

t.test("a chat that was cleared begins anew", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  local sent = t.sent("^history/", function()
    chat:clear()
  end)
  t.eq({ { method = "history/cleared", params = { session = session_of(chat) } } }, sent)
  say(chat, "Something else.")
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
  t.eq({}, rpc.status().problems)
end)

t.test("a chat that was saved and loaded goes on where it was", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  local session = session_of(chat)
  local saved = chat:saved()
  chat:close()
  -- As if the daemon had forgotten everything: the records alone say what was told.
  ask("session/open", { session = session })
  ask("session/close", { session = session, forget = true })

  local messages = vim.json.decode(saved, { luanil = { object = true } })
  local loaded = new_chat({}, { messages = messages })
  say(loaded, "Go on.")
  t.eq(session, session_of(loaded))
  ask("roster/register", { session = session, reminder = standing })
  say(loaded, "And on.")
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
end)

t.test("a chat that was copied from one that is open hears nothing twice", function()
  local chat = chat_with_reminder()
  say(chat, "Fix the parser.")
  local copy = codecompanion.chat({ messages = vim.deepcopy(chat.messages) })
  say(copy, "Do it another way.")
  t.eq(1, count(last(codecompanion.requests), "Indent with tabs."))
  local copied = require("reminderd.session").recent()
  t.ok(copied ~= session_of(chat), "both are one session")
  -- Each goes on for itself.
  ask("reminder/enqueue", { session = copied, body = "Only for the copy." })
  say(chat, "Go on.")
  t.eq(0, count(last(codecompanion.requests), "Only for the copy."))
  say(copy, "Go on.")
  t.eq(1, count(last(codecompanion.requests), "Only for the copy."))
  t.eq({}, rpc.status().problems)
end)

t.test("how full the context is is reported where it is known", function()
  local chat = new_chat()
  chat.ui = { tokens = 95000 }
  chat.adapter.model = { meta = { context_window = 100000 } }
  say(chat, "Hello.")
  t.has(last(codecompanion.requests[1]).content, "95")
end)

t.test("what a tool saves through a buffer is not the person's", function()
  local path = root .. "/buffer.py"
  t.write(path, "one\n")
  vim.cmd("silent edit! " .. path)
  local bufnr = api.nvim_get_current_buf()
  local edits = call("c1", "edit_file", { filepath = path })
  local chat = new_chat({ { tools = { edits, call("c2", "fetch") } }, {} })
  local saves = {}
  codecompanion.run_tool = function(made)
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { made.id })
    saves[made.id] = t.sent("^textDocument/didSave$", function()
      api.nvim_buf_call(bufnr, function()
        vim.cmd("silent write")
      end)
    end)
    return true
  end
  say(chat, "Edit it.", 2)
  t.eq(0, #saves.c1)
  -- During another tool it is the person who saves.
  t.eq(1, #saves.c2)
  vim.cmd("silent bwipeout!")
end)

t.test("a record without words is kept too, and adds nothing to any message", function()
  local chat = new_chat()
  say(chat, "Hello.")
  -- The first list of a pool is known from then on, and not told.
  local names = { { name = "reviewer" } }
  ask("pool/set", { session = session_of(chat), pool = "agents", names = names })
  say(chat, "Go on.")
  local record = t.eventually(function()
    local records = vim.tbl_get(chat.messages[3], "context", "reminderd")
    return records and records[1]
  end, "the record beside the person's message")
  t.eq({}, record.entries)
  t.eq(
    { "Hello.", "Very well.", "Go on.", "Very well." },
    vim.tbl_map(function(message)
      return message.content
    end, chat.messages)
  )
end)

t.test("an agent behind ACP gets the message, once", function()
  local chat = chat_with_reminder({}, { adapter = "acp" })
  say(chat, "Fix the parser.")
  local sent = vim.tbl_map(function(message)
    return message.content
  end, codecompanion.requests[1])
  t.eq("Fix the parser.", sent[1])
  t.has(sent[2], "Indent with tabs.")
  say(chat, "Go on.")
  t.eq(1, #codecompanion.requests[2])
end)

t.test("two chats are two sessions", function()
  local one, other = chat_with_reminder(), new_chat()
  say(other, "Hello.")
  say(one, "Hello again.")
  t.eq(1, count(codecompanion.requests[2], "Indent with tabs."))
  t.eq(0, count(codecompanion.requests[1], "Indent with tabs."))
end)

t.test("without a daemon, chats are as they were", function()
  t.start({ command = { "reminderd-is-not-installed" } })
  local chat = new_chat({ { tools = { call("c1", "read_file", { filepath = "x" }) } }, {} })
  say(chat, "Fix the parser.", 2)
  t.eq("Fix the parser.", codecompanion.requests[1][1].content)
  t.eq(1, #t.notices)
end)

t.test("chats are left alone when it is switched off", function()
  t.start({ command = t.shared(), codecompanion = false })
  local chat = new_chat()
  chat:type("Hello.")
  chat:submit()
  t.eq(1, #codecompanion.requests)
  idle(chat)

  -- Switched on again, it is asked for the chat that is there already.
  t.start({ command = t.shared(), deadline_ms = t.NEVER_MS })
  local sent = t.sent("^reminder/wait$", function()
    say(chat, "Hello again.")
  end)
  t.eq(1, #sent)
end)

t.run()
