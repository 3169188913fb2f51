import { test } from 'tap'
import { catalog } from '../../src/proxy/catalog.ts'
import { sendTo } from '../support/user.ts'
import { checkerOf, fullDocument, responseOf, type OpenApi } from '../support/openapi/document.ts'
import { rise } from '../support/sandbox/world.ts'
import { logIn } from '../support/parts.ts'
import { startWorld } from '../support/world.ts'

const OVERVIEW = '/partners/analytics/v1/overview'
const CSRF = { 'x-csrf': '1' }

await test('every sample of a problem has the status and a code of its response, and fits its schema only', (t) => {
  const document = fullDocument()
  const problems = checkerOf(document)
  const { examples, responses } = document.components
  const sampled = new Set<string>()
  for (const [name, { content, description }] of Object.entries(responses)) {
    const [, status] = /^status_(\w+?)__/.exec(name) ?? []
    const { schema, examples: samples = {} } = content?.['application/problem+json'] ?? {}
    for (const [code, { $ref }] of Object.entries(samples)) {
      sampled.add(code)
      t.equal($ref, `#/components/examples/${code}`)
      const value = examples[code]?.value
      t.match(value, { status: Number(status), code, type: `/problems/${code}` }, name)
      t.match(description, `\`${code}\``, name)
      t.same(problems(schema, value), [], name)
      t.not(problems(schema, { ...value, status: 418 }).length, 0, `${name} has one status`)
      t.not(problems(schema, { ...value, code: 'method_not_allowed' }).length, 0, `${name} has certain codes`)
      t.not(problems(schema, { ...value, request_id: undefined }).length, 0, `${name} has an id`)
    }
  }
  t.same([...sampled].toSorted(), Object.keys(examples).toSorted())
  t.ok(sampled.has('login_required') && sampled.has('session_expired') && sampled.size > 15)
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const method of Object.keys(operations)) {
      const codes = Object.keys(
        responseOf(document, method, path, 401)?.content?.['application/problem+json']?.examples ?? {},
      )
      t.ok(
        codes.every((code) => code === 'login_required' || code === 'session_expired'),
        `${method} ${path}: ${codes.join()}`,
      )
    }
  }
  t.end()
})

await test('the schemas of upstream say no more than what is publicly documented', (t) => {
  const document = fullDocument()
  const { schemas } = document.components
  const problems = checkerOf(document)
  const more = { balance: '1.50', some: { thing: [1] } }
  const account = { ...more, account_id: 'CR1' }
  const envelopes = {
    AccountList: [account],
    ExistingAccount: account,
    NewAccount: [account],
    OptionsBody: 7,
    AgentsBody: null,
    AgentBody: more,
    AgentList: [more],
    WalletList: [more],
    WalletsBody: 'x',
  }
  for (const [name, data] of Object.entries(envelopes)) {
    t.equal(schemas[name]?.['x-documented-elsewhere'], true, name)
    t.same(schemas[name]?.['required'], ['data'], name)
    t.same(problems(schemas[name], { data, unknown: 1 }), [], name)
    t.not(problems(schemas[name], { unknown: 1 }).length, 0, name)
  }
  for (const [name, least] of Object.entries({ Account: { account_id: 'CR1' }, Wallet: {} })) {
    for (const balance of [1.5, '1.50']) t.same(problems(schemas[name], { ...least, balance }), [])
    t.same(problems(schemas[name], least), [])
    t.not(problems(schemas[name], { ...least, balance: true }).length, 0)
  }
  t.not(problems(schemas['Account'], more).length, 0, 'an account has an id (docs/upstream.md)')
  t.same(problems(schemas['Refusal'], { errors: [{ status: 499, code: 'Unheard-of', message: 'No' }], meta: {} }), [])
  t.same(problems(schemas['Health'], 'OK'), [])
  // The markup statistics belong to no documented family.
  const statistics = document.paths['/api/applications/v1/markup-statistics']?.['get']?.responses['200']
  t.same(statistics?.content, { '*/*': { schema: {} } })
  const own = Object.keys(schemas).filter((name) => schemas[name]?.['x-documented-elsewhere'] === undefined)
  t.same(own.toSorted(), [
    'ActiveSession',
    'NoSession',
    'Notice',
    'OrdersPause',
    'OwnSession',
    'OwnSessions',
    'PartnerLink',
    'PartnerLinkParameter',
    'Problem',
    'ProviderLogout',
    'Session',
  ])
  t.end()
})

await test('every request body is a JSON object, whose members are named but not limited', (t) => {
  const document = fullDocument()
  const planned = { amount: '1.00', currency: 'USD' }
  const more = { unheard: [1] }
  const bodies: Record<string, object> = {
    RequestBody: more,
    NewAccountRequest: { currency: 'USD', group: 'row', account_type: 'demo', ...more },
    BulkPurchase: { contract_parameters: more, accounts: [{ token: 'a', account_id: 'b', ...more }], ...more },
    TransferRequest: { data: { ...planned, to_nickname: 'a', ...more }, ...more },
    VerificationCodeRequest: { data: { ...planned, agent_id: 1, ...more } },
    WithdrawalRequest: { data: { ...planned, agent_id: 1, verification_code: '123456', request_id: 'a', ...more } },
  }
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
  const names = operations.flatMap(({ operationId, requestBody }) => {
    if (requestBody === undefined) return []
    t.same(Object.keys(requestBody.content), ['application/json'], operationId)
    const name = String(requestBody.content['application/json']?.schema['$ref']).split('/').at(-1) ?? ''
    t.match(document.components.schemas[name], { type: 'object', 'x-documented-elsewhere': true }, operationId)
    const problems = (body: unknown): unknown[] => [
      ...checkerOf(document)({ $ref: `#/components/schemas/${name}` }, body),
    ]
    t.same(problems(bodies[name]), [], operationId)
    if (name !== 'RequestBody') t.not(problems(more).length, 0, operationId)
    return name
  })
  t.equal(names.length, catalog(OVERVIEW).filter(({ method }) => method !== 'GET').length)
  t.same(new Set(names), new Set(Object.keys(bodies)))
  t.end()
})

await test('a member of a request body is described, with an example where its type leaves its form open', (t) => {
  const { schemas } = fullDocument().components
  t.match(schemas['Withdrawal']?.['properties'], {
    agent_id: { type: 'integer', description: /^The id/ },
    amount: { type: 'string', description: /^A decimal number/, examples: [/^\d+\.\d\d$/] },
    currency: { type: 'string', description: /ISO 4217/, examples: [/^[A-Z]{3}$/] },
    notes: { type: 'string', description: /^A text/ },
    request_id: { type: 'string', description: /letters.*new for each withdrawal/ },
  })
  t.end()
})

await test('what the server and the sandbox answer fits the document', async (t) => {
  const { server, browser } = await startWorld(t, { settings: { PARTNER_OVERVIEW_PATH: OVERVIEW } })
  const document = (await sendTo(server.port, 'GET', '/openapi.json')).json as unknown as OpenApi
  const problems = checkerOf(document)
  const visited = new Set<string>()
  /** Sends a request, and checks its response. `path` may have a query, and `{name=value}` for a parameter. */
  const check = async (
    expected: number,
    method: string,
    path: string,
    init: { headers?: Record<string, string>; body?: object } = {},
  ) => {
    const target = path.replaceAll(/\{\w+=(\w[\w-]*)\}/g, '$1')
    const described = path.replaceAll(/=[\w-]+\}/g, '}').replace(/\?.*/, '')
    const { body, headers = {} } = init
    const answer = await sendTo(server.port, method, target, { headers, ...(body && { body: JSON.stringify(body) }) })
    const name = `${method} ${target}: ${expected}`
    visited.add(`${method} ${described}`)
    t.equal(answer.status, expected, name)
    const media = answer.headers['content-type']?.split(';')[0] ?? ''
    const { content = {} } = responseOf(document, method, described, expected) ?? {}
    const { schema } = content[media] ?? content['*/*'] ?? {}
    t.same(
      problems(schema, media === 'text/plain' || media === 'text/html' ? answer.text : answer.json),
      [],
      `${name} ${media}`,
    )
    return answer
  }

  await check(200, 'GET', '/auth/session')
  await check(200, 'GET', '/auth/signup/check?sidc=1&utm_medium=affiliate&return_to=//x')
  await check(200, 'GET', '/auth/signup/check', { headers: { accept: 'text/html' } })
  await check(401, 'GET', '/api/account/v1/nickname', { headers: CSRF })
  await check(403, 'GET', '/api/account/v1/nickname')
  await check(200, 'GET', '/problems/{code=not_found}')
  await check(404, 'GET', '/problems/{code=nothing}')
  await check(200, 'GET', '/openapi.json')
  await logIn(browser, server.url)
  const url = new URL(server.url)
  const session = { ...CSRF, cookie: browser.cookieHeader(url, url) }
  const user = { headers: session }
  const send = (body: object): { headers: Record<string, string>; body: object } => ({ headers: session, body })
  await check(200, 'GET', '/auth/session', user)

  await check(200, 'GET', '/api/v1/health', { headers: CSRF })
  const accounts = '/api/trading/v1/options/accounts'
  const listed = (await check(200, 'GET', accounts, user)).json['data'] as { account_id: string }[]
  const { account_id: id = '' } = listed[0] ?? {}
  const account = { currency: 'USD', group: 'row' }
  await check(200, 'POST', accounts, send({ ...account, account_type: 'demo' }))
  await check(201, 'POST', accounts, send({ ...account, account_type: 'real', currency: 'EUR' }))
  await check(400, 'POST', accounts, send({ ...account, account_type: 'other' }))
  await check(200, 'POST', `${accounts}/{account_id=${id}}/reset-demo-balance`, user)
  await check(404, 'POST', `${accounts}/{account_id=none}/reset-demo-balance`, user)
  const purchase = { contract_parameters: rise(1), accounts: [{ token: `pat_demo_${id}`, account_id: id }] }
  await check(200, 'POST', '/api/trading/v1/options/contracts/bulk-purchase/{kind=demo}', send(purchase))

  await check(200, 'GET', '/api/wallet/v1/wallets', user)
  await check(200, 'GET', '/api/wallet/v1/transactions/{wallet_type=main}', user)
  await check(404, 'GET', '/api/wallet/v1/transactions/{wallet_type=none}', user)
  await check(200, 'GET', '/api/applications/v1/markup-statistics', user)
  await check(200, 'GET', `/api${OVERVIEW}?start_date=2026-01-01&end_date=2026-01-31`, user)
  await check(400, 'GET', `/api${OVERVIEW}`, user)

  await check(200, 'GET', '/api/account/v1/nickname', user)
  const agents = '/api/payment-agents/v1'
  await check(200, 'GET', `${agents}/clients/me`, user)
  await check(200, 'PATCH', `${agents}/clients/me`, send({ language: 'de' }))
  await check(200, 'GET', `${agents}/agents`, user)
  await check(200, 'GET', `${agents}/agents/{id=agent-1}`, user)
  await check(404, 'GET', `${agents}/agents/{id=agent-9}`, user)
  await check(200, 'GET', `${agents}/agent-statistics`, user)
  const plan = { amount: '1.00', currency: 'USD' }
  const sendData = (data: object): ReturnType<typeof send> => send({ data: { ...plan, ...data } })
  await check(201, 'POST', `${agents}/transfer`, sendData({ to_nickname: 'somebody', request_id: 'one' }))
  await check(415, 'POST', `${agents}/transfer`, { headers: { ...session, 'content-encoding': 'gzip' }, body: {} })
  await check(200, 'GET', `${agents}/transfer/{request_id=one}`, user)
  await check(200, 'POST', `${agents}/withdraw/verification_code`, sendData({ agent_id: 1 }))
  const withdrawal = { agent_id: 1, request_id: 'two', verification_code: '123456' }
  await check(201, 'POST', `${agents}/withdraw`, sendData(withdrawal))
  await check(200, 'GET', `${agents}/withdraw/{request_id=two}`, user)

  for (const { method, path } of catalog(OVERVIEW)) {
    const described = `${method} /api${path.replaceAll(/:(\w+)/g, '{$1}')}`
    t.ok(visited.has(described), described)
  }
})
