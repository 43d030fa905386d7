--- Reminders whose bodies are computed here, asked for by the daemon at a WAIT.

local rpc = require("reminderd.rpc")

local M = {}

---@type table<string, fun(params: table): string?>
local bodies = {}

---@param id string
---@param body fun(params: table): string?
function M.set(id, body)
  bodies[id] = body
end

rpc.handle("reminder/compute", function(params)
  local body = bodies[params.generator]
  return { body = body and body(params) or vim.NIL }
end)

return M
