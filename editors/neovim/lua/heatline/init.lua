-- Heatline for Neovim 0.11: starts the language server for every file and gives commands for what LSP has no request for.
-- Hints, lenses, hovers and the call hierarchy come by LSP; nothing here computes a number.

local heat = require("heatline.heat")
local hotspots = require("heatline.hotspots")

local M = {}

local defaults = {
  --- The server and its arguments.
  cmd = { "heatline", "lsp" },
  --- What the section "heatline" of settings would hold, for example { hints = { threshold = 1 } }.
  settings = {},
  --- What marks the root of a workspace.
  root_markers = { "heatline.toml", "perf.data", ".git" },
  hints = true,
  lenses = true,
  heat = true,
}

local config = defaults
--- The last `heatline/status`.
local status = nil

--- The client of the server, if it runs.
function M.client()
  return vim.lsp.get_clients({ name = "heatline" })[1]
end

--- What the server says of itself: `profile`, `metric`, `coverage` and more; nil before it has said anything.
function M.status()
  return status
end

--- A short text for a status line; empty while there is no profile.
function M.statusline()
  if not (status and status.profile) then
    return ""
  end
  local parts = { vim.fs.basename(status.profile.path), status.metric }
  if type(status.coverage) == "table" then
    parts[#parts + 1] = status.coverage.text
  end
  return table.concat(parts, " · ")
end

local function refresh_lenses(buffer)
  if config.lenses and vim.api.nvim_buf_is_loaded(buffer) then
    vim.lsp.codelens.refresh({ bufnr = buffer })
  end
end

local function paint(client, buffer)
  if config.heat then
    heat.paint(client, buffer)
  end
end

local function paint_all(client)
  for buffer in pairs(client.attached_buffers) do
    refresh_lenses(buffer)
    paint(client, buffer)
  end
end

local function on_attach(client, buffer)
  vim.lsp.inlay_hint.enable(config.hints, { bufnr = buffer })
  refresh_lenses(buffer)
  paint(client, buffer)
  vim.api.nvim_create_autocmd({ "TextChanged", "InsertLeave", "BufEnter" }, {
    group = vim.api.nvim_create_augroup("heatline." .. buffer, {}),
    buffer = buffer,
    callback = function()
      refresh_lenses(buffer)
      paint(client, buffer)
    end,
  })
end

local handlers = {
  ["heatline/status"] = function(_, result, context)
    status = result
    vim.api.nvim_exec_autocmds("User", { pattern = "HeatlineStatus", data = result, modeline = false })
    local client = vim.lsp.get_client_by_id(context.client_id)
    if client and result.state ~= "loading" then
      paint_all(client)
    end
  end,
  -- Neovim 0.11 has no handler of its own for this request.
  ["workspace/codeLens/refresh"] = function(_, _, context)
    local client = vim.lsp.get_client_by_id(context.client_id)
    if client then
      vim.schedule(function()
        paint_all(client)
      end)
    end
    return vim.NIL
  end,
}

local function start(buffer)
  if vim.bo[buffer].buftype ~= "" or vim.api.nvim_buf_get_name(buffer) == "" then
    return
  end
  vim.lsp.start({
    name = "heatline",
    cmd = config.cmd,
    root_dir = vim.fs.root(buffer, config.root_markers) or vim.fn.getcwd(),
    init_options = config.settings,
    settings = { heatline = config.settings },
    handlers = handlers,
    commands = {
      ["heatline.server.calls"] = function(command, context)
        hotspots.calls(vim.lsp.get_client_by_id(context.client_id), command.arguments)
      end,
    },
    on_attach = on_attach,
  }, { bufnr = buffer })
end

--- Runs a command of the server.
local function execute(command, ...)
  local client = M.client()
  if not client then
    vim.notify("Heatline: the server is not running", vim.log.levels.WARN)
    return
  end
  client:request("workspace/executeCommand", { command = "heatline.server." .. command, arguments = { ... } }, function(err)
    if err then
      vim.notify("Heatline: " .. err.message, vim.log.levels.ERROR)
    end
  end)
end

--- Opens a profile; without a path, lets you choose among those that the server has found.
function M.open(path)
  if path and path ~= "" then
    execute("open", vim.fs.normalize(vim.fn.fnamemodify(path, ":p")))
    return
  end
  vim.ui.select(status and status.profiles or {}, { prompt = "Profile" }, function(choice)
    if choice then
      execute("open", choice)
    end
  end)
end

--- Lets you choose the metric that is shown.
function M.metric(id)
  if id and id ~= "" then
    execute("metric", id)
    return
  end
  local function format(metric)
    return metric.id .. " (" .. metric.unit .. ")"
  end
  vim.ui.select(status and status.metrics or {}, { prompt = "Metric", format_item = format }, function(choice)
    if choice then
      execute("metric", choice.id)
    end
  end)
end

--- Switches hints, lenses and heat off, or on again.
function M.toggle()
  local shown = not (config.hints or config.lenses or config.heat)
  config = vim.tbl_extend("force", config, { hints = shown, lenses = shown, heat = shown })
  local client = M.client()
  for buffer in pairs(client and client.attached_buffers or {}) do
    vim.lsp.inlay_hint.enable(shown, { bufnr = buffer })
    if shown then
      refresh_lenses(buffer)
      paint(client, buffer)
    else
      vim.lsp.codelens.clear(client.id, buffer)
      heat.clear(buffer)
    end
  end
end

local subcommands = {
  open = M.open,
  metric = M.metric,
  toggle = M.toggle,
  close = function()
    execute("close")
  end,
  refresh = function()
    execute("refresh")
  end,
  baseline = function(path)
    local none = path == nil or path == ""
    execute("baseline", none and vim.NIL or vim.fs.normalize(vim.fn.fnamemodify(path, ":p")))
  end,
  lines = function()
    hotspots.select(M.client(), "line")
  end,
  functions = function()
    hotspots.select(M.client(), "function")
  end,
  quickfix = function()
    hotspots.quickfix(M.client())
  end,
  hottest = function()
    hotspots.hottest(M.client())
  end,
  next = function()
    hotspots.adjacent(M.client(), "next")
  end,
  previous = function()
    hotspots.adjacent(M.client(), "previous")
  end,
  calls = function()
    hotspots.calls_here(M.client())
  end,
}

--- The subcommands of `:Heatline` that begin with the text.
function M.complete(text)
  local names = vim.tbl_filter(function(name)
    return vim.startswith(name, text)
  end, vim.tbl_keys(subcommands))
  table.sort(names)
  return names
end

--- Runs a subcommand of `:Heatline`.
function M.run(name, argument)
  local subcommand = subcommands[name]
  if subcommand then
    subcommand(argument)
  else
    vim.notify("Heatline: there is no :Heatline " .. name .. "; there are " .. table.concat(M.complete(""), ", "), vim.log.levels.ERROR)
  end
end

--- Starts the server for the buffers that are open and for those to come.
function M.setup(options)
  config = vim.tbl_deep_extend("force", defaults, options or {})
  heat.define()
  local group = vim.api.nvim_create_augroup("heatline", {})
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile" }, {
    group = group,
    callback = function(event)
      start(event.buf)
    end,
  })
  vim.api.nvim_create_autocmd("ColorScheme", { group = group, callback = heat.define })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      start(buffer)
    end
  end
end

return M
