-- The command :Heatline; `require("heatline").setup()` starts the server.
if vim.g.loaded_heatline then
  return
end
vim.g.loaded_heatline = true

vim.api.nvim_create_user_command("Heatline", function(command)
  require("heatline").run(command.fargs[1], command.fargs[2])
end, {
  nargs = "+",
  desc = "Costs of a profile on the lines of the source",
  complete = function(text, line)
    if #vim.split(line, "%s+") > 2 then
      return vim.fn.getcompletion(text, "file")
    end
    return require("heatline").complete(text)
  end,
})
