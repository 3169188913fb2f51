/** The headers of a browser's fetch() behind a TLS proxy, without cookies. All contenders get the same. */
export const BROWSER_HEADERS: Readonly<Record<string, string>> = {
  'X-CSRF': '1',
  Accept: 'application/json',
  'Accept-Encoding': 'gzip, deflate, br, zstd',
  'Accept-Language': 'en-GB,en;q=0.9',
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Sec-Fetch-Site': 'same-origin',
  'Sec-Fetch-Mode': 'cors',
  'Sec-Fetch-Dest': 'empty',
  'X-Forwarded-For': '203.0.113.7',
  'X-Forwarded-Proto': 'https',
}

/**
 * The bytes of a GET request for each session. Their headers always have the same order, as those of one browser have: V8
 * compiles code for the orders that it has seen, and a load generator with a new order in each run would measure compilation.
 * @param cookies a Cookie header for each session
 */
export function requestTexts(url: string, headers: typeof BROWSER_HEADERS, cookies: readonly string[]): string[] {
  const { host, pathname } = new URL(url)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return cookies.map((cookie) =>
    [`GET ${pathname} HTTP/1.1`, `Host: ${host}`, `Cookie: ${cookie}`, ...lines, '', ''].join('\r\n'),
  )
}
