#!/bin/sh
# ofx-data-extractor 1.5.0 (getTransactionsSummary() and toNormalized(), from a bank's statement in OFX): a guess says that the sign of
# an amount decides whether it is a credit or a debit, since OFX leaves it to the sign what an entry of POS or ATM is, and the package
# goes by the sign for INT, XFER and DIRECTDEP. Yet POS, ATM, CHECK, FEE, PAYMENT and some more are debits in any case: a refund of 30 at
# the point of sale, 200 that were paid in at a machine, and a fee of 5 that the bank has given back are 235 more spent. The sum of the
# month is wrong by twice as much. toNormalized() has the right sign in `amount`, beside a wrong `direction`. Purchases and wages, which
# tests have, are right. The sum has to be made of the amounts.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts ofx-data-extractor@1.5.0
cat >sum.mjs <<'JS'
import { Ofx } from 'ofx-data-extractor'

/** A bank's statement of the entries, with one element in each line. */
function statement(entries) {
  const transactions = entries.flatMap(([type, amount], index) => [
    '<STMTTRN>', `<TRNTYPE>${type}`, '<DTPOSTED>20260316', `<TRNAMT>${amount}`, `<FITID>${index}`, `<NAME>${type}`, '</STMTTRN>',
  ])
  return [
    'OFXHEADER:100', 'DATA:OFXSGML', 'VERSION:102', 'SECURITY:NONE', 'ENCODING:USASCII', 'CHARSET:1252', 'COMPRESSION:NONE',
    'OLDFILEUID:NONE', 'NEWFILEUID:NONE', '', '<OFX>', '<BANKMSGSRSV1>', '<STMTTRNRS>', '<TRNUID>1', '<STMTRS>', '<CURDEF>USD',
    '<BANKACCTFROM>', '<BANKID>1', '<ACCTID>1', '<ACCTTYPE>CHECKING', '</BANKACCTFROM>', '<BANKTRANLIST>', '<DTSTART>20260301',
    '<DTEND>20260331', ...transactions, '</BANKTRANLIST>', '</STMTRS>', '</STMTTRNRS>', '</BANKMSGSRSV1>', '</OFX>', '',
  ].join('\n')
}
const purchases = [['DIRECTDEP', '1000.00'], ['POS', '-80.00'], ['ATM', '-50.00'], ['FEE', '-5.00'], ['INT', '1.00']]
const refunds = [['POS', '30.00'], ['ATM', '200.00'], ['FEE', '5.00']]
for (const [name, entries] of [['purchases', purchases], ['with refunds', [...purchases, ...refunds]]]) {
  const { credit, debit } = new Ofx(statement(entries)).getTransactionsSummary()
  const sum = entries.reduce((total, [, amount]) => total + Number(amount), 0)
  console.log(`${name}: credit ${credit}, debit ${debit}, together ${credit - debit}; the amounts together ${sum}`)
}
const [refund] = new Ofx(statement(refunds)).toNormalized().transactions
console.log(`a refund: direction ${refund.direction}, amount ${refund.amount}`)
JS
seen=$(node sum.mjs)
echo "$seen"
[ "$seen" = 'purchases: credit 1001, debit 135, together 866; the amounts together 866
with refunds: credit 1001, debit 370, together 631; the amounts together 1101
a refund: direction debit, amount 30' ]
