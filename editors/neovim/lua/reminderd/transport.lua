--- A program that speaks JSON-RPC over its stdin and stdout, in the framing of language servers.
---
--- `vim.lsp.rpc` is not used: a program that is no daemon and floods its stdout would fill the
--- memory and stop the editor there, since it waits without bounds for a header that never comes.

local uv = vim.uv or vim.loop

local M = {}

--- The longest headers and the longest message that are read, in bytes.
local HEADER_BYTES_MAX = 8 * 1024
local MESSAGE_BYTES_MAX = 64 * 1024 * 1024
--- How much may wait to be written to a program that does not read, in bytes.
local UNREAD_BYTES_MAX = 64 * 1024 * 1024
--- How much of what it wrote to stderr last is kept, in bytes.
local STDERR_BYTES_MAX = 500

---@class reminderd.Peer
---@field private handle userdata The process.
---@field private stdin userdata
---@field private stdout userdata
---@field private stderr userdata
---@field private on_end fun(reason: string)
---@field private is_ended boolean
local Peer = {}
Peer.__index = Peer

---@param handle userdata?
local function close(handle)
  if handle and not handle:is_closing() then
    handle:close()
  end
end

--- Lets go of the process and says why, once, from the main loop.
---@private
---@param reason string
function Peer:finish(reason)
  if self.is_ended then
    return
  end
  self.is_ended = true
  if self.handle and not self.handle:is_closing() then
    self.handle:kill("sigterm")
  end
  close(self.stdin)
  close(self.stdout)
  close(self.stderr)
  vim.schedule(function()
    self.on_end(reason)
  end)
end

--- Ends a program that says something else than messages.
---@private
---@param text string
function Peer:refuse(text)
  local line = text:match("[^\r\n]*"):sub(1, 60):gsub("%c", " ")
  self:finish(('it does not speak JSON-RPC but says "%s"'):format(line))
end

--- The length of a message, once its headers are whole.
---@private
---@param text string
---@return integer? length
---@return integer? last The last byte of the headers.
function Peer:read_headers(text)
  local _, last = text:find("\r\n\r\n", 1, true)
  local headers = text:sub(1, last):lower()
  if not last and #text <= HEADER_BYTES_MAX and vim.startswith(headers, "content-") then
    return nil, nil
  end
  local length = last and tonumber(headers:match("content%-length: *(%d+)"))
  if not length or length > MESSAGE_BYTES_MAX then
    self:refuse(text)
    return nil, nil
  end
  return length, last
end

--- Reads, and gives each message to the main loop in order.
---@private
---@param on_message fun(message: table)
function Peer:read(on_message)
  local headers = ""
  -- The pieces of a message whose end has not come yet.
  local pieces, size, length = {}, 0, nil

  local function take(text)
    local ok, message = pcall(vim.json.decode, text, { luanil = { object = true } })
    if not ok or type(message) ~= "table" then
      self:refuse(text)
      return
    end
    vim.schedule(function()
      on_message(message)
    end)
  end

  self.stdout:read_start(function(_, data)
    data = data or ""
    while data ~= "" and not self.is_ended do
      if length then
        local piece = data:sub(1, length - size)
        data = data:sub(#piece + 1)
        table.insert(pieces, piece)
        size = size + #piece
      else
        headers = headers .. data
        local last
        length, last = self:read_headers(headers)
        data = last and headers:sub(last + 1) or ""
        headers = last and "" or headers
      end
      if length and size == length then
        local text = table.concat(pieces)
        pieces, size, length = {}, 0, nil
        take(text)
      end
    end
  end)
end

--- Sends a message. Says whether there was somebody to send it to.
---@param message table
---@return boolean
function Peer:send(message)
  if self.is_ended then
    return false
  end
  if self.stdin:get_write_queue_size() > UNREAD_BYTES_MAX then
    self:finish("it does not read")
    return false
  end
  message.jsonrpc = "2.0"
  local text = vim.json.encode(message)
  self.stdin:write(("Content-Length: %d\r\n\r\n%s"):format(#text, text))
  return true
end

--- Says that nothing more will be sent, once everything was.
function Peer:close()
  if not self.is_ended then
    self.stdin:shutdown()
  end
end

--- Ends the process, whatever it does.
function Peer:kill()
  self:finish("it was ended")
end

--- Starts a program. `on_message` and `on_end` are called from the main loop.
---@param command string[]
---@param on_message fun(message: table)
---@param on_end fun(reason: string) The program is gone, or is of no use; called once.
---@return reminderd.Peer?
---@return string? why_not
function M.start(command, on_message, on_end)
  local self = setmetatable({ on_end = on_end, is_ended = false }, Peer)
  self.stdin, self.stdout, self.stderr = uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false)
  local last_words = ""
  local handle, why_not
  handle, why_not = uv.spawn(command[1], {
    args = vim.list_slice(command, 2),
    stdio = { self.stdin, self.stdout, self.stderr },
    hide = true,
  }, function(code, signal)
    close(handle)
    local line = vim.trim(last_words):match("[^\n]*$")
    local said = line ~= "" and ": " .. line or ""
    self:finish(("it ended (status %d, signal %d)%s"):format(code, signal, said))
  end)
  if not handle then
    close(self.stdin)
    close(self.stdout)
    close(self.stderr)
    return nil, why_not
  end
  self.handle = handle
  self:read(on_message)
  self.stderr:read_start(function(_, chunk)
    if chunk then
      last_words = (last_words .. chunk):sub(-STDERR_BYTES_MAX)
    end
  end)
  return self
end

return M
