import { setTimeout as pause } from 'node:timers/promises'
import type { Call, Ending } from '../history.ts'
import type { Page } from './page.ts'

/** How often a page asks for a logout. */
const ATTEMPTS = 5
const AGAIN_MS = 1000
/** The share of logouts that are repeated with the same cookie, and how soon. */
const REPEATED = 0.5
const REPEATED_MS = 4000

const ask = (page: Page): Promise<Call> => page.ask({ kind: 'logout', method: 'POST', path: '/auth/logout' })

/** Logs out, until that is confirmed. */
export async function logOut(page: Page): Promise<void> {
  const ending = wanted(page, 'user')
  for (let attempt = 0; attempt < ATTEMPTS && ending.confirmedAt === undefined; attempt++) {
    const { result, until } = await ask(page)
    if (result === 'ok') ending.confirmedAt = until
    else await pause(AGAIN_MS)
  }
}

/** Another tab, or the same one after a reload, logs out as well. @param old the browser as it was */
export async function repeatLogout(old: Page): Promise<void> {
  if (old.random() > REPEATED) return
  await pause(old.random() * REPEATED_MS)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if ((await ask(old)).result === 'ok') return
    await pause(AGAIN_MS)
  }
}

/**
 * Logs out at the provider, which then tells the server. Most providers do that once.
 * @returns whether the server has confirmed to the provider that the session has ended
 */
export async function logOutAtProvider(page: Page): Promise<boolean> {
  const ending = wanted(page, 'provider')
  await page.leaveProvider().catch(() => undefined)
  return ending.confirmedAt !== undefined
}

function wanted({ name: user, session = '', fleet }: Page, by: Ending['by']): Ending {
  const { now, history } = fleet.observer
  const ending: Ending = { user, session, by, askedAt: now(), confirmedAt: undefined }
  history.endings.push(ending)
  return ending
}
