#!/bin/sh
# undici 8.13.1: a guess says that a headersTimeout of 2 s which passes while the process stands still (a long computation, a paused
# container) is judged as soon as it goes on, as a setTimeout of 2 s is, or half a second later, since these timers are meant to be that
# coarse. Yet undici counts its own ticks of half a second, however long each took: a standstill of 6 s counts as one, and the
# timeout comes about 2 s after it. Whoever sums timeouts up to know how long a call may take has to add every standstill.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts undici@8.13.1
cat >wait.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Agent } from 'undici'
const silent = createServer(() => {}).listen(0, '127.0.0.1')
await once(silent, 'listening')
const agent = new Agent({ headersTimeout: 2000 })
const origin = `http://127.0.0.1:${silent.address().port}`
const from = performance.now()
const seconds = () => ((performance.now() - from) / 1000).toFixed(1)
setTimeout(() => console.log(`setTimeout of 2 s: after ${seconds()} s`), 2000)
const refused = agent.request({ origin, path: '/', method: 'GET' }).catch(({ code }) => code)
setTimeout(() => {
  while (performance.now() - from < 6000);
}, 300)
console.log(`${await refused} of 2 s: after ${seconds()} s`)
process.exit()
JS
seen=$(node wait.mjs)
echo "$seen"
case $seen in
'setTimeout of 2 s: after 6.'?' s
UND_ERR_HEADERS_TIMEOUT of 2 s: after '[78].?' s') ;;
*) exit 1 ;;
esac
