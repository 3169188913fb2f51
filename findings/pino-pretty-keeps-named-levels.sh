#!/bin/sh
# pino-pretty 13.2.0: a guess says that `--minimumLevel=warn` leaves out info, whether pino wrote its number (30) or, with the usual
# formatter of levels, its name ("info"): pino-pretty prints INFO for both. Yet it compares numbers alone, and a name is never
# below a number, so that every line with a name passes, also trace. A filter of a runbook then filters nothing.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts pino@10.4.0 pino-pretty@13.2.0
cat >write.mjs <<'JS'
import { pino } from 'pino'
const formatters = process.argv[2] === 'names' ? { level: (label) => ({ level: label }) } : undefined
const log = pino({ level: 'trace', base: null, timestamp: false, ...(formatters && { formatters }) })
log.trace('a')
log.info('b')
log.error('c')
JS
for kind in numbers names; do
  node write.mjs "$kind" >"$kind"
  all=$(node node_modules/pino-pretty/bin.js <"$kind" | paste -sd ' ' -)
  filtered=$(node node_modules/pino-pretty/bin.js --minimumLevel=warn <"$kind" | paste -sd ' ' -)
  echo "$kind: $all; with --minimumLevel=warn: $filtered" | tee -a seen
done
[ "$(cat seen)" = 'numbers: TRACE: a INFO: b ERROR: c; with --minimumLevel=warn: ERROR: c
names: TRACE: a INFO: b ERROR: c; with --minimumLevel=warn: TRACE: a INFO: b ERROR: c' ]
