import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { SecretVolume } from '../config/secret-volume.ts'
import { controlsWorld, pause } from '../controls/controls-world.ts'
import { json, scripted } from '../login/token-endpoint.ts'
import { ready, serverProcess } from '../server/server-process.ts'
import { ALONE } from '../server/settings.ts'
import { SECRETS, testServer } from '../server/test-server.ts'
import { said, twoWorkers, workerPids } from '../server/two-workers.ts'
import { asleep } from '../time/stopped-process.ts'
import { nextEvent, until } from '../time/until.ts'
import { around, LAG, scrape, scrapeAll, type Scenario } from './scrapes.ts'
import { startWorld } from '../world.ts'

const FAULTS = fileURLToPath(new URL('../server/fault.ts', import.meta.url))

/** Two instances whose secrets differ. */
export async function secretsScenario(t: Test): Promise<Scenario> {
  const { settings } = await startWorld(t, { provider: scripted })
  const other = 'other-secrets-of-thirty-two-bytes-or-more'
  const servers = [
    await testServer(t, { ...settings, SESSION_SECRETS: SECRETS }),
    await testServer(t, { ...settings, SESSION_SECRETS: other }),
  ]
  const [a = '', b = ''] = await Promise.all(servers.map(scrape))
  return {
    name: 'instances have different secrets',
    raises: ['BffOtherSecrets'],
    scrapes: { a: { before: a, after: a }, b: { before: b, after: b } },
  }
}

/** A file of secrets that has lost the one that signs. */
export async function refusedFileScenario(t: Test): Promise<Scenario> {
  const { settings } = await startWorld(t, { provider: scripted })
  const volume = new SecretVolume(t.testdir({}), { SESSION_SECRETS: SECRETS })
  const server = await testServer(t, { ...settings, ...volume.settings })
  return around(server, 'a file of secrets cannot be used', ['BffSecretFileRefused'], async () => {
    volume.change({ SESSION_SECRETS: 'other-secrets-of-thirty-two-bytes-or-more' })
    const refused = 'bff_secret_file_refused{setting="SESSION_SECRETS"} 1'
    await until(async () => (await scrape(server)).includes(refused), 'the file is refused')
  })
}

/** An operator has paused the orders of all users. */
export async function pausedScenario(t: Test): Promise<Scenario> {
  const { server } = await controlsWorld(t, { instances: 1 })
  return around(server, 'orders are paused', ['BffOrdersPaused'], () => pause(server))
}

/** A new instance whose first refusal comes before its first scrape. */
export async function firstRefusalScenario(t: Test): Promise<Scenario> {
  const world = await startWorld(t, { provider: scripted })
  const before = await scrape(world.server)
  world.provider.behaviour = json({ error: 'invalid_client' }, 401)
  await world.logIn()
  const raises = ['BffClientRefused']
  return {
    name: 'the first refusal is the first sample',
    raises,
    scrapes: { a: { after: await scrape(world.server) }, b: { before, after: before } },
  }
}

/** A process whose event loop is late, and one whose event loop is not. Run this alone. */
export async function lagScenarios(t: Test): Promise<Scenario[]> {
  const { opsUrl } = (await startWorld(t, { provider: scripted })).server
  await scrapeAll({ opsUrl })
  for (let count = 0; count < 4; count++) {
    const blockedUntil = performance.now() + 300
    while (performance.now() < blockedUntil);
    await new Promise((resolve) => void setImmediate(resolve))
  }
  const busy = await scrapeAll({ opsUrl })
  let calm = busy
  await until(async () => {
    await new Promise((resolve) => void setTimeout(resolve, 200))
    calm = await scrapeAll({ opsUrl })
    return Number(LAG.exec(calm)?.[1]) < 0.2
  }, 'the event loop is in time')
  return [
    {
      name: 'the event loop is late',
      raises: ['BffEventLoopLag'],
      scrapes: { a: { before: busy, after: busy } },
    },
    { name: 'the event loop is in time', raises: [], scrapes: { a: { before: calm, after: calm } } },
  ]
}

/** A process that has hardly any descriptors left, and whose log cannot be written. */
export async function scarcityScenario(t: Test): Promise<Scenario> {
  const server = await serverProcess(t, { ...ALONE, MAX_RELAYS: '10' }, { descriptors: 64, log: '/dev/full' })
  t.ok(await ready(server))
  const opsUrl = `http://127.0.0.1:${server.opsPort}`
  return around({ opsUrl }, 'descriptors and log lines are lost', ['BffDescriptors', 'BffLogLinesLost'], async () => {
    const sockets = Array.from({ length: 30 }, () => connect(server.port, '127.0.0.1'))
    t.teardown(() => sockets.forEach((socket) => socket.destroy()))
    await Promise.all(sockets.map((socket) => nextEvent(socket, 'connect')))
    const before = await linesLost(opsUrl)
    await fetch(`http://127.0.0.1:${server.port}/auth/session`)
    await until(async () => (await linesLost(opsUrl)) > before, 'a line of the log is lost')
  })
}

/** A process whose log nobody reads. */
export async function hangingLogScenario(t: Test): Promise<Scenario> {
  const server = await serverProcess(t, ALONE)
  t.ok(await ready(server))
  const opsUrl = `http://127.0.0.1:${server.opsPort}`
  const waiting = async (): Promise<number> =>
    Number(/^bff_log_waiting_bytes (\d+)$/m.exec(await scrape({ opsUrl }))?.[1])
  server.child.stdout?.pause()
  t.teardown(() => server.child.stdout?.resume())
  const page = `http://127.0.0.1:${server.port}/nowhere`
  const raises = ['BffLogHangs']
  return around({ opsUrl }, 'nothing reads the log', raises, async () => {
    await until(
      async () => {
        for (let batch = 0; batch < 20; batch++) {
          const responses = await Promise.all(Array.from({ length: 50 }, () => fetch(page)))
          for (const response of responses) await response.text()
        }
        return (await waiting()) > 4.5 * 1_048_576
      },
      'more than a quarter of the limit waits',
      120_000,
    )
  })
}

/** A process in which promises of requests reject that nothing awaits. */
export async function rejectionScenario(t: Test): Promise<Scenario> {
  const server = await serverProcess(t, { ...ALONE, NODE_OPTIONS: `--import=${FAULTS}`, FAULT: 'reject' })
  t.ok(await ready(server))
  const opsUrl = `http://127.0.0.1:${server.opsPort}`
  return around({ opsUrl }, 'errors that nothing handles', ['BffUnhandledErrors'], async () => {
    server.child.kill('SIGUSR2')
    await until(() => server.output().stderr === 'rejecting\n')
    await fetch(`http://127.0.0.1:${server.port}/auth/session`)
  })
}

/** Workers that die again and again. */
export async function restartScenario(t: Test): Promise<Scenario> {
  const server = await twoWorkers(t)
  const opsUrl = `http://127.0.0.1:${server.opsPort}`
  return around({ opsUrl }, 'workers die', ['BffDied', 'BffRestarting'], async () => {
    for (let count = 0; count < 3; count++) {
      const pids = workerPids(server)
      process.kill(pids.at(-1) ?? 0, 'SIGKILL')
      await until(() => said(server, 'ready').length === 3 + count)
    }
  })
}

/** A worker that is stopped. */
export async function silentWorkerScenario(t: Test): Promise<Scenario> {
  const server = await twoWorkers(t)
  const opsUrl = `http://127.0.0.1:${server.opsPort}`
  const isSilent = async () => (await scrape({ opsUrl })).includes('\nbff_workers_silent 1\n')
  return asleep(workerPids(server)[0] ?? 0, () =>
    around({ opsUrl }, 'a worker hangs', ['BffWorkerSilent'], () => until(isSilent)),
  )
}

async function linesLost(opsUrl: string): Promise<number> {
  return Number(/^bff_log_lines_dropped_total (\d+)$/m.exec(await scrape({ opsUrl }))?.[1])
}
