#!/bin/sh
# typebox 1.4.3: a guess says that a schema { type: 'number', multipleOf: 0.01 } that accepts 19.99, so that it must allow for the
# rounding of doubles, accepts every amount of whole cents. Yet what it allows for does not grow with the number: of a thousand
# amounts x.99, all pass in which x has up to six digits, 57 % with seven, 6 % with eight, and 1 % with nine. 1234567.89 is refused.
# zod 4.6.7 accepts all of them; ajv 8.20.0, which allows for nothing, refuses 19.99 already. So tests with small amounts pass.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts typebox@1.4.3 zod@4.6.7 ajv@8.20.0
cat >check.mjs <<'JS'
import { Ajv } from 'ajv'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { z } from 'zod'
const cents = Type.Number({ multipleOf: 0.01 })
const accepts = {
  typebox: (amount) => Value.Check(cents, amount),
  zod: (amount) => z.number().multipleOf(0.01).safeParse(amount).success,
  ajv: new Ajv().compile({ type: 'number', multipleOf: 0.01 }),
}
for (const [name, accept] of Object.entries(accepts)) {
  const shares = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((digits) => {
    const from = 10 ** (digits - 1)
    const amounts = Array.from({ length: 1000 }, (_, index) => Number(`${from + Math.floor((index * 9 * from) / 1000)}.99`))
    return Math.round(amounts.filter((amount) => accept(amount)).length / 10)
  })
  console.log(`${name}: 19.99 ${accept(19.99)}, 1234567.89 ${accept(1234567.89)}, % of x.99 by the digits of x: ${shares.join(' ')}`)
}
JS
seen=$(node check.mjs)
echo "$seen"
[ "$(echo "$seen" | head -n 2)" = 'typebox: 19.99 true, 1234567.89 false, % of x.99 by the digits of x: 100 100 100 100 100 100 57 6 1
zod: 19.99 true, 1234567.89 true, % of x.99 by the digits of x: 100 100 100 100 100 100 100 100 100' ]
echo "$seen" | grep -q '^ajv: 19.99 false,'
