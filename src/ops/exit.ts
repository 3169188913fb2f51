import type { FastifyInstance } from 'fastify'
import { write } from 'node:fs'
import { names } from '../peers/names.ts'
import type { ServerLog } from '../telemetry/log.ts'
import { within } from '../time/within.ts'

/** Exit codes after a failure, so that an operator or process manager can tell them apart (sysexits.h). */
export const EXIT = {
  /** An uncaught exception. */
  crash: 1,
  /** EX_USAGE: unknown arguments. */
  usage: 64,
  /** EX_UNAVAILABLE: `--check` found a service that does not work, or `--sessions` found no server that does. */
  unavailable: 69,
  /** EX_OSERR: a port could not be opened. */
  cannotListen: 71,
  /** EX_IOERR: the end of the process has lost lines of its log. */
  logLost: 74,
  /** EX_CONFIG: wrong or missing settings. */
  config: 78,
} as const

/** With these exit codes, another process would fail in the same way. */
export const FINAL_CODES: ReadonlySet<number> = new Set([EXIT.config, EXIT.cannotListen])

/** Time for a line on stderr, whose reader may hang as well. */
const LAST_LINE_MS = 200
let isExiting = false

/**
 * Ends the process as soon as its log is written, or nothing reads it. Only the first call has an effect. If lines are lost, a
 * line on stderr counts them, and the exit code says so, unless that is one of {@link FINAL_CODES}.
 * @param patienceMs for how long a reader of the log may be slow
 */
export async function exitAfterFlush({ log, lines }: ServerLog, code: number, patienceMs?: number): Promise<never> {
  if (!isExiting) {
    isExiting = true
    const lost = await lines.end(patienceMs)
    if (lost === 0 && !isThreadTaken()) process.exit(code)
    if (lost > 0) await sayLost(log, lost, code)
    endAtOnce(lost === 0 || FINAL_CODES.has(code) ? code : EXIT.logLost)
  }
  return new Promise<never>(() => undefined)
}

/** Whether a name is being looked up, or a file read: that takes a thread, perhaps for ever. */
function isThreadTaken(): boolean {
  return names.isLookingUp || process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))
}

/** Says on stderr how many lines were lost, for as long as its reader may take. */
async function sayLost(log: ServerLog['log'], lines: number, insteadOf: number): Promise<void> {
  const msg = 'lines of the log were lost at the exit: nothing reads it, or it cannot be written'
  const last = { level: 50, time: new Date().toISOString(), ...log.bindings(), lines, insteadOf, msg }
  // Neither process.stderr nor writeSync: both may block this thread for ever.
  await within(LAST_LINE_MS, new Promise((resolve) => write(2, `${JSON.stringify(last)}\n`, resolve)))
}

/**
 * Ends the process although a file or a lookup of a name hangs. `process.exit` would wait for these, a file for ever, and ignore
 * signals, and a process 1, as in a container, cannot kill itself. So the process becomes another program, which exits.
 */
function endAtOnce(code: number): void {
  try {
    process.execve?.(process.execPath, [process.execPath, '--eval', `process.exitCode = ${code}`], {})
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}

/**
 * Listens; on `localhost` on 127.0.0.1 alone, since Fastify would open a server of its own for ::1, without the limits of this one. If
 * that fails, logs and prints why and ends the process; the promise then never settles.
 */
export async function listenOrExit(
  server: FastifyInstance,
  { host, port }: { readonly host: string; readonly port: number },
  serverLog: ServerLog,
): Promise<void> {
  try {
    await server.listen({ host: host === 'localhost' ? '127.0.0.1' : host, port })
  } catch (error) {
    serverLog.log.fatal({ err: error }, 'cannot listen')
    process.stderr.write(`Cannot listen on ${host}, port ${port}: ${(error as Error).message}\n`)
    await exitAfterFlush(serverLog, EXIT.cannotListen)
  }
}
