-- The editor under test: this plugin, and nothing of the person's own.
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
vim.opt.runtimepath:prepend({ vim.fn.fnamemodify(here, ":h"), here .. "/stand_in" })
package.path = here .. "/?.lua;" .. package.path
vim.o.swapfile = false
vim.o.shadafile = "NONE"
vim.cmd("runtime plugin/reminderd.lua")
