import '../deployment/over-http1.ts'
import { getCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { Agent, fetch, type RequestInit, type Response } from 'undici'
import type { JarBrowser } from '../browser/jar-browser.ts'

/** Sends a request to a path of the server, with the session of a browser. */
export type Send = (
  path: string,
  init?: Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> },
) => Promise<Response>

/** One connection to a server for requests like those of a page. It ends with the test. */
export function connection(t: Test, browser: JarBrowser, publicUrl: string, allowH2 = false): Send {
  const dispatcher = new Agent({ allowH2, connections: 1, connect: { ca: getCACertificates('default') } })
  t.teardown(() => dispatcher.destroy())
  return (path, init = {}) => {
    const url = new URL(path, publicUrl)
    const headers = { 'x-csrf': '1', cookie: browser.cookieHeader(url, url), ...init.headers }
    return fetch(url, { ...init, headers, dispatcher })
  }
}
