import { setTimeout as pause } from 'node:timers/promises'
import type { Fleet } from '../fleet.ts'
import type { Actor } from '../plan.ts'
import { Page } from './page.ts'
import { Tab } from './tab.ts'

const THINKS_MS = { least: 200, most: 900 }
/** The share of users who think for so much longer that the page asks whether its connection still works. */
const HESITATES = 0.2
const HESITATES_MS = 3500
/** After a login that failed, or while there is no connection. */
const AGAIN_MS = 500
/** For so long a page looks for what became of a purchase. */
const LOOKS_MS = 30_000
/** What the page is told, or what the state of its socket is, once there is no session. */
const ENDED: ReadonlySet<string | undefined> = new Set(['ended', 'session_expired', 'login_required'])

/**
 * Acts for somebody whose page has the browser package of the fleet's checkout, until the run is over: buys on a trading socket, and
 * finds out what became of a purchase when the answer is lost.
 */
export async function actAsBuyer(actor: Actor, fleet: Fleet, over: AbortSignal): Promise<void> {
  const page = new Page(actor, fleet)
  let tab: Tab | undefined
  const closed = new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()))
  for (let nth = 0; !over.aborted; nth++) {
    if (page.session === undefined) {
      await tab?.close()
      tab = undefined
      if ((await page.logIn()).result !== 'ok') await pause(AGAIN_MS)
      continue
    }
    tab ??= new Tab(page)
    const { code: state } = { ...(await tab.act({ is: 'connect' })) }
    if (state !== 'open') {
      if (ENDED.has(state)) page.forget(page.session)
      await pause(AGAIN_MS)
      continue
    }
    // A page that looks for a purchase does so no longer than the run lasts.
    await Promise.race([buy(page, tab, nth), closed])
    const longerMs = page.random() < HESITATES ? HESITATES_MS : 0
    await pause(longerMs + THINKS_MS.least + page.random() * (THINKS_MS.most - THINKS_MS.least))
  }
  await tab?.close()
}

/** Buys once. Each purchase has an amount of its own, so that no other contract fits it. */
async function buy({ name: user, fleet: { observer } }: Page, tab: Tab, nth: number): Promise<void> {
  const purchase = `${user}-b${nth}`
  const shown = await tab.act({ is: 'buy', purchase, amount: (100 + nth) / 100, looksMs: LOOKS_MS })
  const { is = 'unknown', answer } = { ...shown }
  const id = answer === undefined ? {} : { contractId: answer }
  observer.history.told.push({ user, at: observer.now(), purchase, is, ...id })
}
