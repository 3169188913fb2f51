import { setTimeout as pause } from 'node:timers/promises'
import type { Fleet } from '../fleet.ts'
import type { Intention } from '../history.ts'
import type { Actor } from '../plan.ts'
import { Page } from './page.ts'
import { Tab } from './tab.ts'
import type { Shown } from './tab-script.ts'

const THINKS_MS = { least: 100, most: 500 }
/** After a login that failed. */
const AGAIN_MS = 1000
/** A page that has no answer by then stops waiting. */
const GIVES_UP_MS = 12_000
/** The share of pages that forget to pass the key on. */
const FORGETS = 0.4
/** The share of users who leave the dialogue while the order is under way, and how soon. */
const LEAVES = 0.2
const LEAVES_MS = 60
/** The share of transfers that are made again, and of those in two tabs. */
const REPEATS = 0.4
const DUPLICATES = 0.25
/** A tab keeps the key of an order so soon after the click, and looks that often. */
const KEPT_MS = 500
const LOOKS_MS = 2
/** How often a page that is reloaded again and again makes the same transfer. */
const RELOADS = 5

/** Acts for somebody whose page has the browser package of the fleet's checkout, until the run is over: makes transfers. */
export async function actAsPage(actor: Actor, fleet: Fleet, over: AbortSignal): Promise<void> {
  const page = new Page(actor, fleet)
  let tab: Tab | undefined
  for (let nth = 0; !over.aborted; nth++) {
    if (page.session === undefined) {
      await tab?.close()
      const { result } = await page.logIn()
      tab = new Tab(page, tab?.stored)
      if (result !== 'ok') await pause(AGAIN_MS)
      continue
    }
    const chance = page.random()
    const act = chance < REPEATS * DUPLICATES ? duplicate : chance < REPEATS ? repeat : transfer
    tab ??= new Tab(page)
    await act(page, tab, `${page.name}-wants-${nth}`)
    const { least, most } = THINKS_MS
    await pause(least + page.random() * (most - least))
  }
  await tab?.close()
}

/** Notes that a user wants a transfer. */
function wanted({ name: user, session, fleet }: Page, recipient: string, times: Intention['times']): Intention {
  const { now, history } = fleet.observer
  const intention: Intention = { user, session, recipient, times, at: now(), until: undefined, outcome: 'unknown' }
  history.intentions.push(intention)
  return intention
}

/** A click by which the package remembers the transfer. A page that is reloaded meanwhile makes the same one again. */
async function make(tab: Tab, recipient: string, forMs = GIVES_UP_MS): Promise<Shown> {
  const act = { is: 'transfer', recipient, remember: recipient, forgets: false, forMs } as const
  for (let nth = 0; nth < RELOADS; nth++) {
    const shown = await tab.act(act)
    if (shown !== undefined) return shown
    // It was not sent, or its answer had come: the user looks before another one.
    if (!tab.remembers(recipient)) break
  }
  return { is: 'unknown' }
}

/**
 * A transfer by a page that remembers it: the user clicks twice, makes the same one again as soon as the first click is answered,
 * leaves, and makes that again if they were not told what became of it. A second click that comes after the answer to the first is
 * another transfer, and has another answer.
 */
async function repeat(page: Page, tab: Tab, recipient: string): Promise<void> {
  const intention = wanted(page, recipient, 3)
  const clicks = [make(tab, recipient), make(tab, recipient)]
  await clicks[0]
  const again = await make(tab, recipient, Math.round(page.random() * LEAVES_MS))
  const [first, second] = await Promise.all(clicks)
  if (first?.answer !== undefined && first.answer === second?.answer) intention.times = 2
  if (again.is === 'unknown') await make(tab, recipient)
  intention.until = page.fleet.observer.now()
}

/** A transfer in a tab that the user duplicates while it is under way, and makes there, too. Both tabs have the same key. */
async function duplicate(page: Page, tab: Tab, recipient: string): Promise<void> {
  const intention = wanted(page, recipient, 1)
  const one = make(tab, recipient)
  const isOpen = (waitedMs: number): boolean => waitedMs === 0 || (waitedMs < KEPT_MS && tab.isBusy)
  for (let waitedMs = 0; isOpen(waitedMs) && !tab.remembers(recipient); waitedMs += LOOKS_MS) await pause(LOOKS_MS)
  const copy = tab.remembers(recipient) ? new Tab(page, tab.stored) : undefined
  const shown = await Promise.all([one, copy && make(copy, recipient)])
  await copy?.close()
  conclude(page, intention, shown)
}

/** A transfer that is to be made once, to somebody who gets no other. */
async function transfer(page: Page, tab: Tab, recipient: string): Promise<void> {
  const intention = wanted(page, recipient, 1)
  const forgets = page.random() < FORGETS
  const forMs = page.random() < LEAVES ? Math.round(page.random() * LEAVES_MS) : GIVES_UP_MS
  const shown =
    !forgets && forMs === GIVES_UP_MS
      ? await make(tab, recipient)
      : await tab.act({ is: 'transfer', recipient, remember: undefined, forgets, forMs })
  conclude(page, intention, [shown])
}

/** What the user knows in the end. */
function conclude(page: Page, intention: Intention, shown: readonly (Shown | undefined)[]): void {
  const all = shown.filter((each) => each !== undefined)
  if (all.some(({ is }) => is === 'made')) intention.outcome = 'made'
  else if (all.length > 0 && all.every(({ is }) => is === 'not made')) intention.outcome = 'not made'
  if (all.some(({ code }) => code === 'session_expired' || code === 'login_required')) page.forget(intention.session)
  intention.until = page.fleet.observer.now()
}
