-- Going to what costs: lists of hotspots, the next and the previous one, callers and callees.

local M = {}

local LIMIT = 200

local function say(message)
  vim.notify("Heatline: " .. message, vim.log.levels.INFO)
end

--- Asks the server; `done` gets the answer if there is one.
local function ask(client, method, parameters, done)
  if not client then
    say("the server is not running")
    return
  end
  client:request(method, parameters, function(err, answer)
    if err then
      vim.notify("Heatline: " .. err.message, vim.log.levels.ERROR)
    else
      done(answer)
    end
  end)
end

local function go_to(client, location)
  vim.lsp.util.show_document(location, client.offset_encoding, { focus = true })
end

local function has(value)
  return value ~= nil and value ~= vim.NIL
end

--- A place in the list: its cost in words, its name, where it is.
local function describe(row)
  local where = row.module
  if has(row.location) then
    where = vim.fs.basename(vim.uri_to_fname(row.location.uri)) .. ":" .. row.location.range.start.line + 1
  end
  return table.concat({ row.text or "", row.name, where }, "  ")
end

local function ask_hotspots(client, by, done)
  ask(client, "heatline/hotspots", { by = by, order = "exclusive", limit = LIMIT }, function(answer)
    if answer and #answer.rows > 0 then
      done(answer.rows)
    else
      say("nothing costs anything here")
    end
  end)
end

--- Lets you choose a line or a function and goes there.
function M.select(client, by)
  ask_hotspots(client, by, function(rows)
    vim.ui.select(rows, { prompt = "Hotspots", format_item = describe }, function(row)
      if row and has(row.location) then
        go_to(client, row.location)
      end
    end)
  end)
end

--- Puts the hottest lines into the quickfix list, hottest first.
function M.quickfix(client)
  ask_hotspots(client, "line", function(rows)
    local located = vim.tbl_filter(function(row)
      return has(row.location)
    end, rows)
    local locations = vim.tbl_map(function(row)
      return row.location
    end, located)
    -- Locations are turned into items one by one, since a list of them would come back sorted by file.
    local items = {}
    for i, location in ipairs(locations) do
      items[i] = vim.lsp.util.locations_to_items({ location }, client.offset_encoding)[1]
      items[i].text = describe(located[i])
    end
    vim.fn.setqflist({}, " ", { title = "Hotspots", items = items })
    vim.cmd("botright copen")
  end)
end

--- Goes to the hottest line whose source is here.
function M.hottest(client)
  ask_hotspots(client, "line", function(rows)
    for _, row in ipairs(rows) do
      if has(row.location) then
        go_to(client, row.location)
        return
      end
    end
    say("no line whose source is here costs anything")
  end)
end

local function here(client)
  return vim.lsp.util.make_position_params(0, client and client.offset_encoding or "utf-16")
end

--- Goes to the next colder ("next") or the next hotter ("previous") line.
function M.adjacent(client, direction)
  local parameters = vim.tbl_extend("error", here(client), { direction = direction, order = "rank" })
  ask(client, "heatline/adjacentHotspot", parameters, function(answer)
    if has(answer) then
      go_to(client, answer.location)
      say(("hotspot %d of %d"):format(answer.rank, answer.of))
    else
      say("no line whose source is here costs anything")
    end
  end)
end

--- Lists callers and callees, as a lens asks for them, and goes to the chosen one.
function M.calls(client, arguments)
  ask(client, "workspace/executeCommand", { command = "heatline.server.calls", arguments = arguments }, function(answer)
    local rows = {}
    for _, kind in ipairs({ "callers", "callees" }) do
      for _, call in ipairs(answer and answer[kind] or {}) do
        rows[#rows + 1] = { kind = kind, call = call }
      end
    end
    if #rows == 0 then
      say("neither callers nor callees are known")
      return
    end
    local function format(row)
      return (row.kind == "callers" and "← " or "→ ") .. describe(row.call)
    end
    vim.ui.select(rows, { prompt = "Callers and callees", format_item = format }, function(row)
      if row and has(row.call.location) then
        go_to(client, row.call.location)
      end
    end)
  end)
end

--- Callers and callees of the line of the cursor.
function M.calls_here(client)
  local place = here(client)
  M.calls(client, { place.textDocument.uri, place.position })
end

return M
