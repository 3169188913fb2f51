/** What a schema may consist of whose type is generated. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly (string | number | null)[]
  readonly description?: string
  readonly examples?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: true
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

const KEYWORDS = new Set<string>([
  '$ref',
  'type',
  'enum',
  'description',
  'examples',
  'properties',
  'additionalProperties',
  'required',
  'items',
  'anyOf',
  'allOf',
] satisfies (keyof Schema)[])

/** The names of members that are ids where they are integers: the package gives those beyond 2^53 as texts. */
const ID = /^(?:(?!req_)\w+_id|buy|sell|cancel)$/

const REFERENCE = '#/components/schemas/'

/** The declarations of these types, and of those to which they refer. */
export function declarations(names: readonly string[], schemas: Readonly<Record<string, Schema>>): string {
  const declared = new Map<string, string>()
  const declare = (name: string): void => {
    const schema = schemas[name]
    if (schema === undefined || declared.has(name)) return
    declared.set(name, declaration(name, schema))
    for (const [, next = ''] of JSON.stringify(schema).matchAll(/"#\/components\/schemas\/(\w+)"/g)) declare(next)
  }
  for (const name of names) declare(name)
  return [...declared.values()].join('\n')
}

function declaration(name: string, schema: Schema): string {
  const { description, type, allOf = [] } = schema
  const parents = allOf.flatMap(({ $ref }) => $ref?.slice(REFERENCE.length) ?? [])
  const own = allOf.find(({ $ref }) => $ref === undefined) ?? schema
  if (type !== 'object' && allOf.length === 0) return `${comment(description)}export type ${name} = ${typeOf(schema)}\n`
  const heritage = parents.length > 0 ? ` extends ${parents.join(', ')}` : ''
  const lines = members(own, comment).flatMap((member) => member.trimEnd().split('\n'))
  return `${comment(description)}export interface ${name}${heritage} {\n${lines.map((line) => `  ${line}\n`).join('')}}\n`
}

function comment(description: string | undefined): string {
  return description === undefined ? '' : `/** ${description.replace(/\.?$/, '.')} */\n`
}

/** @throws Error for a keyword that it would leave out */
function typeOf(schema: Schema): string {
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword))
  if (unknown !== undefined) throw new Error(`generate-types.ts cannot translate ${unknown}`)
  const { $ref, type, items = {}, anyOf, enum: values } = schema
  if ($ref !== undefined) return $ref.slice(REFERENCE.length)
  if (values !== undefined)
    return values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' | ')
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' | ')
  if (type === undefined) return 'unknown'
  if (typeof type !== 'string') return [...new Set(type.map((each) => typeOf({ type: each })))].join(' | ')
  switch (type) {
    case 'array':
      return `${typeOf(items)}[]`
    case 'object':
      return `{ ${members(schema, () => '').join('; ')} }`
    case 'integer':
      return 'number'
    default:
      return type
  }
}

function memberType(name: string, member: Schema): string {
  const type = typeOf(member)
  const isId = ID.test(name) && /\bnumber\b/.test(type) && !/\bstring\b/.test(type)
  return isId ? type.replace('number', 'number | string') : type
}

function members(schema: Schema, about: typeof comment): string[] {
  const { properties = {}, required = [], additionalProperties } = schema
  const named = Object.entries(properties).map(
    ([name, member]) =>
      `${about(member.description)}${name}${required.includes(name) ? '' : '?'}: ${memberType(name, member)}`,
  )
  return additionalProperties ? [...named, '[name: string]: unknown'] : named
}
