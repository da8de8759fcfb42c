-- Heat: a sign beside each costly line in one of ten colours.

local M = {}

local namespace = vim.api.nvim_create_namespace("heatline.heat")

--- From cool to hot.
local colours = { "#5f5f5f", "#6f665a", "#806c54", "#91724d", "#a37646", "#b5783d", "#c77833", "#d97527", "#eb6d1a", "#ff5f00" }
local signs = { "▏", "▎", "▎", "▍", "▍", "▌", "▋", "▊", "▉", "█" }

--- Defines the highlight groups HeatlineHeat0 to HeatlineHeat9; a colour scheme may have its own.
function M.define()
  for level, colour in ipairs(colours) do
    vim.api.nvim_set_hl(0, "HeatlineHeat" .. level - 1, { fg = colour, default = true })
  end
end

function M.clear(buffer)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
end

--- Asks the server for the colours of a buffer and shows them.
function M.paint(client, buffer)
  local changed = vim.api.nvim_buf_get_changedtick(buffer)
  local parameters = { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
  client:request("heatline/heat", parameters, function(err, answer)
    -- An answer for an older text is not for this one; the change of the text has asked for the next.
    if err or not answer or not vim.api.nvim_buf_is_loaded(buffer) or changed ~= vim.api.nvim_buf_get_changedtick(buffer) then
      return
    end
    M.clear(buffer)
    local last = vim.api.nvim_buf_line_count(buffer)
    for _, line in ipairs(answer.lines) do
      if line.line < last then
        vim.api.nvim_buf_set_extmark(buffer, namespace, line.line, 0, {
          sign_text = signs[line.level + 1],
          sign_hl_group = "HeatlineHeat" .. line.level,
          priority = 5,
        })
      end
    end
  end, buffer)
end

return M
