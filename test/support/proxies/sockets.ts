import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { RawData } from 'ws'
import { BrowserSocket } from '../browser/browser-socket.ts'
import type { Fleet } from '../deployment/deployed.ts'
import { JarBrowser } from '../browser/jar-browser.ts'
import { digest } from './requests.ts'
import { PUBLIC, TRADING } from '../user.ts'

/** Longer than the short timeouts of a proxy, shorter than the documented ones. */
export const SILENCE_MS = 3000
const LARGE = Buffer.alloc(60_000, 'a message of some length ')

/** Opens a socket as a page of the frontend does. */
export function openSocket(t: Test, publicUrl: string, browser: JarBrowser, path: string): Promise<BrowserSocket> {
  return socket(t, publicUrl, { path, origin: publicUrl, browser }).opened()
}

function socket(
  t: Test,
  publicUrl: string,
  { path, origin, browser }: { path: string; origin: string; browser: JarBrowser },
): BrowserSocket {
  const url = new URL(path, publicUrl)
  const cookie = browser.cookieHeader(url, url)
  const line = new BrowserSocket(url.href.replace('https', 'wss'), {
    origin,
    ...(cookie !== '' && { cookie }),
  })
  t.teardown(() => line.socket.terminate())
  return line
}

/** Checks that sockets of both kinds pass messages, closes and refusals, and survive silence. */
export async function socketsPass(t: Test, fleet: Fleet, publicUrl: string, browser: JarBrowser): Promise<void> {
  fleet.upstream.onSocket = (upstream) => {
    upstream.on('message', (data, isBinary) => {
      if (isLast(data)) upstream.close(4321, 'as told')
      else upstream.send(data as Buffer, { binary: isBinary })
    })
  }
  const silent = await openSocket(t, publicUrl, browser, PUBLIC)
  const silence = delay(SILENCE_MS)
  for (const path of [PUBLIC, TRADING]) {
    const line = await openSocket(t, publicUrl, browser, path)
    line.socket.send('text')
    line.socket.send(LARGE)
    const received = await line.count(2)
    t.same(
      received.map(({ isBinary }) => isBinary),
      [false, true],
    )
    t.same(
      received.map(({ data }) => digest(data)),
      [digest(Buffer.from('text')), digest(LARGE)],
      path,
    )
    line.socket.send('leave')
    t.same(await line.closed, { code: 4321, reason: 'as told' })
  }
  t.equal(await socket(t, publicUrl, { path: PUBLIC, origin: 'https://elsewhere.example', browser }).refusedWith(), 403)
  const stranger = socket(t, publicUrl, { path: TRADING, origin: publicUrl, browser: new JarBrowser() })
  t.same(await stranger.closed, { code: 4401, reason: 'login_required' }, 'a refusal comes through')
  t.equal((await fetch(new URL(PUBLIC, publicUrl), { headers: { origin: publicUrl } })).status, 426)

  await silence
  silent.socket.send('still here')
  await silent.count(1)
  t.same(silent.texts, ['still here'], `a socket that was silent for ${SILENCE_MS} ms works`)
  silent.socket.terminate()
}

const isLast = (data: RawData): boolean => Buffer.isBuffer(data) && data.toString() === 'leave'
