--- What the editor's checkers say: each namespace of `vim.diagnostic` is a checker of its own.

local documents = require("reminderd.documents")
local rpc = require("reminderd.rpc")

local api = vim.api

local M = {}

--- What was published last, by buffer and namespace.
---@type table<integer, table<integer, table[]>>
local published = {}
--- The namespaces that reported in this very moment, by buffer. `DiagnosticChanged` does not say
--- which one it is about, and a checker that finds the same again has checked all the same.
---@type table<integer, table<integer, boolean>>
local reporting = {}

--- The column of a byte, in UTF-16 code units.
---@param line string
---@param byte integer
---@return integer
local function utf16_column(line, byte)
  byte = math.min(math.max(byte, 0), #line)
  if vim.fn.has("nvim-0.11") == 1 then
    return vim.str_utfindex(line, "utf-16", byte, false)
  end
  local _, column = vim.str_utfindex(line, byte)
  return column
end

---@param bufnr integer
---@param line integer
---@param byte integer
---@return table position
local function position(bufnr, line, byte)
  local text = api.nvim_buf_get_lines(bufnr, line, line + 1, false)[1]
  return { line = line, character = text and utf16_column(text, byte) or byte }
end

--- A diagnostic of the editor as one of the Language Server Protocol.
---@param bufnr integer
---@param diagnostic table
---@return table
local function to_lsp(bufnr, diagnostic)
  local last_line = diagnostic.end_lnum or diagnostic.lnum
  local last_byte = diagnostic.end_col or diagnostic.col
  local lsp = vim.tbl_get(diagnostic, "user_data", "lsp") or {}
  return {
    range = {
      start = position(bufnr, diagnostic.lnum, diagnostic.col),
      ["end"] = position(bufnr, last_line, last_byte),
    },
    severity = diagnostic.severity,
    code = diagnostic.code or lsp.code,
    source = diagnostic.source,
    message = diagnostic.message,
  }
end

--- How a namespace stands with a file of which it reports nothing. A language server that is gone
--- has not found the file to be clean.
---@param bufnr integer
---@param name string
---@return "done"|"failed"|"none"
local function state_of_silence(bufnr, name)
  local id = tonumber(name:match("^vim%.lsp%..-%.(%d+)"))
  if not id then
    return "done"
  end
  local client = vim.lsp.get_client_by_id(id)
  if not client or client.is_stopped(client) then
    return "failed"
  end
  local is_detached = api.nvim_buf_is_loaded(bufnr) and not vim.lsp.buf_is_attached(bufnr, id)
  return is_detached and "none" or "done"
end

---@param bufnr integer
---@param namespace integer
---@param name string
local function publish(bufnr, namespace, name)
  local function convert(diagnostic)
    return to_lsp(bufnr, diagnostic)
  end
  local list = vim.tbl_map(convert, vim.diagnostic.get(bufnr, { namespace = namespace }))
  local is_reporting = reporting[bufnr] and reporting[bufnr][namespace]
  published[bufnr] = published[bufnr] or {}
  if not is_reporting and vim.deep_equal(list, published[bufnr][namespace] or {}) then
    return
  end
  published[bufnr][namespace] = list
  local state = #list > 0 and "done" or state_of_silence(bufnr, name)
  documents.flush()
  rpc.notify("diagnostic/publish", {
    uri = vim.uri_from_bufnr(bufnr),
    checker = name:gsub("^vim%.lsp%.", ""),
    state = state,
    diagnostics = state == "done" and list or nil,
  })
end

---@param bufnr integer
local function publish_all(bufnr)
  if not api.nvim_buf_is_valid(bufnr) or api.nvim_buf_get_name(bufnr) == "" then
    return
  end
  if not vim.uri_from_bufnr(bufnr):find("^file:") then
    return
  end
  for namespace, about in pairs(vim.diagnostic.get_namespaces()) do
    publish(bufnr, namespace, about.name)
  end
  reporting[bufnr] = nil
end

local function publish_open()
  published = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    publish_all(bufnr)
  end
end

--- Reports the diagnostics that are there and those that come.
function M.enable()
  -- Is called with the namespace whenever one reports, just before `DiagnosticChanged`; and at
  -- other times, which is why what it notes does not outlive the moment.
  vim.diagnostic.handlers.reminderd = {
    hide = function(namespace, bufnr)
      reporting[bufnr] = reporting[bufnr] or {}
      reporting[bufnr][namespace] = true
      vim.schedule(function()
        reporting[bufnr] = nil
      end)
    end,
  }
  local group = api.nvim_create_augroup("reminderd.diagnostics", {})
  api.nvim_create_autocmd("DiagnosticChanged", {
    group = group,
    desc = "reminderd: report diagnostics",
    callback = function(event)
      publish_all(event.buf)
    end,
  })
  api.nvim_create_autocmd("BufWipeout", {
    group = group,
    desc = "reminderd: forget what was reported of a buffer",
    callback = function(event)
      published[event.buf] = nil
    end,
  })
  publish_open()
end

--- Reports no diagnostics any more.
function M.disable()
  vim.diagnostic.handlers.reminderd = nil
  pcall(api.nvim_del_augroup_by_name, "reminderd.diagnostics")
end

rpc.on_start(function()
  if vim.diagnostic.handlers.reminderd then
    publish_open()
  end
end)

return M
