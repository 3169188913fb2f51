#!/bin/sh
# @formulajs/formulajs 4.6.1, the functions of Excel in JavaScript: a guess says that TBILLPRICE() and TBILLYIELD() give what Excel
# documents for them, as XIRR, DOLLARDE, YEARFRAC, PMT and many more of the package do. A Treasury bill runs for the days of the
# calendar: the one of Excel's own example, from March 31 to June 1, for 62, so that 9 % is a price of 98.45, and that price a yield of
# 9.14 %. Yet the days are those of months with 30 each, 61 here: 98.475 and 9.29 %. A bill of four weeks over the end of February gets
# two days too many, and yields 3.67 % instead of 3.93 %. A test that compares one decimal of the price passes, and whoever buys for a
# million pays 250 too much. HyperFormula 3.5.0 counts the days.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts @formulajs/formulajs@4.6.1 hyperformula@3.5.0
cat >bills.mjs <<'JS'
import { TBILLPRICE, TBILLYIELD } from '@formulajs/formulajs'
import { HyperFormula } from 'hyperformula'
const peer = HyperFormula.buildFromArray([[]], { licenseKey: 'gpl-v3' })
const calculate = (name, [from, to], last) => {
  const [start, end] = [from, to].map(([year, month, day]) => `DATE(${year},${month},${day})`)
  return peer.calculateFormula(`=${name}(${start},${end},${last})`, 0)
}
const bills = [[[2008, 3, 31], [2008, 6, 1]], [[2026, 2, 17], [2026, 3, 17]], [[2026, 6, 30], [2026, 12, 31]]]
for (const bill of bills) {
  const [start, end] = bill.map(([year, month, day]) => new Date(year, month - 1, day))
  const days = Math.round((end - start) / 86_400_000)
  const price = [TBILLPRICE(start, end, 0.09), calculate('TBILLPRICE', bill, 0.09)].map((each) => each.toFixed(4))
  const paid = days === 28 ? 99.695 : 98.45
  const rate = [TBILLYIELD(start, end, paid), calculate('TBILLYIELD', bill, paid)].map((each) => (each * 100).toFixed(3))
  console.log(`${days} days: 9 % is ${price.join(', HyperFormula ')}; ${paid} yields ${rate.join(' %, HyperFormula ')} %`)
}
JS
seen=$(node bills.mjs)
echo "$seen"
[ "$seen" = '62 days: 9 % is 98.4750, HyperFormula 98.4500; 98.45 yields 9.292 %, HyperFormula 9.142 %
28 days: 9 % is 99.2500, HyperFormula 99.3000; 99.695 yields 3.671 %, HyperFormula 3.933 %
184 days: 9 % is 95.5000, HyperFormula 95.4000; 98.45 yields 3.149 %, HyperFormula 3.080 %' ]
