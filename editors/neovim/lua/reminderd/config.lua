--- What can be set, with its defaults.

local M = {}

---@class reminderd.Config
---@field command string[] How the daemon is started. `{ "reminderd", "connect" }` shares one daemon
---  with all clients, `{ "reminderd" }` has one of its own.
---@field deadline_ms integer How many milliseconds a request waits for its reminders at most.
---@field trusted boolean Whether workspaces' own `reminderd.toml` is trusted.
---@field settings? table A whole configuration file, as a table.
---@field documents boolean Whether texts and saves of files are reported.
---@field diagnostics boolean Whether diagnostics are reported.
---@field codecompanion boolean Whether chats of CodeCompanion get reminders.
---@field row boolean Whether a row is shown where reminders were put in.
local defaults = {
  command = { "reminderd", "connect" },
  deadline_ms = 500,
  trusted = false,
  settings = nil,
  documents = true,
  diagnostics = true,
  codecompanion = true,
  row = true,
}

local types = {
  command = "table",
  deadline_ms = "number",
  trusted = "boolean",
  settings = "table",
  documents = "boolean",
  diagnostics = "boolean",
  codecompanion = "boolean",
  row = "boolean",
}

---@type reminderd.Config
local current = vim.deepcopy(defaults)

--- Checks options and puts them in force; what is left out has its default.
---@param options? table
function M.set(options)
  options = options or {}
  for name, value in pairs(options) do
    if not types[name] then
      error(("reminderd: there is no option %q, see :help reminderd-options"):format(name), 0)
    end
    if type(value) ~= types[name] then
      local message = "reminderd: option %q is a %s, not a %s"
      error(message:format(name, types[name], type(value)), 0)
    end
  end
  if options.command and type(options.command[1]) ~= "string" then
    error('reminderd: option "command" is a list whose first member is a program', 0)
  end
  current = vim.tbl_extend("force", vim.deepcopy(defaults), options)
end

---@return reminderd.Config
function M.get()
  return current
end

return M
