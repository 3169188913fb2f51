#!/bin/sh
# universal-cookie 8.1.2, which react-cookie and VueUse's useCookies read with: a guess says that get() parses what set() has written of an
# object, so a value in brackets ("do not convert the cookie into an object" is what its option doNotParse says), and leaves any other
# as the text that the server has sent. Yet every value that happens to be JSON is parsed: a token in hexadecimal whose only letter is
# an "e" is a number or Infinity, which a token of 16 characters is once in a thousand times; an id of 17 digits is another id, "1.10"
# is 1.1, and "null" is null. So now and then a session sends a CSRF token that is none. `get(name, { doNotParse: true })` reads texts.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts universal-cookie@8.1.2
cat >read.mjs <<'JS'
import Cookies from 'universal-cookie'
const values = ['4f1c09a7', '71e40926', '00712034', '10209033848396525', '1.10', 'null']
for (const options of [undefined, { doNotParse: true }]) {
  const read = (value) => new Cookies(`token=${value}`).get('token', options)
  console.log(values.map((value) => `${value} is ${typeof read(value)} ${read(value)}`).join(', '))
}
JS
seen=$(node read.mjs)
echo "$seen"
[ "$seen" = '4f1c09a7 is string 4f1c09a7, 71e40926 is number Infinity, 00712034 is string 00712034, '\
'10209033848396525 is number 10209033848396524, 1.10 is number 1.1, null is object null
4f1c09a7 is string 4f1c09a7, 71e40926 is string 71e40926, 00712034 is string 00712034, '\
'10209033848396525 is string 10209033848396525, 1.10 is string 1.10, null is string null' ]
