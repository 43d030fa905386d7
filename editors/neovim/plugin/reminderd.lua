-- The command, with all else loaded when it is used.

if vim.g.loaded_reminderd then
  return
end
vim.g.loaded_reminderd = true

vim.api.nvim_create_user_command("Reminderd", function(options)
  require("reminderd.view").run(options.fargs)
end, {
  nargs = "*",
  desc = "Reminders: explain, log, status, expand, restart",
  complete = function(lead, line)
    local is_first = not line:find("^%s*%S+%s+%S+%s")
    return is_first and require("reminderd.view").complete(lead) or {}
  end,
})
