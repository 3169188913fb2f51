import type { FastifyReply, FastifyRequest } from 'fastify'
import { test } from 'tap'
import { redirectTyped } from '../../src/login/typed-paths.ts'

/** What becomes of a request, and all that was done with its reply, in this order. */
function typed(url: string | undefined, method = 'GET') {
  const done: unknown[][] = []
  const reply = {
    header: (...args: unknown[]) => (done.push(args), reply),
    redirect: (...args: unknown[]) => void done.push(args),
  }
  const metrics = { typedPaths: { inc: (labels: unknown) => void done.push(['count', labels]) } }
  const request = { method, raw: { url } } as unknown as FastifyRequest
  const isRedirected = redirectTyped(request, reply as unknown as FastifyReply, {
    publicUrl: 'https://bff.test',
    metrics: metrics as unknown as Parameters<typeof redirectTyped>[2]['metrics'],
  })
  return { isRedirected, done }
}

await test('a path that is typed in another case, or with a slash at its end, leads to the real one with the query as it came', (t) => {
  for (const [url, path, query] of [
    ['/AUTH/LOGIN', '/auth/login', ''],
    ['/Auth/Login/', '/auth/login', ''],
    ['/auth/signuP?A=b&c=%zz', '/auth/signup', '?A=b&c=%zz'],
    ['/auth/SIGNUP/?', '/auth/signup', '?'],
    ['/auth/Signup?a?b', '/auth/signup', '?a?b'],
    ['/AUTH/SIGNUP/CHECK/?sidc=X', '/auth/signup/check', '?sidc=X'],
  ] as const) {
    for (const method of ['GET', 'HEAD']) {
      const { isRedirected, done } = typed(url, method)
      t.equal(isRedirected, true, url)
      t.strictSame(done, [
        ['count', { path }],
        ['cache-control', 'no-store'],
        ['referrer-policy', 'no-referrer'],
        [`https://bff.test${path}${query}`, 308],
      ])
    }
  }
  t.end()
})

await test('a path in lower case, another path, and another method lead nowhere', (t) => {
  for (const url of [
    '/auth/login',
    '/auth/login/',
    '/auth/signup/check?A',
    '/AUTH/LOGIN//',
    '/AUTH/LOGINS',
    '/X/AUTH/LOGIN',
    '/AUTH/SIGNUP/CHECK/X',
    '?/AUTH/LOGIN',
    '',
    undefined,
  ]) {
    t.strictSame(typed(url), { isRedirected: false, done: [] }, url ?? 'none')
  }
  for (const method of ['POST', 'OPTIONS', 'get']) {
    t.strictSame(typed('/AUTH/LOGIN', method), { isRedirected: false, done: [] }, method)
  }
  // Its lower case is longer than what it replaces, and no path is looked at beyond the longest.
  t.equal(typed(`/AUTH/${'İ'.repeat(5)}`).isRedirected, false)
  t.end()
})
