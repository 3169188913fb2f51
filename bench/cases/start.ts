import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../sandbox/listening.ts'
import { programOf, publicOrigin, settingsOf, THIS_SERVER } from '../contenders.ts'
import { Program } from '../program.ts'
import { atMost, shown, tableOf, type Goal, type Report } from '../report.ts'
import { figuresOf, ratio, rounds, spread, type Spread } from '../rounds.ts'
import type { Choice } from '../rest-load.ts'
import { startWorld, type World } from '../world.ts'

const ROUNDS = 11
const SHORT_ROUNDS = 5
const RESTING_MS = 1500
const POLL_MS = 2
const HELLO = 'Fastify hello-world'
const HELLO_CACHED = `${HELLO}, started as this server is`
const START_LIMIT = 1.85
const MEMORY_LIMIT = 1.45

const WHY =
  'This server has 1,000 modules more, about half of them commands of @redis/client, whose core requires them all.'

interface Contender {
  readonly name: string
  /** The arguments of Node.js. */
  readonly program: readonly string[]
  /** The path that responds with 200 as soon as the program is ready. */
  readonly path: string
  readonly env: Readonly<Record<string, string>>
}

interface Start {
  readonly readyMs: number
  readonly cpuMs: number
  readonly rssMib: number
}

/** Measures the time from the start of a process to its first 200, and its memory at rest. */
export async function start({ short = false }: Choice): Promise<Report> {
  const world = await startWorld([`${publicOrigin(1)}/auth/callback`])
  const compiled = await mkdtemp(join(tmpdir(), 'bff-bench-compiled-'))
  // `npm start` and the image set these, too.
  const cache = { NODE_COMPILE_CACHE: compiled, NODE_PRESERVE_SYMLINKS: '1', UV_THREADPOOL_SIZE: '16' }
  const ours = programOf()
  const hello = fileURLToPath(new URL('../bare/hello.ts', import.meta.url))
  const contenders: readonly Contender[] = [
    { name: THIS_SERVER, program: ours, path: '/readyz', env: cache },
    ...(short ? [] : [{ name: HELLO, program: [hello], path: '/', env: {} }]),
    { name: HELLO_CACHED, program: [...ours.slice(0, -1), hello], path: '/', env: cache },
  ]
  // The first starts fill the compile cache, which the image contains.
  await rounds(contenders, 1, (contender) => measure(world, contender))
  const count = short ? SHORT_ROUNDS : ROUNDS
  const results = await rounds(contenders, count, (contender) => measure(world, contender))
  await rm(compiled, { recursive: true })
  const of = figuresOf(results)
  const toHello = (name: string, figure: keyof Start): Spread => ratio(of(name, figure), of(HELLO_CACHED, figure))
  const relative = (figure: keyof Start) => (name: string) => shown(toHello(name, figure))
  const absolute = (figure: keyof Start) => (name: string) => shown(spread(of(name, figure)), 0)
  return {
    name: 'start',
    title: 'Start to ready',
    tables: [
      tableOf(`${HELLO_CACHED} = 1`, [...results.keys()], {
        'start to ready': relative('readyMs'),
        'CPU time': relative('cpuMs'),
        'RSS at rest': relative('rssMib'),
      }),
      tableOf('Figures', [...results.keys()], {
        'start to ready, ms': absolute('readyMs'),
        'CPU ms': absolute('cpuMs'),
        'RSS at rest, MiB': absolute('rssMib'),
      }),
    ],
    goals: [
      goal(START_LIMIT, 'Start to ready:', toHello(THIS_SERVER, 'readyMs')),
      goal(MEMORY_LIMIT, 'Memory at rest:', toHello(THIS_SERVER, 'rssMib')),
    ],
    notes: [
      `${count} starts each, alternating. A server is ready at the first 200 from /readyz, which requires Redis; the hello-world is ready at the first 200 from its only page. RSS at rest is measured ${RESTING_MS / 1000} s later.`,
    ],
    raw: results,
  }
}

/** The goal of a ratio. The hello-world has the same options of Node.js and a compile cache, too. */
function goal(limit: number, title: string, toHello: Spread): Goal {
  return atMost(limit, `${title} ≤ ${limit} × a ${HELLO_CACHED}`, toHello, { why: WHY })
}

async function measure(world: World, { name, program: args, path, env }: Contender): Promise<Start> {
  const port = await freePort()
  const opsPort = await freePort()
  const settings =
    name === THIS_SERVER ? { ...settingsOf(world, port), OPS_PORT: String(opsPort) } : { PORT: String(port) }
  const startedAt = performance.now()
  const program = new Program(name, process.execPath, args, {
    env: { ...settings, ...env },
    on: 'measured',
  })
  const url = `http://127.0.0.1:${name === THIS_SERVER ? opsPort : port}${path}`
  while (!(await isReady(url))) {
    if (!program.isRunning) throw new Error(program.logTail())
    await pause(POLL_MS)
  }
  const readyMs = performance.now() - startedAt
  const cpuMs = program.cpuMs()
  await pause(RESTING_MS)
  const rssMib = program.rssBytes() / 1024 ** 2
  await program.stop()
  return { readyMs, cpuMs, rssMib }
}

async function isReady(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => undefined)
  await response?.arrayBuffer()
  return response?.ok === true
}
