#!/bin/sh
# dnum 2.17.0 (format, toNumber, toString with `digits`) and money-math 2.6.3 (div, percent), which both calculate with whole numbers
# because floats are wrong for money: a guess says that an amount below zero is rounded as the same amount above zero, or at worst the
# other way at a half. Yet both take the half, or the carry, to be positive and the rest to be negative, so that what is rounded up is
# two units of the last digit too near to zero: a loss of 3.7 is shown as -2, one of 1.996 as -0, and -2.00 by three is -0.65. No mode of
# rounding says so. With dnum it takes a carry into the whole number, so with two digits it is one loss in 200, and with none every
# second one. dnum's own round() is right, and so is format() of abs(); all that is above zero is right in both.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts dnum@2.17.0 money-math@2.6.3
cat >round.mjs <<'JS'
import { format, from, round, toNumber, toString } from 'dnum'
import money from 'money-math'
for (const [amount, digits] of [['3.2', 0], ['3.7', 0], ['1.96', 1], ['1234.994', 2], ['1234.996', 2]]) {
  const [above, below] = [amount, `-${amount}`].map((each) => format(from(each), digits))
  console.log(`dnum: ${amount} with ${digits} digits is ${above}, and -${amount} is ${below}`)
}
console.log(`dnum: round() of -3.7 is ${toString(round(from('-3.7')))}, toNumber() with 0 digits ${toNumber(from('-3.7'), 0)}`)
for (const amount of ['1.00', '2.00', '200.00'])
  console.log(`money-math: ${amount} by three is ${money.div(amount, '3.00')}, and -${amount} is ${money.div(`-${amount}`, '3.00')}`)
console.log(`money-math: 33 % of 0.50 are ${money.percent('0.50', '33.00')}, and of -0.50 ${money.percent('-0.50', '33.00')}`)
JS
seen=$(node round.mjs)
echo "$seen"
[ "$seen" = 'dnum: 3.2 with 0 digits is 3, and -3.2 is -3
dnum: 3.7 with 0 digits is 4, and -3.7 is -2
dnum: 1.96 with 1 digits is 2, and -1.96 is -0
dnum: 1234.994 with 2 digits is 1,234.99, and -1234.994 is -1,234.99
dnum: 1234.996 with 2 digits is 1,235, and -1234.996 is -1,233
dnum: round() of -3.7 is -4, toNumber() with 0 digits -2
money-math: 1.00 by three is 0.33, and -1.00 is -0.33
money-math: 2.00 by three is 0.67, and -2.00 is -0.65
money-math: 200.00 by three is 66.67, and -200.00 is -66.65
money-math: 33 % of 0.50 are 0.17, and of -0.50 -0.15' ]
