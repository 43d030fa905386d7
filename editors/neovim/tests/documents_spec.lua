-- Texts and saves, as the daemon gets them and as an agent hears of them.
local t = require("helpers")
local documents = require("reminderd.documents")
local rpc = require("reminderd.rpc")

local api = vim.api

--- The texts that the daemon has, rebuilt from what is sent to it.
local texts = {}

--- The byte of an LSP position in a text, from 1.
local function byte_of(text, position)
  local at = 1
  for _ = 1, position.line do
    local _, last = text:find("\n", at, true)
    if not last then
      return #text + 1
    end
    at = last + 1
  end
  t.eq(0, position.character)
  return at
end

local function apply(text, change)
  if not change.range then
    return change.text
  end
  local first = byte_of(text, change.range.start)
  local last = byte_of(text, change.range["end"])
  return text:sub(1, first - 1) .. change.text .. text:sub(last)
end

local notify = rpc.notify
rpc.notify = function(method, params)
  local document = params.textDocument
  if method == "textDocument/didOpen" then
    t.eq(nil, texts[document.uri], "opened twice")
    texts[document.uri] = document.text
  elseif method == "textDocument/didChange" then
    for _, change in ipairs(params.contentChanges) do
      texts[document.uri] = apply(texts[document.uri], change)
    end
  elseif method == "textDocument/didClose" then
    t.ok(texts[document.uri], "closed before it was opened")
    texts[document.uri] = nil
  end
  return notify(method, params)
end

local function edit(path)
  vim.cmd("silent edit! " .. vim.fn.fnameescape(path))
  return api.nvim_get_current_buf()
end

local function as_file(bufnr)
  local lines = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), "\n")
  local has_break = vim.bo[bufnr].endofline or vim.bo[bufnr].fixendofline
  return has_break and lines .. "\n" or lines
end

local function check(bufnr, about)
  documents.flush()
  t.eq(as_file(bufnr), texts[vim.uri_from_bufnr(bufnr)], about)
end

local root = t.directory()
t.start({ command = t.shared() })

t.test("whatever is done to a buffer, the daemon has its text", function()
  local words = { "α", "🎉 party", "", "plain", "tab\there", "line" }
  for seed = 1, 20 do
    math.randomseed(seed)
    local path = ("%s/%d.txt"):format(root, seed)
    t.write(path, "one\ntwo\nthree\n")
    local bufnr = edit(path)
    for step = 1, 40 do
      local count = api.nvim_buf_line_count(bufnr)
      local first = math.random(0, count)
      local last = math.random(first, count)
      local kind = math.random(8)
      if kind == 1 then
        vim.cmd("silent! undo")
      elseif kind == 2 then
        vim.cmd("silent! redo")
      elseif kind == 3 then
        vim.cmd("silent %delete")
      elseif kind == 4 then
        vim.cmd("silent! normal! GJx")
      elseif kind == 5 then
        vim.cmd("silent! 1move $")
      else
        local lines = {}
        for _ = 1, math.random(0, 3) do
          table.insert(lines, words[math.random(#words)])
        end
        api.nvim_buf_set_lines(bufnr, first, last, false, lines)
      end
      if math.random(3) == 1 then
        check(bufnr, ("seed %d, step %d"):format(seed, step))
      end
    end
    check(bufnr, ("seed %d"):format(seed))
  end
end)

t.test("a file without a last line break", function()
  local path = root .. "/no-break.txt"
  t.write(path, "one\ntwo")
  local bufnr = edit(path)
  vim.bo[bufnr].fixendofline = false
  api.nvim_buf_set_lines(bufnr, 1, 2, false, { "zwei" })
  check(bufnr)
  t.eq("one\nzwei", texts[vim.uri_from_bufnr(bufnr)])
end)

t.test("what changes little is sent little", function()
  local path = root .. "/large.txt"
  t.write(path, ("a line\n"):rep(10000))
  local bufnr = edit(path)
  local sent = t.sent("^textDocument/", function()
    api.nvim_buf_set_lines(bufnr, 5000, 5001, false, { "another" })
    documents.flush()
  end)
  t.eq(1, #sent)
  local size = #vim.json.encode(sent[1].params)
  t.ok(size < 500, ("%d bytes for one line"):format(size))
  check(bufnr)
end)

t.test("a file that is read again from disk", function()
  local path = root .. "/reloaded.txt"
  t.write(path, "one\n")
  local bufnr = edit(path)
  t.write(path, "one\ntwo\n")
  vim.cmd("silent edit!")
  check(bufnr)
  t.eq("one\ntwo\n", texts[vim.uri_from_bufnr(bufnr)])
end)

t.test("changes are sent by themselves, soon", function()
  local path = root .. "/soon.txt"
  t.write(path, "one\n")
  local bufnr = edit(path)
  api.nvim_buf_set_lines(bufnr, 0, 1, false, { "eins" })
  t.eventually(function()
    return texts[vim.uri_from_bufnr(bufnr)] == "eins\n"
  end, "the change to be sent")
end)

t.test("a file with another name is another file, and one that is closed is closed", function()
  local path = root .. "/old-name.txt"
  t.write(path, "one\n")
  local bufnr = edit(path)
  local old = vim.uri_from_bufnr(bufnr)
  vim.cmd("silent saveas! " .. root .. "/new-name.txt")
  t.eq(nil, texts[old])
  check(bufnr)
  local new = vim.uri_from_bufnr(bufnr)
  vim.cmd("silent bwipeout!")
  t.eq(nil, texts[new])
end)

t.test("a copy that is written elsewhere is no save of the file", function()
  local path = root .. "/original.txt"
  t.write(path, "one\n")
  edit(path)
  local sent = t.sent("^textDocument/didSave$", function()
    vim.cmd("silent write " .. root .. "/copy.txt")
  end)
  t.eq({}, sent)
  sent = t.sent("^textDocument/didSave$", function()
    vim.cmd("silent write")
  end)
  t.eq(1, #sent)
end)

t.test("only files are reported", function()
  local before = documents.count()
  vim.cmd("silent new")
  vim.cmd("silent help")
  edit(root)
  vim.cmd("silent! edit scp://nowhere/file.txt")
  t.eq(before, documents.count())
end)

t.test("another daemon gets all texts anew", function()
  local bufnr = edit(root .. "/large.txt")
  texts = {}
  rpc.restart()
  check(bufnr)
  t.eq(documents.count(), vim.tbl_count(texts))
end)

t.test("an agent of another client hears who saved its file, and what", function()
  local path = root .. "/shared 100% é+#?.txt"
  t.write(path, "one\ntwo\n")
  local agent = t.agent(t.shared())
  agent.request("session/open", { session = "agent", root = root })
  agent.request("turn/begin", { session = "agent", turn = "1" })
  agent.request("file/read", { session = "agent", uri = path })

  --- What the agent is told, once the daemon has heard all that the editor said.
  local function told()
    local is_heard = false
    rpc.request("session/list", {}, function()
      is_heard = true
    end)
    t.eventually(function()
      return is_heard
    end)
    local message = agent.request("reminder/wait", { session = "agent" }).message
    return message and message.content
  end

  local bufnr = edit(path)
  api.nvim_buf_set_lines(bufnr, 1, 2, false, { "zwei" })
  documents.flush()
  t.eq(nil, told())
  vim.cmd("silent write")
  local content = told()
  t.has(content, "-two\n+zwei")
  t.has(content, "shared 100% é+#?.txt")
  t.has(content, "the person")
  agent.close()
end)

t.test("nothing is reported when it is switched off", function()
  t.start({ command = t.shared(), documents = false })
  t.eq(0, documents.count())
  edit(root .. "/1.txt")
  t.eq(0, documents.count())
end)

t.test("the daemon took everything", function()
  t.eq({}, rpc.status().problems)
  t.eq({}, t.notices)
end)

t.run()
