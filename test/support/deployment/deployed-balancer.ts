import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { makeSecrets } from './files.ts'
import { proxyProcess, type ProxyProcess } from '../proxies/process.ts'

const DEPLOY = fileURLToPath(new URL('../../../deploy', import.meta.url))

/** The origin that browsers use. */
export const PUBLIC_URL = 'https://localhost:8443'

/** Installs a new certificate for localhost where the proxies expect it, and makes this process trust it, too. */
export async function installCertificate(t: Test, dir = join(t.testdir({}), 'secrets')): Promise<void> {
  makeSecrets(dir)
  const certificate = join(dir, 'certificate.pem')
  setDefaultCACertificates([...getCACertificates('default'), await readFile(certificate, 'utf8')])
  await copyFile(certificate, '/run/secrets/certificate')
}

/**
 * Starts haproxy with deploy/haproxy.cfg inside enterNamespaces(). It needs a name server.
 * @param edit changes timeouts that a test cannot wait for; without it the file runs unchanged
 */
export async function deployedBalancer(t: Test, edit?: (text: string) => string): Promise<ProxyProcess> {
  await installCertificate(t)
  const files = t.testdir({})
  let config = join(DEPLOY, 'haproxy.cfg')
  if (edit !== undefined) {
    const text = await readFile(config, 'utf8')
    const edited = edit(text)
    if (edited === text) throw new Error('deploy/haproxy.cfg has no longer what should be changed')
    config = join(files, 'haproxy.cfg')
    await writeFile(config, edited)
  }
  // With a master process, as in haproxy's image.
  return proxyProcess(t, 'haproxy', ['-W', '-db', '-f', config], {
    port: Number(new URL(PUBLIC_URL).port),
    log: join(files, 'log'),
  })
}
