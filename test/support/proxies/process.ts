import { spawn, spawnSync } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Test } from 'tap'
import { answers } from '../../../sandbox/listening.ts'
import { nextEvent } from '../time/until.ts'

/** Debian's programs and the packages that contain them. */
const PACKAGES = {
  nginx: 'nginx-light',
  haproxy: 'haproxy',
  sh: 'apache2',
  caddy: 'caddy',
  varnishd: 'varnish',
  varnishncsa: 'varnish',
  hitch: 'hitch',
  lighttpd: 'lighttpd lighttpd-mod-openssl',
  prometheus: 'prometheus',
} as const
/** A proxy that drains waits for its slowest connection. */
const STOP_MS = 30_000
type Program = keyof typeof PACKAGES

/** One of Debian's programs, which runs until the test ends. */
export interface ProxyProcess {
  /** Its output so far. */
  readonly output: () => Promise<string>
  /** Makes it read its files again. */
  readonly reload: () => boolean
  /** Lets it finish its connections. @returns its whole output */
  readonly stop: (signal: NodeJS.Signals) => Promise<string>
}

/**
 * Starts a proxy or Prometheus, and waits until it listens.
 * @param port where it will listen
 * @param log the file for its output
 * @throws Error when it is not installed, or ends
 */
export async function proxyProcess(
  t: Test,
  program: Program,
  options: readonly string[],
  { port, log }: { port: number; log: string },
): Promise<ProxyProcess> {
  const output = await open(log, 'a')
  // Debian installs them in /usr/sbin, which is not in every PATH.
  const env = { PATH: `${process.env['PATH']}:/usr/sbin`, HOME: dirname(log) }
  // By its whole path, without which lighttpd does not start itself again at a reload.
  const path = spawnSync('sh', ['-c', `command -v ${program}`], { env, encoding: 'utf8' }).stdout.trim()
  const child = spawn(path || program, options, { env, stdio: ['ignore', output.fd, output.fd] })
  t.teardown(async () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await nextEvent(child, 'exit')
    }
    await output.close()
  })
  const failed = new Promise<never>((_resolve, reject) => {
    child.once('error', (cause) =>
      reject(new Error(`This test needs ${program}: apt-get install ${PACKAGES[program]}`, { cause })),
    )
    child.once('exit', () => {
      void readFile(log, 'utf8').then((text) => reject(new Error(`${program} ended: ${text}`)))
    })
  })
  failed.catch(() => undefined)
  await Promise.race([answers(port), failed])
  return {
    output: () => readFile(log, 'utf8'),
    reload: () => child.kill('SIGHUP'),
    async stop(signal) {
      const ended = nextEvent(child, 'exit', STOP_MS)
      child.kill(signal)
      await ended
      return readFile(log, 'utf8')
    },
  }
}
