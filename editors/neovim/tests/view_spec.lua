-- What the person sees and asks: commands, rows, the health check.
local t = require("helpers")
local reminderd = require("reminderd")
local row = require("reminderd.row")

local api = vim.api

local function text_of(bufnr)
  return table.concat(api.nvim_buf_get_lines(bufnr or 0, 0, -1, false), "\n")
end

--- Runs a command and gives the text of the window that it opens.
local function shown(command)
  local before = api.nvim_get_current_buf()
  vim.cmd(command)
  t.eventually(function()
    return api.nvim_get_current_buf() ~= before
  end, "the window of :" .. command)
  return text_of()
end

local function close()
  api.nvim_feedkeys("q", "x", false)
end

local function wait(session)
  local delivery
  reminderd.wait({
    session = session,
    deadline_ms = t.NEVER_MS,
    callback = function(result)
      delivery = result
    end,
  })
  return t.eventually(function()
    return delivery
  end, "a delivery")
end

t.start({ command = t.shared() })
local session = reminderd.session("view", { root = t.directory() })
session:begin_turn()
session:event("reminder/enqueue", { body = "The build is green again." })

t.test(":Reminderd explain says what would speak, and why", function()
  local text = shown("Reminderd explain")
  t.has(text, "Session view")
  t.has(text, "● pending-events: ")
  t.has(text, "○ task-nudge: ")
  close()
end)

t.test(":Reminderd explain of another client's session", function()
  local agent = t.agent(t.shared())
  agent.request("session/open", { session = "other" })
  local text = shown("Reminderd explain other")
  t.has(text, "Session other")
  close()
  agent.close()
end)

t.test(":Reminderd explain of a session that is not there says so", function()
  t.notices = {}
  vim.cmd("Reminderd explain nobody")
  t.eventually(function()
    return #t.notices == 1
  end, "a word")
  t.has(t.notices[1], "nobody")
end)

local delivery

t.test(":Reminderd log lists what was told, collapsed, and shows what it said", function()
  delivery = wait(session)
  local is_committed = false
  delivery:commit(function(err)
    t.eq(nil, err)
    is_committed = true
  end)
  t.eventually(function()
    return is_committed
  end)
  local text = shown("Reminderd log view")
  t.has(text, "turn-start")
  t.has_not(text, "The build is green again.")
  api.nvim_win_set_cursor(0, { 3, 0 })
  local list = api.nvim_get_current_buf()
  api.nvim_feedkeys(api.nvim_replace_termcodes("<CR>", true, false, true), "x", false)
  t.ok(api.nvim_get_current_buf() ~= list, "nothing was shown")
  t.has(text_of(), "The build is green again.")
  close()
  t.eq(list, api.nvim_get_current_buf())
  close()
end)

t.test(":Reminderd status says how the client stands", function()
  local text = shown("Reminderd status")
  t.has(text, "Daemon: ready")
  t.has(text, "Build: reminderd ")
  t.has(text, "Session: view")
  close()
end)

t.test("an unknown command is told, known ones are completed", function()
  t.notices = {}
  vim.cmd("Reminderd explode")
  t.has(t.notices[1], '"explode"')
  t.eq({ "expand", "explain" }, vim.fn.getcompletion("Reminderd ex", "cmdline"))
  t.eq({}, vim.fn.getcompletion("Reminderd explain ex", "cmdline"))
end)

t.test("a row stands collapsed below its line and expands to what it said", function()
  vim.cmd("silent enew")
  local bufnr = api.nvim_get_current_buf()
  api.nvim_buf_set_lines(bufnr, 0, -1, false, { "above", "the prompt", "below" })
  row.show(bufnr, 1, delivery)
  local namespace = api.nvim_get_namespaces()["reminderd.row"]
  local marks = api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true })
  t.eq(1, #marks)
  t.eq(1, marks[1][2])
  t.eq(delivery.row, marks[1][4].virt_lines[1][1][1])
  t.eq("above\nthe prompt\nbelow", text_of(bufnr))

  t.notices = {}
  api.nvim_win_set_cursor(0, { 1, 0 })
  t.eq(nil, row.expand())
  t.eq(1, #t.notices)
  for _, line in ipairs({ 2, 3 }) do
    api.nvim_win_set_cursor(0, { line, 0 })
    vim.cmd("Reminderd expand")
    t.ok(api.nvim_get_current_buf() ~= bufnr, "nothing was shown")
    t.has(text_of(), "The build is green again.")
    t.has(text_of(), "pending-events")
    close()
    t.eq(bufnr, api.nvim_get_current_buf())
  end
  row.clear(bufnr)
  t.eq({}, api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, {}))
end)

t.test("nothing is shown where nothing speaks", function()
  local bufnr = api.nvim_get_current_buf()
  row.show(bufnr, 0, wait(session))
  local namespace = api.nvim_get_namespaces()["reminderd.row"]
  t.eq({}, api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, {}))
end)

local function health()
  vim.cmd("silent checkhealth reminderd")
  local text = text_of()
  vim.cmd("silent bwipeout!")
  return text
end

t.test(":checkhealth of a client that works", function()
  local text = health()
  t.has(text, "reminderd")
  t.has(text, " answers")
  t.has(text, "Diagnostics are reported")
  t.has_not(text, "ERROR")
  t.has_not(text, "WARNING")
end)

t.test(":checkhealth says what is wrong", function()
  t.start({ command = { "reminderd-is-not-installed" }, documents = false })
  local text = health()
  t.has(text, "ERROR")
  t.has(text, "`reminderd-is-not-installed` is not an executable program")
  local refusal = { code = -32602, message = "version 1 is not spoken here" }
  t.start({ command = t.fake({ initialize = { { error = refusal } } }), documents = false })
  text = health()
  t.has(text, "ERROR")
  t.has(text, "version 1 is not spoken here")
  t.has(text, "option `documents`")
end)

t.run()
