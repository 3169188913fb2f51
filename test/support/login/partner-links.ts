const SIDC = '0f8fad5b-d9cb-469f-a165-70867728950e'
/** A link that is right. */
export const RIGHT_QUERY = `sidc=${SIDC}&utm_campaign=spring&utm_medium=affiliate&utm_source=CU12345`
const RIGHT = `/auth/signup?${RIGHT_QUERY}`

/** A link as somebody has published it. */
export interface PublishedLink {
  readonly what: string
  readonly link: string
  /** The three headers of a HEAD: `complete`, or `partial <problems>`, and `; <notes>`. Or the status, if it is not 200. */
  readonly says: string
  /** How `utm_campaign` is decoded. */
  readonly campaign?: string
}

/** A right link whose campaign is written so. */
const campaign = (raw: string, decoded: string, note?: string): PublishedLink => ({
  what: `campaign ${raw}`,
  link: RIGHT.replace('spring', raw),
  says: note === undefined ? 'complete' : `complete; ${note}`,
  campaign: decoded,
})
const placeholder = (raw: string, decoded = raw): PublishedLink => campaign(raw, decoded, 'utm_campaign=placeholder')
const punctuation = (raw: string, decoded = raw): PublishedLink => campaign(raw, decoded, 'utm_campaign=punctuation')
const appended = (raw: string, decoded = raw): PublishedLink => campaign(raw, decoded, 'utm_campaign=appended')

const CAMPAIGNS: readonly PublishedLink[] = [
  campaign('spring', 'spring'),
  campaign('%zz', '%zz', 'utm_campaign=escape'),
  campaign('50%', '50%', 'utm_campaign=escape'),
  campaign('a+b', 'a b', 'utm_campaign=plus'),
  campaign('+a', ' a', 'utm_campaign=plus,utm_campaign=space'),
  campaign('a%2Bb', 'a+b'),
  campaign('a%20b', 'a b'),
  campaign('a%2520b', 'a%20b', 'utm_campaign=encoded_twice'),
  campaign('a%2C%5C', 'a,\\'),
  campaign('spring.sale', 'spring.sale'),
  campaign('[DE]%20spring', '[DE] spring'),
  campaign('%7B%7D', '{}'),
  campaign('a;b', 'a;b'),
  placeholder('%7B%7Bcampaign%7D%7D%3Fx', '{{campaign}}?x'),
  placeholder('%7B%7Bcampaign.name%7D%7D', '{{campaign.name}}'),
  placeholder('summer-$%7Bid%7D', 'summer-${id}'),
  placeholder('[id]'),
  placeholder('%3Cid%3E', '<id>'),
  placeholder('__CAMPAIGN__'),
  placeholder('$campaign$'),
  placeholder('*|CAMPAIGN|*'),
  placeholder('%23campaign%23', '#campaign#'),
  placeholder(':campaign'),
  placeholder('null'),
  placeholder('undefined'),
  placeholder('%25%25name%25%25', '%%name%%'),
  placeholder('%%name%%'),
  appended('spring?x'),
  appended('spring?fbclid=x'),
  appended('spring%26x', 'spring&x'),
  appended('a%3D1', 'a=1'),
  appended('a;amp;utm_x=1'),
  punctuation('%22spring%22', '"spring"'),
  punctuation("'spring"),
  punctuation('spring.'),
  punctuation('spring,'),
  punctuation('spring)'),
  punctuation('spring%3E', 'spring>'),
  punctuation('spring/'),
  punctuation('%2Fspring', '/spring'),
]

const returnTo = (raw: string, says: string): PublishedLink => ({
  what: `return_to=${raw}`,
  link: `${RIGHT}&return_to=${raw}`,
  says,
})
const changed = (what: string, from: string, to: string, says: string): PublishedLink => ({
  what,
  link: RIGHT.replace(from, to),
  says,
})
const SOURCE = 'partial utm_source=missing; utm_source='
const NONE = 'sidc=inside,utm_campaign=inside,utm_medium=inside,utm_source=inside'

/** Links of partners, and what becomes of them on their way: trackers, mail programs, cleaners, shorteners, QR codes, people. */
export const PUBLISHED_LINKS: readonly PublishedLink[] = [
  ...CAMPAIGNS,
  changed('a second query behind the last value', 'CU12345', 'CU12345?fbclid=x', 'complete; utm_source=appended'),
  changed('the dot of a sentence behind the link', 'CU12345', 'CU12345.', 'complete; utm_source=punctuation'),
  changed('braces around the id', SIDC, `{${SIDC}}`, 'partial sidc=format; sidc=placeholder'),
  changed('the id is none', SIDC, 'x', 'partial sidc=format'),
  changed('the id in capitals', SIDC, SIDC.toUpperCase(), 'complete'),
  changed('another medium', 'affiliate', 'email', 'partial utm_medium=format'),
  changed('the medium in capitals', 'affiliate', 'Affiliate', 'partial utm_medium=format'),
  { what: 'a parameter twice', link: `${RIGHT}&sidc=y`, says: 'partial sidc=repeated' },
  { what: 'a parameter of others', link: `${RIGHT}&fbclid=x`, says: 'complete' },
  returnTo('/', 'complete'),
  returnTo('%2Fwelcome%3Fa%3D1', 'complete'),
  returnTo('', 'complete; return_to=replaced'),
  returnTo('welcome', 'complete; return_to=replaced'),
  returnTo('//evil.example', 'complete; return_to=replaced'),
  returnTo('https%3A%2F%2Fevil.example', 'complete; return_to=replaced'),
  returnTo('/a&return_to=/b', 'complete; return_to=replaced'),
  changed('a name in capitals', 'utm_source', 'UTM_SOURCE', `${SOURCE}case`),
  changed('a name with a capital', 'utm_source', 'Utm_Source', `${SOURCE}case`),
  changed('a hyphen in a name', 'utm_source', 'utm-source', `${SOURCE}name`),
  changed('the source of a page', 'utm_source', 'amp;utm_source', `${SOURCE}name`),
  changed('a space behind a name', 'utm_source', 'utm_source%20', `${SOURCE}name`),
  changed('a space before a name', 'utm_source', '%20utm_source', `${SOURCE}name`),
  changed(
    'an encoded &',
    '&utm_source',
    '%26utm_source',
    'partial utm_medium=format,utm_source=missing; utm_medium=appended,utm_source=inside',
  ),
  changed(
    '; in place of &',
    '&utm_source',
    ';utm_source',
    'partial utm_medium=format,utm_source=missing; utm_medium=appended,utm_source=inside',
  ),
  {
    what: 'a return_to that swallows a parameter',
    link: `${RIGHT.replace('&utm_source=CU12345', '')}&return_to=%2Fwelcome%3Fa%3D1%26utm_source%3DCU12345`,
    says: `${SOURCE}inside`,
  },
  {
    what: 'a query that was encoded once more',
    link: `/auth/signup?${encodeURIComponent(RIGHT_QUERY)}`,
    says: `none; ${NONE}`,
  },
  {
    what: 'a link that was cleaned',
    link: `/auth/signup?sidc=${SIDC}`,
    says: 'partial utm_campaign=missing,utm_medium=missing,utm_source=missing; sidc=cleaned',
  },
  {
    what: 'not a link that was cleaned',
    link: `/auth/signup?sidc=${SIDC}&UTM_SOURCE=a`,
    says: 'partial utm_campaign=missing,utm_medium=missing,utm_source=missing; utm_source=case',
  },
  { what: 'no query', link: '/auth/signup', says: 'none' },
  { what: 'a slash behind the path', link: RIGHT.replace('signup', 'signup/'), says: '308' },
  { what: 'a QR code in capitals', link: RIGHT.toUpperCase(), says: '308' },
  { what: 'a path with a capital', link: RIGHT.replace('signup', 'Signup'), says: '308' },
]
