import type { Test } from 'tap'
import { WalkedPage, type PageStep } from './walked-page.ts'

/** A walked page with a socket for prices, on which chance is a half. It ends with the test. */
export function shown(t: Test) {
  t.intercept(Math, 'random', { value: () => 0.5 })
  const page = new WalkedPage(false)
  t.teardown(() => page.client.close())
  const { socket } = page
  const step = (each: PageStep): Promise<void> => page.step(each)
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 1000) await step({ is: 'time', ms: Math.min(left, 1000) })
  }
  /** Opens the connection, on which a message arrives. */
  const works = async (): Promise<void> => {
    await step({ is: 'socket', how: 'opens' })
    await step({ is: 'socket', how: 'pongs' })
  }
  return {
    page,
    step,
    pass,
    state: (): string => socket.status().state,
    /** In how many milliseconds the next connection is opened. */
    waitsMs: (): number => Number(socket.status().retryAt) - Date.now(),
    works,
    lose: (code: number, reason = ''): Promise<void> => step({ is: 'close', code, reason }),
  }
}
