import { BROWSER_MAP, OS_MAP, parse } from 'bowser'

/** No browser needs more to name itself. The rest of a longer header is not looked at. */
const MAX_READ = 512
/** The library repeats what it does not know, which may be any text that a client has made up. */
const NAMES: ReadonlySet<string> = new Set([...Object.values(BROWSER_MAP), ...Object.values(OS_MAP)])

/**
 * The browser and the system that a User-Agent names, such as `Firefox on Windows`, or the one of them that the library knows. At
 * most 64 characters. Undefined if it knows neither. A client can claim to be any of them.
 */
export function deviceOf(userAgent: string | undefined): string | undefined {
  const read = userAgent?.slice(0, MAX_READ) ?? ''
  if (read === '') return undefined
  const { browser, os } = parse(read)
  const known = [browser.name, os.name].filter((name) => name !== undefined && NAMES.has(name))
  return known.length === 0 ? undefined : known.join(' on ')
}
