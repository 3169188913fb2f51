import { MEANINGS } from '../core/generated/meanings.ts'

/** What happened, and what a page does about it. */
export interface Meaning {
  readonly code: string
  readonly about: string
  readonly advice: string
}

/** The meaning of a response that is no success. @param code that of its problem, if it has one */
export function problemMeaning(status: number, code: string | undefined, detail?: string): Meaning {
  const found = MEANINGS.find((each) => code !== undefined && each.code === code && each.status !== undefined)
  const [about = `Not the server itself: the trading service, or a proxy, has answered with ${status}.`, advice = ''] =
    found ? [found.about, found.advice] : []
  return { code: code ?? String(status), about: detail ? `${about} ${detail}` : about, advice }
}

/** The meaning of a close frame, or of a connection that was lost without one. */
export function closeMeaning(code: number, full: string): Meaning {
  const [reason = '', ...more] = full.split(';')
  const fits = MEANINGS.filter(({ closes }) => closes.includes(code))
  const found = fits.find((each) => each.code === reason) ?? fits.find((each) => each.code === '')
  const about = found?.about ?? 'The trading service has closed the connection with a code of its own.'
  const name = [code, reason, ...more].filter((part) => part !== '').join(' ')
  return { code: name, about, advice: found?.advice ?? 'Nothing: the package reconnects.' }
}
