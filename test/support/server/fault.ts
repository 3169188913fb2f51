/**
 * Loaded into a server process with `node --import`. On SIGUSR2 it causes the fault that FAULT names.
 */
import cluster from 'node:cluster'
import { pbkdf2 } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import dns from 'node:dns'
import { names } from '../../../src/peers/names.ts'

const block = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const faults: Record<string, () => void> = {
  throw() {
    throw new Error('a planted error')
  },
  /** From now on a promise of each request rejects, and nothing awaits it. */
  reject() {
    subscribe('http.server.request.start', () => void Promise.reject(new Error('a planted rejection')))
    process.stderr.write('rejecting\n')
  },
  /** Promises reject with what is no error, and with an error whose message is no text. */
  rejectOddly() {
    void Promise.reject(undefined)
    void Promise.reject(Object.assign(new Error(), { message: undefined }))
  },
  twice() {
    setImmediate(() => faults['throw']?.())
    throw new Error('a planted error')
  },
  /** Exits as a process that has lost lines of its log. */
  logLost() {
    process.exit(74)
  },
  /** Looks up a name, which takes its thread for minutes. */
  lookup() {
    Object.assign(dns, { lookup: () => pbkdf2('', '', 2 ** 30, 64, 'sha512', () => undefined) })
    names.for('provider')('silent.test', { all: true }, () => undefined)
    process.stderr.write('looking up\n')
  },
  /** Blocks for longer than any test, but not for ever. */
  hang() {
    block(60_000)
  },
  /** Blocks again and again, and replies in between. */
  lag() {
    setInterval(() => block(400), 450)
  },
}
process.on('SIGUSR2', () => faults[process.env['FAULT'] ?? '']?.())

const exitCode = process.env['WORKER_EXITS_WITH']
if (cluster.isWorker && exitCode !== undefined) process.exit(Number(exitCode))
