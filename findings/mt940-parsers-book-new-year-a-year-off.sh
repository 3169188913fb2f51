#!/bin/sh
# mt940js 1.3.5, mt940-js 1.0.0, swiftmessageparser 1.2.1 and stitch-swiftmessageparser 2.0.1, which read SWIFT's bank statements (MT940):
# a guess says that an entry of December 31 with the value date January 2 was booked two days before it, and one of January 2 with the
# value date December 31 two days after it. The entry date in field 61 has a month and a day but no year, so the year nearest to the
# value date is meant. Yet all four take the year of the value date: the first entry is booked almost a year after its statement, the
# second almost a year before. Amounts and balances agree, so that no check sees it. What sorts by entry date, or sums a year up, is
# wrong for a few entries of each New Year.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts mt940js@1.3.5 mt940-js@1.0.0 tslib@2.8.1 swiftmessageparser@1.2.1 stitch-swiftmessageparser@2.0.1
cat >years.mjs <<'JS'
import mt940js from 'mt940js'
import mt940 from 'mt940-js'
import stitch from 'stitch-swiftmessageparser'
import swift from 'swiftmessageparser'

const statement = [
  ':20:STATEMENT', ':25:10020030/1234567', ':28C:1/1', ':60F:C251230EUR1000,00',
  ':61:2601021231C10,00NMSCFIRST', ':86:booked on December 31, value January 2',
  ':61:2512310102C5,00NMSCSECOND', ':86:booked on January 2, value December 31',
  ':62F:C260102EUR1015,00', '-', '',
].join('\n')
const day = (date) => new Date(date).toISOString().slice(0, 10)
const parsers = {
  mt940js: () => new mt940js.Parser().parse(statement)[0].transactions.map(({ date, entryDate }) => [date, entryDate]),
  'mt940-js': async () => (await mt940.read(Buffer.from(statement)))[0].transactions.map(({ valueDate, entryDate }) => [valueDate, entryDate]),
  swiftmessageparser: () => swift.parse({ type: 'mt940', data: statement })[0].transactions.map(({ date, entryDate }) => [date, entryDate]),
  'stitch-swiftmessageparser': () =>
    (stitch.default ?? stitch).parse({ type: 'mt940', data: statement })[0].transactions.map(({ date, entryDate }) => [date, entryDate]),
}
for (const [name, parse] of Object.entries(parsers)) {
  console.log(`${name}: ${(await parse()).map(([value, booked]) => `value ${day(value)} booked ${day(booked)}`).join(', ')}`)
}
JS
seen=$(node years.mjs)
echo "$seen"
[ "$seen" = 'mt940js: value 2026-01-02 booked 2026-12-31, value 2025-12-31 booked 2025-01-02
mt940-js: value 2026-01-02 booked 2026-12-31, value 2025-12-31 booked 2025-01-02
swiftmessageparser: value 2026-01-02 booked 2026-12-31, value 2025-12-31 booked 2025-01-02
stitch-swiftmessageparser: value 2026-01-02 booked 2026-12-31, value 2025-12-31 booked 2025-01-02' ]
