-- The manual: its tags, its links, and that it leaves nothing out.
local t = require("helpers")

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h")
local manual = t.read(here .. "/doc/reminderd.txt")

t.test("helptags are made without complaint", function()
  local copy = t.directory()
  t.write(copy .. "/reminderd.txt", manual)
  vim.cmd("helptags " .. copy)
  t.ok(t.read(copy .. "/tags"), "no tags")
end)

t.test("links within the manual lead somewhere", function()
  for link in manual:gmatch("|([^|%s]+)|") do
    if link:find("eminderd") then
      t.has(manual, "*" .. link .. "*")
    end
  end
end)

t.test("lines fit", function()
  for line in manual:gmatch("[^\n]+") do
    t.ok(vim.fn.strdisplaywidth(line) <= 78, "too long: " .. line)
  end
end)

t.test("every option, command and function is described", function()
  for name, value in pairs(require("reminderd.config").get()) do
    t.has(manual, ("`%s`"):format(name))
    if type(value) ~= "table" then
      t.has(manual, ("Default: `%s`"):format(tostring(value)))
    end
  end
  for _, command in ipairs(require("reminderd.view").complete("")) do
    t.has(manual, ":Reminderd " .. command)
  end
  for name in pairs(require("reminderd")) do
    t.has(manual, ("*reminderd.%s()*"):format(name))
  end
end)

t.run()
