import { BrowserSocket } from '../../support/browser/browser-socket.ts'
import { nextEvent } from '../../support/time/until.ts'
import type { Call, Socket } from '../history.ts'
import type { Page } from './page.ts'

const OPENS_MS = 12_000
/** How often a page asks on its trading socket whether the connection works. */
const PINGS_MS = 400

/** An open socket of a page. */
export interface OpenSocket {
  readonly noted: Socket
  readonly send: (message: object) => void
  readonly close: () => void
}

/** Opens a socket, as a page does. @returns undefined if it was refused, or did not open in time */
export async function openSocket(page: Page, kind: Socket['kind'], path: string): Promise<OpenSocket | undefined> {
  const { fleet, session, name: user } = page
  const { now, history } = fleet.observer
  const { at: instance, links } = page.instance
  const headers = { origin: fleet.publicUrl, ...(kind === 'trading' && { cookie: page.cookie }) }
  const opening: Call = {
    ...{ user, session, instance, kind: 'socket', path, key: undefined, body: '', isReplayed: false },
    ...{ began: undefined, requestId: undefined },
    ...{ at: now(), until: undefined, result: '' },
  }
  history.calls.push(opening)
  const browser = new BrowserSocket(`ws://127.0.0.1:${links.browsers.port}${path}`, headers)
  fleet.t.teardown(() => browser.socket.terminate())
  const noted: Socket = {
    ...{ user, session, instance, kind, openedAt: now(), isClosedByPage: false, sent: [], received: [] },
    ...{ closedAt: undefined, closed: undefined },
  }
  browser.socket.on('message', (data: Buffer) => noted.received.push({ at: now(), text: data.toString() }))
  browser.socket.on('close', (code, reason) => {
    noted.closedAt = now()
    noted.closed = { code, reason: reason.toString() }
    if (code === 4401) page.forget(session)
  })
  const isOpen = await nextEvent(browser.socket, 'open', OPENS_MS).then(
    () => true,
    () => false,
  )
  // A refusal is a close frame right behind the handshake, so a socket is open once it has answered.
  if (isOpen) {
    browser.socket.send('{"ping":1}')
    await Promise.race([
      nextEvent(browser.socket, 'message', OPENS_MS),
      nextEvent(browser.socket, 'close', OPENS_MS),
    ]).catch(() => undefined)
  }
  opening.until = now()
  opening.result = noted.received.length > 0 ? 'ok' : (noted.closed?.reason.split(';')[0] ?? 'no_answer') || 'no_answer'
  const close = (): void => {
    noted.isClosedByPage = true
    browser.socket.close()
  }
  if (opening.result !== 'ok') return void browser.socket.terminate()
  history.sockets.push(noted)
  const send = (message: object): void => {
    if (browser.socket.readyState !== browser.socket.OPEN) return
    const text = JSON.stringify(message)
    noted.sent.push({ at: now(), text })
    browser.socket.send(text)
  }
  if (kind === 'trading') {
    const pings = setInterval(() => send({ ping: 1 }), PINGS_MS)
    browser.socket.on('close', () => clearInterval(pings))
  }
  return { noted, close, send }
}
