#!/usr/bin/env node
// This file is plain JavaScript, types left out, and imports nothing until the version is known: an old Node must come
// as far as the sentence below, and not stop at syntax (so no await here) or a module that it lacks.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major > 24 || (major === 24 && minor >= 9)) {
  import('./program.ts').then(
    ({ runToolgate }) => runToolgate(process.argv.slice(2)),
    (error) => {
      console.error(error);
      process.exitCode = 2;
    },
  );
} else {
  console.error(
    `toolgate needs Node 24.9 or newer, and this is Node ${process.versions.node}; in a checkout, \`npm ci\` installs the right one and \`npm run -s toolgate --\` uses it`,
  );
  process.exitCode = 2;
}
