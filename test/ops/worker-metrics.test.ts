import { readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { ServerProcess } from '../support/server/server-process.ts'
import { status, twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { asleep } from '../support/time/stopped-process.ts'
import { until } from '../support/time/until.ts'

const FAULT = `--import=${fileURLToPath(new URL('../support/server/fault.ts', import.meta.url))}`

async function metrics({ opsPort }: ServerProcess): Promise<string> {
  return (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text()
}

/** The number of requests on a route that all workers have counted. */
async function counted(server: ServerProcess, route: string): Promise<number> {
  const line = new RegExp(`^bff_http_request_duration_seconds_count{.*route="${route}".*} (\\d+)$`, 'm')
  return Number(line.exec(await metrics(server))?.[1] ?? 0)
}

await test('A worker that does not reply is counted as silent, and its gauges are left out until it does', async (t) => {
  const server = await twoWorkers(t, { MAX_RELAYS: '10' })
  for (let times = 0; times < 4; times++) await status(server.port, '/auth/session')
  const says = async (...lines: string[]) => {
    const text = await metrics(server)
    return lines.every((line) => text.includes(`\n${line}\n`))
  }
  t.ok(await says('bff_workers 2', 'bff_workers_silent 0', 'bff_relay_limit 20'))
  await asleep(workerPids(server)[0] ?? 0, async () => {
    await until(() => says('bff_workers 2', 'bff_workers_silent 1', 'bff_relay_limit 10'), 'the worker is silent')
    t.equal(await counted(server, '/auth/session'), 4, 'its counts stay')
  })
  await until(() => says('bff_workers 2', 'bff_workers_silent 0', 'bff_relay_limit 20'), 'the worker replies')
})

await test('The lag of the event loop and the share of the descriptors are those of the worker that is worst off', async (t) => {
  const server = await twoWorkers(t, { NODE_OPTIONS: FAULT, FAULT: 'lag' }, { descriptors: 10_000 })
  const value = async (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await metrics(server))?.[1])
  t.equal(await value('process_max_fds'), 10_000)
  const open = () => Math.max(...workerPids(server).map((pid) => readdirSync(`/proc/${pid}/fd`).length))
  await until(async () => (await value('process_open_fds')) === open(), 'the descriptors of a single worker')
  process.kill(workerPids(server)[0] ?? 0, 'SIGUSR2')
  // It blocks for 0.4 s, and the other worker is in time: the mean would be below 0.25 s.
  await until(async () => {
    // A scrape starts the measure anew, and Node.js measures nothing before its second check, 100 ms later.
    await delay(500)
    return (await value('nodejs_eventloop_lag_p99_seconds')) > 0.35
  }, 'the lag of a single worker')
})

await test('GET /metrics: 200 for many concurrent scrapes, without a warning of Node.js', async (t) => {
  const server = await twoWorkers(t)
  // Node.js would warn about more than ten listeners for one event.
  const scrapes = await Promise.all(Array.from({ length: 12 }, () => metrics(server)))
  for (const scrape of scrapes) t.match(scrape, /^bff_workers 2$/m)
  t.equal(server.output().stderr, '')
})
