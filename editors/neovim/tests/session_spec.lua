-- Sessions, turns, deliveries: the seam that other plugins use.
local t = require("helpers")
local reminderd = require("reminderd")

local command = t.daemon("--ephemeral")

local function wait(session, options)
  local answer
  options = vim.tbl_extend("force", { session = session, deadline_ms = t.NEVER_MS }, options or {})
  options.callback = function(delivery)
    answer = { delivery = delivery }
  end
  reminderd.wait(options)
  return t.eventually(function()
    return answer
  end, "the end of a WAIT").delivery
end

local function ask(session, method, params)
  local answer
  session:request(method, params, function(err, result)
    answer = { err = err, result = result }
  end)
  t.eventually(function()
    return answer
  end, "the answer to " .. method)
  return answer.result, answer.err
end

local function commit(delivery)
  local answer
  delivery:commit(function(err, record)
    answer = { err = err, record = record }
  end)
  t.eventually(function()
    return answer
  end, "the answer to a commit")
  t.eq(nil, answer.err)
  return answer.record
end

t.test("what is told is told once; what was released is offered again", function()
  t.start({ command = command })
  local session = reminderd.session("told")
  session:begin_turn()
  session:event("reminder/enqueue", { body = "The build is green again." })
  local first = wait(session)
  t.eq("turn-start", first.phase)
  t.eq("◇ 1 system reminder (pending events)", first.row:gsub("%(.*%)", "(pending events)"))
  t.has(first.content, "<system-reminder>\nThe build is green again.\n</system-reminder>")
  first:release("the request was cancelled")
  local second = wait(session)
  t.eq(first.content, second.content)
  local record = commit(second)
  t.eq(second.record.id, record.id)
  local third = wait(session)
  t.eq(nil, third.content)
  t.eq("mid-turn", third.phase)
end)

t.test("a delivery is settled once", function()
  local session = reminderd.session("settled")
  session:event("reminder/enqueue", { body = "once" })
  local delivery = wait(session)
  commit(delivery)
  local sent = t.sent("^reminder/", function()
    delivery:release("too late for that")
    delivery:commit()
  end)
  t.eq({}, sent)
end)

t.test("a commit that the disk did not take is sent again", function()
  local rules = {
    initialize = {
      {
        result = {
          serverInfo = { name = "reminderd", version = "0" },
          capabilities = { experimental = { reminderd = { protocolVersion = 1 } } },
        },
      },
    },
    ["reminder/wait"] = { { result = { token = "t", phase = "turn-start" } } },
    ["reminder/commit"] = {
      { error = { code = -33010, message = "no space left" } },
      { result = { record = { id = "r" }, already = false } },
    },
  }
  t.start({ command = t.fake(rules) })
  t.eq({ id = "r" }, commit(wait(reminderd.session("disk"))))
  t.start({ command = command })
end)

t.test("records that are handed back are taken", function()
  local session = reminderd.session("records")
  session:event("reminder/enqueue", { body = 'Ünïcode 🎉 and "quotes"' })
  local record = commit(wait(session))
  session:close({ forget = true })
  local text = vim.json.encode({ record })
  t.eventually(function()
    local answer
    require("reminderd.rpc").request("session/open", {
      session = "records",
      records = vim.json.decode(text, { luanil = { object = true } }),
    }, function(_, result)
      answer = result
    end)
    t.eventually(function()
      return answer
    end)
    t.eq({ record.id }, answer.records.accepted)
    t.eq({}, answer.records.rejected)
    return true
  end)
end)

t.test("the ids of records that are in the payload say what history holds", function()
  local session = reminderd.session("history")
  session:event("section/set", { section = "guidance", content = "Use tabs." })
  local record = commit(wait(session))
  t.eq(nil, wait(session, { records = { record.id } }).content)
  t.has(wait(session, { records = {} }).content, "Use tabs.")
end)

t.test("turns end with their outcome, and a WAIT begins one where none is open", function()
  local session = reminderd.session("turns")
  local turn = session:begin_turn({ prompt = "Fix the parser." })
  t.eq(turn, ask(session, "session/state").turn.id)
  session:end_turn("completed")
  local state = ask(session, "session/state")
  t.ok(state.turn == nil, "the turn is still open")
  wait(session):release()
  t.ok(ask(session, "session/state").turn, "no turn was begun")
end)

t.test("a session that another daemon holds is told once, and opened when it is free", function()
  local private = t.daemon("--state", t.directory())
  local holder = t.agent(private)
  holder.request("session/open", { session = "held" })
  t.start({ command = private })
  local session = reminderd.session("held")
  t.eq(nil, wait(session))
  t.eq(nil, wait(session))
  t.eq(1, #t.notices)
  t.has(t.notices[1], "session held is not opened")
  holder.close()
  t.eventually(function()
    return wait(session)
  end, "the session to be free")
  t.start({ command = command })
end)

t.test("an agent has turns of its own", function()
  local session = reminderd.session("agents")
  session:begin_turn()
  session:event("agent/spawn", { agent = "/reviewer" })
  local delivery = wait(session, { agent = "/reviewer" })
  t.eq("turn-start", delivery.phase)
  commit(delivery)
  session:end_turn("completed", "/reviewer")
  t.eq("turn-start", wait(session).phase)
end)

t.test("a limit is kept", function()
  local session = reminderd.session("limit")
  session:event("reminder/enqueue", { body = ("long "):rep(100) })
  local delivery = wait(session, { limit = { bytes = 50 } })
  t.eq(nil, delivery.content)
  t.eq("pending-events", delivery.held[1].type)
end)

t.test("reminders whose bodies are computed here speak", function()
  local session = reminderd.session("computed")
  local branch = "main"
  reminderd.generator("branch", function()
    return branch and "The branch is " .. branch .. "."
  end)
  session:event("roster/register", { reminder = { id = "branch", client = true } })
  local delivery = wait(session)
  t.has(delivery.content, "The branch is main.")
  commit(delivery)
  branch = nil
  t.eq(nil, wait(session).content)
end)

t.test("reminders and switches can be given when a session is opened", function()
  local session = reminderd.session("options", {
    reminders = { { id = "tabs", body = "Use tabs." } },
    kinds = { ["pending-events"] = false },
  })
  session:event("reminder/enqueue", { body = "never said" })
  local delivery = wait(session)
  t.has(delivery.content, "Use tabs.")
  t.has_not(delivery.content, "never said")
end)

t.test("a whole configuration reaches the daemon", function()
  local settings = { kinds = { ["pending-events"] = false } }
  local sent = t.sent("^initialize$", function()
    t.start({ command = command, settings = settings, trusted = true })
  end)
  local options = sent[#sent].params.initializationOptions
  t.eq(settings, options.config)
  t.eq(true, options.trusted)
  t.ok(wait(reminderd.session("configured")), "no delivery")
  t.eq({}, t.notices)
end)

t.run()
