import { test } from 'tap'
import { changesSomething, pathBuilder, tokenNeedOf, type Endpoint } from '../../src/proxy/endpoint.ts'

const endpoint = (path: string, more: Partial<Endpoint> = {}): Endpoint => ({
  method: 'GET',
  path,
  credential: 'bearer',
  summary: '',
  ...more,
})

await test('a path upstream has the parameters of the call where the endpoint names them', (t) => {
  const build = pathBuilder(endpoint('/v1/agents/:id/of/:other'))
  t.equal(build({ id: 'A-7_b', other: 'x' }), '/v1/agents/A-7_b/of/x')
  t.equal(build({ id: 'x'.repeat(64), other: '1' }), `/v1/agents/${'x'.repeat(64)}/of/1`)
  t.equal(pathBuilder(endpoint('/v1/agents'))({ id: 'A' }), '/v1/agents')
  t.equal(pathBuilder(endpoint('/a:b'))({ b: 'A' }), '/a:b', 'a colon within a segment names nothing')
  t.end()
})

await test('a parameter that is missing, or of another form than an id, leads nowhere', (t) => {
  const build = pathBuilder(endpoint('/v1/agents/:id/of/:other'))
  for (const id of [undefined, '', 'a.b', '..', 'a/b', 'a%2Fb', 'a b', 'x'.repeat(65), 'a\n', 'ä']) {
    const parameters: Record<string, string> = id === undefined ? { other: 'x' } : { id, other: 'x' }
    t.equal(build(parameters), undefined, id ?? 'none')
  }
  t.end()
})

await test('a parameter may have a form of its own, which then is the only one', (t) => {
  const parameters = { kind: /^(real|demo)$/ }
  const build = pathBuilder(endpoint('/buy/:kind/:id', { parameters }))
  t.equal(build({ kind: 'real', id: '1' }), '/buy/real/1')
  t.equal(build({ kind: 'other', id: '1' }), undefined)
  t.equal(build({ kind: 'real', id: 'real.' }), undefined, 'others are ids all the same')
  const dotted = pathBuilder(endpoint('/file/:name', { parameters: { name: /^[a-z.]+$/ } }))
  t.equal(dotted({ name: 'a.b' }), '/file/a.b')
  t.end()
})

await test('only a GET changes nothing, and a call needs as good a token as it can be repeated', (t) => {
  for (const [method, credential, changes, need] of [
    ['GET', 'bearer', false, 'repeatable'],
    ['POST', 'bearer', true, 'valid'],
    ['PATCH', 'bearer', true, 'valid'],
    ['POST', 'pat', true, 'none'],
    ['GET', 'none', false, 'none'],
  ] as const) {
    const each = endpoint('/', { method, credential })
    t.strictSame([changesSomething(each), tokenNeedOf(each)], [changes, need], `${method} ${credential}`)
  }
  t.end()
})
