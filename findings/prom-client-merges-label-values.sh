#!/bin/sh
# prom-client 15.1.3: a guess says that two different sets of label values are always two series, since Prometheus compares labels one
# by one, and a comment in prom-client says that its key is unique for each set. Yet the key is a text in which commas and colons are
# not escaped: { command: 'a,symbol:b' } without the second label counts as { command: 'a', symbol: 'b' }. The later one gets no
# series of its own, and what came first names both. A bot that counts by free text, such as an error, counts wrong without a word.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts prom-client@15.1.3
cat >count.mjs <<'JS'
import { Counter, Registry } from 'prom-client'
const sets = [{ command: 'a,symbol:b' }, { command: 'a', symbol: 'b' }]
for (const order of [sets, sets.toReversed()]) {
  const registry = new Registry()
  const counter = new Counter({ name: 'calls', help: 'calls', labelNames: ['command', 'symbol'], registers: [registry] })
  for (const labels of order) counter.inc(labels)
  const lines = await registry.metrics()
  console.log(lines.split('\n').filter((line) => line.startsWith('calls')).join(' and '))
}
JS
seen=$(node count.mjs)
echo "$seen"
[ "$seen" = 'calls{command="a,symbol:b"} 2
calls{command="a",symbol="b"} 2' ]
