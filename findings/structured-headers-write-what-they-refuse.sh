#!/bin/sh
# structured-headers 2.1.0 (RFC 9651): a guess says that a decimal with more than three digits behind its point is rounded to three, as
# section 4.1.5 has it and the package does with 1.0021 and 33.3333, so that 1.0004 is written as 1.0. Yet where the rounded digits are
# all zero nothing is left behind the point: "1." is no decimal, and the package's own parser refuses it. A recipient has to ignore a
# field that does not parse, with all of its other members. So a server that writes prices, durations or rates of a float loses the
# field once in a thousand responses, whenever a value happens to lie within half a thousandth of a whole number. A value that is
# whole is written as an integer, which is valid, and one with up to three digits is right: tests have those. structured-field-values
# 2.0.4 writes 1.0.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts structured-headers@2.1.0 structured-field-values@2.0.4
cat >write.mjs <<'JS'
import { parseDictionary, serializeDictionary } from 'structured-headers'
import { encodeDict } from 'structured-field-values'
for (const bid of [1, 1.0021, 1.0004, 99.9996, 0.0001]) {
  const field = serializeDictionary(new Map([['bid', [bid, new Map()]], ['ask', [bid + 1.5, new Map()]]]))
  let outcome
  try {
    outcome = `reads ask ${parseDictionary(field).get('ask')[0]}`
  } catch (error) {
    outcome = error.message
  }
  console.log(`${field} (${outcome}), the other package ${encodeDict({ bid, ask: bid + 1.5 })}`)
}
JS
seen=$(node write.mjs)
echo "$seen"
[ "$seen" = 'bid=1, ask=2.5 (reads ask 2.5), the other package bid=1, ask=2.5
bid=1.002, ask=2.502 (reads ask 2.502), the other package bid=1.002, ask=2.502
bid=1., ask=2.5 (Parse error: Decimal cannot end on a period at offset 6), the other package bid=1.0, ask=2.5
bid=100., ask=101.5 (Parse error: Decimal cannot end on a period at offset 8), the other package bid=100.0, ask=101.5
bid=0., ask=1.5 (Parse error: Decimal cannot end on a period at offset 6), the other package bid=0.0, ask=1.5' ]
