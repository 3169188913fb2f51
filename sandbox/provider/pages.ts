import { html, type Html } from '../../src/http/html.ts'
import { ATTRIBUTION_PARAMETERS } from './attribution.ts'
import { DEMO_EMAIL, DEMO_PASSWORD } from './users.ts'

/** The screens of the form: login, sign-up, or only consent while the user is logged in. */
export type Screen = 'login' | 'registration' | 'consent'

export interface FormPage {
  screen: Screen
  /** The address to which the form is posted. With `?screen=` it shows the other screens. */
  action: string
  client: string
  scopes: readonly string[]
  /** The content of the e-mail field, or the current account on the consent screen. */
  email: string
  /** The partner parameters of the request as [name, value]. */
  attribution: readonly (readonly [string, string])[]
  /** The reason why the last attempt was refused. */
  refusal?: string
}

const SCOPE_MEANINGS: Readonly<Record<string, string>> = {
  trade: 'Buy and sell contracts for you',
  account_manage: 'See and manage your accounts',
  offline_access: 'Stay connected while you are away',
}

const SCREENS: Readonly<Record<Screen, { title: string; submit: string }>> = {
  login: { title: 'Log in', submit: 'Log in and allow' },
  registration: { title: 'Sign up', submit: 'Sign up and allow' },
  consent: { title: 'Allow access', submit: 'Allow' },
}

/** A page with login or sign-up and consent in a single form. It works without scripts. */
export function formPage(page: FormPage): string {
  const { title, submit } = SCREENS[page.screen]
  return document(
    title,
    html`
      <h1>${title}</h1>
      ${page.refusal === undefined ? '' : html`<p class="refusal" role="alert">${page.refusal}</p>`}
      <form method="post" action="${page.action}">
        <input type="hidden" name="screen" value="${page.screen}" />
        ${page.screen === 'consent' ? html`<p>Logged in as <strong>${page.email}</strong></p>` : fields(page)}
        ${page.screen === 'registration' ? attribution(page) : ''}
        <p><strong>${page.client}</strong> asks to:</p>
        <ul>
          ${page.scopes.map((scope) => html`<li>${SCOPE_MEANINGS[scope] ?? scope} (<code>${scope}</code>)</li>`)}
        </ul>
        <div class="actions">
          <button name="action" value="continue" data-action="continue">${submit}</button>
          <button name="action" value="cancel" data-action="cancel" class="quiet" formnovalidate>Cancel</button>
        </div>
      </form>
      ${otherScreen(page)}
    `,
  )
}

export interface ErrorPage {
  /** The code of the error (RFC 6749 §4.1.2.1), or `session_expired`. */
  error: string
  description: string | undefined
  /** The application that is registered, never an address from the request. */
  homeUrl: string
}

/** The page for errors that must not be redirected to the application, as its redirect URI is not trusted. */
export function errorPage({ error, description = 'The request could not be understood.', homeUrl }: ErrorPage): string {
  return document(
    'Something is wrong',
    html`
      <h1>Something is wrong</h1>
      <p>${description}</p>
      <p><code data-error="${error}">${error}</code></p>
      <p><a href="${homeUrl}" data-action="home">Back to the application</a>, where you can try again.</p>
    `,
  )
}

function fields({ screen, email }: FormPage): Html {
  const isLogin = screen === 'login'
  const hint = isLogin
    ? html`The password of ${DEMO_EMAIL} is “${DEMO_PASSWORD}”.`
    : html`Any will do. You need it for the next login, until the sandbox stops.`
  return html`
    <label for="email">E-mail</label>
    <input id="email" name="email" type="email" value="${email}" autocomplete="username" required />
    <label for="password">Password</label>
    <input
      id="password"
      name="password"
      type="password"
      autocomplete="${isLogin ? 'current-password' : 'new-password'}"
      aria-describedby="password-hint"
      required
    />
    <p class="hint" id="password-hint">${hint}</p>
  `
}

function attribution({ attribution }: FormPage): Html {
  if (attribution.length === 0) return html`<p class="note">No partner is credited with this sign-up.</p>`
  return html`
    <div class="note">
      <p>
        ${
          attribution.length === ATTRIBUTION_PARAMETERS.length
            ? 'This sign-up is credited to a partner:'
            : 'No partner is credited with this sign-up, since only these values have arrived:'
        }
      </p>
      <dl>
        ${attribution.map(
          ([name, value]) =>
            html`<dt>${name}</dt>
              <dd data-attribution="${name}">${value}</dd>`,
        )}
      </dl>
    </div>
  `
}

function otherScreen({ screen, action }: FormPage): Html {
  switch (screen) {
    case 'login':
      return html`<p>No account yet? <a href="${action}?screen=registration">Sign up</a></p>`
    case 'registration':
      return html`<p>Already signed up? <a href="${action}?screen=login">Log in</a></p>`
    case 'consent':
      return html`<p>Not you? <a href="${action}?screen=login">Use another account</a></p>`
  }
}

function document(title: string, body: Html): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Sandbox provider</title>
        <link rel="icon" href="/sandbox.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/sandbox.css" />
      </head>
      <body>
        <header>Sandbox provider – a stand-in for development; any e-mail works</header>
        <main>${body}</main>
      </body>
    </html> `.text
}
