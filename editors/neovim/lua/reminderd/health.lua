--- `:checkhealth reminderd`

local config = require("reminderd.config")
local documents = require("reminderd.documents")
local rpc = require("reminderd.rpc")

local M = {}

--- How long the check waits for the daemon's first words, in milliseconds. Only here does this
--- client wait at all, since a check that is asked for has to end with an answer.
local ANSWER_MS_MAX = 10000

--- The reporting functions, whose names changed in Neovim 0.10.
local function reporter()
  local health = vim.health or require("health")
  return {
    start = health.start or health.report_start,
    ok = health.ok or health.report_ok,
    warn = health.warn or health.report_warn,
    error = health.error or health.report_error,
  }
end

function M.check()
  local report = reporter()
  local options = config.get()
  report.start("reminderd")

  if vim.fn.has("nvim-0.7") == 1 then
    report.ok("Neovim is 0.7 or newer")
  else
    report.error("Neovim is older than 0.7")
  end

  local program = options.command[1]
  if vim.fn.executable(program) == 0 then
    report.error(("`%s` is not an executable program"):format(program), {
      "Install reminderd, or name it in the option `command`, see :help reminderd-options",
    })
    return
  end
  report.ok(("`%s` is there"):format(table.concat(options.command, " ")))

  rpc.ensure()
  vim.wait(ANSWER_MS_MAX, function()
    return rpc.status().state ~= "starting"
  end, 10)
  local status = rpc.status()
  if status.state == "ready" then
    local info = status.server.serverInfo
    report.ok(("%s %s answers"):format(info.name, info.version))
  else
    local why = status.trouble and status.trouble.message or "it does not answer"
    report.error(why, { ":Reminderd restart tries again" })
  end
  if status.trouble and status.state == "ready" then
    report.warn("There was trouble before: " .. status.trouble.message)
  end
  if #status.problems > 0 then
    report.warn("The daemon refused some of what was reported, see :Reminderd status")
  end

  if options.documents then
    report.ok(("Texts and saves of %d files are reported"):format(documents.count()))
  else
    report.warn("Texts and saves of files are not reported (option `documents`)")
  end
  if options.diagnostics then
    report.ok("Diagnostics are reported")
  else
    report.warn("Diagnostics are not reported (option `diagnostics`)")
  end
  if options.codecompanion and package.loaded["codecompanion"] then
    report.ok("Chats of CodeCompanion get reminders")
  end
end

return M
