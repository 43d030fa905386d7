--- The client of reminderd for Neovim, and the seam for plugins that call models: |reminderd-seam|.

local M = {}

--- Begins to report what happens in the editor.
---@param options? table See |reminderd-options|.
function M.setup(options)
  require("reminderd.config").set(options)
  local config = require("reminderd.config").get()
  local parts = { "documents", "diagnostics", "codecompanion" }
  for _, name in ipairs(parts) do
    local part = require("reminderd." .. name)
    if config[name] then
      part.enable()
    else
      part.disable()
    end
  end
  vim.api.nvim_create_autocmd("VimLeavePre", {
    group = vim.api.nvim_create_augroup("reminderd", {}),
    desc = "reminderd: end the connection",
    callback = function()
      require("reminderd.rpc").stop()
    end,
  })
end

--- The session of a conversation, made if it is not there.
---@param id string The conversation's own name, which stays the same when it is loaded again.
---@param options? reminderd.SessionOptions
---@return reminderd.Session
function M.session(id, options)
  return require("reminderd.session").get(id, options)
end

---@class reminderd.SeamOptions: reminderd.WaitOptions
---@field session string|reminderd.Session
---@field callback fun(delivery: reminderd.Delivery?)

--- Asks what the model should be told, before a request: |reminderd-seam|. Never blocks; the
--- callback gets `nil` when there is nothing to be had in time.
---@param options reminderd.SeamOptions
---@return reminderd.Request request Has `cancel`, after which the callback is not called.
function M.wait(options)
  local session = options.session
  if type(session) == "string" then
    session = M.session(session)
  end
  local wait = {}
  for _, name in ipairs({ "agent", "seam", "records", "limit", "deadline_ms" }) do
    wait[name] = options[name]
  end
  return session:wait(wait, options.callback)
end

--- Computes the bodies of a reminder that was registered with `client = true`. The function must be
--- quick: what takes more than 250 ms is left out.
---@param id string The reminder's id.
---@param body fun(params: table): string? What it says now, `nil` for nothing.
function M.generator(id, body)
  require("reminderd.generators").set(id, body)
end

return M
