import type { FastifyRequest } from 'fastify'
import type { Account, AccountType } from '../accounts.ts'
import type { User, Users } from '../users.ts'
import type { World } from '../world.ts'
import { Failure } from './failure.ts'

/** The kinds of credentials in the header and the body of a request. */
export type CredentialKind = 'none' | 'bearer' | 'pat' | 'bearer+pat'

/*
 * The sandbox issues no personal access tokens. They are written by hand as `pat_<demo|real>_<account id>`, for example
 * `pat_demo_DOT90004580`. The account must exist: the first request of a user with a bearer token creates it.
 */
const PAT = /^pat_(demo|real)_([A-Z]+[0-9]+)$/
const ANY_PAT = /\bpat_(demo|real)_/

export function credentialKind(request: FastifyRequest, body: string): CredentialKind {
  const token = bearerOf(request)
  const bearer = token !== undefined && !ANY_PAT.test(token)
  const pat = ANY_PAT.test(token ?? '') || ANY_PAT.test(body)
  if (bearer) return pat ? 'bearer+pat' : 'bearer'
  return pat ? 'pat' : 'none'
}

/** The token in the Authorization header. */
export function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}

/** The user of a request. Unlike the real service, the sandbox does not check scopes. @throws Failure 401 */
export async function userOf(request: FastifyRequest, { provider, users }: World): Promise<User> {
  const token = bearerOf(request)
  if (token === undefined) throw unauthorized()
  if (PAT.test(token)) {
    // With a PAT, the application must identify itself (docs/upstream.md, Credentials).
    const owner = hasAppId(request) ? ownerOfPat(token, users) : undefined
    if (!owner) throw unauthorized()
    return owner.user
  }
  const active = await provider.isActive(token)
  if (!active) throw unauthorized()
  return users.of(active.accountId)
}

/** The account of a PAT and its owner. */
export function ownerOfPat(token: string, users: Users): { account: Account; user: User } | undefined {
  const [, type, id] = PAT.exec(token) ?? []
  const found = id === undefined ? undefined : users.account(id)
  return found?.account.type === (type as AccountType | undefined) ? found : undefined
}

export function hasAppId({ headers }: FastifyRequest): boolean {
  return typeof headers['service-app-id'] === 'string' && headers['service-app-id'] !== ''
}

function unauthorized(): Failure {
  return new Failure(401, 'Unauthorized', 'Invalid or missing authentication credentials')
}
