import { inFile, type Equivalent } from './equivalent.ts'

const ONE_ORIGIN = 'A path that has passed the pattern has no other origin. This guards it once more.'
const ORIGIN = "if (url === null || url.origin !== frontendUrl) return '/'"
const INVALID = 'if (!valid || text === null) return undefined'
const NO_TEXT = 'There is no text exactly where the signature is not valid.'
const PATH = "const [path = '', ...query] = (raw.url ?? '').split('?')"

export const OF_LOGINS: readonly Equivalent[] = [
  ...inFile('src/login/finish-login.ts', [
    ['...(subject !== undefined && { subject }),', 'true', 'A record leaves out a subject that is undefined.'],
    [
      'await Promise.all([sessions.discard(session, by), enlisted && subjects?.withdraw(enlisted)])',
      'subjects.withdraw',
      'Only an index of subjects gives an entry to withdraw.',
    ],
  ]),
  ...inFile(
    'src/login/return-to.ts',
    ['false', 'url === null && url.origin !== frontendUrl', '""'].map((slip) => [ORIGIN, slip, ONE_ORIGIN] as const),
  ),
  ...inFile('src/sessions/session-cookie.ts', [
    ['return valid && id !== null ? id : undefined', 'true', 'A value that is valid is not null.'],
    ['return valid && id !== null ? id : undefined', 'valid || id !== null', 'A value that is valid is not null.'],
  ]),
  ...inFile('src/sessions/envelope.ts', [
    ["const [first = ''] = this.#secrets().keys()", '"Stryker was here!"', 'An envelope has a secret.'],
    ["const secret = this.#secrets().get(print) ?? ''", '"Stryker was here!"', 'Its callers name secrets that it has.'],
    ["const [version, print = '', body = ''] = text.split('.')", '"Stryker was here!"', 'It opens nothing either.'],
    ['} catch {', '{}', 'Without a value it returns none, either.'],
    [
      "const decipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })",
      '{}',
      'The tag that it is given always has this length.',
    ],
  ]),
  ...inFile('src/login/attribution.ts', [
    [
      "const [SHORTEST_NAME, LONGEST_MISTYPED] = ['sidc'.length, 40]",
      '""',
      'It only takes longer: no shorter name becomes one of the four.',
    ],
    [
      "if (sidc?.value !== undefined && others.every(({ problem, notes }) => problem === 'missing' && notes.length === 0)) {",
      'sidc.value',
      'It is the first of the four.',
    ],
  ]),
  ...inFile('src/login/logout-senders.ts', [
    ["const CHECKS = 'checks'", '""', 'There is no other key.'],
    ["const [address = '', bits] = each.split('/')", '"Stryker was here!"', 'A text has a first part.'],
    [
      "if (this.#listed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return true",
      '""',
      'Node takes it for ipv6. That it does not for ipv4 is noticed.',
    ],
  ]),
  ...inFile('src/login/callback-route.ts', [
    [
      "for (const [key, cookieValue = ''] of earlier) replaced.set(key, sessions.cookie.verify(cookieValue))",
      '"Stryker was here!"',
      'No cookie with that value has a valid signature either.',
    ],
  ]),
  ...inFile('src/login/failed-login.ts', [
    [
      "if (isOutOfDescriptors(cause)) logFailure(request.log, 'login failed', {}, cause)",
      '""',
      'Where no descriptor is left, the line says that instead.',
    ],
  ]),
  ...inFile('src/login/attribution-cookie.ts', [
    [
      'const [value, ...more] = header === undefined ? [] : cookieValues(header, this.name)',
      '["Stryker was here"]',
      'That is not signed.',
    ],
    [INVALID, '!valid && text === null', NO_TEXT],
    [INVALID, 'false', NO_TEXT],
  ]),
  ...inFile('src/login/provider-logout-routes.ts', [
    [
      'const backchannel = config.oidc?.backchannel',
      'config.oidc.backchannel',
      'Without OpenID Connect these routes are not opened.',
    ],
    [
      'await fastify.register(async function backchannelLogout(scope) {',
      "fastify.register(async function backchannelLogout(scope) {\n  scope.removeAllContentTypeParsers();\n  scope.addContentTypeParser('*', {\n    parseAs: 'buffer',\n    bodyLimit: MAX_BODY_BYTES\n  }, (_request, body, done) => {\n    done(null, body);\n  });\n  scope.route<{\n    Body: Buffer | undefined;\n  }>({\n    method: 'POST',\n    url: BACKCHANNEL_PATH,\n    onRequest: async request => logout.admit(request),\n    errorHandler: (error, request, reply) => void logout.fail(error, request, reply),\n    handler: async (request, reply) => {\n      await logout.end(request, request.body);\n      return reply.code(200).send();\n    }\n  });\n})",
      'A server is not ready before all of its routes are.',
    ],
    [
      'scope.removeAllContentTypeParsers()',
      ';',
      'Fastify has parsers for JSON and plain texts, which are refused before their bodies are read.',
    ],
  ]),
  ...inFile('src/login/typed-paths.ts', [
    [PATH, '"Stryker was here!"', 'A text has a first part, and whatever is none of the paths leads nowhere.'],
    ['if (path.length > LONGEST) return false', 'false', 'A shortcut: none of the paths is longer.'],
  ]),
  ...inFile('src/login/other-name.ts', [
    ["otherNames.add(log, { id: 'name', write })", '""', 'There is one kind of these lines.'],
  ]),
]
