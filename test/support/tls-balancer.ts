import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { proxyProcess } from './proxy-process.ts'

const DEPLOY = fileURLToPath(new URL('../../deploy', import.meta.url))

/** An instance as the balancer knows it. */
interface Instance {
  readonly port: number
  readonly opsPort: number
}

/** The balancer as deployed, in front of instances on this machine. */
export interface TlsBalancer {
  /** Lets it finish. @returns its log */
  readonly stop: () => Promise<string>
}

/**
 * Starts haproxy with the configuration of deploy/, which differs only in where things are, and in how
 * often it looks after them. This process trusts its certificate from then on.
 * @param port of the balancer
 */
export async function tlsBalancer(
  t: Test,
  port: number,
  instances: readonly Instance[],
): Promise<TlsBalancer> {
  const dir = t.testdir({})
  execFileSync(join(DEPLOY, 'make-secrets.sh'), [dir], { stdio: 'ignore' })
  const certificate = join(dir, 'certificate.pem')
  setDefaultCACertificates([...getCACertificates('default'), await readFile(certificate, 'utf8')])
  const servers = instances.map(
    (instance, index) => `server app${index} 127.0.0.1:${instance.port} port ${instance.opsPort}`,
  )
  const places: [from: string | RegExp, to: string][] = [
    ['bind :8080', `bind 127.0.0.1:${await freePort()}`],
    ['bind :8443', `bind 127.0.0.1:${port}`],
    ['/run/secrets/certificate', certificate],
    ['inter 1s', 'inter 500ms'],
    [/^ *server-template .*$/m, servers.map((line) => `  ${line}`).join('\n')],
  ]
  let text = await readFile(join(DEPLOY, 'haproxy.cfg'), 'utf8')
  for (const [from, to] of places) {
    const changed = text.replace(from, to)
    if (changed === text) throw new Error(`deploy/haproxy.cfg has no ${String(from)} any more`)
    text = changed
  }
  const files = join(dir, 'haproxy')
  await mkdir(files)
  const config = join(files, 'haproxy.cfg')
  await writeFile(config, text)
  const proxy = await proxyProcess(t, 'haproxy', ['-db', '-f', config], { port, log: join(files, 'log') })
  return { stop: () => proxy.stop('SIGUSR1') }
}
