import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'tap'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'
import { startWorld } from '../support/world.ts'

if (spawnSync('curl', ['--version']).status !== 0) throw new Error('This test needs curl: apt-get install curl')

/** Runs the commands of the runbook. Resolves to their exit code. */
async function probe(site: string): Promise<number> {
  const [, script = ''] = /## A probe from outside[^]*?```bash\n([^]*?)```/.exec(OPERATING_GUIDE) ?? []
  const shell = spawn('bash', ['-c', script], { env: { PATH: process.env['PATH'], SITE: site }, stdio: 'ignore' })
  const [code] = (await once(shell, 'exit')) as [number]
  return code
}

await test('The probe of the runbook ends with 0 while all is well, and else says how far a request gets', async (t) => {
  const { upstream, server, redis } = await startWorld(t, { upstream: 'scripted', redis: true })
  t.equal(await probe(server.url), 0, 'all is well')

  upstream.onUpgrade = (_request, socket) => void socket.end('HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n')
  t.equal(await probe(server.url), 4, 'upstream refuses sockets')
  upstream.onUpgrade = undefined

  redis?.process.kill('SIGSTOP')
  t.equal(await probe(server.url), 3, 'Redis does not respond')
  redis?.process.kill('SIGCONT')

  const restDown = await startWorld(t, { upstream: 'scripted' })
  restDown.upstream.onRest = (_request, response) => void response.writeHead(503).end()
  t.equal(await probe(restDown.server.url), 2, 'the REST API of upstream fails')

  await restDown.server.close()
  t.equal(await probe(restDown.server.url), 1, 'nothing listens')
})
