import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { chromium } from 'playwright-core'
import { test } from 'tap'
import { freePort } from '../sandbox/listening.ts'
import { CHROMIUM, CHROMIUM_ARGUMENTS } from './support/browser/chromium.ts'
import { developmentServer, listens, page, runSandbox, useThePage } from './support/sandbox/page-command.ts'
import { within } from './support/time/until.ts'

/** A name that is in no name service, so that it counts as production, at an address that only this machine has. */
const [NAME, ADDRESS] = ['phone.test', '127.0.0.2']

await test('npm run sandbox -- --page --host: a phone logs in, calls and opens sockets over TLS', async (t) => {
  // Made anew, and not by an earlier run.
  await rm(new URL(`../node_modules/.cache/sandbox-certificates/${NAME}-${ADDRESS}-127.0.0.1.json`, import.meta.url), {
    force: true,
  })
  const origin = await developmentServer(t, () => page('/client.js', ''))
  const sandbox = await runSandbox(t, ['--page', origin, '--host', NAME], { BIND: ADDRESS })
  const { PORT = 0, PROVIDER_PORT = 0, UPSTREAM_PORT = 0, OPS_PORT = 0 } = sandbox.ports
  const [url, provider] = [`https://${NAME}:${PORT}`, `https://${NAME}:${PROVIDER_PORT}`]
  t.same(sandbox.output, {
    stdout: `Open ${url} on the phone: it shows ${origin}. Any e-mail signs up; Ctrl-C stops everything.
The phone warns of the certificate, there and at ${provider}: go on. If no socket opens, install and trust ${url}/sandbox.crt there.
`,
    stderr: '',
  })
  const rules = [`MAP ${NAME} ${ADDRESS}`, 'EXCLUDE localhost'].join(',')
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [...CHROMIUM_ARGUMENTS, `--host-resolver-rules=${rules}`],
  })
  t.teardown(() => browser.close())
  const careful = await (await browser.newContext()).newPage()
  await t.rejects(careful.goto(url), /ERR_CERT_AUTHORITY_INVALID/, 'the phone warns')
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const tab = await context.newPage()
  await tab.goto(`${url}/deep/link`)
  await useThePage(tab)
  t.equal(tab.url(), `${url}/deep/link`)
  const session = (await context.cookies(url)).find(({ name }) => name === '__Host-session')
  t.match(session, { domain: NAME, secure: true, httpOnly: true })

  const authority = (await get(PORT, '/sandbox.crt')).body
  const trusted = await get(PORT, '/auth/session', authority)
  t.equal(trusted.status, 200, 'who trusts the authority is not warned')
  t.equal(trusted.headers['strict-transport-security'], undefined, 'no other program on this name is concerned')
  t.equal((await get(PROVIDER_PORT, '/sandbox.css', authority)).status, 200, 'nor at the provider')
  for (const port of [UPSTREAM_PORT, OPS_PORT]) t.notOk(await listens(port, ADDRESS), 'inside only')

  sandbox.signal('SIGINT')
  t.equal(await within(sandbox.exited, 'the sandbox ends'), 0)
  for (const port of [PORT, PROVIDER_PORT]) t.notOk(await listens(port, ADDRESS))
  const again = await runSandbox(t, ['--page', origin, '--host', NAME], { BIND: ADDRESS })
  t.equal(
    (await get(again.ports['PORT'] ?? 0, '/sandbox.crt', authority)).body,
    authority,
    'what was accepted once is accepted again',
  )
})

/** Asks as a client that trusts this authority, or anybody. */
async function get(port: number, path: string, ca?: string) {
  const asked = request({ host: ADDRESS, servername: NAME, port, path, ca, rejectUnauthorized: ca !== undefined }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  return {
    status: response.statusCode,
    headers: response.headers,
    body: (await response.setEncoding('utf8').toArray()).join(''),
  }
}

await test('npm run sandbox -- --page --host: a page that is not there is named', async (t) => {
  const origin = `http://localhost:${await freePort()}`
  const sandbox = await runSandbox(t, ['--page', origin, '--host', NAME], { BIND: ADDRESS })
  const { status, body } = await get(sandbox.ports['PORT'] ?? 0, '/')
  t.same([status, body], [502, `Nothing answers at ${origin}. Start it.\n`])
})
