#!/bin/sh
# prom-client 15.1.3 (collectDefaultMetrics): a guess says that two Prometheus servers that scrape one process, as a pair for
# availability does, both see that its event loop was late, the second perhaps a little less of it. Yet each scrape takes the lag along:
# the one that comes a moment later reads a lag of at most 0, and a smallest lag of 292 years, although the process stood still for
# 0.4 s since its own last scrape. So each block shows in one of the two servers, and an alert on the other does not fire.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts prom-client@15.1.3
cat >scrapes.mjs <<'JS'
import { setTimeout as delay } from 'node:timers/promises'
import { collectDefaultMetrics, register } from 'prom-client'
collectDefaultMetrics()
const scrape = async (name) => {
  const text = await register.metrics()
  const seconds = (of) => Number(new RegExp(`^nodejs_eventloop_lag_${of}_seconds (\\S+)$`, 'm').exec(text)[1])
  console.log(`${name}: largest ${seconds('max') > 0.3 ? 'above 0.3 s' : `${seconds('max')} s`}, smallest ${seconds('min') > 1 ? `${seconds('min')} s` : 'below 1 s'}`)
}
await delay(500)
await register.metrics()
await delay(500)
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
await delay(500)
await scrape('first server')
await scrape('second server')
JS
seen=$(node scrapes.mjs)
echo "$seen"
[ "$seen" = 'first server: largest above 0.3 s, smallest below 1 s
second server: largest 0 s, smallest 9223372036.854776 s' ]
