import type { IncomingMessage, ServerResponse } from 'node:http'
import { errors, type Interaction, type InteractionResult, type Provider } from 'oidc-provider'
import { errorPage, type FormPage, formPage, type Screen } from './pages.ts'
import { ATTRIBUTION_PARAMETERS } from './attribution.ts'
import { DEMO_EMAIL, type User, type Users } from './users.ts'

const FORM_LIMIT_BYTES = 16_384

/** The pages of the provider: shows the form of a pending authorization request and handles its submission. */
export class InteractionPages {
  readonly #provider: Provider
  readonly #users: Users
  readonly #homeUrl: string

  /** @param homeUrl where the page for errors links to */
  constructor(provider: Provider, users: Users, homeUrl: string) {
    this.#provider = provider
    this.#users = users
    this.#homeUrl = homeUrl
  }

  /** Serves `/interaction/{uid}`. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const interaction = await this.#provider.interactionDetails(request, response)
      if (request.method === 'POST') await this.#submit(interaction, await readForm(request), response)
      else this.#show(interaction, response, { screen: requestedScreen(request, interaction) })
    } catch (error) {
      if (!(error instanceof errors.SessionNotFound)) throw error
      const description = 'This login has already finished, or it took too long.'
      sendPage(response, 400, errorPage({ error: 'session_expired', description, homeUrl: this.#homeUrl }))
    }
  }

  async #submit(interaction: Interaction, form: URLSearchParams, response: ServerResponse): Promise<void> {
    if (form.get('action') === 'cancel') {
      const cancelled = { error: 'access_denied', error_description: 'The user cancelled' }
      return this.#finish(interaction, cancelled, response)
    }
    const screen = screenFrom(form.get('screen')) ?? defaultScreen(interaction)
    const email = form.get('email') ?? ''
    const user = this.#userFor(screen, { email, password: form.get('password') ?? '' }, interaction)
    if (typeof user === 'string') return this.#show(interaction, response, { screen, email, refusal: user }, 422)
    await this.#forgetOtherUser(interaction, user)
    const { accountId } = user
    const result = {
      registration: {},
      login: { accountId },
      consent: await this.#consent(interaction, accountId),
    }
    return this.#finish(interaction, result, response)
  }

  /** The user of the form, or the reason for a refusal as a string. */
  #userFor(
    screen: Screen,
    { email, password }: { email: string; password: string },
    interaction: Interaction,
  ): User | string {
    if (screen === 'consent') return this.#current(interaction) ?? 'You are no longer logged in.'
    if (!/^[^\s@]+@[^\s@]+$/.test(email.trim())) return 'Enter an e-mail address.'
    if (password === '') return 'Enter a password.'
    if (screen === 'registration')
      return this.#users.signUp(email, password) ?? 'This address already has an account: log in instead.'
    const user = this.#users.byEmail(email)
    if (!user) return 'There is no account yet: sign up first.'
    return this.#users.hasPassword(user, password) ? user : 'The password is wrong.'
  }

  async #consent({ params }: Interaction, accountId: string): Promise<{ grantId: string }> {
    const grant = new this.#provider.Grant({ accountId, clientId: params['client_id'] ?? '' })
    grant.addOIDCScope(params['scope'] ?? '')
    return { grantId: await grant.save() }
  }

  /** Ends the session of another user. Without this, the library would show its own logout page first. */
  async #forgetOtherUser(interaction: Interaction, user: User): Promise<void> {
    if (!interaction.session || interaction.session.accountId === user.accountId) return
    const session = await this.#provider.Session.findByUid(interaction.session.uid)
    await session?.destroy()
    delete interaction.session
  }

  /** Stores the result and redirects the browser to the library, which completes the authorization request. */
  async #finish(interaction: Interaction, result: InteractionResult, response: ServerResponse): Promise<void> {
    interaction.result = result
    await interaction.persist()
    response.writeHead(303, { location: interaction.returnTo, 'cache-control': 'no-store' }).end()
  }

  #show(
    interaction: Interaction,
    response: ServerResponse,
    shown: { screen: Screen; email?: string; refusal?: string },
    status = 200,
  ): void {
    const { params, uid } = interaction
    const suggested = shown.screen === 'registration' ? '' : (this.#current(interaction)?.email ?? DEMO_EMAIL)
    const page: FormPage = {
      email: suggested,
      ...shown,
      action: `/interaction/${uid}`,
      client: params['client_id'] ?? '',
      scopes: params['scope']?.split(' ') ?? [],
      attribution: ATTRIBUTION_PARAMETERS.flatMap((name) => {
        const value = params[name]
        return value === undefined ? [] : [[name, value] as const]
      }),
    }
    sendPage(response, status, formPage(page))
  }

  #current({ session }: Interaction): User | undefined {
    return session && this.#users.byAccountId(session.accountId)
  }
}

function defaultScreen({ prompt }: Interaction): Screen {
  return screenFrom(prompt.name) ?? 'login'
}

function requestedScreen(request: IncomingMessage, interaction: Interaction): Screen {
  const { searchParams } = new URL(request.url ?? '', 'http://sandbox')
  return screenFrom(searchParams.get('screen')) ?? defaultScreen(interaction)
}

function screenFrom(name: string | null): Screen | undefined {
  return name === 'login' || name === 'registration' || name === 'consent' ? name : undefined
}

function sendPage(response: ServerResponse, status: number, page: string): void {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }).end(page)
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > FORM_LIMIT_BYTES) throw new Error('the form is too large')
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString())
}
