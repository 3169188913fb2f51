import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Client } from '../../../client/dist/client.js'
import { TRANSFER } from '../../support/user.ts'
import type { Fleet } from '../fleet.ts'
import type { Intention } from '../history.ts'
import type { Actor } from '../plan.ts'
import { Page } from './page.ts'

const THINKS_MS = { least: 100, most: 500 }
/** After a login that failed. */
const AGAIN_MS = 1000
/** A page that has no answer by then stops waiting. */
const GIVES_UP_MS = 12_000
/** The share of pages that forget to pass the key on that `once` gives them, which still compiles in JavaScript. */
const FORGETS = 0.4
/** The share of users who leave the dialogue while the order is under way, and how soon. */
const LEAVES = 0.2
const LEAVES_MS = 60
/** The share of transfers that are made again. */
const REPEATS = 0.3
const PATH = TRANSFER.replace('/api', '')

/** What a browser keeps for a tab. */
const kept = new Map<string, string>()
const STORAGE = {
  getItem: (name: string) => kept.get(name) ?? null,
  setItem: (name: string, text: string) => void kept.set(name, text),
  removeItem: (name: string) => void kept.delete(name),
}

type Untyped = (path: string, init: object) => Promise<Response>
type Package = typeof import('../../../client/dist/client.js')

/** Acts for somebody whose page has the browser package of the fleet's checkout, until the run is over: makes transfers. */
export async function actAsPage(actor: Actor, fleet: Fleet, over: AbortSignal): Promise<void> {
  const page = new Page(actor, fleet)
  const module = pathToFileURL(join(fleet.checkout, 'client/dist/client.js'))
  Object.assign(globalThis, { sessionStorage: STORAGE })
  const { createClient, once } = (await import(module.href)) as Package
  let client: Client | undefined
  for (let nth = 0; !over.aborted; nth++) {
    if (page.session === undefined) {
      client?.close()
      client = createClient(page.options)
      if ((await page.logIn()).result !== 'ok') await pause(AGAIN_MS)
      continue
    }
    const act = page.random() < REPEATS ? repeat : transfer
    if (client !== undefined) await act(page, client, once, `${page.name}-wants-${nth}`)
    const { least, most } = THINKS_MS
    await pause(least + page.random() * (most - least))
  }
  client?.close()
}

/**
 * A transfer by a page that remembers it: the user clicks twice, makes the same one again as soon as the first click is answered,
 * leaves, and after a reload makes that again if they were not told what became of it. A second click that comes after the answer
 * to the first is another transfer, and has another answer.
 */
async function repeat(page: Page, client: Client, once: Package['once'], recipient: string): Promise<void> {
  const { now, history } = page.fleet.observer
  const { name: user, session } = page
  const intention: Intention = { user, session, recipient, times: 3, at: now(), until: undefined, outcome: 'unknown' }
  history.intentions.push(intention)
  const json = { data: { to_nickname: recipient, amount: '0.01', currency: 'USD' } }
  const make = (forMs = GIVES_UP_MS): Promise<{ isTold: boolean; answer?: string | undefined }> => {
    const signal = AbortSignal.timeout(forMs)
    const send = (idempotencyKey: string): Promise<Response> =>
      (client.api as Untyped)(PATH, { method: 'POST', json, signal, idempotencyKey })
    return once(send, { remember: recipient }).then(
      async (response) => ({ isTold: true, answer: await response?.text().catch(() => undefined) }),
      (error: { readonly outcome?: 'unknown' }) => ({ isTold: error.outcome !== 'unknown' }),
    )
  }
  const clicks = [make(), make()]
  await clicks[0]
  const again = await make(Math.round(page.random() * LEAVES_MS))
  const [first, second] = await Promise.all(clicks)
  if (first?.answer !== undefined && first.answer === second?.answer) intention.times = 2
  if (!again.isTold) await make()
  intention.until = now()
}

/** A transfer that is to be made once, to somebody who gets no other. */
async function transfer(page: Page, client: Client, once: Package['once'], recipient: string): Promise<void> {
  const { now, history } = page.fleet.observer
  const { name: user, session } = page
  const intention: Intention = { user, session, recipient, times: 1, at: now(), until: undefined, outcome: 'unknown' }
  history.intentions.push(intention)
  const json = { data: { to_nickname: recipient, amount: '0.01', currency: 'USD' } }
  const forgets = page.random() < FORGETS
  const signal = AbortSignal.timeout(page.random() < LEAVES ? Math.round(page.random() * LEAVES_MS) : GIVES_UP_MS)
  const init = { method: 'POST', json, signal }
  // The types would not let a page forget the key.
  const send = (idempotencyKey: string): Promise<unknown> =>
    (client.api as Untyped)(PATH, forgets ? init : { ...init, idempotencyKey })
  try {
    const made = await once(send)
    intention.outcome = made === undefined ? 'unknown' : 'made'
  } catch (error) {
    const { outcome, code } = error as { outcome?: 'unknown'; code?: string }
    if (outcome !== 'unknown') intention.outcome = 'not made'
    if (code === 'session_expired' || code === 'login_required') page.forget(session)
  }
  intention.until = now()
}
