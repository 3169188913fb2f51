import type { JarBrowser } from '../browser/jar-browser.ts'
import type { TestServer } from '../server/test-server.ts'
import { sessionState } from './token-endpoint.ts'

/** A session as `GET /auth/sessions` lists it. */
export interface Listed {
  readonly tag: string
  readonly started_at: number
  readonly last_used_at?: number
  readonly current: boolean
  readonly device?: string
}

/** A request by the page that a browser shows. @param there an instance */
export function request(
  browser: JarBrowser,
  { url }: Pick<TestServer, 'url'>,
  path: string,
  method = 'GET',
): Promise<Response> {
  const page = browser.clone()
  page.page ??= new URL(url)
  return page.fetch(new URL(path, url).href, { method, ...(method !== 'GET' && { headers: { 'x-csrf': '1' } }) })
}

/** The sessions that a page of that browser gets to see. @param there an instance */
export async function listed(browser: JarBrowser, there: Pick<TestServer, 'url'>): Promise<readonly Listed[]> {
  const response = await request(browser, there, '/auth/sessions')
  if (response.status !== 200) throw new Error(`GET /auth/sessions: ${response.status} ${await response.text()}`)
  return ((await response.json()) as { sessions: Listed[] }).sessions
}

/** Ends a session. @returns the status, and the code of the problem if there is one */
export async function end(browser: JarBrowser, there: Pick<TestServer, 'url'>, tag: string): Promise<string> {
  const response = await request(browser, there, `/auth/sessions/${tag}`, 'DELETE')
  if (response.status === 204) return '204'
  return `${response.status} ${((await response.json()) as { code: string }).code}`
}

/** The tag that `/auth/session` shows. */
export async function tagOf(browser: JarBrowser, { url }: Pick<TestServer, 'url'>): Promise<string> {
  return String((await sessionState(browser, url))['session'])
}
