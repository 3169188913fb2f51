import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { startFleet } from '../support/deployment/deployed.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { checkProxy, checkSilentHost } from '../support/proxies/checks.ts'
import { LIGHTTPD } from '../support/proxies/documented-proxies.ts'
import { openSocket } from '../support/proxies/sockets.ts'
import { ready } from '../support/server/server-process.ts'
import { untilSlow } from '../support/time/until.ts'
import { PUBLIC } from '../support/user.ts'

const skip = enterNamespaces()

await test('lighttpd with the documented configuration meets the requirements for a balancer', { skip }, (t) =>
  checkProxy(t, LIGHTTPD),
)

await test('lighttpd loses no request to a host that is gone', { skip }, (t) => checkSilentHost(t, LIGHTTPD))

await test('At a reload of lighttpd, requests do not wait until the sockets have closed', { skip }, async (t) => {
  const { publicUrl, hosts } = LIGHTTPD
  const { launch, upstream } = await startFleet(t, publicUrl)
  upstream.onSocket = (socket) => socket.on('message', (data) => socket.send(data as Buffer, { binary: false }))
  t.ok(await ready(await launch(hosts[0])))
  await LIGHTTPD.start(t, false)
  const isServing = async (): Promise<boolean> =>
    (await fetch(`${publicUrl}/auth/session`, { headers: { connection: 'close' } }).catch(() => undefined))?.ok === true
  await untilSlow(isServing)
  const line = await openSocket(t, publicUrl, new JarBrowser(), PUBLIC)

  const [pid] = execFileSync('pidof', ['lighttpd'], { encoding: 'utf8' }).split(' ')
  process.kill(Number(pid), 'SIGUSR1')
  const starts = (): number => readFileSync(join(t.testdirName, 'lighttpd'), 'utf8').split('server started').length - 1
  await untilSlow(() => starts() === 2, 'lighttpd has read its file again')
  t.ok(await isServing(), 'requests are answered')
  // Version 1.4.69 keeps the socket; 1.4.79 cuts it at once, and its page opens another one.
  line.socket.send('still here')
  await line.count(1)
  const used = line.texts.length === 1 ? line : await openSocket(t, publicUrl, new JarBrowser(), PUBLIC)
  used.socket.send('once more')
  await used.count(line === used ? 2 : 1)
  t.equal(used.texts.at(-1), 'once more', `a socket works, ${line === used ? 'the same' : 'another'}`)
})
