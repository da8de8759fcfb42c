-- Run by ./run inside Neovim: what the plugin shows must be what `heatline report` says of the same profile.

vim.opt.runtimepath:append(vim.env.PLUGIN)
vim.cmd.runtime("plugin/heatline.lua")
vim.o.hidden = true

local heatline = vim.env.HEATLINE
local project = vim.uv.cwd()
local PATIENCE = 20000

--- What the next `vim.ui.select` was shown, and what it chooses.
local shown, choice = nil, nil
vim.ui.select = function(items, options, done)
  local format = options.format_item or tostring
  shown = vim.tbl_map(format, items)
  done(choice and items[choice])
end

local messages = {}
vim.notify = function(message)
  messages[#messages + 1] = message
end

local function report(...)
  local command = { heatline, "report", project .. "/perf.data", "--format", "json", ... }
  return vim.json.decode(vim.system(command, { text = true }):wait().stdout)
end

local function eventually(what, condition)
  local met = vim.wait(PATIENCE, function()
    return condition() and true or false
  end, 20)
  assert(met, what .. "; said: " .. table.concat(messages, " | "))
end

--- A share as it is shown everywhere: two significant digits; from 10 on, one decimal.
local function percent(value)
  local short = tonumber(("%.1e"):format(value))
  local digits = short >= 10 and 1 or math.max(0, 1 - math.floor(math.log10(short)))
  return ("%." .. digits .. "f %%"):format(value)
end

local function basename(row)
  return row.file and vim.fs.basename(row.file)
end

local by_line = report("--by", "line").rows
local hotspots = vim.tbl_filter(function(row)
  return row.line and row.file and vim.startswith(row.file, "/quickstart/") and row.exclusive.percent >= 0.5
end, by_line)
assert(#hotspots >= 5, "the example has hot lines")

local function at(row)
  return vim.fs.basename(vim.api.nvim_buf_get_name(0)) == basename(row) and vim.api.nvim_win_get_cursor(0)[1] == row.line
end

local function heatline_command(text)
  shown = nil
  vim.cmd("Heatline " .. text)
end

local function hints()
  local found = {}
  for _, hint in ipairs(vim.lsp.inlay_hint.get({ bufnr = 0 })) do
    local label = hint.inlay_hint.label
    found[hint.inlay_hint.position.line + 1] = type(label) == "string" and label or label[1].value
  end
  return found
end

local function signs()
  local found = {}
  local namespace = vim.api.nvim_get_namespaces()["heatline.heat"]
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
    found[mark[2] + 1] = mark[4].sign_hl_group
  end
  return found
end

local tests = {}

local function test(name, body)
  tests[#tests + 1] = { name = name, body = body }
end

test("hints stand where the report says, in its words", function()
  local wanted = {}
  for _, row in ipairs(hotspots) do
    if basename(row) == "tree.cpp" then
      wanted[row.line] = percent(row.exclusive.percent)
    end
  end
  eventually("hints as in the report", function()
    local seen = hints()
    for line, text in pairs(wanted) do
      if not (seen[line] and vim.startswith(seen[line], text)) then
        return false
      end
    end
    return true
  end)
end)

test("a lens stands above each function", function()
  local wanted = {}
  for _, row in ipairs(report("--by", "function").rows) do
    if basename(row) == "tree.cpp" and row.inclusive.percent >= 0.1 then
      wanted[row.line] = percent(row.inclusive.percent)
    end
  end
  eventually("lenses as in the report", function()
    local seen = {}
    for _, lens in ipairs(vim.lsp.codelens.get(0)) do
      seen[lens.range.start.line + 1] = lens.command.title
    end
    for line, text in pairs(wanted) do
      if not (seen[line] and seen[line]:find(text, 1, true)) then
        return false
      end
    end
    return true
  end)
end)

test("the hottest line has the hottest sign", function()
  local wanted = "HeatlineHeat9"
  eventually("a sign", function()
    return signs()[hotspots[1].line] == wanted
  end)
  assert(vim.api.nvim_get_hl(0, { name = wanted }).fg, "the highlight group is defined")
end)

test("hints and signs follow an edit", function()
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "int one;", "int two;" })
  vim.api.nvim_exec_autocmds("TextChanged", { buffer = 0 })
  eventually("everything two lines further down", function()
    local line = hotspots[1].line + 2
    return signs()[line] == "HeatlineHeat9" and hints()[line] and not signs()[3]
  end)
  vim.cmd("silent undo")
  vim.api.nvim_exec_autocmds("TextChanged", { buffer = 0 })
  eventually("everything where it was", function()
    return signs()[hotspots[1].line] == "HeatlineHeat9"
  end)
  vim.cmd("silent edit!")
end)

test("hottest, next and previous go through all files in the order of the report", function()
  vim.cmd.edit(project .. "/src/main.cpp")
  heatline_command("hottest")
  eventually("the hottest line", function()
    return at(hotspots[1])
  end)
  for i = 2, 5 do
    heatline_command("next")
    eventually(("hotspot %d: %s:%d"):format(i, basename(hotspots[i]), hotspots[i].line), function()
      return at(hotspots[i])
    end)
  end
  heatline_command("previous")
  eventually("back", function()
    return at(hotspots[4])
  end)
end)

test("the quickfix list holds the hotspots, hottest first", function()
  heatline_command("quickfix")
  eventually("a filled list", function()
    return #vim.fn.getqflist() >= #hotspots
  end)
  for i, item in ipairs(vim.list_slice(vim.fn.getqflist(), 1, 5)) do
    assert(item.lnum == hotspots[i].line, ("row %d is line %d"):format(i, item.lnum))
    assert(item.text:find(percent(hotspots[i].exclusive.percent), 1, true), item.text)
  end
  vim.cmd.cclose()
end)

test("lines and functions are chosen from a list", function()
  choice = 2
  heatline_command("lines")
  eventually("the second line", function()
    return shown and at(hotspots[2])
  end)
  choice = nil
  heatline_command("functions")
  eventually("a list of functions", function()
    return shown
  end)
  assert(shown[1]:find(report("--by", "function").rows[1]["function"], 1, true), shown[1])
end)

test("a lens lists callers and callees", function()
  vim.cmd.edit(project .. "/src/tree.cpp")
  eventually("lenses", function()
    return #vim.lsp.codelens.get(0) > 0
  end)
  local last = vim.lsp.codelens.get(0)
  table.sort(last, function(a, b)
    return a.range.start.line < b.range.start.line
  end)
  vim.api.nvim_win_set_cursor(0, { last[#last].range.start.line + 1, 0 })
  shown, choice = nil, 1
  vim.lsp.codelens.run()
  eventually("callers", function()
    return shown and vim.fs.basename(vim.api.nvim_buf_get_name(0)) == "main.cpp"
  end)
  assert(shown[1]:find("← 8", 1, true) and shown[1]:find("ask", 1, true), shown[1])
  choice = nil
end)

test("the call hierarchy is the measured one", function()
  vim.cmd.edit(project .. "/src/tree.cpp")
  local client = require("heatline").client()
  local place = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = 48, character = 6 } }
  local items = client:request_sync("textDocument/prepareCallHierarchy", place, PATIENCE, 0).result
  assert(items and items[1].name:find("select_median", 1, true), vim.inspect(items))
  local incoming = client:request_sync("callHierarchy/incomingCalls", { item = items[1] }, PATIENCE, 0).result
  assert(incoming[1].from.name:find("build", 1, true), vim.inspect(incoming))
end)

test("everything is switched off and on", function()
  heatline_command("toggle")
  assert(next(signs()) == nil, "no signs")
  assert(not vim.lsp.inlay_hint.is_enabled({ bufnr = 0 }), "no hints")
  heatline_command("toggle")
  eventually("signs again", function()
    return signs()[hotspots[1].line] == "HeatlineHeat9"
  end)
end)

test("the status names profile, metric and coverage", function()
  local text = require("heatline").statusline()
  assert(text:find("perf.data", 1, true) and text:find("cpu-clock", 1, true) and text:find("on lines", 1, true), text)
end)

test("a closed profile leaves nothing, and opens again", function()
  heatline_command("close")
  eventually("no signs", function()
    return next(signs()) == nil and next(hints()) == nil
  end)
  choice = 1
  heatline_command("open")
  eventually("signs again", function()
    return signs()[hotspots[1].line] == "HeatlineHeat9"
  end)
end)

vim.cmd.edit(project .. "/src/tree.cpp")
require("heatline").setup({ cmd = { heatline, "lsp" } })

local failed = 0
for _, one in ipairs(tests) do
  local good, problem = xpcall(one.body, debug.traceback)
  failed = failed + (good and 0 or 1)
  io.stdout:write(good and "✔ " or "✖ ", one.name, "\n", good and "" or problem .. "\n")
end
io.stdout:write(("\nℹ pass %d\nℹ fail %d\n"):format(#tests - failed, failed))
for _, client in ipairs(vim.lsp.get_clients()) do
  client:stop()
end
vim.wait(3000, function()
  return #vim.lsp.get_clients() == 0
end)
os.exit(failed == 0 and 0 or 1)
