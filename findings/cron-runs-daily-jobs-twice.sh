#!/bin/sh
# cron 4.4.0, with which @nestjs/schedule runs its jobs: a guess says that a job at `0 3 * * *` with a time zone runs once a day, at 3
# o'clock, also in the night when clocks go back. In Berlin only the hour from 2 to 3 exists twice then, so that even those who fear for
# a job at half past two and put it at 3 are on the safe side. Yet it runs twice: at the second 2 o'clock, an hour before its time, and
# at 3. (In New York it is a job at 2.) So the statements, the interest or the fees of a night are made twice, once a year. croner 11.0.1
# and node-schedule 2.1.1 run it once. The jobs live through two days here with the mocked timers of Node's test runner.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts cron@4.4.0 croner@11.0.1 node-schedule@2.1.1
cat >night.mjs <<'JS'
import { mock } from 'node:test'
import { CronJob } from 'cron'
import { Cron } from 'croner'
import schedule from 'node-schedule'

mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: Date.parse('2026-10-24T12:00Z') })
const hours = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', day: '2-digit', hour: '2-digit', minute: '2-digit', timeZoneName: 'short' })
const runs = { cron: [], croner: [], 'node-schedule': [] }
const run = (name) => () => runs[name].push(hours.format(new Date()))
CronJob.from({ cronTime: '0 3 * * *', timeZone: 'Europe/Berlin', onTick: run('cron'), start: true })
new Cron('0 3 * * *', { timezone: 'Europe/Berlin' }, run('croner'))
schedule.scheduleJob({ rule: '0 3 * * *', tz: 'Europe/Berlin' }, run('node-schedule'))
for (let minute = 0; minute < 48 * 60; minute++) {
  mock.timers.tick(60_000)
  await null
}
for (const [name, times] of Object.entries(runs)) console.log(`${name}: ${times.join('; ')}`)
process.exit()
JS
seen=$(node night.mjs)
echo "$seen"
[ "$seen" = 'cron: 25, 02:00 CET; 25, 03:00 CET; 26, 03:00 CET
croner: 25, 03:00 CET; 26, 03:00 CET
node-schedule: 25, 03:00 CET; 26, 03:00 CET' ]
