--- The row that stands where reminders were put into a conversation, and the float that shows what
--- they said.

local api = vim.api

local M = {}

local namespace = api.nvim_create_namespace("reminderd.row")

--- The entries behind each row, by buffer and mark.
---@type table<integer, table<integer, table[]>>
local entries = {}

--- The widest that a float gets, in cells.
local WIDTH_MAX = 100

--- Shows the row of a delivery below a line.
---@param bufnr integer
---@param line integer From 0; beyond the end, the last line is meant.
---@param delivery reminderd.Delivery
function M.show(bufnr, line, delivery)
  if not delivery.row or not api.nvim_buf_is_valid(bufnr) then
    return
  end
  line = math.max(0, math.min(line, api.nvim_buf_line_count(bufnr) - 1))
  local mark = api.nvim_buf_set_extmark(bufnr, namespace, line, 0, {
    virt_lines = { { { delivery.row, "ReminderdRow" } } },
  })
  entries[bufnr] = entries[bufnr] or {}
  entries[bufnr][mark] = delivery.entries
end

--- Takes all rows of a buffer away.
---@param bufnr integer
function M.clear(bufnr)
  entries[bufnr] = nil
  if api.nvim_buf_is_valid(bufnr) then
    api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  end
end

--- What entries say, in lines of Markdown.
---@param list table[]
---@return string[]
function M.lines_of(list)
  local lines = {}
  for number, entry in ipairs(list) do
    if number > 1 then
      table.insert(lines, "")
    end
    local about = entry.key and ("%s: %s"):format(entry.type, entry.key) or entry.type
    table.insert(lines, ("# %s (%s)"):format(entry.label, about))
    vim.list_extend(lines, vim.split(entry.body, "\n", { plain = true }))
  end
  return lines
end

--- Opens a float with lines; it closes when the cursor leaves it, or with `q`.
---@param lines string[]
---@return integer window
function M.float(lines)
  local width = 1
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  local bufnr = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].bufhidden = "wipe"
  vim.bo[bufnr].filetype = "markdown"
  vim.bo[bufnr].modifiable = false
  local window = api.nvim_open_win(bufnr, true, {
    relative = "cursor",
    row = 1,
    col = 0,
    width = math.min(width, WIDTH_MAX, math.max(vim.o.columns - 4, 1)),
    height = math.min(#lines, math.max(vim.o.lines - 6, 1)),
    style = "minimal",
    border = "rounded",
  })
  vim.wo[window].wrap = true
  local function close()
    if api.nvim_win_is_valid(window) then
      api.nvim_win_close(window, true)
    end
  end
  vim.keymap.set("n", "q", close, { buffer = bufnr, desc = "Close" })
  api.nvim_create_autocmd("WinLeave", { buffer = bufnr, once = true, callback = close })
  return window
end

--- Expands the row at the cursor, or else the nearest one above it.
---@return integer? window
function M.expand()
  local bufnr = api.nvim_get_current_buf()
  local line = api.nvim_win_get_cursor(0)[1] - 1
  local marks = api.nvim_buf_get_extmarks(bufnr, namespace, { line, -1 }, 0, { limit = 1 })
  local list = marks[1] and entries[bufnr] and entries[bufnr][marks[1][1]]
  if not list then
    vim.notify("reminderd: no reminders stand at or above this line", vim.log.levels.INFO)
    return nil
  end
  return M.float(M.lines_of(list))
end

api.nvim_set_hl(0, "ReminderdRow", { default = true, link = "Comment" })
api.nvim_create_autocmd("BufWipeout", {
  group = api.nvim_create_augroup("reminderd.row", {}),
  desc = "reminderd: forget the rows of a buffer",
  callback = function(event)
    entries[event.buf] = nil
  end,
})

return M
