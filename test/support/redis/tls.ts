import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'

/** A CA of the test's own, and a server certificate of it for loopback names. */
export interface TestCa {
  readonly caFile: string
  /** The server's certificate and key in one file. */
  readonly pemFile: string
  /** The options of a redis-server that speaks TLS on this port. */
  readonly serverOptions: (tlsPort: number) => string[]
}

const EC_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** Makes a CA that ends with the test. */
export async function testCa(t: Test): Promise<TestCa> {
  const dir = await mkdtemp(join(tmpdir(), 'bff-tls-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: 'ignore' })
  const self = ['req', '-x509', ...EC_KEY, '-days', '1', '-subj', '/CN=test CA']
  openssl(...self, '-keyout', 'ca.key', '-out', 'ca.crt')
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  openssl('req', ...EC_KEY, '-subj', '/CN=x', '-keyout', 'redis.key', '-out', 'redis.csr', '-addext', names)
  const signed = ['x509', '-req', '-in', 'redis.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-days', '1']
  openssl(...signed, '-copy_extensions', 'copy', '-out', 'redis.crt')
  const caFile = join(dir, 'ca.crt')
  const pemFile = join(dir, 'server.pem')
  const parts = await Promise.all(['redis.crt', 'redis.key'].map((name) => readFile(join(dir, name))))
  await writeFile(pemFile, Buffer.concat(parts))
  return {
    caFile,
    pemFile,
    serverOptions: (tlsPort) => [
      ...['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', '--tls-ca-cert-file', caFile],
      ...['--tls-cert-file', join(dir, 'redis.crt'), '--tls-key-file', join(dir, 'redis.key')],
    ],
  }
}

/** Makes this process trust a CA until the test ends. NODE_EXTRA_CA_CERTS would be read only at its start. */
export async function trust(t: Test, { caFile }: TestCa): Promise<void> {
  const added = await readFile(caFile, 'utf8')
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, added])
  t.teardown(() => setDefaultCACertificates(before))
}
