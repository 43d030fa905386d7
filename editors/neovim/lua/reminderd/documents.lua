--- The texts of files that the person has open, and their saves, as a language client reports them.

local rpc = require("reminderd.rpc")

local api = vim.api

local M = {}

--- Changes are sent together after so many milliseconds, or before anything that is about them.
local FLUSH_MS = 100
--- Files of more bytes are left alone: their text would not be kept.
local BYTES_MAX = 8 * 1024 * 1024

---@class reminderd.Document
---@field uri string
---@field line_count integer As the daemon knows it.
---@field version integer
---@field changes table[] `contentChanges` that were not sent yet.

---@type table<integer, reminderd.Document>
local documents = {}
local is_flush_due = false
--- Files that a tool of a model is writing: their saves are not the person's.
---@type table<string, boolean>
local written_by_tool = {}

---@param bufnr integer
---@return string
local function line_ending(bufnr)
  local endings = { unix = "\n", dos = "\r\n", mac = "\r" }
  return endings[vim.bo[bufnr].fileformat]
end

---@param bufnr integer
---@param first integer
---@param last integer
---@return string
local function text_of(bufnr, first, last)
  local ending = line_ending(bufnr)
  local lines = api.nvim_buf_get_lines(bufnr, first, last, false)
  return #lines > 0 and table.concat(lines, ending) .. ending or ""
end

--- Whether the text ends with a line break, as it will on disk. Ranges of whole lines are only
--- right if it does.
---@param bufnr integer
---@return boolean
local function ends_with_break(bufnr)
  local options = vim.bo[bufnr]
  return options.endofline or (options.fixendofline and not options.binary)
end

---@param bufnr integer
---@return string
local function whole_text(bufnr)
  local text = text_of(bufnr, 0, -1)
  return ends_with_break(bufnr) and text or text:sub(1, -1 - #line_ending(bufnr))
end

--- Whether a buffer is a file's text.
---@param bufnr integer
---@return boolean
local function is_file(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) or vim.bo[bufnr].buftype ~= "" then
    return false
  end
  local name = api.nvim_buf_get_name(bufnr)
  if name == "" or name:find("^%a[%w+.-]+://") or vim.fn.isdirectory(name) == 1 then
    return false
  end
  return api.nvim_buf_get_offset(bufnr, api.nvim_buf_line_count(bufnr)) <= BYTES_MAX
end

---@param bufnr integer
---@param document reminderd.Document
local function send_open(bufnr, document)
  document.changes = {}
  document.line_count = api.nvim_buf_line_count(bufnr)
  document.version = api.nvim_buf_get_changedtick(bufnr)
  rpc.notify("textDocument/didOpen", {
    textDocument = {
      uri = document.uri,
      languageId = vim.bo[bufnr].filetype,
      version = document.version,
      text = whole_text(bufnr),
    },
  })
end

---@param document reminderd.Document
local function send_close(document)
  rpc.notify("textDocument/didClose", { textDocument = { uri = document.uri } })
end

--- Sends the changes that were not sent yet.
function M.flush()
  is_flush_due = false
  for _, document in pairs(documents) do
    local changes = document.changes
    if #changes > 0 then
      document.changes = {}
      rpc.notify("textDocument/didChange", {
        textDocument = { uri = document.uri, version = document.version },
        contentChanges = changes,
      })
    end
  end
end

---@param document reminderd.Document
---@param change table
---@param version integer
local function add_change(document, change, version)
  if not change.range then
    document.changes = {}
  end
  table.insert(document.changes, change)
  document.version = version
  if not is_flush_due then
    is_flush_due = true
    vim.defer_fn(function()
      if is_flush_due then
        M.flush()
      end
    end, FLUSH_MS)
  end
end

---@param bufnr integer
---@param version integer
---@param first integer
---@param last integer Behind the last line that was replaced.
---@param new_last integer Behind the last line that replaces them.
local function on_lines(bufnr, version, first, last, new_last)
  local document = documents[bufnr]
  local line_count = api.nvim_buf_line_count(bufnr)
  local expected = document.line_count + new_last - last
  document.line_count = line_count
  -- Not so when all lines were deleted: the empty one that stays is not announced.
  if line_count ~= expected or not ends_with_break(bufnr) then
    add_change(document, { text = whole_text(bufnr) }, version)
    return
  end
  -- Whole lines begin at character 0 in every encoding of positions.
  add_change(document, {
    range = { start = { line = first, character = 0 }, ["end"] = { line = last, character = 0 } },
    text = text_of(bufnr, first, new_last),
  }, version)
end

---@param bufnr integer
local function attach(bufnr)
  local document = { uri = vim.uri_from_bufnr(bufnr), changes = {}, line_count = 0, version = 0 }
  local function is_gone()
    return documents[bufnr] ~= document
  end
  local is_attached = api.nvim_buf_attach(bufnr, false, {
    on_lines = function(_, _, version, first, last, new_last)
      if is_gone() then
        return true
      end
      on_lines(bufnr, version, first, last, new_last)
    end,
    on_reload = function()
      if is_gone() then
        return true
      end
      document.line_count = api.nvim_buf_line_count(bufnr)
      local version = api.nvim_buf_get_changedtick(bufnr)
      add_change(document, { text = whole_text(bufnr) }, version)
    end,
    on_detach = function()
      if not is_gone() then
        documents[bufnr] = nil
        send_close(document)
      end
    end,
  })
  if is_attached then
    documents[bufnr] = document
    send_open(bufnr, document)
  end
end

--- Begins or goes on to report a buffer, under the name that it has now.
---@param bufnr integer
local function follow(bufnr)
  local document = documents[bufnr]
  if document and document.uri ~= vim.uri_from_bufnr(bufnr) then
    documents[bufnr] = nil
    send_close(document)
    document = nil
  end
  if not document and is_file(bufnr) then
    attach(bufnr)
  end
end

--- Says which files a tool of a model is writing. It may do so through their buffers; that these
--- are saved is not reported as the person's doing then.
---@param uris string[]
function M.leave_saves(uris)
  written_by_tool = {}
  for _, uri in ipairs(uris) do
    written_by_tool[uri] = true
  end
end

--- Reports the files that are open and those that will be.
function M.enable()
  local group = api.nvim_create_augroup("reminderd.documents", {})
  api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost" }, {
    group = group,
    desc = "reminderd: report the text of a file",
    callback = function(event)
      follow(event.buf)
    end,
  })
  api.nvim_create_autocmd("BufWritePost", {
    group = group,
    desc = "reminderd: report a save",
    callback = function(event)
      follow(event.buf)
      local document = documents[event.buf]
      -- What was written to another name is not this file.
      local written = document and vim.uri_from_fname(vim.fn.fnamemodify(event.match, ":p"))
      if document and written == document.uri and not written_by_tool[written] then
        M.flush()
        rpc.notify("textDocument/didSave", { textDocument = { uri = document.uri } })
      end
    end,
  })
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    follow(bufnr)
  end
end

--- Reports no files any more.
function M.disable()
  pcall(api.nvim_del_augroup_by_name, "reminderd.documents")
  for bufnr, document in pairs(documents) do
    documents[bufnr] = nil
    send_close(document)
  end
end

rpc.on_start(function()
  for bufnr, document in pairs(documents) do
    send_open(bufnr, document)
  end
end)

--- How many files are reported.
---@return integer
function M.count()
  return vim.tbl_count(documents)
end

return M
