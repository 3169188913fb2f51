import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem, problemCodeOf } from '../problem.ts'
import { html, page, renderPage, wantsPage, type Html } from './html.ts'

/** Sets the headers for the body of a problem, and returns the body: a page for a navigation, otherwise the document. */
export function renderProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  problem: Problem,
): Buffer | string | undefined {
  const body = wantsPage(request.headers.accept)
    ? renderPage(reply, problemPage(problem, request.id))
    : Buffer.from(problem.body(request.id))
  if (Buffer.isBuffer(body)) reply.header('content-type', 'application/problem+json')
  return request.method === 'HEAD' ? undefined : body
}

/**
 * `GET /problems/:code` explains a code. The `type` of every problem refers to it.
 * @param sendFile sends the frontend's own page for the code; returns false if it has none
 */
export async function problemRoutes(
  fastify: FastifyInstance,
  { sendFile }: { readonly sendFile: (path: string, reply: FastifyReply) => boolean },
): Promise<void> {
  fastify.get('/problems/:code', (request, reply) => {
    const { code: text = '' } = request.params as { code?: string }
    const code = problemCodeOf(text)
    if (code === undefined) return reply.callNotFound()
    if (sendFile(`problems/${code}`, reply)) return reply
    const { advice } = new Problem(code)
    return reply
      .headers({ 'cache-control': 'no-cache', vary: 'Origin, Accept' })
      .send(renderProblem(request, reply, new Problem(code, { detail: advice })))
  })
}

/** A problem as a page: the facts of its document, and advice. */
function problemPage({ code, status, title, message, advice, details }: Problem, requestId: string): Html {
  const { errors = [], outcome, loginUrl } = details
  const fields = errors.map(({ field, message: why }) => html`<li><code>${field}</code> ${why}</li>`)
  return page(
    title,
    html`${message === title || message === advice ? '' : html`<p>${message}</p>`}
      <p>${advice}</p>
      ${
        fields.length === 0
          ? ''
          : html`<ul>
              ${fields}
            </ul>`
      }
      ${loginUrl === undefined ? '' : html`<p><a href="${loginUrl}">Log in</a></p>`}
      <dl>
        ${fact('Code', code)} ${fact('Status', String(status))} ${outcome === undefined ? '' : fact('Outcome', outcome)}
        ${fact('Request', requestId)}
      </dl>`,
  )
}

function fact(name: string, value: string): Html {
  return html`<dt>${name}</dt>
    <dd>${value}</dd>`
}
