import type { FastifyRequest } from 'fastify'
import type { Account, AccountType } from '../accounts.ts'
import type { User, Users } from '../users.ts'
import type { World } from '../world.ts'
import { Failure } from './failure.ts'

/** Which credentials a request carried, wherever it carried them. */
export type CredentialKind = 'none' | 'bearer' | 'pat' | 'bearer+pat'

/*
 * Personal access tokens cannot be made in the sandbox: they are written by hand, `pat_` + demo or real + `_` +
 * the account id, for example `pat_demo_DOT90004580`. That is enough to tell whose a token is and what it is for.
 * The account has to exist, and it does from its user's first request with a bearer token on.
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

/** What follows `Authorization: Bearer`. */
export function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
}

/**
 * The user a request is made for. Scopes are not looked at: the sandbox is lenient, the real service is not.
 * @throws Failure 401
 */
export async function userOf(request: FastifyRequest, { provider, users }: World): Promise<User> {
  const token = bearerOf(request)
  if (token === undefined) throw unauthorized()
  if (PAT.test(token)) {
    // Interface 5: with a PAT the application has to name itself.
    const owner = hasAppId(request) ? ownerOfPat(token, users) : undefined
    if (!owner) throw unauthorized()
    return owner.user
  }
  const active = await provider.isActive(token)
  if (!active) throw unauthorized()
  return users.of(active.accountId)
}

/** The account a PAT was written for, and whose it is. */
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
