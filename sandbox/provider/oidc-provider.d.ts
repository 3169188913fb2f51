// oidc-provider ships no types. This declares the part that the sandbox uses.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  /** The stored data of an artifact: a token, a code, a browser session or an interaction. */
  export interface StoredPayload {
    uid?: string
    grantId?: string
    consumed?: number
    [key: string]: unknown
  }

  /** The storage of a kind of artifact. */
  export interface Adapter {
    upsert(id: string, payload: StoredPayload, expiresInSeconds: number): Promise<void>
    find(id: string): Promise<StoredPayload | undefined>
    findByUid(uid: string): Promise<StoredPayload | undefined>
    findByUserCode(userCode: string): Promise<StoredPayload | undefined>
    consume(id: string): Promise<void>
    destroy(id: string): Promise<void>
    revokeByGrantId(grantId: string): Promise<void>
  }

  /** The permissions of a client for one login. Every token belongs to a grant. */
  export interface Grant {
    getOIDCScope(): string
    addOIDCScope(scope: string): void
    /** Returns the id of the grant. */
    save(): Promise<string>
  }

  export interface InteractionResult {
    registration?: object
    login?: { accountId: string }
    consent?: { grantId: string }
    error?: string
    error_description?: string
  }

  /** An authorization request that waits for the user. */
  export interface Interaction {
    uid: string
    prompt: { name: string }
    params: Record<string, string | undefined>
    session?: { accountId: string; uid: string; cookie: string }
    returnTo: string
    result?: InteractionResult
    persist(): Promise<unknown>
  }

  export interface Session {
    destroy(): Promise<void>
  }

  /** The part of the library's request context that the settings use. */
  export interface Context {
    body: unknown
    type: string
    oidc: {
      client: { clientId: string }
      /** The parameters of the request; undefined if it could not be parsed. */
      params?: Record<string, string | undefined>
      result?: InteractionResult
      session: { accountId: string; grantIdFor(clientId: string): string | undefined }
      provider: Provider
    }
  }

  export class Provider {
    constructor(issuer: string, settings: Record<string, unknown>)
    on(event: 'grant.success' | 'grant.error' | 'backchannel.success', listener: (context: Context) => void): this
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    readonly Grant: {
      new (of: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
    readonly Session: { findByUid(uid: string): Promise<Session | undefined> }
    readonly AccessToken: { find(token: string): Promise<{ accountId: string } | undefined> }
  }

  export const interactionPolicy: {
    Prompt: new (options: { name: string; requestable: boolean }) => object
    base(): { add(prompt: object, position: number): void }
  }

  export const errors: { SessionNotFound: new (message: string) => Error }
}
