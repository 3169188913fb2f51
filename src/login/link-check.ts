import type { FastifyReply } from 'fastify'
import { html, page, type Html } from '../http/html.ts'
import {
  readAttribution,
  type AttributionName,
  type AttributionNote,
  type AttributionProblem,
  type AttributionReading,
  type ParameterReading,
} from './attribution.ts'
import { safeReturnTo } from './return-to.ts'

/** What the page says of a link whose form is right, and that is probably wrong all the same. */
const DOUBTFUL =
  'This link is complete, but one of its values is probably wrong, and sign-ups are sent on with the values as they stand here.'

/** Longer values are truncated for display. */
const MAX_SHOWN = 200

const RULES: Readonly<Record<AttributionName, string>> = {
  sidc: 'the GUID from your partners dashboard, without braces, such as 0f8fad5b-d9cb-469f-a165-70867728950e',
  utm_campaign: '1 to 128 printable ASCII characters',
  utm_medium: 'the word affiliate, in lower case',
  utm_source: 'your affiliate id, 1 to 128 printable ASCII characters',
}

const PROBLEMS: Readonly<Record<AttributionProblem, (name: AttributionName) => string>> = {
  missing: () => 'It is missing.',
  repeated: () => 'It is in the link more than once, so none of its values counts.',
  format: (name) => `It must be ${RULES[name]}.`,
}

const NOTES: Readonly<Record<AttributionNote, string>> = {
  plus: 'A + stands for a space. Write %2B for a plus sign, and %20 for a space.',
  escape: 'A % is not followed by two hexadecimal digits. Write %25 for a percent sign.',
  encoded_twice: 'It seems to be encoded twice: it still has escapes after decoding.',
  space: 'It begins or ends with a space.',
  placeholder: 'It looks like a placeholder that nothing has replaced.',
  appended: 'Something else is appended to it: a second ? or & or =, or a ; in place of an &.',
  punctuation: 'A quote, a bracket, a dot, a comma or a slash stands at one of its ends.',
  cleaned:
    'It is the only one of the four. Programs that clean links remove the other three: link to your own address, which redirects here.',
  case: 'The link has this name in capital letters. Write it in lower case.',
  name: 'The link has a parameter with almost the same name.',
  inside: 'The link has it inside another value: it was encoded once more, or a & before it is missing or was encoded.',
}

const RETURN_TO_NOTE =
  'The value in the link is not a path of this site, so new users see the start page. Write an encoded path, such as %2Fwelcome.'

const VERDICTS: Readonly<Record<AttributionReading['outcome'], string>> = {
  complete: 'This link is complete: sign-ups that come through it are sent on with your four values.',
  partial: 'This link is incomplete: sign-ups that come through it are not tracked.',
  none: 'This link names no partner: sign-ups that come through it are not tracked.',
}

type CheckedLink = ReturnType<typeof checkLink>

/** Reads the query of a sign-up link. `returnTo` is where new users return to after signing up. */
export function checkLink(query: string, frontendUrl: string) {
  const wanted = new URLSearchParams(query).getAll('return_to')
  const returnTo = safeReturnTo(wanted, frontendUrl)
  const isReturnReplaced = wanted.length > 0 && wanted[0] !== returnTo
  return { reading: readAttribution(query), returnTo, isReturnReplaced }
}

/** Reports a link in the headers `X-Attribution`, `-Problems` and `-Notes` (docs/partners.md). */
export function announceLink(reply: FastifyReply, link: CheckedLink): void {
  const { parameters, outcome } = link.reading
  const problems = parameters.flatMap(({ name, problem }) => (problem === undefined ? [] : `${name}=${problem}`))
  const notes = parameters.flatMap(({ name, notes }) => notes.map((note) => `${name}=${note}`))
  if (link.isReturnReplaced) notes.push('return_to=replaced')
  reply.header('x-attribution', outcome)
  if (outcome === 'partial') reply.header('x-attribution-problems', problems.join(','))
  if (notes.length > 0) reply.header('x-attribution-notes', notes.join(','))
}

/** Reports a link as JSON, for scripts. */
export function linkDocument(link: CheckedLink): object {
  const { reading, returnTo, isReturnReplaced } = link
  return {
    attribution: reading.outcome,
    verdict: verdictOn(reading),
    parameters: reading.parameters.map((parameter) => ({
      name: parameter.name,
      value: shown(parameter),
      problem: parameter.problem,
      notes: parameter.notes,
      explanation: explanationsOf(parameter),
    })),
    return_to: { value: returnTo, replaced: isReturnReplaced },
  }
}

/** Reports a link as a page, for partners. */
export function linkPage({ reading, returnTo, isReturnReplaced }: CheckedLink): Html {
  const rows = reading.parameters.map((parameter) => {
    const { name, problem, notes } = parameter
    const value = shown(parameter)
    // That a value is missing says all.
    const isMissing = problem === 'missing'
    const passing = notes.length > 0 ? 'doubtful' : 'right'
    const verdict = problem === undefined ? passing : isMissing ? 'missing' : 'wrong'
    const explanations = explanationsOf(parameter).slice(isMissing ? 1 : 0)
    return html`<dt><code>${name}</code></dt>
      <dd>
        ${value === undefined ? '' : html`<code>${value}</code> `}<strong class="${verdict}">${verdict}</strong>
        ${explanations.map((text) => html`<p>${text}</p>`)}
      </dd>`
  })
  return page(
    'Your sign-up link',
    html`<p>${verdictOn(reading)}</p>
      <dl>
        ${rows}
        <dt><code>return_to</code></dt>
        <dd><code>${returnTo}</code>${isReturnReplaced ? html`<p>${RETURN_TO_NOTE}</p>` : ''}</dd>
      </dl>
      <p>This checks only the form of the values: only your partners dashboard knows whether an id is yours.</p>`,
  )
}

function verdictOn({ outcome, parameters }: AttributionReading): string {
  const isDoubtful = outcome === 'complete' && parameters.some(({ notes }) => notes.length > 0)
  return isDoubtful ? DOUBTFUL : VERDICTS[outcome]
}

function explanationsOf({ name, problem, notes }: ParameterReading): string[] {
  return [...(problem === undefined ? [] : [PROBLEMS[problem](name)]), ...notes.map((note) => NOTES[note])]
}

function shown({ value }: ParameterReading): string | undefined {
  if (value === undefined || value.length <= MAX_SHOWN) return value
  return `${value.slice(0, MAX_SHOWN)}…`
}
