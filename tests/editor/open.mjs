// Starts code-server with the extension on a workspace and prints its address; ends with Ctrl-C.
import path from 'node:path';
import { startEditor } from './lib/editor.mjs';

const [vsix, workspace] = process.argv.slice(2);
const editor = await startEditor({ vsix });
console.log(`\nOpen ${editor.address(workspace, path.join(workspace, 'src/tree.cpp'))}\nCtrl-C ends it.`);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await editor.stop();
    process.exit(0);
  });
}
