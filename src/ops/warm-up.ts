import { flushCompileCache, getCompileCacheDir } from 'node:module'
import { pino } from 'pino'
import { buildApp } from '../app.ts'
import { readConfig } from '../config/config.ts'
import { createOpsListener } from './ops-listener.ts'
import { MemoryStore } from '../store/memory-store.ts'
// What else a start loads, of one process and of several.
import './supervise.ts'
import '../serve.ts'

/** Settings that lead nowhere: what is built of them talks to nobody. */
const NOWHERE = {
  PUBLIC_URL: 'http://localhost',
  AUTH_URL: 'http://localhost',
  API_URL: 'http://localhost',
  WS_URL: 'ws://localhost',
  CLIENT_ID: 'none',
}

/**
 * Builds the whole server and drops it again, so that Node keeps what it compiled. No port is bound, nothing is
 * connected to, and it takes as long as the machine needs.
 * @returns what keeps it from being of use
 */
export async function warmUp(): Promise<string | undefined> {
  if (getCompileCacheDir() === undefined) return 'NODE_COMPILE_CACHE names no folder that can be written to.'
  const app = await buildApp(readConfig(NOWHERE), { store: new MemoryStore(), log: pino({ enabled: false }) })
  const ops = createOpsListener(app.ops)
  await Promise.all([app.server.ready(), ops.ready()])
  flushCompileCache()
  await Promise.all([app.close(), ops.close()])
  return undefined
}
