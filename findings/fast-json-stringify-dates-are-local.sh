#!/bin/sh
# fast-json-stringify 7.3.10, as Fastify 5.12.8 uses it for a response with a schema: a guess says that a Date of `format: date` becomes
# the first ten characters of what `format: date-time` and JSON.stringify() write, since the README says that a Date is written as by
# toISOString(). Yet only `date-time` is in UTC; `date` and `time` are in the time zone of the process. West of Greenwich a day that is
# midnight in UTC, as new Date('2026-03-01') and many database drivers have it, is the day before: a trade settles on February 28. In
# Tokyo it is the next day from the afternoon on. Tests and containers run in UTC, where nothing is seen of it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts fastify@5.12.8 fast-json-stringify@7.3.10
cat >settles.mjs <<'JS'
import fastJson from 'fast-json-stringify'
import fastify from 'fastify'

const properties = Object.fromEntries(['date', 'time', 'date-time'].map((format) => [format, { type: 'string', format }]))
const day = new Date('2026-03-01')
const app = fastify().get('/', { schema: { response: { 200: { type: 'object', properties } } } }, () => ({ date: day, time: day, 'date-time': day }))
console.log(`${process.env.TZ}: ${(await app.inject('/')).body}, evening ${fastJson(properties.date)(new Date('2026-03-01T18:00Z'))}`)
JS
seen=$(for zone in UTC America/New_York Asia/Tokyo; do TZ=$zone node settles.mjs; done)
echo "$seen"
[ "$seen" = 'UTC: {"date":"2026-03-01","time":"00:00:00","date-time":"2026-03-01T00:00:00.000Z"}, evening "2026-03-01"
America/New_York: {"date":"2026-02-28","time":"19:00:00","date-time":"2026-03-01T00:00:00.000Z"}, evening "2026-03-01"
Asia/Tokyo: {"date":"2026-03-01","time":"09:00:00","date-time":"2026-03-01T00:00:00.000Z"}, evening "2026-03-02"' ]
