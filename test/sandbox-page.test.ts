import { test } from 'tap'
import { freePort } from '../sandbox/listening.ts'
import { testChromium } from './support/browser/chromium.ts'
import { FRONTENDS_GUIDE } from './support/browser/documented-samples.ts'
import { developmentServer, listens, page, runSandbox, useThePage } from './support/sandbox/page-command.ts'
import { takenPort } from './support/server/http-server.ts'
import { within } from './support/time/until.ts'

await test('npm run sandbox -- --page: a page on another port logs in, calls and opens sockets; Ctrl-C ends all', async (t) => {
  const port = await freePort()
  const server = `http://localhost:${port}`
  const origin = await developmentServer(t, () => page(`${server}/client.js`, server))
  const other = 'http://localhost:5174'
  const [, OPS_TOKEN = '', pause = ''] =
    /Bearer (\S+?)' .*\/controls\/orders \\\n *-d '(.*)'/.exec(FRONTENDS_GUIDE) ?? []
  t.ok(FRONTENDS_GUIDE.includes(`OPS_TOKEN=${OPS_TOKEN} npm run sandbox -- --page`))
  const env = { PORT: String(port), FRONTEND_ORIGINS: other, OPS_TOKEN }
  const sandbox = await runSandbox(t, ['--page', origin], env)
  t.same(sandbox.output, {
    stdout: `Open ${origin}. The server is at ${server}; any e-mail signs up; Ctrl-C stops everything.\n`,
    stderr: '',
  })
  const tab = await (await testChromium(t)).newPage()
  await tab.goto(`${origin}/deep/link`)
  await useThePage(tab)
  t.equal(tab.url(), `${origin}/deep/link`)
  const allowed = await fetch(`${server}/api/v1/health`, { headers: { 'x-csrf': '1', origin: other } })
  t.equal(allowed.headers.get('access-control-allow-origin'), other, 'FRONTEND_ORIGINS adds to it')
  const authorization = `Bearer ${OPS_TOKEN}`
  const controls = `http://127.0.0.1:${sandbox.ports['OPS_PORT']}/controls/orders`
  const paused = await fetch(controls, { method: 'PUT', headers: { authorization }, body: pause })
  t.equal(paused.status, 200, 'the command of docs/frontends.md')
  const asked = `fetch('${server}/auth/session', { credentials: 'include' }).then((response) => response.json())`
  t.match(await tab.evaluate(asked), { orders_paused: { message: /^Prices of R_100/ } })

  sandbox.signal('SIGINT')
  t.equal(await within(sandbox.exited, 'the sandbox ends'), 0)
  for (const each of [port, ...Object.values({ ...sandbox.ports, PORT: port })]) {
    t.notOk(await listens(each, '127.0.0.1'), `nothing listens on ${each} any more`)
  }
})

await test('npm run sandbox refuses what cannot work with a sentence that says what to do', async (t) => {
  const [taken, other, twice] = [await takenPort(t), await takenPort(t), String(await freePort())]
  const page = ['--page', 'http://localhost:5173']
  const cases: [args: string[], sentence: RegExp, env?: Record<string, string>][] = [
    [
      [...page, '--host', '192.0.2.1'],
      /^This machine does not have the address 192\.0\.2\.1\. Start with --host and one that it has: /,
    ],
    [[...page, '--host', 'no-such-host.invalid'], /^This machine does not have the address no-such-host\.invalid\. /],
    [
      page,
      new RegExp(`^Port ${taken} is taken\\. .*: PORT=\\d+ .* npm run sandbox -- --page http://localhost:5173$`),
      { PORT: String(taken) },
    ],
    [
      ['--page', `http://localhost:${taken}`],
      /^Port \d+ is that of your page, port \d+ is taken\. .*: PORT=\d+ OPS_PORT=\d+ .* npm run sandbox/,
      { PORT: String(taken), OPS_PORT: String(other) },
    ],
    [page, /LOG_LEVEL must be /, { LOG_LEVEL: 'loud' }],
    [page, /^OPS_PORT must be a port from 1 to 65535$/, { OPS_PORT: '0' }],
    [
      page,
      /^Port \d+ is that of PROVIDER_PORT\. .* PROVIDER_PORT=\d+ UPSTREAM_PORT=\d+ npm run/,
      { PROVIDER_PORT: twice, UPSTREAM_PORT: twice },
    ],
    [['--port', '5173'], /^Unknown option '--port'.* Usage: npm run sandbox -- --page http:\/\/localhost:5173/],
  ]
  const refused = cases.map(async ([args, sentence, env]) => {
    const { output, exited } = await runSandbox(t, args, env)
    t.equal(await exited, 1, args.join(' '))
    t.equal(output.stdout, '')
    t.match(output.stderr.trimEnd(), sentence)
    t.notMatch(output.stderr, /\n\s+at /, 'no stack')
  })
  await Promise.all(refused)
})
