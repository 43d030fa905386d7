-- The connection, and everything that can be wrong with a daemon.
local t = require("helpers")
local reminderd = require("reminderd")
local rpc = require("reminderd.rpc")

local uv = vim.uv or vim.loop

--- Asks for reminders and says what came.
local function wait(options)
  local answer
  options = vim.tbl_extend("force", { session = "s" }, options or {})
  options.callback = function(delivery)
    answer = { delivery = delivery }
  end
  reminderd.wait(options)
  t.ok(not answer, "the callback came before the call returned")
  return t.eventually(function()
    return answer
  end, "the end of a WAIT")
end

--- How many tokens of a session are open.
local function open_tokens(id)
  local sessions
  rpc.request("session/list", {}, function(_, result)
    sessions = result
  end)
  t.eventually(function()
    return sessions
  end, "the list of sessions")
  for _, session in ipairs(sessions) do
    if session.session == id then
      return session.openTokens
    end
  end
end

for name, command in pairs({ shared = t.shared(), private = t.daemon("--ephemeral") }) do
  t.test("a " .. name .. " daemon answers", function()
    t.start({ command = command, deadline_ms = t.NEVER_MS })
    local delivery = wait({ session = "life-" .. name }).delivery
    t.ok(delivery, "no delivery")
    t.eq(0, #delivery.entries)
    t.eq("ready", rpc.status().state)
    t.eq({}, t.notices)
  end)
end

t.test("a program that is not there is told once, and requests go out without it", function()
  t.start({ command = { "reminderd-is-not-installed" } })
  t.eq(nil, wait().delivery)
  t.eq(nil, wait().delivery)
  t.settle()
  t.eq(1, #t.notices)
  t.has(t.notices[1], '"reminderd-is-not-installed" is not an executable program')
end)

t.test("a daemon of another version is told once, and is not started again", function()
  local refusal = { code = -32602, message = "version 1 is not spoken here" }
  t.start({ command = t.fake({ initialize = { { error = refusal } } }), deadline_ms = t.NEVER_MS })
  t.eq(nil, wait().delivery)
  -- An hour later.
  local now = uv.now
  uv.now = function()
    return now() + 3600 * 1000
  end
  local sent = t.sent("^initialize$", function()
    t.eq(nil, wait().delivery)
  end)
  uv.now = now
  t.settle()
  t.eq({}, sent)
  t.eq(1, #t.notices)
  t.has(t.notices[1], "version 1 is not spoken here")
  t.eq("refused", rpc.status().state)
end)

t.test("a language server in its place is told", function()
  local server = { initialize = { { result = { capabilities = { hoverProvider = true } } } } }
  t.start({ command = t.fake(server), deadline_ms = t.NEVER_MS })
  t.eq(nil, wait().delivery)
  t.settle()
  t.has(t.notices[1], "what answered is not reminderd")
end)

local nonsense = {
  ["floods its output"] = { "yes" },
  ["says something and waits"] = { "sh", "-c", "echo hello there; cat >/dev/null" },
  ["says what it was told"] = { "cat" },
  ["gives no length"] = { "sh", "-c", [[printf 'Content-Type: x\r\n\r\n{}'; cat >/dev/null]] },
  ["sends no JSON"] = { "sh", "-c", [[printf 'Content-Length: 2\r\n\r\n{]'; cat >/dev/null]] },
}
for what, command in pairs(nonsense) do
  t.test("a program that " .. what .. " is told once, and holds nobody up", function()
    t.start({ command = command, deadline_ms = t.NEVER_MS })
    -- The deadline is not waited for.
    t.eq(nil, wait().delivery)
    t.settle()
    t.eq(1, #t.notices)
    t.has(t.notices[1], "is of no use")
  end)
end

t.test("the last words of a daemon that ends are told", function()
  t.start({ command = { "sh", "-c", "echo no room >&2; exit 3" }, deadline_ms = t.NEVER_MS })
  t.eq(nil, wait().delivery)
  t.settle()
  t.has(t.notices[1], "it ended (status 3, signal 0): no room")
end)

t.test("messages of any size arrive, both ways", function()
  t.start({ command = t.daemon("--ephemeral"), deadline_ms = t.NEVER_MS })
  local session = reminderd.session("large")
  local body = ("ünïcode 🎉\n"):rep(100000)
  session:event("reminder/enqueue", { body = body })
  t.has(wait({ session = session }).delivery.content, vim.trim(body))
end)

t.test("an answer that came in time counts, though the editor stood still", function()
  local copy = vim.fn.tempname()
  local script = ('"$0" "$@" | tee %s'):format(copy)
  local command = vim.list_extend({ "sh", "-c", script }, t.daemon("--ephemeral"))
  t.start({ command = command, deadline_ms = 100 })
  local answer
  reminderd.wait({
    session = "still",
    callback = function(delivery)
      answer = { delivery = delivery }
    end,
  })
  -- Nothing is read and no time passes for the editor until the answer was written.
  while not (t.read(copy) or ""):find('"token"', 1, true) do
    uv.sleep(5)
  end
  uv.sleep(100)
  t.eventually(function()
    return answer
  end)
  t.ok(answer.delivery, "it was too late")
end)

t.test("an answer that is no delivery is none", function()
  local rules = { ["reminder/wait"] = { { result = 7 } } }
  rules.initialize = {
    { result = { capabilities = { experimental = { reminderd = { protocolVersion = 1 } } } } },
  }
  t.start({ command = t.fake(rules), deadline_ms = t.NEVER_MS })
  t.eq(nil, wait().delivery)
end)

--- The answer to `initialize` of a daemon that is one.
local initialized = {
  {
    result = {
      serverInfo = { name = "reminderd", version = "0" },
      capabilities = { experimental = { reminderd = { protocolVersion = 1 } } },
    },
  },
}

t.test("a daemon that crashes is told once, and requests go out without it", function()
  local rules = { initialize = initialized, ["reminder/wait"] = { { exit = 3 } } }
  t.start({ command = t.fake(rules), deadline_ms = t.NEVER_MS })
  -- The deadline is not waited for.
  t.eq(nil, wait().delivery)
  t.eq(nil, wait().delivery)
  t.settle()
  t.eq(1, #t.notices)
  t.has(t.notices[1], "it ended (status 3")
end)

t.test("a daemon that was killed is started again, and knows the session and its turn", function()
  local pid_file = vim.fn.tempname()
  local script = ('echo $$ > %s; exec "$0" "$@"'):format(pid_file)
  local state = t.directory()
  local command = vim.list_extend({ "sh", "-c", script }, t.daemon("--state", state))
  t.start({ command = command, deadline_ms = t.NEVER_MS })
  local session = reminderd.session("killed")
  local delivery = wait({ session = session }).delivery
  t.ok(delivery, "no delivery")
  uv.kill(tonumber(t.read(pid_file)), "sigkill")
  t.eventually(function()
    return rpc.status().state == "off"
  end, "the end of the daemon to be noticed")
  -- It is left alone for a moment, then started again.
  t.eventually(rpc.ensure, "another daemon")
  local answer
  rpc.request("reminder/explain", { session = "killed" }, function(err, result)
    answer = { err = err, result = result }
  end)
  t.eventually(function()
    return answer
  end, "an explanation")
  t.eq(nil, answer.err)
  local again = t.eventually(function()
    return wait({ session = session }).delivery
  end, "a delivery of the new daemon")
  again:commit()
  t.eq(1, #t.notices)
end)

t.test("a daemon that hangs holds nobody up", function()
  local rules = { initialize = initialized, ["reminder/wait"] = { { hang = true } } }
  t.start({ command = t.fake(rules), deadline_ms = 100 })
  local order = {}
  reminderd.wait({
    session = "s",
    callback = function(delivery)
      t.eq(nil, delivery)
      table.insert(order, "the request goes out")
    end,
  })
  vim.schedule(function()
    table.insert(order, "the editor goes on")
  end)
  t.eventually(function()
    return #order == 2
  end, "the end of a WAIT")
  t.eq({ "the editor goes on", "the request goes out" }, order)
  t.eq(nil, wait().delivery)
  t.settle()
  t.eq(1, #t.notices)
  t.has(t.notices[1], "no answer within 100 ms")
end)

t.test("a daemon that has not answered for long is given up", function()
  -- It is the one of the test before, with a request that it never answered.
  local now = uv.now
  uv.now = function()
    return now() + 3600 * 1000
  end
  local sent = t.sent("^initialize$", function()
    rpc.notify("session/list", {})
  end)
  uv.now = now
  t.eq("off", rpc.status().state)
  t.eq({}, sent)
  t.has(rpc.status().trouble.message, "does not answer")
end)

t.test("the deadline is 500 ms unless set", function()
  t.start({ command = t.shared() })
  t.eq(500, require("reminderd.config").get().deadline_ms)
end)

t.test("an answer that comes too late is released", function()
  local pid_file = vim.fn.tempname()
  local script = ('echo $$ > %s; exec "$0" "$@"'):format(pid_file)
  local command = vim.list_extend({ "sh", "-c", script }, t.daemon("--ephemeral"))
  t.start({ command = command, deadline_ms = 200 })
  local session = reminderd.session("late")
  session:begin_turn()
  session:event("reminder/enqueue", { body = "The build is green again." })
  local open
  session:request("session/state", {}, function(_, result)
    open = result
  end)
  t.eventually(function()
    return open
  end)
  local pid = tonumber(t.read(pid_file))
  uv.kill(pid, "sigstop")
  t.eq(nil, wait({ session = session }).delivery)
  uv.kill(pid, "sigcont")
  t.eventually(function()
    return open_tokens("late") == 0
  end, "the late token to be released")
  -- What it offered was not lost.
  local again = wait({ session = session, deadline_ms = t.NEVER_MS }).delivery
  t.has(again.content, "The build is green again.")
  -- An hour later, it is not given up for having been slow once.
  local now = uv.now
  uv.now = function()
    return now() + 3600 * 1000
  end
  rpc.notify("$/setTrace", { value = "off" })
  uv.now = now
  t.eq("ready", rpc.status().state)
end)

t.test("a WAIT that is cancelled is never answered, and leaves no token", function()
  t.start({ command = t.daemon("--ephemeral"), deadline_ms = t.NEVER_MS })
  local session = reminderd.session("cancelled")
  local was_called = false
  local request = reminderd.wait({
    session = session,
    callback = function()
      was_called = true
    end,
  })
  request.cancel()
  t.eventually(function()
    return open_tokens("cancelled") == 0
  end, "the token to be released")
  t.ok(not was_called, "it was answered")
end)

t.test("a notification that the daemon refuses is kept for the person to see", function()
  t.start({ command = t.daemon("--ephemeral") })
  local session = reminderd.session("problems")
  session:event("reminder/observe", { key = "k", type = "t", body = "b" })
  local problem = t.eventually(function()
    return rpc.status().problems[1]
  end, "a problem")
  t.eq("reminder/observe", problem.method)
  t.eq(-33004, problem.code)
  t.eq({}, t.notices)
end)

t.test("options are checked by name and type", function()
  for _, options in ipairs({ { deadline = 3 }, { deadline_ms = "3" }, { command = {} } }) do
    local ok, err = pcall(reminderd.setup, options)
    t.ok(not ok, "taken: " .. vim.inspect(options))
    t.has(err, "reminderd: ")
  end
end)

t.run()
