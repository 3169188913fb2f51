import Fastify, { type FastifyBaseLogger, type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify'
import { Gauge, Registry } from 'prom-client'
import type { Changing } from '../config/changing.ts'
import type { Config } from '../config/config.ts'
import type { StoreHealth } from '../store/store.ts'
import type { ServerLog } from '../telemetry/log.ts'
import { PendingResponses } from '../http/http-socket.ts'
import { isHttp1, NO_SCHEMAS, WRONG_VERSION } from '../http/listener.ts'
import { readBeforeJudging } from '../http/read-before-judging.ts'
import { listenOrExit } from './exit.ts'
import { operatorRoutes } from './operator-routes.ts'
import type { RunCommand } from './operator-commands.ts'

/** The ops listener reports this about one process, or about all workers of a supervisor. */
export interface OpsSource {
  /** The reasons why the server should get no traffic; empty if it is ready. */
  reasons(): string[] | Promise<string[]>
  /** Problems that an operator should fix although the server is ready. */
  warnings(): string[] | Promise<string[]>
  /** The current metrics. */
  registry(): Registry | Promise<Registry>
  /** The key of the fingerprints of secrets, for a supervisor, which has no store. */
  readonly fingerprintKey?: () => Promise<string | undefined>
  /** Does what operators ask. Absent until the server is there. */
  readonly runCommand?: RunCommand | undefined
}

/** Bounds how long the sender of a body that never ends holds a connection. */
const REQUEST_TIMEOUT_MS = 60_000

interface OperatorAccess {
  /** OPS_TOKEN; without it the paths do not exist. */
  readonly token: Changing<string> | undefined
  readonly log: FastifyBaseLogger
}

/**
 * Whether a server should get traffic, and why not.
 * @param graceMs an outage of the store shorter than this does not make the server unready. A store that was never reached is
 * no outage: its address or password may be wrong, and a roll must not go on with that.
 */
export function readiness({ server }: FastifyInstance, store: StoreHealth, graceMs: number) {
  let isDraining = false
  return {
    /** From now on the server is not ready. */
    drain: (): void => void (isDraining = true),
    reasons: (): string[] => {
      const downSince = store.unavailableSince()
      const isDown = downSince !== undefined && performance.now() - downSince >= graceMs
      const { why } = store.condition()
      const causes = why.length === 0 ? [''] : why.map((cause) => `: ${cause}`)
      return [
        ...(isDraining ? ['draining'] : server.listening ? [] : ['starting']),
        ...(isDown ? causes.map((cause) => `session store unavailable${cause}`) : []),
      ]
    },
    warnings: (): string[] => store.warnings(),
  } satisfies Pick<OpsSource, 'reasons' | 'warnings'> & { drain: () => void }
}

/**
 * Creates the listener for operators, with liveness, readiness and metrics. The public port has none of these.
 * @param source is asked anew for each request
 */
export function createOpsListener(source: () => OpsSource, { token, log }: OperatorAccess): FastifyInstance {
  const pending = new PendingResponses()
  const ops = Fastify({
    logger: false,
    schemaController: NO_SCHEMAS,
    exposeHeadRoutes: true,
    forceCloseConnections: true,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // A path that cannot be decoded is such an error.
    frameworkErrors: ({ message }, { raw }, reply: FastifyReply) => {
      if (pending.begin(raw, reply.raw)) void reply.code(400).send({ error: message })
    },
  })

  // All headers count, as on the public port.
  ops.server.maxHeadersCount = 0
  readBeforeJudging(ops.server)

  ops.addHook('onRequest', async ({ raw }, reply) => {
    if (!pending.begin(raw, reply.raw)) reply.hijack()
  })
  ops.addHook('onRequest', async ({ raw }, reply) => {
    if (isHttp1(raw)) return
    return reply
      .code(WRONG_VERSION)
      .header('connection', 'close')
      .send({ error: 'The version of HTTP must be 1.1 or 1.0' })
  })

  ops.setErrorHandler((error: FastifyError, _request, reply) => {
    const { statusCode = 500, message } = error
    if (statusCode < 500) return reply.code(statusCode).send({ error: message })
    log.error({ err: error }, 'a request to the ops listener failed')
    return reply.code(500).send({ error: 'Internal error' })
  })
  ops.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'Unknown path or method' }))

  ops.get('/livez', async (_request, reply) => reply.type('text/plain').send('ok\n'))

  // The provider does not count: no restart and no other instance would help while it fails.
  ops.get('/readyz', async (_request, reply) => {
    const [reasons, warnings] = await Promise.all([source().reasons(), source().warnings()])
    const ready = reasons.length === 0
    return reply.code(ready ? 200 : 503).send({ ready, reasons, warnings })
  })

  const runCommand: RunCommand = async (...command) => (await source().runCommand?.(...command)) ?? { is: 'noWorker' }
  if (token !== undefined) void ops.register(operatorRoutes, { token, runCommand, log })

  const own = new Registry()
  const readiness = new Gauge({
    name: 'bff_ready',
    help: '1 while /readyz responds 200',
    registers: [own],
  })
  ops.get('/metrics', async (_request, reply) => {
    const registry = await source().registry()
    readiness.set(Number((await source().reasons()).length === 0))
    return reply.type(registry.contentType).send((await registry.metrics()) + (await own.metrics()))
  })
  return ops
}

/**
 * The ops listener of a process. It stays open from the first report to the end, since a liveness probe that finds the
 * port closed for a moment may have the process killed.
 */
export class OpsPort {
  readonly #config: Pick<Config, 'listen' | 'ops'>
  readonly #log: ServerLog
  #source: OpsSource | undefined
  #listener: ReturnType<typeof createOpsListener> | undefined

  constructor(config: Pick<Config, 'listen' | 'ops'>, log: ServerLog) {
    this.#config = config
    this.#log = log
  }

  /** Answers from now on with what this source says. The first call opens the port; if it cannot, the process ends. */
  async report(source: OpsSource): Promise<void> {
    this.#source = source
    if (this.#listener !== undefined) return
    const { listen, ops } = this.#config
    this.#listener = createOpsListener(() => this.#source ?? source, { token: ops.token, log: this.#log.log })
    await listenOrExit(this.#listener, { host: listen.opsHost, port: listen.opsPort }, this.#log)
  }

  async close(): Promise<void> {
    await this.#listener?.close()
  }
}
