import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../sandbox/listening.ts'
import { programOf, publicOrigin, settingsOf, THIS_SERVER } from '../contenders.ts'
import { Program } from '../program.ts'
import { shown, type Report } from '../report.ts'
import { ratio, rounds, spread } from '../rounds.ts'
import { startWorld, type World } from '../world.ts'

const ROUNDS = 11
const RESTING_MS = 1500
const POLL_MS = 2
const HELLO = 'Fastify hello-world'
const HELLO_CACHED = `${HELLO}, started as this server is`
const LIMIT = 2

interface Contender {
  readonly name: string
  /** What Node is started with. */
  readonly program: readonly string[]
  readonly path: string
  /** Of its environment. */
  readonly more: Readonly<Record<string, string>>
}

interface Start {
  readonly readyMs: number
  readonly cpuMs: number
  readonly rssMib: number
}

/** From the start of the process to the first good answer, and what the process then takes at rest. */
export async function start(): Promise<Report> {
  const world = await startWorld([`${publicOrigin(1)}/auth/callback`])
  const compiled = await mkdtemp(join(tmpdir(), 'bff-bench-compiled-'))
  // As `npm start` and the image do.
  const cache = { NODE_COMPILE_CACHE: compiled, NODE_PRESERVE_SYMLINKS: '1' }
  const ours = programOf()
  const hello = fileURLToPath(new URL('../bare/hello.ts', import.meta.url))
  const contenders: readonly Contender[] = [
    { name: THIS_SERVER, program: ours, path: '/readyz', more: cache },
    { name: HELLO, program: [hello], path: '/', more: {} },
    { name: HELLO_CACHED, program: [...ours.slice(0, -1), hello], path: '/', more: cache },
  ]
  // What is compiled is kept by then, as in the image.
  await rounds(contenders, 1, (contender) => measure(world, contender))
  const results = await rounds(contenders, ROUNDS, (contender) => measure(world, contender))
  await rm(compiled, { recursive: true })
  const of = (name: string, figure: keyof Start): number[] =>
    results.get(name)?.map((round) => round[figure]) ?? []
  const toHello = (name: string, figure: keyof Start): string =>
    shown(ratio(of(name, figure), of(HELLO, figure)))
  const startRatio = ratio(of(THIS_SERVER, 'readyMs'), of(HELLO, 'readyMs'))
  return {
    name: 'start',
    title: 'Start to ready',
    tables: [
      {
        title: `${HELLO} = 1`,
        columns: ['', 'start to ready', 'processor time', 'RSS at rest'],
        rows: [THIS_SERVER, HELLO_CACHED].map((name) => [
          name,
          toHello(name, 'readyMs'),
          toHello(name, 'cpuMs'),
          toHello(name, 'rssMib'),
        ]),
      },
      {
        title: 'Figures',
        columns: ['', 'start to ready, ms', 'processor ms', 'RSS at rest, MiB'],
        rows: contenders.map(({ name }) => [
          name,
          shown(spread(of(name, 'readyMs')), 0),
          shown(spread(of(name, 'cpuMs')), 0),
          shown(spread(of(name, 'rssMib')), 0),
        ]),
      },
    ],
    goals: [
      {
        goal: `start to ready ≤ ${LIMIT} × a bare ${HELLO}`,
        measured: `${shown(startRatio)} ×`,
        isMet: startRatio.median <= LIMIT,
      },
    ],
    notes: [
      `${ROUNDS} starts each, in turns. Ready is the first 200 of /readyz, with Redis reached; of the hello-world, of its only page. At rest is ${RESTING_MS / 1000} s later.`,
    ],
    raw: Object.fromEntries(results),
  }
}

async function measure(world: World, { name, program: args, path, more }: Contender): Promise<Start> {
  const port = await freePort()
  const opsPort = await freePort()
  const env =
    name === THIS_SERVER ? { ...settingsOf(world, port), OPS_PORT: String(opsPort) } : { PORT: String(port) }
  const startedAt = performance.now()
  const program = new Program(name, process.execPath, args, { env: { ...env, ...more }, on: 'measured' })
  const url = `http://127.0.0.1:${name === THIS_SERVER ? opsPort : port}${path}`
  while (!(await isGood(url))) {
    if (!program.isRunning) throw new Error(program.lastWords())
    await pause(POLL_MS)
  }
  const readyMs = performance.now() - startedAt
  const cpuMs = program.cpuMs()
  await pause(RESTING_MS)
  const rssMib = program.rssBytes() / 1024 ** 2
  await program.stop()
  return { readyMs, cpuMs, rssMib }
}

async function isGood(url: string): Promise<boolean> {
  const answer = await fetch(url).catch(() => undefined)
  await answer?.arrayBuffer()
  return answer?.ok === true
}
