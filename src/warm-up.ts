import { flushCompileCache, getCompileCacheDir } from 'node:module'
import { pino } from 'pino'
import { buildApp } from './app.ts'
import { readConfig } from './config/config.ts'
import { createOpsListener } from './ops/ops-listener.ts'
import { MemoryStore } from './store/memory-store.ts'
// Loads the other modules of a start, with one process and with several.
import './ops/supervisor.ts'
import './serve.ts'

/** Minimal settings. A server that is only built from them opens no connections. */
const NOWHERE = {
  PUBLIC_URL: 'http://localhost',
  AUTH_URL: 'http://localhost',
  API_URL: 'http://localhost',
  WS_URL: 'ws://localhost',
  CLIENT_ID: 'none',
  // What a server with traces needs is loaded, too.
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost',
}

/**
 * Builds the whole server and drops it again, so that Node caches the compiled code. Opens no port and no connections.
 * @returns why it would be useless, if it would be
 */
export async function warmUp(): Promise<string | undefined> {
  if (getCompileCacheDir() === undefined) return 'NODE_COMPILE_CACHE must name a writable folder.'
  const config = readConfig(NOWHERE)
  const log = pino({ enabled: false })
  const app = await buildApp(config, { store: new MemoryStore(), log })
  const ops = createOpsListener(() => app.ops, { token: config.ops.token, log })
  await Promise.all([app.server.ready(), ops.ready()])
  flushCompileCache()
  await Promise.all([app.close(), ops.close()])
  return undefined
}
