import cluster from 'node:cluster'
import { flushCompileCache } from 'node:module'
import { buildApp } from './app.ts'
import type { Config } from './config/config.ts'
import type { ServerLog } from './telemetry/log.ts'
import { createOpsListener } from './ops/ops-listener.ts'
import { listenOrExit } from './ops/listen-or-exit.ts'
import { installShutdown } from './ops/shutdown.ts'
import { handleSupervisorMessages } from './ops/worker-channel.ts'
import { MemoryStore } from './store/memory-store.ts'
import { RedisStore } from './store/redis-store.ts'

const STORE_WAIT_MS = 3000
/** A worker has ended by itself, its log written, before its supervisor kills what is left. */
const WORKER_AHEAD_MS = 500

/** Runs the server in this process: the only one, or a worker, whose supervisor has the ops listener. */
export async function serve(config: Config, { log, droppedLines }: ServerLog): Promise<void> {
  const store = config.redisUrl === undefined ? new MemoryStore() : RedisStore.connect(config.redisUrl, log)
  const app = await buildApp(config, { store, log, droppedLines })
  const ops = cluster.isWorker ? undefined : createOpsListener(app.ops)

  const shutdown = installShutdown({
    log,
    drainMs: cluster.isWorker
      ? Math.max(config.drainMs - WORKER_AHEAD_MS, config.drainMs / 2)
      : config.drainMs,
    ignoresSignals: cluster.isWorker,
    async close(isCrash) {
      await app.close(isCrash ? 0 : config.drainWaitMs)
      await Promise.all([ops?.close(), store.close()])
    },
  })
  if (cluster.isWorker) handleSupervisorMessages(app.ops, () => shutdown({ by: 'supervisor' }))

  const { host, port, opsPort } = config.listen
  // Alive from here on; ready once the store has been reached, or has been waited for long enough.
  if (ops !== undefined) await listenOrExit(ops, { host, port: opsPort }, log)
  if (store instanceof RedisStore) await store.connected(STORE_WAIT_MS)
  await listenOrExit(app.server, { host, port }, log)
  log.info({ publicUrl: config.publicUrl }, 'ready')
  // For the next start, of a worker that replaces this one perhaps.
  flushCompileCache()
}
