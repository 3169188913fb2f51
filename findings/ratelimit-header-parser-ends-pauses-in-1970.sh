#!/bin/sh
# ratelimit-header-parser 0.1.0: a guess says that `reset`, a Date, is the moment from which a client may call again, also where the server
# names it in Retry-After, which the package reads when there is no header for the reset. `Retry-After: 120` means in two minutes (RFC
# 9110, section 10.2.3), as `ratelimit-reset: 120` does, which the package reads that way. Yet the 120 of Retry-After is taken for the
# seconds since 1970, and the date that it may be as well is an invalid Date. A client that waits until `reset` waits for no time at all,
# and calls a server that has just told it to stop as fast as it can. The README does not name Retry-After, and its option `reset`, which
# tells how to read a reset, makes an invalid Date of it. So the wait has to come from the header itself.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts ratelimit-header-parser@0.1.0
cat >wait.mjs <<'JS'
import { parseRateLimit } from 'ratelimit-header-parser'
const counts = { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '0' }
const inTwoMinutes = new Date(Date.now() + 120_999).toUTCString()
const cases = [
  ['x-ratelimit-reset: 120', { 'x-ratelimit-reset': '120' }],
  ['retry-after: 120', { 'retry-after': '120' }],
  ['retry-after: 120 with reset: seconds', { 'retry-after': '120' }, { reset: 'seconds' }],
  ['retry-after of a date in two minutes', { 'retry-after': inTwoMinutes }],
]
for (const [name, headers, options] of cases) {
  const { reset } = parseRateLimit(new Headers({ ...counts, ...headers }), options)
  const wait = Math.round((reset - Date.now()) / 1000)
  console.log(`${name}: ${Number.isNaN(wait) ? 'an invalid Date' : wait > 0 ? `in ${wait} s` : reset.toISOString()}`)
}
JS
seen=$(node wait.mjs)
echo "$seen"
[ "$seen" = 'x-ratelimit-reset: 120: in 120 s
retry-after: 120: 1970-01-01T00:02:00.000Z
retry-after: 120 with reset: seconds: an invalid Date
retry-after of a date in two minutes: an invalid Date' ]
